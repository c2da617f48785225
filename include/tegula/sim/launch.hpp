#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "tegula/macros.hpp"
#include "tegula/sim/machine.hpp"

/// Starting a kernel on the simulated machine. A kernel is a struct with
///   struct Params;                          plain data
///   struct SharedStorage;                   trivial; may have a member that names its buffers:
///                                           template <class F> void name_buffers(F&& f) {
///                                             f("K", k); ... }
///   static constexpr int threads;           of a CTA, a multiple of 32
///   void operator()(Params const&, SharedStorage&) const;
///                                           what one thread does
/// and may have
///   static constexpr Dim3 cluster;          extents of a cluster, in CTAs
///   static constexpr int min_ctas_per_sm;   otherwise 1
///   static constexpr bool programmatic_dependent_launch;
///                                           whether it may be started before the launch before it
///                                           has finished (programmatic dependent launch)
///   static constexpr bool cooperative;      whether all CTAs of a grid are resident at once
///                                           (cooperative launch)
///   static constexpr bool concurrent;       whether CTAs wait, for a while, for others that may be
///                                           resident at the same time
///   static constexpr bool cluster_launch_control;
///                                           whether clusters take over the work of others that
///                                           have not started (sm_100)
///   static constexpr sim::Limits limits;    what its accesses to memory may cost
///   static std::vector<sim::GlobalTensor> tensors(Params const&);
///                                           what the parameters point to
///   static char const* role(int warp);      names of the warps' roles, for traces
namespace tegula::sim {
namespace detail {

/// The name of a type, as the compiler spells it.
template <class T> constexpr std::string_view name_of() {
  std::string_view const text =
      __PRETTY_FUNCTION__;  // "... [with T = NAME; ...]" (g++) or "... [T = NAME]" (clang)
  std::size_t const begin = text.find("T = ") + 4;
  return text.substr(begin, text.find_first_of(";]", begin) - begin);
}

/// The text of a coordinate with the given extents, colexicographic: "row 3, column 5"; the last
/// mode of three is the stage: "row 3, column 5 of stage 1".
std::string coordinate_text(std::int64_t index, std::int64_t const* extents, int rank);

/// A tile's layout, free of its type.
struct TileLayout {
  std::int64_t extents[8];
  int rank;
  std::int64_t size;
  std::int64_t (*offset)(std::int64_t index);
};
/// Its inverse: the index at each offset, -1 where there is none.
std::vector<std::int64_t> indices_by_offset(TileLayout const& layout);
/// Where the element at an offset is, by that inverse.
std::string locate(std::int64_t offset, TileLayout const& layout,
                   std::vector<std::int64_t> const& indices);

/// (A lambda in place of the function would be evaluated at compile time, for seconds.)
template <class Tile> std::int64_t offset_in(std::int64_t index) {
  return static_cast<std::int64_t>(Tile::layout(index));
}
template <class Tile> TileLayout layout_of() {
  auto const& layout = Tile::layout;
  TileLayout made{{}, layout.rank() < 8 ? layout.rank() : 8, layout.size(), offset_in<Tile>};
  for (int mode = 0; mode < made.rank; ++mode) made.extents[mode] = layout.layout[mode].size();
  return made;
}

/// Where an element of a tile is: by inverting the tile's layout, or by an array's own extents.
template <class Tile> std::string locate(std::int64_t element) {
  if constexpr (requires { Tile::layout.layout[0].size(); }) {
    TileLayout const layout = layout_of<Tile>();
    static std::vector<std::int64_t> const indices = indices_by_offset(layout);
    return locate(element, layout, indices);
  } else if constexpr (std::rank_v<Tile> == 2) {
    std::int64_t constexpr extents[] = {std::extent_v<Tile, 0>, std::extent_v<Tile, 1>};
    std::int64_t const row = element / extents[1];
    return coordinate_text(row + extents[0] * (element % extents[1]), extents, 2);
  } else {
    return coordinate_text(element, nullptr, 1);
  }
}

/// The buffers of a kernel's SharedStorage, as its name_buffers gives them.
class BufferNames {
 public:
  BufferNames(void const* storage, std::vector<SharedBuffer>& buffers)
      : storage_(storage), buffers_(buffers) {}
  void add(char const* name, void const* tile, std::size_t bytes, int element_bits,
           std::string (*locate)(std::int64_t));

