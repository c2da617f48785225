#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
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
///   static constexpr bool cluster_launch_control;
///                                           whether clusters take over the work of others that
///                                           have not started (sm_100)
///   static constexpr sim::Limits limits;    what its accesses to memory may cost
///   static std::vector<sim::GlobalTensor> tensors(Params const&);
///                                           what the parameters point to
///   static char const* role(int warp);      names of the warps' roles, for traces
namespace tegula::sim {

/// The name of a type, as the compiler spells it.
template <class T> std::string type_name() {
  std::string_view const text =
      __PRETTY_FUNCTION__;  // "... [with T = NAME; ...]" (g++) or "... [T = NAME]" (clang)
  std::size_t const begin = text.find("T = ") + 4;
  std::size_t const end = text.find_first_of(";]", begin);
  return std::string(text.substr(begin, end - begin));
}

/// The text of a coordinate with the given extents, colexicographic: "row 3, column 5"; the last
/// mode of three is the stage: "row 3, column 5 of stage 1".
inline std::string coordinate_text(std::int64_t index, std::int64_t const* extents, int rank) {
  if (rank == 1) return "element " + std::to_string(index);
  char const* const names[] = {"row ", "column ", "stage "};
  std::string text;
  for (int mode = 0; mode < rank; ++mode) {
    if (mode > 0) text += rank == 3 && mode == 2 ? " of " : ", ";
    text += rank <= 3 ? names[mode] : "mode " + std::to_string(mode) + " at ";
    text += std::to_string(index % extents[mode]);
    index /= extents[mode];
  }
  return text;
}

/// The inverse of a tile's layout: the index at each offset, -1 where there is none. (A lambda in
/// its place would be evaluated at compile time, for seconds.)
template <class Tile> std::vector<std::int64_t> indices_by_offset() {
  auto const& layout = Tile::layout;
  std::vector<std::int64_t> inverse;
  for (std::int64_t i = 0; i < layout.size(); ++i) {
    auto const offset = static_cast<std::size_t>(layout(i));
    if (offset >= inverse.size()) inverse.resize(offset + 1, -1);
    inverse[offset] = i;
  }
  return inverse;
}

/// Where an element of a tile is: by inverting the tile's layout, or by an array's own extents.
template <class Tile> std::string locate(std::int64_t element) {
  if constexpr (requires { Tile::layout.layout[0].size(); }) {
    auto const& layout = Tile::layout;
    std::int64_t extents[8] = {};
    int const rank = layout.rank() < 8 ? layout.rank() : 8;
    for (int mode = 0; mode < rank; ++mode) extents[mode] = layout.layout[mode].size();
    static std::vector<std::int64_t> const indices = indices_by_offset<Tile>();
    auto const at = static_cast<std::size_t>(element);
    if (element >= 0 && at < indices.size() && indices[at] >= 0)
      return coordinate_text(indices[at], extents, rank);
    return "element " + std::to_string(element) + ", which the layout does not use,";
  } else if constexpr (std::rank_v<Tile> == 2) {
    std::int64_t constexpr extents[] = {std::extent_v<Tile, 0>, std::extent_v<Tile, 1>};
    std::int64_t const row = element / extents[1];
    return coordinate_text(row + extents[0] * (element % extents[1]), extents, 2);
  } else {
    return coordinate_text(element, nullptr, 1);
  }
}

/// Describes the tiles of SharedStorage as name_buffers gives them.
template <class Tile>
SharedBuffer shared_buffer(std::string name, Tile const& tile, void const* storage) {
  SharedBuffer buffer;
  buffer.name = std::move(name);
  buffer.offset = static_cast<std::size_t>(reinterpret_cast<char const*>(&tile) -
                                           static_cast<char const*>(storage));
  buffer.bytes = sizeof(Tile);
  if constexpr (requires { typename Tile::Element; }) {
    buffer.element_bits = 8 * static_cast<int>(sizeof(typename Tile::Element));
  } else {
    buffer.element_bits = 8 * static_cast<int>(sizeof(std::remove_all_extents_t<Tile>));
  }
  buffer.locate = locate<Tile>;
  return buffer;
}

/// Runs Kernel on every CTA of the grid; see Machine::launch for what it throws. `tensors`, beside
/// the kernel's own, describes what its parameters point to, or some of it: findings then name
/// elements, and what the launch does not cover.
template <class Kernel>
Report launch(Machine& machine, Dim3 grid, typename Kernel::Params const& params,
              std::vector<GlobalTensor> tensors = {}) {
  using Storage = typename Kernel::SharedStorage;
  static_assert(std::is_trivially_destructible_v<Storage>, "shared memory has no destructors");
  KernelImage image;
  image.name = type_name<Kernel>();
  image.threads = Kernel::threads;
  image.tensors = std::move(tensors);
  if constexpr (requires { Kernel::tensors(params); }) {
    for (GlobalTensor& tensor : Kernel::tensors(params)) image.tensors.push_back(std::move(tensor));
  }
  image.shared_bytes = std::is_empty_v<Storage> ? 0 : sizeof(Storage);
  if constexpr (requires(Storage & s) { s.name_buffers([](char const*, auto const&) {}); }) {
    auto const storage = std::make_unique<Storage>();
    storage->name_buffers([&](char const* name, auto const& tile) {
      image.buffers.push_back(shared_buffer(name, tile, storage.get()));
    });
  }
  if constexpr (requires { Kernel::cluster; }) image.cluster = Kernel::cluster;
  if constexpr (requires { Kernel::min_ctas_per_sm; })
    image.min_ctas_per_sm = Kernel::min_ctas_per_sm;
  if constexpr (requires { Kernel::programmatic_dependent_launch; })
    image.programmatic_dependent_launch = Kernel::programmatic_dependent_launch;
  if constexpr (requires { Kernel::cooperative; }) image.cooperative = Kernel::cooperative;
  if constexpr (requires { Kernel::cluster_launch_control; })
    image.cluster_launch_control = Kernel::cluster_launch_control;
  if constexpr (requires { Kernel::limits; }) image.limits = Kernel::limits;
  if constexpr (requires { Kernel::role(0); })
    image.role = [](int warp) -> char const* { return Kernel::role(warp); };
  image.run = [&params](void* storage) { Kernel{}(params, *static_cast<Storage*>(storage)); };
  return machine.launch(image, grid);
}

}  // namespace tegula::sim
