#pragma once

#include <cstdint>

#include "tegula/arch/mutant.hpp"
#include "tegula/arch/shared.hpp"
#include "tegula/arch/where.hpp"
#include "tegula/layout/bank_conflicts.hpp"
#include "tegula/layout/coalesce.hpp"
#include "tegula/layout/layout.hpp"
#include "tegula/layout/offset.hpp"
#include "tegula/layout/swizzle.hpp"
#include "tegula/macros.hpp"
#include "tegula/tensor/coordinates.hpp"
#if !TEGULA_GPU
#include "tegula/layout/text.hpp"
#endif

namespace tegula {

/// The layout of a tile of matrix operands, in the few numbers that it follows from: `stages` tiles of `mn` x
/// `k` elements of `bits` bits, of which `contiguous` (0: mn, 1: k) is contiguous in global memory.
/// A short template argument: SharedTile<bfloat16, OperandTile{16, 128, 64, 1, 2}>.
struct OperandTile {
  int bits = 0;
  int mn = 0;
  int k = 0;
  int contiguous = 1;
  int stages = 1;

  friend constexpr bool operator==(OperandTile const&, OperandTile const&) = default;
};

/// The layout of an operand's tile; coordinates (mn, k, stage), without the stage where there is one.
///
/// The contiguous axis is cut into blocks of at most 128 bytes, the span of the 32 banks; a block's rows
/// follow each other, and a swizzle spreads the 16-byte pieces at the same position of eight consecutive rows
/// over all banks, so that ldmatrix, which reads such pieces, and 16-byte stores along a row are both free of
/// conflicts.
constexpr SwizzledLayout swizzled_operand(OperandTile const& t) {
  if (t.contiguous != 0 && t.contiguous != 1)
    refuse("swizzled_operand", "the contiguous axis is 0 (mn) or 1 (k)", t.contiguous);
  if (t.mn < 1 || t.k < 1 || t.stages < 1)
    refuse("swizzled_operand", "mn, k and stages are at least 1", t.mn, t.k, t.stages);
  if (t.bits != 8 && t.bits != 16 && t.bits != 32 && t.bits != 64)
    refuse("swizzled_operand", "elements have 8, 16, 32 or 64 bits", t.bits);
  int const piece = 128 / t.bits;  // elements in 16 bytes
  int const extent = t.contiguous == 0 ? t.mn : t.k;
  int const rows = t.contiguous == 0 ? t.k : t.mn;
  int block = 1024 / t.bits;  // elements in 128 bytes
  while (block > piece && extent % block != 0) {
    block /= 2;
  }
  if (extent % block != 0)
    refuse("swizzled_operand", "the contiguous extent must be a multiple of 16 bytes", extent, t.bits);
  Layout const contiguous_mode = layout(tuple(block, extent / block), tuple(1, rows * block));
  Layout const strided_mode = layout(rows, block);
  Layout const mn_mode = t.contiguous == 0 ? contiguous_mode : strided_mode;
  Layout const k_mode = t.contiguous == 0 ? strided_mode : contiguous_mode;
  Layout const tile = t.stages == 1 ? make_layout(mn_mode, k_mode)
                                    : make_layout(mn_mode, k_mode, layout(t.stages, t.mn * t.k));
  int log_piece = 0, log_pieces = 0;
  while ((1 << log_piece) < piece) ++log_piece;
  while ((piece << log_pieces) < block) ++log_pieces;
  // Offset bits: [within a piece | piece in the block | row ...]. Row bits that select the same banks are
  // XORed into the piece bits.
  return {Swizzle{log_pieces, log_piece, 3}, 0, tile};
}
constexpr SwizzledLayout swizzled_operand(int bits, int mn, int k, int contiguous, int stages = 1) {
  return swizzled_operand(OperandTile{bits, mn, k, contiguous, stages});
}

namespace detail {
constexpr SwizzledLayout tile_layout(SwizzledLayout const& layout) { return layout; }
constexpr SwizzledLayout tile_layout(Layout const& layout) { return {Swizzle(), 0, layout}; }
constexpr SwizzledLayout tile_layout(OperandTile const& tile) { return swizzled_operand(tile); }
template <auto L> struct TileLayout {
  static constexpr SwizzledLayout value = tile_layout(L);
  static constexpr std::int64_t cosize = value.cosize();
};
}  // namespace detail

/// A tile of T in shared memory. `L` maps the tile's coordinate (and, as a last mode, the pipeline stage) to
/// an offset in elements: a SwizzledLayout, a Layout, or an OperandTile, which stands for its layout.
///
/// Every tile starts on a boundary of 1024 bytes, the period of the widest swizzle, so that an address of the
/// tile is its base with the swizzled offset in the low bits.
template <class T, auto L> struct SharedTile {
  using Element = T;
  static constexpr SwizzledLayout layout = detail::TileLayout<L>::value;

  alignas(1024) T data[detail::TileLayout<L>::cosize];
};

/// Whether a tile (mn, k[, stage]) is contiguous along mn.
constexpr bool mn_contiguous(SwizzledLayout const& tile) {
  Layout const mn = coalesce(tile.layout[0]);
  return mn.strides[0] == 1 && mn.extents[0] > 1;
}

/// Wavefronts beyond the fewest possible when a warp's lanes, placed in a tile by a layout of coordinates,
/// each access `bytes` bytes along axis `contiguous` (0: mn, 1: k). The same at every step of the kernels,
/// which leave the bits that select banks as they are.
constexpr int conflicts(SwizzledLayout const& tile, Layout const& lanes, int contiguous, int element_bits,
                        int bytes) {
  return bank_conflicts(
      coordinate_access(lanes, Layout{}, contiguous, tile.layout.shape(), element_bits, bytes), tile);
}

/// Where the accesses of one thread to a shared tile lie.
///
/// `Threads` maps a thread to the tile coordinate of its first access (coordinate strides: 1@0 a step along
/// mn, 1@1 a step along k). Later accesses lie a step away, the same for all threads and known after
/// unrolling. A swizzle is linear over F2, so the address of thread t at step s is (address(t, 0) ^ x(s)) +
/// a(s): what depends on the thread is computed once, a step costs an XOR with a constant, and, where it does
/// not touch bits that vary with the thread, only an immediate offset of the instruction. The
/// simulated machine holds every address against the layout.
template <class Tile, Layout Threads> class TileAccess {
 public:
  using Element = typename Tile::Element;
  static constexpr Swizzle swizzle = Tile::layout.swizzle;
  static constexpr Layout mn_mode = Tile::layout.layout[0];
  static constexpr Layout k_mode = Tile::layout.layout[1];

  /// Preconditions: (mn, k), the coordinate of the first access of thread 0, adds to the thread's without
  /// carries into swizzled bits.
  TEGULA_DEVICE TileAccess(Tile const& tile, int thread, int mn = 0, int k = 0,
                           [[maybe_unused]] Where where = Where::here())
      : base_(shared_address(tile.data) +
              static_cast<SharedAddr>(sizeof(Element)) *
                  static_cast<SharedAddr>(swizzled(
                      linear(coordinate_of<Threads, 0>(thread) + mn, coordinate_of<Threads, 1>(thread) + k),
                      where))) {
#if TEGULA_HAS_MARKS
    made_at_ = where;
#endif
#if !TEGULA_GPU
    if (sim::holds_layouts()) {
      tile_ = shared_address(tile.data);
      mn_ = coordinate_of<Threads, 0>(thread) + mn;
      k_ = coordinate_of<Threads, 1>(thread) + k;
    }
#endif
  }

  /// The thread's address a step of (mn, k) away in the given stage.
  TEGULA_DEVICE SharedAddr operator()(int mn, int k, int stage = 0,
                                      [[maybe_unused]] Where where = Where::here()) const {
    int const step = linear(mn, k);
    int const low = swizzled(step & (period - 1), made_at());
    int const exclusive_or = low & thread_bits;
    int const add = (low & ~thread_bits) + (step & ~(period - 1));
    SharedAddr const address = ((base_ + static_cast<SharedAddr>(stage * stage_bytes)) ^
                                static_cast<SharedAddr>(exclusive_or * sizeof_element)) +
                               static_cast<SharedAddr>(add * sizeof_element);
#if !TEGULA_GPU
    if (tile_ != 0) hold(address, mn, k, stage, where);
#endif
    return address;
  }

 private:
  static constexpr Mutation kSwizzleMutations = swizzle.identity() ? Mutation::none : Mutation::removed;
  static constexpr int sizeof_element = sizeof(Element);
  static constexpr int stage_bytes =
      Tile::layout.layout.rank() == 3 ? static_cast<int>(Tile::layout.layout[2](1)) * sizeof_element : 0;
  /// The swizzle permutes offsets within aligned blocks of this many elements.
  static constexpr int period =
      1 << (swizzle.bits + swizzle.base + (swizzle.shift < 0 ? -swizzle.shift : swizzle.shift));

  TEGULA_DEVICE static constexpr int linear(int mn, int k) {
    return offset_of<mn_mode>(mn) + offset_of<k_mode>(k);
  }

  TEGULA_DEVICE static constexpr int swizzled(int offset, Where where) {
    constexpr Swizzle s = Tile::layout.swizzle;
    return mutation(where, Operation::swizzle, kSwizzleMutations) == Mutation::removed ? offset : s(offset);
  }

  /// Bits below the period that differ between threads: only those need an XOR.
  static constexpr int varying_bits() {
    int mask = 0;
    for (int t = 0; t < Threads.size(); ++t) {
      Tuple const c = Threads.coordinate(t);
      mask |= static_cast<int>(swizzle(mn_mode(c[0]) + k_mode(c[1]))) & (period - 1);
    }
    return mask;
  }
  static constexpr int thread_bits = varying_bits();

#if !TEGULA_GPU
  /// Reports an address that is not the element's. Of coordinates outside of the tile its layout says
  /// nothing. Not inlined: it would cost those who do not ask for it.
  [[gnu::noinline]] void hold(SharedAddr address, int mn, int k, int stage, Where where) const {
    mn += mn_, k += k_;
    constexpr auto extent = [](int mode) {
      return mode < Tile::layout.layout.rank() ? static_cast<int>(Tile::layout.layout[mode].size()) : 1;
    };
    constexpr int extents[] = {extent(0), extent(1), extent(2)};
    if (mn < 0 || mn >= extents[0] || k < 0 || k >= extents[1] || stage < 0 || stage >= extents[2]) return;
    int const offset =
        swizzle(static_cast<int>(Tile::layout.offset) + linear(mn, k) + stage * stage_bytes / sizeof_element);
    SharedAddr const right = tile_ + static_cast<SharedAddr>(offset * sizeof_element);
    if (address != right) [[unlikely]]
      sim::wrong_address(right, address, to_string(Tile::layout), made_at_, where);
  }

  SharedAddr tile_ = 0;  ///< where it begins; 0: addresses are not held against its layout
  int mn_ = 0, k_ = 0;   ///< the coordinate of the first access
#endif
#if TEGULA_HAS_MARKS
  TEGULA_DEVICE Where made_at() const { return made_at_; }
  Where made_at_;
#else
  TEGULA_DEVICE static Where made_at() { return {}; }
#endif
  SharedAddr base_;
};

}  // namespace tegula