 private:
  void const* storage_;
  std::vector<SharedBuffer>& buffers_;
};

template <class Tile> void add(BufferNames& names, char const* name, Tile const& tile) {
  int bits = 8;
  if constexpr (requires { typename Tile::Element; })
    bits *= static_cast<int>(sizeof(typename Tile::Element));
  else
    bits *= static_cast<int>(sizeof(std::remove_all_extents_t<Tile>));
  names.add(name, &tile, sizeof(Tile), bits, locate<Tile>);
}

/// A kernel, free of its type: what is compiled anew for each is as little as can be.
struct KernelForm {
  std::string_view name;
  int threads;
  std::size_t shared_bytes;
  std::size_t params_bytes;
  std::size_t storage_bytes, storage_alignment;  ///< of SharedStorage, also of an empty one
  Dim3 cluster = {};
  int min_ctas_per_sm = 1;
  bool programmatic_dependent_launch = false, cooperative = false, concurrent = false,
       cluster_launch_control = false;
  Limits limits = {};
  void (*run)(void const* params, void* storage);
  void (*name_buffers)(void* storage, BufferNames&) = nullptr;
  std::vector<GlobalTensor> (*tensors)(void const* params) = nullptr;
  char const* (*role)(int warp) = nullptr;
};

template <class Kernel> constexpr KernelForm form_of() {
  using Params = typename Kernel::Params;
  using Storage = typename Kernel::SharedStorage;
  static_assert(
      std::is_trivially_default_constructible_v<Storage> &&
          std::is_trivially_destructible_v<Storage>,
      "a kernel's SharedStorage is trivial: nobody initialises shared memory, so that its "
      "members have no initialisers, constructors or destructors");
  static_assert(std::is_invocable_v<Kernel const&, Params const&, Storage&>,
                "what a thread of a kernel does is void operator()(Params const&, SharedStorage&) "
                "const; it is const");
  KernelForm form{.name = name_of<Kernel>(),
                  .threads = Kernel::threads,
                  .shared_bytes = std::is_empty_v<Storage> ? 0 : sizeof(Storage),
                  .params_bytes = sizeof(Params),
                  .storage_bytes = sizeof(Storage),
                  .storage_alignment = alignof(Storage),
                  .run = [](void const* params, void* storage) {
                    Kernel{}(*static_cast<Params const*>(params), *static_cast<Storage*>(storage));
                  }};
  if constexpr (requires(Storage & s) { s.name_buffers([](char const*, auto const&) {}); })
    form.name_buffers = [](void* storage, BufferNames& names) {
      static_cast<Storage*>(storage)->name_buffers(
          [&](char const* name, auto const& tile) { add(names, name, tile); });
    };
  if constexpr (requires(Params const& params) { Kernel::tensors(params); })
    form.tensors = [](void const* params) -> std::vector<GlobalTensor> {
      return Kernel::tensors(*static_cast<Params const*>(params));
    };
  if constexpr (requires { Kernel::cluster; }) form.cluster = Kernel::cluster;
  if constexpr (requires { Kernel::min_ctas_per_sm; })
    form.min_ctas_per_sm = Kernel::min_ctas_per_sm;
  if constexpr (requires { Kernel::programmatic_dependent_launch; })
    form.programmatic_dependent_launch = Kernel::programmatic_dependent_launch;
  if constexpr (requires { Kernel::cooperative; }) form.cooperative = Kernel::cooperative;
  if constexpr (requires { Kernel::concurrent; }) form.concurrent = Kernel::concurrent;
  if constexpr (requires { Kernel::cluster_launch_control; })
    form.cluster_launch_control = Kernel::cluster_launch_control;
  if constexpr (requires { Kernel::limits; }) form.limits = Kernel::limits;
  if constexpr (requires { Kernel::role(0); })
    form.role = [](int warp) -> char const* { return Kernel::role(warp); };
  return form;
}

Report launch(Machine& machine, KernelForm const& form, Dim3 grid, void const* params,
              std::vector<GlobalTensor> tensors);

}  // namespace detail

/// The name of a type, as the compiler spells it.
template <class T> std::string type_name() { return std::string(detail::name_of<T>()); }

/// Runs Kernel on every CTA of the grid; see Machine::launch for what it throws. `tensors`, beside
/// the kernel's own, describes what its parameters point to, or some of it: findings then name
/// elements, and what the launch does not cover.
template <class Kernel>
Report launch(Machine& machine, Dim3 grid, typename Kernel::Params const& params,
              std::vector<GlobalTensor> tensors = {}) {
  // Not static: libraries of kernels of one name would share it (STB_GNU_UNIQUE).
  constexpr detail::KernelForm form = detail::form_of<Kernel>();
  return detail::launch(machine, form, grid, &params, std::move(tensors));
}

}  // namespace tegula::sim
