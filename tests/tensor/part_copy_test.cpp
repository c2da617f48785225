// A thread's parts of tensors: copies between global memory, shared memory and registers, of any
// element width, at the edges of tensors too; axpby; and the bank conflicts of a part.

#include <gtest/gtest.h>

#include <vector>

#include "tegula/arch/barrier.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/layout/literal.hpp"
#include "tegula/sim/launch.hpp"
#include "tegula/tensor/axpby.hpp"
#include "tegula/tensor/copy.hpp"

namespace tegula {
namespace {

constexpr int kBlock = 32, kThreads = 64;
constexpr Layout kThreadsByRow = "(2,32):(32,1)"_layout;

template <class T> struct CopyParams {
  T const* in;
  T* out;
  int rows, columns;
  float alpha, beta;
};

/// out = in transposed, through shared memory, by elements.
template <class T, SwizzledLayout Memory> struct TransposeParts {
  using Params = CopyParams<T>;
  static constexpr int threads = kThreads;
  struct SharedStorage {
    SharedTile<T, Memory> tile;
  };
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    auto const in = local_tile<kBlock, kBlock>(matrix<1>(p.in, p.columns, p.rows, p.columns), 0, 0);
    auto const out = local_tile<kBlock, kBlock>(matrix<1>(p.out, p.rows, p.columns, p.rows), 0, 0);
    auto const tile = tensor(smem.tile);
    copy(local_partition<kThreadsByRow>(in, thread_idx()),
         local_partition<kThreadsByRow>(tile, thread_idx()));
    cta::sync();
    copy(local_partition<kThreadsByRow>(select<1, 0>(tile), thread_idx()),
         local_partition<kThreadsByRow>(out, thread_idx()));
  }
};

/// out = in transposed, from tile to tile of shared memory, after a copy from global to global
/// memory.
template <class T> struct TransposeTiles {
  using Params = CopyParams<T>;
  static constexpr int threads = kThreads;
  struct SharedStorage {
    SharedTile<T, row_major(kBlock, kBlock)> a;
    SharedTile<T, SwizzledLayout{Swizzle{5, 0, 5}, 0, row_major(kBlock, kBlock)}> b;
  };
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    auto const in = local_tile<kBlock, kBlock>(matrix<1>(p.in, p.columns, p.rows, p.columns), 0, 0);
    auto const out = local_tile<kBlock, kBlock>(matrix<1>(p.out, p.rows, p.columns, p.rows), 0, 0);
    auto const part = [&](auto const& t) {
      return local_partition<kThreadsByRow>(t, thread_idx());
    };
    copy(part(in), part(out));  // of the columns that both have
    copy(part(in), part(tensor(smem.a)));
    cta::sync();
    copy(part(select<1, 0>(tensor(smem.a))), part(tensor(smem.b)));
    copy(part(tensor(smem.b)), part(out));
  }
};

/// out = alpha in + beta out.
struct ScaleAndAdd {
  using Params = CopyParams<float>;
  static constexpr int threads = kThreads;
  struct SharedStorage {};
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage&) const {
    auto const in = local_tile<kBlock, kBlock>(matrix<1>(p.in, p.columns, p.rows, p.columns), 0, 0);
    auto const out =
        local_tile<kBlock, kBlock>(matrix<1>(p.out, p.columns, p.rows, p.columns), 0, 0);
    auto const part = local_partition<kThreadsByRow>(in, thread_idx());
    auto x = make_fragment_like(part);
    copy(part, x);
    axpby(p.alpha, x, p.beta, local_partition<kThreadsByRow>(out, thread_idx()));
  }
};

/// The elements of `in` in vectors that a predicate wants, through registers; zeros where it does
/// not. With `Keep`, the predicate is asked when they are stored, and the others stay as they were.
template <class T, int Vector, bool Keep> struct CopyVectors {
  using Params = CopyParams<T>;
  static constexpr int threads = kThreads;
  struct SharedStorage {};
  static constexpr int across = kBlock / Vector;
  using Copy =
      TiledCopy<make_tiled_copy(layout(shape(kThreads / across, across), stride(across, 1)),
                                shape(1, Vector), kBlock, kBlock),
                T>;
  static constexpr bool wanted(int row, int column) { return (row + column / Vector) % 3 != 0; }
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage&) const {
    auto const in = local_tile<kBlock, kBlock>(matrix<1>(p.in, p.columns, p.rows, p.columns), 0, 0);
    auto const out =
        local_tile<kBlock, kBlock>(matrix<1>(p.out, p.columns, p.rows, p.columns), 0, 0);
    Copy const by{thread_idx()};
    auto values = make_fragment_like(by.partition(in));
    auto const asked = [](Coordinate<2> const& at) { return wanted(at[0], at[1]); };
    if constexpr (Keep) {
      copy(by, in, values);
      copy_if(by, asked, values, out);
    } else {
      copy_if(by, asked, in, values);
      copy(by, values, out);
    }
  }
};

template <class T> T number(int i) { return static_cast<T>(i % 251 + 1); }

