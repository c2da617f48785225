#include "launch/cooperative.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "tegula/io/text.hpp"
#include "values/place.hpp"

namespace tegula::sim {

namespace {

/// Of these two mappings each are made, of some 65000 that a process may have.
constexpr std::int64_t kMostThreads = 28 * 1024;

/// CTAs of the kernel that a multiprocessor holds at once, and what leaves no room for more.
struct Resident {
  std::int64_t ctas;
  std::string by;
};

Resident resident(KernelImage const& kernel, ArchSpec const& spec) {
  Resident least{spec.ctas_per_multiprocessor, "the most that it may have"};
  auto const limit = [&](std::int64_t ctas, std::string by) {
    if (ctas < least.ctas) least = {ctas, std::move(by)};
  };
  std::int64_t const reserved = 1024;  // bytes of a CTA's shared memory that the system takes
  std::int64_t const shared = (static_cast<std::int64_t>(kernel.shared_bytes) + 127) / 128 * 128;
  int const registers = (kernel.registers() + 7) / 8 * 8;
  limit(spec.threads_per_multiprocessor / kernel.threads,
        fmt::format("its {} threads", kernel.threads));
  limit(kRegistersOfMultiprocessor / (std::int64_t{registers} * kernel.threads),
        fmt::format("the {} registers that a thread may have", kernel.registers()));
  limit(static_cast<std::int64_t>(spec.shared_bytes_per_multiprocessor) / (shared + reserved),
        fmt::format("its {} bytes of shared memory", kernel.shared_bytes));
  return least;
}

/// What a cluster does to the memory, but for what is done at `polled`; null: nothing.
GlobalSite const* change_of(ClusterLog const& log, std::uintptr_t address, SourceLocation polled) {
  for (GlobalRows const& rows : log.rows) {
    GlobalSite const& site = log.sites[rows.site];
    bool const changes = site.access != GlobalAccess::read && strong_writes(site.instruction);
    if (!changes || same_place(site.where, polled) || address < rows.begin) continue;
    std::uintptr_t const offset = address - rows.begin;
    bool const in_piece =
        rows.count == 1 ? offset < rows.bytes
                        : offset / rows.pitch < rows.count && offset % rows.pitch < rows.bytes;
    if (in_piece) return &site;
  }
  return nullptr;
}

}  // namespace

void check_cooperative(KernelImage const& kernel, Dim3 grid, Options const& options) {
  ArchSpec const& spec = spec_of(options.generation);
  std::int64_t const ctas = std::int64_t{1} * grid.x * grid.y * grid.z;
  std::int64_t const multiprocessors =
      options.multiprocessors > 0 ? options.multiprocessors : spec.multiprocessors;
  Resident const most = resident(kernel, spec);
  if (ctas > multiprocessors * most.ctas) {
    throw std::invalid_argument(fmt::format(
        "launch of {}: a cooperative launch of {}; the simulated GPU, an sm_{}, holds {} at once: {} on each of "
        "its {}, by {}",
        kernel.name, io::counted(ctas, "CTA"), spec.compute_capability, multiprocessors * most.ctas,
        most.ctas, io::counted(multiprocessors, "multiprocessor"), most.by));
  }
  if (ctas * kernel.threads > kMostThreads) {
    throw std::invalid_argument(fmt::format(
        "launch of {}: a cooperative launch of {} threads; the simulated machine runs at most {} together",
        kernel.name, ctas * kernel.threads, kMostThreads));
  }
}

void name_who_had_not_started(StuckClusters const& stuck,
                              std::map<std::int64_t, ClusterLog> const& logs,
                              std::map<std::int64_t, std::vector<Finding>>& findings,
                              std::function<Dim3(std::int64_t, int)> const& cta_of) {
  for (auto const& [index, address] : stuck) {
    for (auto other = logs.upper_bound(index); other != logs.end(); ++other) {
      Finding& deadlock = findings[index].back();
      GlobalSite const* const change =
          change_of(other->second, reinterpret_cast<std::uintptr_t>(address), deadlock.where);
      if (change == nullptr) continue;
      Dim3 const cta = cta_of(other->first, change->cta);
      deadlock.message += fmt::format(
          "; CTA ({}, {}, {}), which may not have started yet, does so by {} ({})", cta.x, cta.y,
          cta.z, ptx_name(change->instruction), place_text(change->where));
      deadlock.order =
          "`static constexpr bool cooperative = true;` in the kernel has all of its CTAs resident at once, or the launch "
          "refused";
      break;
    }
  }
}

}  // namespace tegula::sim
