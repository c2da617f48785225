#pragma once

#include <cstdint>
#include <type_traits>

#include "tegula/arch/cp_async.hpp"
#include "tegula/arch/global.hpp"
#include "tegula/arch/mutant.hpp"
#include "tegula/arch/shared.hpp"
#include "tegula/arch/where.hpp"
#include "tegula/layout/layout.hpp"
#include "tegula/macros.hpp"
#include "tegula/tensor/coordinates.hpp"
#include "tegula/tensor/shared_tile.hpp"

namespace tegula {

/// A matrix operand in global memory: extents along (mn, k), one of them contiguous, the other `stride`
/// elements apart.
template <class T> struct GlobalOperand {
  T const* data = nullptr;
  std::int64_t stride = 0;
  int mn = 0;
  int k = 0;
};

/// Which of a tile's elements may lie outside the operand, where zeros are written instead.
enum class Clip : bool { none, edges };

/// How `threads` threads share the copy of a `contiguous` x `strided` tile, as a layout: ((thread), (step),
/// element) -> coordinate, where axis 0 is the contiguous one. Consecutive threads take consecutive vectors
/// along a block of the contiguous axis, so that both global reads and shared writes are whole 128-byte lines
/// where the tile is wide enough.
constexpr Layout copy_plan(int threads, int block, int contiguous, int strided, int vector) {
  int const pieces = block / vector;
  int const rows = threads / pieces;
  if (threads % pieces != 0)
    refuse("copy_plan", "the threads must divide evenly into the vectors of one row", threads, pieces);
  if (strided % rows != 0)
    refuse("copy_plan", "the rows that all threads copy at once must divide the tile's rows", rows, strided);
  return make_layout(make_layout(along(0, pieces, vector), along(1, rows, 1)),
                     make_layout(along(1, strided / rows, rows), along(0, contiguous / block, block)),
                     along(0, vector, 1));
}

/// Copies tiles of a matrix operand from global to shared memory, `VectorBytes` at a time: through cp.async
/// where the hardware has that width (4, 8, 16 bytes), else through a register. `Contiguous` names the axis
/// (0: mn, 1: k) that is contiguous in global memory.
template <class Tile, int Contiguous, int Threads, int VectorBytes = 16> class TileLoader {
 public:
  using Element = typename Tile::Element;
  static constexpr int vector = VectorBytes / static_cast<int>(sizeof(Element));
  static constexpr Layout contiguous_mode = Tile::layout.layout[Contiguous];
  static constexpr Layout strided_mode = Tile::layout.layout[1 - Contiguous];
  static constexpr int block =
      static_cast<int>(contiguous_mode.depth() == 0 ? contiguous_mode.size() : contiguous_mode[0].size());
  static constexpr Layout plan = copy_plan(Threads, block, static_cast<int>(contiguous_mode.size()),
                                           static_cast<int>(strided_mode.size()), vector);
  static constexpr Layout threads = plan[0];
  static constexpr Layout steps = plan[1];
  static constexpr int step_count = static_cast<int>(steps.size());
  // Copies through a register hold it until the value arrives: a few at a time.
  static constexpr int unrolled_steps = VectorBytes >= 4 ? step_count : 4;
  static_assert(covers_once(plan, tuple(contiguous_mode.size(), strided_mode.size())),
                "each element of the tile is copied exactly once");

  TEGULA_DEVICE TileLoader(Tile const& tile, GlobalOperand<Element> const& from, int thread,
                           Where where = Where::here())
      : from_(from),
        contiguous_(coordinate_of<threads, 0>(thread)),
        strided_(coordinate_of<threads, 1>(thread)),
        to_(tile, thread, 0, 0, where) {}

  /// Starts the copy of the tile whose first element is (mn, k) into `stage`; with Clip::edges, vectors
  /// outside the operand become zeros. Complete for this thread at its next `cp_async_wait_group` that covers
  /// it.
  template <Clip C = Clip::edges>
  TEGULA_DEVICE void load(int mn, int k, int stage, Where where = Where::here()) const {
    int const c0 = (Contiguous == 0 ? mn : k) + contiguous_;
    int const s0 = (Contiguous == 0 ? k : mn) + strided_;
    int const c_left = (Contiguous == 0 ? from_.mn : from_.k) - c0;
    Mutation const m =
        mutation(where, Operation::zero_fill,
                 C == Clip::none ? Mutation::none : Mutation::removed | Mutation::less | Mutation::more);
    int const s_left = counted((Contiguous == 0 ? from_.k : from_.mn) - s0, m);
    Element const* const source = from_.data + s0 * from_.stride + c0;
#pragma unroll unrolled_steps
    for (int step = 0; step < step_count; ++step) {
      int const c = coordinate_of<steps, 0>(step);
      int const s = coordinate_of<steps, 1>(step);
      bool const inside = C == Clip::none || m == Mutation::removed || (c < c_left && s < s_left);
      copy(Contiguous == 0 ? to_(c, s, stage, where) : to_(s, c, stage, where), source + s * from_.stride + c,
           inside, where);
    }
  }

 private:
  TEGULA_DEVICE static void copy(SharedAddr to, Element const* from, bool inside, Where where) {
    if constexpr (VectorBytes == 16) {
      cp_async_cg<16>(to, from, inside ? 16 : 0, where);
    } else if constexpr (VectorBytes >= 4) {
      cp_async_ca<VectorBytes>(to, from, inside ? VectorBytes : 0, where);
    } else {
      static_assert(VectorBytes == sizeof(Element));
      st_shared(to, inside ? ld_global<Element>(from, where) : Element{}, where);
    }
  }

  /// The plan's threads in the tile's own axes (0: mn, 1: k).
  static constexpr Layout tile_threads = Contiguous == 0 ? threads : swap_axes(threads);

  GlobalOperand<Element> from_;
  int contiguous_;
  int strided_;
  TileAccess<Tile, tile_threads> to_;
};

}  // namespace tegula
