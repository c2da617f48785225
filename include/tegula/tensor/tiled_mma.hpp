#pragma once

#include <cstdint>

#include "tegula/atom/mma_spec.hpp"
#include "tegula/atom/tiled_copy.hpp"
#include "tegula/atom/tiled_mma.hpp"
#include "tegula/numeric/dtype.hpp"
#include "tegula/tensor/descriptor.hpp"
#include "tegula/tensor/fragment.hpp"
#include "tegula/tensor/held.hpp"
#include "tegula/tensor/operand_checks.hpp"
#include "tegula/tensor/shared.hpp"

/// Tiled MMAs: an instruction spread over the threads of a CTA, and which of them holds what. All
/// of it follows from the atom (atom/mma_atom.hpp).
namespace tegula {

/// How the groups of threads that execute an instruction share a tile: each a block of it, or every
/// so many of the instruction's tiles in turn (CuTe's default).
enum class Share : bool { blocked, raked };

/// What a CTA's threads multiply, D(m, n) += A(m, k) B(n, k): one instruction, groups_m x groups_n
/// groups of the threads that execute it together (group g at (g % groups_m, g / groups_m)), and
/// the tile of D that they compute. An extent of 0 is what the groups cover at once.
struct TiledMmaSpec {
  MmaSpec atom;
  int m = 0, n = 0;
  int groups_m = 1, groups_n = 1;
  Share share = Share::blocked;

