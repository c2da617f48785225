#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "machine/cluster.hpp"
#include "values/place.hpp"

/// Loads, stores and atomics: what they move, and what the checker holds them to.
namespace tegula::sim {

namespace {

/// Whether (byte & mask) == state for all n (1, 2, 4, 8 or 16) bytes of a shadow.
bool all_equal(std::uint8_t const* shadow, int n, std::uint8_t mask, std::uint8_t state) {
  if (n == 16) {
    std::uint64_t words[2];
    std::memcpy(words, shadow, 16);
    std::uint64_t const m = mask * 0x0101010101010101ull;
    std::uint64_t const want = state * 0x0101010101010101ull;
    return (words[0] & m) == want && (words[1] & m) == want;
  }
  for (int i = 0; i < n; ++i) {
    if ((shadow[i] & mask) != state) return false;
  }
  return true;
}

int first_other(std::uint8_t const* shadow, int n, std::uint8_t mask, std::uint8_t state) {
  for (int i = 0; i < n; ++i) {
    if ((shadow[i] & mask) != state) return i;
  }
  return n;
}

}  // namespace

std::uint32_t Cta::shared_address(void const* object, Where where) {
  std::uintptr_t const offset =
      reinterpret_cast<std::uintptr_t>(object) - reinterpret_cast<std::uintptr_t>(shared_.data());
  if (offset > shared_.bytes()) {
    report(FindingKind::out_of_bounds, where, here(), "", "",
           "the address of an object outside of SharedStorage is taken as one in shared memory");
    return 0;
  }
  return kSharedBase + static_cast<std::uint32_t>(offset);
}

std::string Cta::own_place(std::uint32_t address) const {
  SharedBuffer const* const buffer = buffer_at(launch_->kernel->buffers, address);
  return buffer != nullptr ? place_in(*buffer, address)
                           : fmt::format("byte {} of shared memory", address - kSharedBase);
}

std::string Cta::shared_place(std::uint32_t address) const {
  std::string place = own_place(address);
  if (current_thread().cta != this) place += fmt::format(" of CTA {} of the cluster", rank_);
  return place;
}

std::string Cta::short_place(std::uint32_t address) const {
  SharedBuffer const* const buffer = buffer_at(launch_->kernel->buffers, address);
  if (buffer == nullptr) return fmt::format("{:#x}", address);
  std::size_t const element_bits = static_cast<std::size_t>(buffer->element_bits);
  if (8 * buffer->bytes <= element_bits) return buffer->name;
  // "element 2", "row 0, column 0 of stage 2"
  std::string const place =
      buffer->locate(static_cast<std::int64_t>(8 * (address - kSharedBase - buffer->offset) / element_bits));
  for (char const* const word : {"stage ", "element "}) {
    std::size_t const at = place.find(word);
    if (at == std::string::npos) continue;
    std::size_t const number = at + std::strlen(word);
    return fmt::format("{}[{}]", buffer->name,
                       place.substr(number, place.find_first_of(", ", number) - number));
  }
  return buffer->name;
}

std::string Cta::buffer_name(std::uint32_t address) const {
  SharedBuffer const* const buffer = buffer_at(launch_->kernel->buffers, address);
  return buffer != nullptr ? buffer->name : std::string();
}

void Cta::out_of_shared(Instruction instruction, std::uint32_t address, std::uint32_t bytes, Where where,
                        Culprit who) {
  report(
      FindingKind::out_of_bounds, where, who, "", "",
      fmt::format(
          "{} of {} bytes at shared address {:#x} lies outside of the CTA's {} bytes of shared memory, {:#x} to {:#x}",
          ptx_name(instruction), bytes, address, shared_.bytes(), kSharedBase,
          kSharedBase + shared_.bytes()));
}

/// Reports an access that is misaligned or out of bounds; false where it must not be performed.
bool Cta::in_bounds(Instruction instruction, std::uint32_t address, int bytes, Where where, int lane) {
  std::uint32_t const n = static_cast<std::uint32_t>(bytes);
  if (!shared_.contains(address, n)) {
    out_of_shared(instruction, address, n, where, here(lane));
    return false;
  }
  if (address % n != 0) {
    report(FindingKind::misaligned, where, here(lane), buffer_name(address), shared_place(address),
           fmt::format("{} of {} bytes at shared address {:#x}, {} bytes past a multiple of {}: {}",
                       ptx_name(instruction), bytes, address, address % n, bytes, shared_place(address)));
  }
  return true;
}

/// Holds an access against the state of its bytes. False where it was reported.
bool Cta::check_state(Instruction instruction, std::uint32_t address, int bytes, bool write, Where where,
                      int lane) {
  std::uint8_t* const state = shared_.state(address);
  bool right = true;
  if (write) {
    right = all_equal(state, bytes, kNoWrite, 0);
    if (!right) shared_findings(instruction, address, bytes, true, where, lane);
    for (int i = 0; i < bytes; ++i) state[i] |= kWritten;
    copies_.write(address - kSharedBase, static_cast<std::uint32_t>(bytes));
  } else {
    right = all_equal(state, bytes, kNoRead | kWritten, kWritten);
    if (!right) shared_findings(instruction, address, bytes, false, where, lane);
    copies_.read(address - kSharedBase, static_cast<std::uint32_t>(bytes));
  }
  return right;
}

bool Cta::shared_access(Instruction instruction, std::uint32_t address, int bytes, bool write, Where where,
                        int lane) {
  cluster_.before({.kind = write ? Visible::Kind::store : Visible::Kind::load,
                   .cta = rank_,
                   .address = address,
                   .amount = bytes,
                   .of_warp = instruction == Instruction::ldmatrix || instruction == Instruction::stmatrix});
  std::uint32_t const n = static_cast<std::uint32_t>(bytes);
  if (address % n != 0 || !shared_.contains(address, n)) [[unlikely]] {
    if (!in_bounds(instruction, address, bytes, where, lane)) return false;
  }
  if (!check_) return true;
  bool const right = check_state(instruction, address, bytes, write, where, lane);
  if (!races_) return true;
  std::uint32_t const offset = address - kSharedBase;
  std::uint16_t const by = site(instruction, where);
  Conflict conflict;
  bool const ordered = write ? shadow_.write(agent(lane), offset, n, by, conflict)
                             : shadow_.read(agent(lane), offset, n, by, conflict);
  if (!ordered && right) [[unlikely]]
    generic_race(instruction, write, where, lane, conflict);
  return true;
}

void Cta::shared_findings(Instruction instruction, std::uint32_t address, int bytes, bool write, Where where,
                          int lane) {
  std::uint8_t const* const state = shared_.state(address);
  int const flying = first_other(state, bytes, kInFlight, 0);
  if (flying < bytes) {
    std::uint32_t const at = address + static_cast<std::uint32_t>(flying);
    Pending const pending = pending_write(at);
    report(write ? FindingKind::async_overwrite : FindingKind::async_read_early, where, here(lane),
           buffer_name(at), shared_place(at),
           fmt::format("{} {} {} while a {} into it is in flight{}", ptx_name(instruction),
                       write ? "writes" : "reads", shared_place(at), ptx_name(pending.instruction),
                       pending.issuer),
           {pending.where, pending.who, pending.order});
    return;
  }
  int const being_read = first_other(state, bytes, kBeingRead, 0);
  if (write && being_read < bytes) {
    std::uint32_t const at = address + static_cast<std::uint32_t>(being_read);
    InFlight const* const reader = in_flight().reader_of(rank_, at);
    report(FindingKind::async_overwrite, where, here(lane), buffer_name(at), shared_place(at),
           fmt::format("{} writes {} while a {} that reads it is in flight{}", ptx_name(instruction),
                       shared_place(at), ptx_name(reader->instruction), issuer_text(*reader)),
           {reader->where,
            {reader->cta, reader->thread / 32, reader->thread % 32},
            in_flight().order_text(*reader, true)});
    return;
  }
  int const in_mbarrier = first_other(state, bytes, kMbarrier, 0);
  if (in_mbarrier < bytes) {
    std::uint32_t const at = address + static_cast<std::uint32_t>(in_mbarrier);
    MbarrierState const* const mbarrier = mbarrier_at(at / 8 * 8);
    report(FindingKind::mbarrier_misuse, where, here(lane), buffer_name(at), shared_place(at),
           fmt::format("{} {} {}, which is an mbarrier ({}): only mbarrier instructions may touch it",
                       ptx_name(instruction), write ? "writes" : "reads", shared_place(at),
                       place_text(mbarrier->init)),
           mbarrier->init);
    return;
  }
  int const unwritten = first_other(state, bytes, kWritten, kWritten);
  if (!write && unwritten < bytes) {
    std::uint32_t const at = address + static_cast<std::uint32_t>(unwritten);
    report(FindingKind::uninitialized_read, where, here(lane), buffer_name(at), shared_place(at),
           fmt::format("{} reads {}, which nobody has written", ptx_name(instruction), shared_place(at)));
  }
}

Cta::Pending Cta::pending_write(std::uint32_t address) const {
  InFlight const* const operation = in_flight().writer_of(rank_, address);
  if (operation != nullptr) {
    return {operation->instruction,
            operation->where,
            issuer_text(*operation),
            {operation->cta, operation->thread / 32, operation->thread % 32},
            in_flight().order_text(*operation, false)};
  }
  Thread const* issuer = nullptr;
  AsyncCopy const* const copy = copy_into(address, &issuer);
  if (copy == nullptr) return {Instruction::cp_async, {}, "", {}, ""};
  return {Instruction::cp_async,
          copy->where,
          fmt::format(" that warp {} lane {} issued ({}) and has not waited for", issuer->index / 32,
                      issuer->lane, place_text(copy->where)),
          {rank_, issuer->index / 32, issuer->lane},
          issuer == &current_thread()
              ? "a cp.async.wait_group that covers it would order them"
              : "a cp.async.wait_group by the thread that issued it, and then a cta::sync, would order them"};
}

void Cta::ld_shared(void* value, std::uint32_t address, int bytes, Where where) {
  note(Instruction::ld_shared, where, {bytes, address});
  if (shared_access(Instruction::ld_shared, address, bytes, false, where, current_thread().lane)) {
    cluster_.watch_read(shared_.at(address), true, where);
    std::memcpy(value, shared_.at(address), static_cast<std::size_t>(bytes));
  } else {
    std::memset(value, 0xff, static_cast<std::size_t>(bytes));
  }
}

void Cta::st_shared(std::uint32_t address, void const* value, int bytes, Where where) {
  note(Instruction::st_shared, where, {bytes, address});
  if (shared_access(Instruction::st_shared, address, bytes, true, where, current_thread().lane)) {
    cluster_.progressed();
    std::memcpy(shared_.at(address), value, static_cast<std::size_t>(bytes));
  }
}

void Cta::fence(Instruction instruction, Where where) { note(instruction, where); }

}  // namespace tegula::sim
