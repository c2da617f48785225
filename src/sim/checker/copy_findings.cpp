#include <fmt/format.h>

#include "machine/cluster.hpp"
#include "values/box_walk.hpp"
#include "values/place.hpp"

/// What lies in shared memory: addresses that are not where a tile's layout puts the element, operands that
/// were laid out by another swizzle than the one they are read by, and copies that nobody reads.
namespace tegula::sim {

namespace {

char const* swizzle_text(TmaSwizzle swizzle) {
  switch (swizzle) {
    case TmaSwizzle::none:
      return "no swizzle";
    case TmaSwizzle::b32:
      return "the swizzle of 32 bytes";
    case TmaSwizzle::b64:
      return "the swizzle of 64 bytes";
    case TmaSwizzle::b128:
      return "the swizzle of 128 bytes";
  }
  return "";
}

/// "byte 144 of A", also where it lies before or behind A.
std::string byte_text(SharedBuffer const* buffer, std::uint32_t address) {
  if (buffer == nullptr) return fmt::format("byte {} of shared memory", address - kSharedBase);
  return fmt::format(
      "byte {} of {}",
      static_cast<std::int64_t>(address) - kSharedBase - static_cast<std::int64_t>(buffer->offset),
      buffer->name);
}

}  // namespace

void Cta::wrong_address(std::uint32_t right, std::uint32_t computed, std::string const& layout, Where made,
                        Where where) {
  SharedBuffer const* const buffer = buffer_at(launch_->kernel->buffers, right);
  report(FindingKind::wrong_layout, where, here(), buffer_name(right), own_place(right),
         fmt::format("{} is {} by its layout, {}, but the accessor made at {} computes {}", own_place(right),
                     byte_text(buffer, right), layout, place_text(made), byte_text(buffer, computed)),
         made);
}

bool Cta::laid_out_by(TmaSwizzle swizzle, std::uint32_t address, Instruction instruction, Where where,
                      Culprit who) {
  Copy const* const copy = copies_.at(address - kSharedBase);
  if (copy == nullptr || !copy->swizzle || *copy->swizzle == swizzle ||
      swizzle_of_line(*copy->swizzle, address) == swizzle_of_line(swizzle, address)) [[likely]]
    return true;
  report(
      FindingKind::wrong_layout, where, who, buffer_name(address), shared_place(address),
      fmt::format("{} reads {} by {}, where a {} that {} issued ({}) has put other elements, by {}",
                  ptx_name(instruction), shared_place(address), swizzle_text(swizzle),
                  ptx_name(copy->instruction), agent_text(cluster_.cta(copy->cta).thread(copy->thread).agent),
                  place_text(copy->where), swizzle_text(*copy->swizzle)),
      {copy->where, {copy->cta, copy->thread / 32, copy->thread % 32}});
  return false;
}

/// A copy is to bring bytes; `in_order`: nothing was found that forbids it to.
void Cta::bring(CopyShadow::Id copy, SharedRange const& range, bool in_order, Overwrite by) {
  if (!in_order) by.instruction = Instruction::none;  // what was found says more
  copies_.bring(copy, range.address - kSharedBase, range.bytes, by,
                [&](Copy const& lost) { report_lost(lost, by); });
}

void Cta::report_lost(Copy const& lost, Overwrite const& by) {
  std::uint32_t const first = kSharedBase + lost.offset;
  auto const whose = [&](auto const& of) { return agent_text(cluster_.cta(of.cta).thread(of.thread).agent); };
  report(
      FindingKind::unread_copy, by.where, {by.cta, by.thread / 32, by.thread % 32}, buffer_name(first),
      shared_place(first),
      fmt::format("{} writes over what a {} of {} ({}) has brought, from {} on, and nobody has read any of "
                  "it",
                  ptx_name(by.instruction), ptx_name(lost.instruction), whose(lost), place_text(lost.where),
                  shared_place(first)),
      {lost.where, {lost.cta, lost.thread / 32, lost.thread % 32}});
}

/// At the CTA's exit.
void Cta::report_lost_parts() {
  copies_.for_each_lost([&](Copy const& lost, Overwrite const& by) { report_lost(lost, by); });
}

}  // namespace tegula::sim