  friend constexpr bool operator==(TiledMmaSpec const&, TiledMmaSpec const&) = default;
};

namespace detail {

/// The spec as a value of the algebra (atom/tiled_mma.hpp), where the tool and tests look at it.
constexpr MmaTiling mma_tiling(TiledMmaSpec const& s) {
  check(s.atom);
  int const covered_m = s.atom.m * s.groups_m, covered_n = s.atom.n * s.groups_n;
  if (s.groups_m < 1 || s.groups_n < 1)
    refuse("TiledMma", "there is at least one group of threads along m and along n", s.groups_m,
           s.groups_n);
  int const m = s.m == 0 ? covered_m : s.m, n = s.n == 0 ? covered_n : s.n;
  if (m % covered_m != 0)
    refuse("TiledMma", "the instruction's m times the groups along m must divide the tile's", m,
           s.atom.m, s.groups_m);
  if (n % covered_n != 0)
    refuse("TiledMma", "the instruction's n times the groups along n must divide the tile's", n,
           s.atom.n, s.groups_n);
  int const repeats_m = m / covered_m, repeats_n = n / covered_n;
  bool const blocked = s.share == Share::blocked;
  Layout const order_m =
      layout(shape(s.atom.m, s.groups_m, repeats_m),
             blocked ? stride(1, s.atom.m * repeats_m, s.atom.m) : stride(1, s.atom.m, covered_m));
  Layout const order_n =
      layout(shape(s.atom.n, s.groups_n, repeats_n),
             blocked ? stride(1, s.atom.n * repeats_n, s.atom.n) : stride(1, s.atom.n, covered_n));
  return make_tiled_mma(mma_atom(s.atom), layout(shape(s.groups_m, s.groups_n, 1)),
                        make_tile(order_m, order_n, layout(s.atom.k)));
}

/// thread -> the coordinate of its first element, and its values -> how far on.
struct ThreadValues {
  Layout threads;
  Layout values;
};

/// Who holds which element of C: values (of the atom, MMA_M, MMA_N); of A and B over a depth of
/// `k`: (of the atom, MMA_MN, MMA_K).
constexpr ThreadValues registers_of(MmaTiling const& mma, char operand, int k) {
  Layout const identity = identity_layout(operand == 'a'   ? shape(mma.extent(0), k)
                                          : operand == 'b' ? shape(mma.extent(1), k)
                                                           : shape(mma.extent(0), mma.extent(1)));
  Layout const parts = operand == 'a'   ? mma.partition_a(identity)
                       : operand == 'b' ? mma.partition_b(identity)
                                        : mma.partition_c(identity);
  // The lanes of a group, then the groups along the operand's modes; those along the other
  // mode repeat.
  Layout const lanes = parts[0][0], groups = parts[0][1];
  Layout const repeats_m = layout(mma.atoms[0].size(), 0),
               repeats_n = layout(mma.atoms[1].size(), 0);
  Layout const threads = operand == 'a'   ? make_layout(lanes, groups[0], repeats_n)
                         : operand == 'b' ? make_layout(lanes, repeats_m, groups[0])
                                          : make_layout(lanes, groups[0], groups[1]);
  return {make_layout(threads), make_layout(parts[1][0], parts[1][1][0], parts[1][1][1])};
}

/// Whose rows ldmatrix reads: how many 8 x 8 matrices an instruction loads, whose address each
/// thread gives, and (instructions along mn, along k) -> how far on.
struct MatrixLoads {
  int matrices = 0;  ///< 0: ldmatrix does not load this operand's registers in their order
  Layout threads;
  Layout steps;
};

/// The loads of an operand of `k` elements deep. A matrix is a register of each thread; an
/// instruction loads as many as make up whole tiles of the MMA, at most four.
constexpr MatrixLoads matrix_loads(MmaTiling const& mma, char operand, int bits, int registers,
                                   bool mn_contiguous, int k) {
  int const mode = operand == 'a' ? 0 : 1;
  int const tiles =
      mma.extent(mode) / (mma.atom_extent(mode) * static_cast<int>(mma.atoms[mode].size()));
  if (mma.atom.threads() != 32 || registers == 0 || bits > 32 || (mn_contiguous && bits != 16))
    return {};
  int matrices = 4;
  while (matrices > registers && (matrices % registers != 0 || tiles % (matrices / registers) != 0))
    matrices /= 2;
  if (matrices < registers) return {};
  CopyAtom const atom =
      copy_atom(CopySpec{mn_contiguous ? CopyOp::ldmatrix_trans : CopyOp::ldmatrix, matrices});
  CopyTiling const copy =
      operand == 'a' ? make_tiled_copy_a(atom, bits, mma) : make_tiled_copy_b(atom, bits, mma);
  Layout const wanted = operand == 'a' ? mma.a() : mma.b(), loaded = copy.dst();
  if (coalesce(wanted[1]) != coalesce(loaded[1]) || coalesce(wanted[0]) != coalesce(loaded[0]))
    return {};
  Layout const source = copy.src();
  Layout const rows =
      composition(identity_layout(shape(mma.extent(mode), mma.extent(2))),
                  make_layout(source[0], source[1].rank() == 1 ? layout(1, 0) : source[1][1]));
  return {matrices, make_layout(rows[0]),
          make_layout(rows[1], along(1, k / mma.extent(2), mma.extent(2)))};
}

constexpr CopyOp stmatrix_of(bool transposed) {
  return transposed ? CopyOp::stmatrix_trans : CopyOp::stmatrix;
}

/// The stores by stmatrix of accumulators that are rounded to 16 bits: a matrix is a register of
/// each thread, two neighbours along n; an instruction stores as many as divide a thread's, at most
/// four. Its rows of eight elements lie along n; transposed, along m.
constexpr MatrixLoads matrix_stores(MmaTiling const& mma, bool transposed) {
  if (mma.atom.threads() != 32) refuse("MatrixStore", "stmatrix is a warp's", mma.atom.threads());
  int const registers = static_cast<int>(mma.c()[1].size()) / 2;
  int matrices = 4;
  while (registers % matrices != 0) matrices /= 2;
  CopyTiling const copy =
      make_tiled_copy_c(copy_atom(CopySpec{stmatrix_of(transposed), matrices}), 16, mma);
  Layout const target = copy.dst(), row = target[1].rank() == 1 ? target[1] : target[1][0];
  if (coalesce(row) != layout(8, transposed ? 1 : mma.extent(0)))
    refuse("MatrixStore", "the rows of the accumulators' 8 x 8 matrices do not lie along one axis",
           mma.c(), row);
  Layout const identity = identity_layout(shape(mma.extent(0), mma.extent(1)));
  return {matrices, make_layout(composition(identity, target[0])),
          make_layout(composition(identity, target[1].rank() == 1 ? layout(1, 0) : target[1][1]))};
}

template <TiledMmaSpec S> struct MmaTilingOf {
  static constexpr MmaTiling value = mma_tiling(S);
  static constexpr int m = value.extent(0), n = value.extent(1), k = value.extent(2);
  static constexpr int threads = value.threads();
};

/// A ThreadValues as types.
template <class Both> struct ThreadValueMaps {
  struct ThreadSource {
    static constexpr Layout value = Both::value.threads;
  };
  struct ValueSource {
    static constexpr Layout value = Both::value.values;
  };
  using Threads = MapOf<ThreadSource>;
  using Values = MapOf<ValueSource>;
};
template <TiledMmaSpec S, char Operand, int K> struct OperandRegisters {
  static constexpr ThreadValues value = registers_of(MmaTilingOf<S>::value, Operand, K);
};
template <TiledMmaSpec S, char Operand, int K>
using registers_t = ThreadValueMaps<OperandRegisters<S, Operand, K>>;

/// Where in a tile ldmatrix finds an operand.
template <TiledMmaSpec S, char Operand, int Bits, int K, bool MnContiguous> struct MatrixRows {
  static constexpr int registers = Operand == 'a' ? a_registers(S.atom) : b_registers(S.atom);
  static constexpr MatrixLoads value =
      matrix_loads(MmaTilingOf<S>::value, Operand, Bits, registers, MnContiguous, K);
  static constexpr int matrices = value.matrices;
  static constexpr CopyOp op = MnContiguous ? CopyOp::ldmatrix_trans : CopyOp::ldmatrix;
  struct ThreadSource {
    static constexpr Layout value = MatrixRows::value.threads;
  };
  struct StepSource {
    static constexpr Layout value = MatrixRows::value.steps;
  };
};

/// What wgmma steps through in an operand's tile: (64 rows of it, or all n columns; MMA_K).
template <TiledMmaSpec S, char Operand, int K> struct WgmmaSteps {
  static constexpr int tile = Operand == 'a' ? S.atom.m : S.atom.n;
  static constexpr int extent =
      Operand == 'a' ? MmaTilingOf<S>::m / S.groups_m : MmaTilingOf<S>::n / S.groups_n;
  struct Groups {
    static constexpr Layout value = make_layout(layout(shape(threads(S.atom)), stride(0)),
                                                along(0, Operand == 'a' ? S.groups_m : S.groups_n,
                                                      S.share == Share::blocked ? extent : tile));
  };
  static constexpr int step =
      S.share == Share::blocked ? tile : tile * (Operand == 'a' ? S.groups_m : S.groups_n);
  struct Steps {
    static constexpr Layout value =
        make_layout(along(0, extent / tile, step), along(1, K / S.atom.k, S.atom.k));
  };
};

/// Where in a tile stmatrix puts accumulators.
template <TiledMmaSpec S, bool Transposed> struct StoredRows {
  static constexpr MatrixLoads value = matrix_stores(MmaTilingOf<S>::value, Transposed);
  static constexpr int matrices = value.matrices;
  struct ThreadSource {
    static constexpr Layout value = StoredRows::value.threads;
  };
  struct StepSource {
    static constexpr Layout value = StoredRows::value.steps;
  };
};

/// C's tile with its columns in the order that A's k has them.
constexpr Layout in_order(Tuple const& tile, Layout const& order) {
  Layout const flat = layout(tile);
  if (order.size() != flat[1].size())
    refuse("operand_a", "the order must have as many places as C has columns", order, tile);
  return make_layout(flat[0], composition(flat[1], order));
}

/// Which value of C is value i of A, where C's columns, in that order, are A's k.
constexpr Layout retile(Layout const& from, Layout const& to, Tuple const& tile,
                        Layout const& order) {
  return make_layout(composition(left_inverse(composition(layout(tile), from)),
                                 composition(in_order(tile, order), to)));
}

constexpr bool same_threads(Layout const& from, Layout const& to, Tuple const& tile,
                            Layout const& order) {
  if (coalesce(composition(layout(tile), from)) != coalesce(composition(in_order(tile, order), to)))
    refuse("operand_a", "the threads that hold C are not those that need it as A", from, to, tile,
           order);
  return true;
}

/// The columns of C as they stand.
template <int N> struct Unpermuted { static constexpr Layout value = layout(N); };

}  // namespace detail

/// A matrix product by threads of a CTA: which of them holds, loads and multiplies what. `thread`
/// counts from 0 within the tiled MMA, up to `threads`; on the simulated machine a partition by
/// another number is a finding. (CuTe: TiledMMA, and get_slice(thread) of it.)
template <TiledMmaSpec S> struct TiledMma {
  static constexpr TiledMmaSpec spec = S;
  static constexpr int m = detail::MmaTilingOf<S>::m, n = detail::MmaTilingOf<S>::n,
                       k = detail::MmaTilingOf<S>::k;
  static constexpr int threads = detail::MmaTilingOf<S>::threads;
  using A = type_of<S.atom.a>;
  using B = type_of<S.atom.b>;
  using C = type_of<S.atom.d>;

  using ThreadsC = typename detail::registers_t<S, 'c', k>::Threads;
  using ValuesC = typename detail::registers_t<S, 'c', k>::Values;
  template <int K = k>
  using FragmentA = Fragment<A, typename detail::registers_t<S, 'a', K>::Values>;
  template <int K = k>
  using FragmentB = Fragment<B, typename detail::registers_t<S, 'b', K>::Values>;
  using Accumulator = Fragment<C, ValuesC>;  ///< (of the atom, MMA_M, MMA_N)

  int thread;

  /// The thread's part of an operand: of a tile in shared memory (mn, k[, ...]), what its
  /// instructions load or name: (MMA_MN, MMA_K[, ...]). For mma.sync these are rows of matrices
  /// (ldmatrix loads up to four, so that a step along mn may be several MMAs), or, where ldmatrix
  /// does not do, elements: (of the atom, MMA_MN, MMA_K[, ...]). For wgmma they are matrix
  /// descriptors. Of other tensors, elements.
  template <class Space, class M>
  TEGULA_DEVICE auto partition_a(Tensor<Space, M> const& tensor,
                                 SourceLocation where = SourceLocation::current()) const {
    return operand<'a'>(tensor, where);
  }
  template <class Space, class M>
  TEGULA_DEVICE auto partition_b(Tensor<Space, M> const& tensor,
                                 SourceLocation where = SourceLocation::current()) const {
    return operand<'b'>(tensor, where);
  }
  /// The thread's accumulators' places in a tensor (m, n[, ...]): (of the atom, MMA_M,
  /// MMA_N[, ...]).
  template <class Space, class M>
  TEGULA_DEVICE auto partition_c(Tensor<Space, M> const& tensor,
                                 SourceLocation where = SourceLocation::current()) const {
    static_assert(M::rank >= 2, "partition_c: the tensor has modes m and n");
    check_extent<0, M>("m"), check_extent<1, M>("n");
    detail::hold_thread<threads>("a tiled MMA", thread, where);
    return partition<ThreadsC, ValuesC, 2>(tensor, thread, where);
  }
  /// The coordinate (m, n) of the thread's first accumulator.
  TEGULA_DEVICE Coordinate<2> origin_c(SourceLocation where = SourceLocation::current()) const {
    detail::hold_thread<threads>("a tiled MMA", thread, where);
    return {{coordinate<0>(ThreadsC{}, thread), coordinate<1>(ThreadsC{}, thread)}};
  }

  /// Where in a whole tile ldmatrix finds an operand.
  template <char Operand, class Tile>
  using Rows = detail::MatrixRows<S, Operand, 8 * sizeof(typename Tile::Element),
                                  mode_size<mode_at<1, typename detail::WholeTile<Tile>::Type>>,
                                  detail::Contiguity<Tile>::along_mn>;
  /// Bank conflicts of a warp's loads of an operand from a tile.
  template <char Operand, class Tile>
  static constexpr int conflicts_of =
      detail::warp_conflicts<Tile, mode_at<0, MapOf<typename Rows<Operand, Tile>::ThreadSource>>,
                             detail::Contiguity<Tile>::along_mn ? 0 : 1, 16>;

  /// The accumulators of another product (m, K) rounded to A's type, as this one's A. No value
  /// moves between threads; refused where one would have to.
  template <TiledMmaSpec From, class M>
  TEGULA_DEVICE static auto operand_a(TiledMma<From> const& from, Fragment<float, M> const& c) {
    using Order = detail::Unpermuted<TiledMma<From>::n>;
    static_assert(AsOperandA<From, Order>::same);
    return operand_a<Order>(from, c);
  }
  /// The same with the other product's columns in another order: A's k is column Order::value(k).
  /// B's k must be in that order too; then the sum is over the same pairs.
  template <class Order, TiledMmaSpec From, class M>
  TEGULA_DEVICE static auto operand_a(TiledMma<From> const&, Fragment<float, M> const& c) {
    using Values = AsOperandA<From, Order>;
    static_assert(Values::same);
    return Rounded<A, Fragment<float, M>, mode_at<0, MapOf<Values>>>{c};
  }

 private:
  template <TiledMmaSpec From, class Order> struct AsOperandA {
    using FromC = detail::OperandRegisters<From, 'c', TiledMma<From>::k>;
    using ToA = detail::OperandRegisters<S, 'a', TiledMma<From>::n>;
    static constexpr Tuple tile = shape(TiledMma<From>::m, TiledMma<From>::n);
    static constexpr Layout value =
        detail::retile(FromC::value.values, ToA::value.values, tile, Order::value);
    static constexpr bool same =
        detail::same_threads(FromC::value.threads, ToA::value.threads, tile, Order::value);
  };

  template <char Operand, class Space, class M>
  TEGULA_DEVICE auto operand(Tensor<Space, M> const& tensor, SourceLocation where) const {
    static_assert(M::rank >= 2, "partition: an operand has modes mn and k");
    static_assert(mode_size<mode_at<0, M>> == (Operand == 'a' ? m : n) ||
                      mode_size<mode_at<0, M>> == kUnbounded,
                  "partition: the operand's tile must be as high as the tiled MMA's");
    constexpr int K = mode_size<mode_at<1, M>>;
    static_assert(K % k == 0, "partition: the instruction's k must divide the tile's");
    using Registers = detail::registers_t<S, Operand, K>;
    if constexpr (requires { typename Space::Memory; }) {
      using Tile = typename Space::Memory;
      if constexpr (S.atom.operands == MmaOperands::ss ||
                    (S.atom.operands == MmaOperands::rs && Operand == 'b')) {
        detail::check_described_tile<Operand, Tile, M, S.atom>();
        using Steps = detail::WgmmaSteps<S, Operand, K>;
        using Groups = compose_t<take_t<0, 2, M>, group_t<MapOf<typename Steps::Groups>>>;
        using Own = concat_t<compose_t<take_t<0, 2, M>, MapOf<typename Steps::Steps>>,
                             take_t<2, M::rank, M>>;
        Descriptors<Tile> const all(tensor.space.base_address(), where);
        if constexpr (Operand == 'a' ? S.groups_m > 1 : S.groups_n > 1) {
          detail::hold_thread<threads>("a tiled MMA", thread, where);
          return detail::make_tensor<Own>(all.template moved<mode_at<0, Groups>>(thread));
        } else {
          return detail::make_tensor<Own>(all);
        }
      } else {
        detail::check_elements<Tile, Operand == 'a' ? S.atom.a : S.atom.b>();
        using Rows = detail::MatrixRows<S, Operand, 8 * sizeof(typename Tile::Element), K,
                                        detail::OperandContiguity<Tile, M>::along_mn>;
        detail::hold_thread<threads>("a tiled MMA", thread, where);
        if constexpr (Rows::matrices > 0) {
          static_assert(detail::OperandContiguity<Tile, M>::mn >= 0,
                        "partition: mn of an operand goes along one axis of its tile");
          using Begins = compose_t<take_t<0, 2, M>, MapOf<typename Rows::ThreadSource>>;
          using Own = concat_t<compose_t<take_t<0, 2, M>, MapOf<typename Rows::StepSource>>,
                               take_t<2, M::rank, M>>;
          return detail::make_tensor<Own>(
              tensor.space.template begin_at<Begins, Rows::op>(thread, where));
        } else {
          return partition<typename Registers::Threads, typename Registers::Values, 2>(
              tensor, thread, where);
        }
      }
    } else {
      detail::hold_thread<threads>("a tiled MMA", thread, where);
      return partition<typename Registers::Threads, typename Registers::Values, 2>(tensor, thread,
                                                                                   where);
    }
  }
  template <int I, class M> TEGULA_DEVICE static void check_extent(char const*) {
    constexpr int extent = mode_size<mode_at<I, M>>;
    static_assert(extent == kUnbounded || extent == (I == 0 ? m : n),
                  "partition_c: the tile must be as large as the tiled MMA's");
  }
};

/// stmatrix of a tiled MMA's accumulators, rounded to 16 bits: copy(rounded<T>(accumulators),
/// MatrixStore<spec>{lane}.partition(tile)), for a tile that is contiguous along n, or, Transposed,
/// along m. (CuTe: make_tiled_copy_C of an stmatrix atom.)
template <TiledMmaSpec S, bool Transposed = false> struct MatrixStore {
  using Threads = MapOf<typename detail::StoredRows<S, Transposed>::ThreadSource>;
  using Values = MapOf<typename detail::StoredRows<S, Transposed>::StepSource>;
  static constexpr CopyOp op = detail::stmatrix_of(Transposed);

  int thread;

  /// The rows of matrices whose addresses the thread gives, of a tile (m, n[, ...]):
  /// (stores[, ...]).
  template <class Space, class M>
  TEGULA_DEVICE auto partition(Tensor<Space, M> const& tile,
                               SourceLocation where = SourceLocation::current()) const {
    using Whole = detail::MmaTilingOf<S>;
    static_assert(mode_size<mode_at<0, M>> == Whole::m && mode_size<mode_at<1, M>> == Whole::n,
                  "MatrixStore: the tile must be as large as the tiled MMA's");
    detail::hold_thread<Whole::threads>("a MatrixStore", thread, where);
    return matrix_rows<Threads, Values, op>(tile, thread, where);
  }
};

}  // namespace tegula