/// Runs a kernel on the numbers 1, 2, ...; `out` holds 7 everywhere before.
template <class Kernel, class T>
std::vector<T> run(int rows, int columns, float alpha = 1, float beta = 0) {
  sim::Machine machine;
  std::vector<T> in(static_cast<std::size_t>(rows * columns)), out(in.size(), T{7});
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = number<T>(static_cast<int>(i));
  auto* const device_in = static_cast<T*>(machine.allocate(in.size() * sizeof(T), "in"));
  auto* const device_out = static_cast<T*>(machine.allocate(in.size() * sizeof(T), "out"));
  machine.upload(device_in, in.data(), in.size() * sizeof(T));
  machine.upload(device_out, out.data(), in.size() * sizeof(T));
  sim::launch<Kernel>(machine, {1, 1, 1}, {device_in, device_out, rows, columns, alpha, beta});
  machine.download(out.data(), device_out, in.size() * sizeof(T));
  return out;
}

template <class T> class PartCopies : public testing::Test {};
using Elements = testing::Types<std::uint8_t, std::uint16_t, std::int32_t, float>;
TYPED_TEST_SUITE(PartCopies, Elements);

TYPED_TEST(PartCopies, TransposeThroughSharedMemoryAtAnyEdge) {
  using Plain = TransposeParts<TypeParam, SwizzledLayout{Swizzle{}, 0, row_major(kBlock, kBlock)}>;
  using Swizzled =
      TransposeParts<TypeParam, SwizzledLayout{Swizzle{5, 0, 5}, 0, row_major(kBlock, kBlock)}>;
  for (auto const& [rows, columns] : {std::pair{32, 32}, {31, 5}, {1, 32}, {17, 23}}) {
    for (auto const& out :
         {run<Plain, TypeParam>(rows, columns), run<Swizzled, TypeParam>(rows, columns)}) {
      for (int i = 0; i < rows * columns; ++i)
        ASSERT_EQ(out[static_cast<std::size_t>(i)],
                  number<TypeParam>(i % rows * columns + i / rows))
            << i;
    }
  }
}

TYPED_TEST(PartCopies, TransposeFromTileToTile) {
  for (auto const& [rows, columns] : {std::pair{32, 32}, {31, 5}, {1, 32}, {17, 23}}) {
    auto const out = run<TransposeTiles<TypeParam>, TypeParam>(rows, columns);
    for (int i = 0; i < rows * columns; ++i)
      ASSERT_EQ(out[static_cast<std::size_t>(i)], number<TypeParam>(i % rows * columns + i / rows))
          << i;
  }
}

TYPED_TEST(PartCopies, VectorsThroughRegistersWherePredicatesWantThem) {
  constexpr int vector = 4;
  using Zeroed = CopyVectors<TypeParam, vector, false>;
  using Kept = CopyVectors<TypeParam, vector, true>;
  for (auto const& [rows, columns] : {std::pair{32, 32}, {31, 8}, {1, 32}, {17, 20}}) {
    auto const zeroed = run<Zeroed, TypeParam>(rows, columns),
               kept = run<Kept, TypeParam>(rows, columns);
    for (int i = 0; i < rows * columns; ++i) {
      bool const wanted = Zeroed::wanted(i / columns, i % columns);
      auto const at = static_cast<std::size_t>(i);
      ASSERT_EQ(zeroed[at], wanted ? number<TypeParam>(i) : TypeParam{0}) << i;
      ASSERT_EQ(kept[at], wanted ? number<TypeParam>(i) : TypeParam{7}) << i;
    }
  }
}

TEST(Axpby, ScalesAndAddsInsideOfTheTensor) {
  for (float const beta : {0.0f, 0.5f}) {
    auto const out = run<ScaleAndAdd, float>(19, 29, -2, beta);
    for (int i = 0; i < 19 * 29; ++i)
      ASSERT_EQ(out[static_cast<std::size_t>(i)], -2 * number<float>(i) + beta * 7) << i;
  }
}

// What the machine counts, said at compile time: a column of an unswizzled tile is in one bank.
template <SwizzledLayout Memory, int Row, int Column> int conflicts() {
  using Tile = SharedTile<float, Memory>;
  using Threads = Mode<Along<Row, 32, 1>>;
  using Part = Tensor<Shared<Tile, Threads>, Map<Mode<Along<Column, 32, 1>>>>;
  return conflicts_of_part<Part>;
}
TEST(ConflictsOfPart, AreThoseOfAWarpsCopies) {
  constexpr SwizzledLayout plain{Swizzle{}, 0, row_major(32, 32)},
      columns{Swizzle{}, 0, col_major(32, 32)}, swizzled{Swizzle{5, 0, 5}, 0, row_major(32, 32)};
  // Lanes along rows, each with the elements of its row: vectors of four, 128 bytes from lane to
  // lane; where the swizzle takes vectors apart, single elements, each in a bank of its own.
  EXPECT_EQ((conflicts<plain, 0, 1>()), 28);
  EXPECT_EQ((conflicts<columns, 0, 1>()), 0);
  EXPECT_EQ((conflicts<swizzled, 0, 1>()), 0);
}

}  // namespace
}  // namespace tegula
