#pragma once

#include <cstdint>

#include "tegula/arch/atomic.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/global.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/arch/warp.hpp"
#include "tegula/arch/wgmma.hpp"
#include "tegula/tensor/fragment.hpp"
#include "tegula/tensor/vector.hpp"

namespace tegula {

/// Where the sums of a tile's parts come together: memory of the launch's own.
struct PartialSums {
  float* sums = nullptr;              ///< of each part of each tile of each CTA, by its warps
  std::uint32_t* arrivals = nullptr;  ///< of each warp of part 0; all 0 before and after a launch
};

/// The elements of `PartialSums::sums` that a warp leaves of one part: `values` of each lane.
TEGULA_HOST_DEVICE constexpr int sums_of_warp(int values) { return 32 * values; }

/// Adds up what several CTAs have summed of one tile, each over its part of K, in global memory:
/// any number of CTAs, in no cluster, which need not run at the same time.
///
///     each part:  its sums to memory | the warp meets | one lane: fence, arrival, fence
///     the last:   ... | the warp meets | the others' sums, added in the order of K
///
/// Nobody waits: the warp whose arrival is the last has all sums, and goes on with the tile. Each
/// warp works for itself, and reads what the warps of its own number wrote, so sums need no layout
/// but registers'. Which warp is the last does not show: sums are added in one order.
template <class Sums> class WorkspaceReduction {
  static constexpr int values = Sums::size;
  static constexpr int vectors = values / 4;  // of four values, one instruction each
  // Whose loads are in flight together: as many as registers allow, where each takes four, its sum
  // another four, and some 60 are others'.
  static constexpr int ahead = [] {
    int most = 1;
    for (int i = 1; i <= 12; ++i)
      if (vectors % i == 0 && values + 8 * i <= 170) most = i;
    return most;
  }();
  using Quad = Vector<float, 4>;
  static_assert(values % 4 == 0);

 public:
  /// Of a warp, for one of `parts` parts. `slot` numbers the warps of all CTAs' tiles, as part 0
  /// has them; those of each next part are `slots_of_part` further on.
  TEGULA_DEVICE WorkspaceReduction(PartialSums const& memory, int slot, int slots_of_part, int part,
                                   int parts)
      : sums_(memory.sums + std::int64_t{sums_of_warp(values)} * slot + 4 * lane_id()),
        stride_(std::int64_t{sums_of_warp(values)} * slots_of_part),
        arrivals_(memory.arrivals + slot),
        part_(part),
        parts_(parts) {}

  /// Leaves this part's sums; true if the others' are there, and then they are added to these. By
  /// all lanes of the warp.
  TEGULA_DEVICE bool add(Sums& sums, SourceLocation where = SourceLocation::current()) const {
    give(sums, where);
    if (!is_last(where)) return false;
    take(sums, where);
    return true;
  }

 private:
  TEGULA_DEVICE float* vector_of(int part, int vector) const {
    return sums_ + stride_ * part + sums_of_warp(4) * vector;
  }

  TEGULA_DEVICE void give(Sums const& sums, SourceLocation where) const {
#pragma unroll
    for (int i = 0; i < vectors; ++i) {
      Quad mine;
#pragma unroll
      for (int j = 0; j < 4; ++j) mine.data[j] = wgmma_value(sums(4 * i + j, where));
      st_global(vector_of(part_, i), mine, where);
    }
  }

  TEGULA_DEVICE bool is_last(SourceLocation where) const {
    warp::sync(warp::kAllLanes, where);  // all lanes have left their sums
    std::uint32_t before = 0;
    if (lane_id() == 0) {
      fence_acq_rel<Scope::gpu>(where);  // the sums, before the arrival
      before = atom_add(arrivals_, 1u, where);
      fence_acq_rel<Scope::gpu>(where);  // what others left before theirs, before what follows
    }
    warp::sync(warp::kAllLanes, where);  // so for all lanes, which a shuffle does not order
    bool const last =
        warp::shfl(before, 0, warp::kAllLanes, where) + 1 == static_cast<std::uint32_t>(parts_);
    if (last && lane_id() == 0) atom_exch(arrivals_, 0u, where);
    return last;
  }

  TEGULA_DEVICE void take(Sums& sums, SourceLocation where) const {
#pragma unroll
    for (int first = 0; first < vectors; first += ahead) {
      float total[4 * ahead] = {};
#pragma unroll 1
      for (int part = 0; part < parts_; ++part) {
        if (part == part_) {
#pragma unroll
          for (int i = 0; i < 4 * ahead; ++i) total[i] += sums(4 * first + i, where);
        } else {
          Quad theirs[ahead];
#pragma unroll
          for (int i = 0; i < ahead; ++i)
            theirs[i] = ld_global<Quad>(vector_of(part, first + i), where);
#pragma unroll
          for (int i = 0; i < 4 * ahead; ++i) total[i] += theirs[i / 4].data[i % 4];
        }
      }
#pragma unroll
      for (int i = 0; i < 4 * ahead; ++i) sums(4 * first + i, where) = total[i];
    }
  }

  float* sums_;          ///< this lane's first value of part 0
  std::int64_t stride_;  ///< elements from part to part
  std::uint32_t* arrivals_;
  int part_, parts_;
};

}  // namespace tegula
