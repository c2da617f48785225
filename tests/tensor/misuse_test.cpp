#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tegula/arch/barrier.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/mbarrier.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/layout/literal.hpp"
#include "tegula/layout/parse.hpp"
#include "tegula/numeric/bfloat16.hpp"
#include "tegula/sim/launch.hpp"
#include "tegula/sim/tensor_map.hpp"
#include "tegula/tensor/copy.hpp"
#include "tegula/tensor/recast.hpp"
#include "tegula/tensor/tiled_mma.hpp"
#include "tegula/tensor/tma.hpp"

/// Wrong uses of tensors that the compiler cannot know of: each is a finding that says what would
/// be accepted, and its neighbour that is right is none.
namespace tegula {
namespace {

constexpr int kRows = 8, kColumns = 32;

/// One warp does `Body` to a matrix of 8 x 32, of which the allocation holds twice as much, and to
/// a tile in shared memory that others lie around.
template <class Body> struct Misuse {
  struct Params {
    float* data;
    int argument;
  };
  static constexpr int threads = 64;
  using Tile = SharedTile<float, row_major(kRows, kColumns)>;
  struct SharedStorage {
    Tile before, tile, after;
    template <class F> void name_buffers(F&& name) {
      name("before", before), name("tile", tile), name("after", after);
    }
  };
  void operator()(Params const& p, SharedStorage& smem) const {
    auto const t = tensor(smem.tile);
    for (int i = thread_idx(); i < kRows * kColumns; i += threads)
      t(i / kColumns, i % kColumns) = 1;
    cta::sync();
    Body{}(matrix<1>(p.data, kColumns, kRows, kColumns), t, p.argument);
  }
};

/// What is found of it: empty where nothing is.
template <class Body> std::string found(Body, int argument) {
  sim::Machine machine({.throw_on_finding = false});
  std::vector<float> const zeros(2 * kRows * kColumns, 0.0f);
  auto* const data = static_cast<float*>(machine.allocate(4 * zeros.size(), "data"));
  machine.upload(data, zeros.data(), 4 * zeros.size());
  sim::Report const report = sim::launch<Misuse<Body>>(machine, {1, 1, 1}, {data, argument});
  return report.findings.empty() ? "" : report.findings.front().message;
}
#define TEGULA_EXPECT_FOUND(body, right, wrong, words) \
  EXPECT_EQ(found(body, right), "");                   \
  EXPECT_NE(found(body, wrong).find(words), std::string::npos) << found(body, wrong)

TEST(NamedElement, OutsideOfATensorInGlobalMemoryIsFound) {
  auto const row = [](auto const& m, auto const&, int i) {
    if (thread_idx() == 0) m(i, 3) = 1.0f;
  };
  TEGULA_EXPECT_FOUND(row, 7, 8,
                      "element (8, 3) is named, which is outside of the tensor's extents, (8, 32)");
  TEGULA_EXPECT_FOUND(row, 0, -1, "element (-1, 3) is named");
  auto const column = [](auto const& m, auto const&, int i) {
    if (thread_idx() == 0) m(2, i) = 1.0f;
  };
  TEGULA_EXPECT_FOUND(column, 31, 32, "element (2, 32) is named");
  TEGULA_EXPECT_FOUND(column, 0, -1, "element (2, -1) is named");
  auto const read = [](auto const& m, auto const&, int i) {
    if (thread_idx() == 0) m(0, 0) = static_cast<float>(anchored(m)(i, 0));
  };
  TEGULA_EXPECT_FOUND(read, 7, 9, "element (9, 0) is named");
}

TEST(NamedElement, BeyondAModeOfATensorIsFound) {
  auto const tile = [](auto const& m, auto const&, int i) {
    if (thread_idx() == 0) local_tile<4, 8>(m, 0, 1)(i, 0) = 1.0f;
  };
  TEGULA_EXPECT_FOUND(tile, 3, 4, "index 4 of mode 0 of a tensor is named, whose extent is 4");
  auto const flat = [](auto const& m, auto const&, int i) {
    if (thread_idx() == 0) local_tile<4, 8>(m, 0, 1)(i) = 1.0f;
  };
  TEGULA_EXPECT_FOUND(flat, 31, 32, "index 32 over all modes of a tensor is named");
  auto const shared = [](auto const&, auto const& t, int i) {
    if (thread_idx() == 0) local_tile<4, 8>(t, 0, 1)(0, i) = 1.0f;
  };
  TEGULA_EXPECT_FOUND(shared, 7, 8, "index 8 of mode 1 of a tensor is named, whose extent is 8");
  TEGULA_EXPECT_FOUND(shared, 0, -1, "index -1 of mode 1");
}

TEST(NamedElement, OutsideOfATileThroughASliceIsFound) {
  auto const slice = [](auto const&, auto const& t, int i) {
    if (thread_idx() == 0) t(i, _)(3) = 1.0f;
  };
  TEGULA_EXPECT_FOUND(slice, 7, 8,
                      "element (8, 3) is named, which is outside of the tile's extents, (8, 32)");
}

TEST(Predicates, MayNameNothingOutside) {
  // Copies leave out what is outside, and so does who asks before he names.
  auto const copied = [](auto const& m, auto const& t, int i) {
    using Copy =
        TiledCopy<share_rows({.threads = 64, .m = kRows, .n = kColumns, .vector = 4}), float>;
    copy(Copy{thread_idx()}, local_tile<kRows, kColumns>(m, i, i), t);
    cp_async_wait_all();
    cta::sync();
    if (thread_idx() < 32 && i * kRows + 1 < kRows) m(i * kRows + 1, thread_idx()) = 1.0f;
  };
  for (int i = 0; i < 3; ++i) EXPECT_EQ(found(copied, i), "");
}

TEST(Thread, BeyondThoseOfATiledCopyIsFound) {
  auto const body = [](auto const& m, auto const& t, int i) {
    using Copy =
        TiledCopy<share_rows({.threads = 32, .m = kRows, .n = kColumns, .vector = 4}), float>;
    if (thread_idx() < 32) copy(Copy{thread_idx() + i}, local_tile<kRows, kColumns>(m, 0, 0), t);
    cp_async_wait_all();
  };
  TEGULA_EXPECT_FOUND(body, 0, 1, "a tiled copy is for threads 0 to 31, and is given thread 32");
}
TEST(Thread, BeyondThoseOfALocalPartitionIsFound) {
  auto const body = [](auto const& m, auto const&, int i) {
    auto values = make_fragment_like(local_partition<"(4,16):(16,1)"_layout>(
        local_tile<kRows, kColumns>(m, 0, 0), thread_idx() + i));
    clear(values);
  };
  TEGULA_EXPECT_FOUND(body, 0, 1,
                      "a local_partition is for threads 0 to 63, and is given thread 64");
}
TEST(Thread, BeyondThoseOfATiledMmaIsFound) {
  using Mma = TiledMma<TiledMmaSpec{warp_mma(DType::tf32, DType::f32, 8), 16, 8}>;
  auto const c = [](auto const& m, auto const&, int i) {
    (void)Mma{thread_idx() % 32 + i}.partition_c(local_tile<16, 8>(m, 0, 0));
  };
  TEGULA_EXPECT_FOUND(c, 0, 1, "a tiled MMA is for threads 0 to 31, and is given thread 32");
  auto const b = [](auto const&, auto const& t, int i) {
    (void)Mma{thread_idx() % 32 + i}.partition_b(t);
  };
  TEGULA_EXPECT_FOUND(b, 0, 1, "a tiled MMA is for threads 0 to 31, and is given thread 32");
  auto const origin = [](auto const&, auto const&, int i) {
    (void)Mma{thread_idx() % 32 + i}.origin_c();
  };
  TEGULA_EXPECT_FOUND(origin, 0, 32, "a tiled MMA is for threads 0 to 31");
}

TEST(Recast, OfWhatIsNoMultipleIsFound) {
  auto const extent = [](auto const& m, auto const&, int i) {
    (void)recast<std::uint64_t>(matrix<1>(m.space.data, 32, 8, 30 + i));
  };
  TEGULA_EXPECT_FOUND(extent, 0, 1,
                      "an extent along the unit axis of 31, which is no multiple of 2");
  auto const stride = [](auto const& m, auto const&, int i) {
    (void)recast<std::uint64_t>(matrix<1>(m.space.data, 30 + i, 8, 30));
  };
  TEGULA_EXPECT_FOUND(stride, 0, 1, "a stride of axis 0 of 31, which is no multiple of 2");
  auto const origin = [](auto const& m, auto const&, int i) {
    (void)recast<std::uint64_t>(domain_offset(m, 0, i));
  };
  TEGULA_EXPECT_FOUND(origin, 2, 3, "a tensor that begins at element 3, which is no multiple of 2");
  auto const base = [](auto const& m, auto const&, int i) {
    (void)recast<std::uint64_t>(matrix<1>(m.space.data + i, 32, 4, 32));
  };
  TEGULA_EXPECT_FOUND(base, 2, 1, "a tensor that begins 4 bytes past a multiple of that");
}

/// Loads a tile by a map whose box, swizzle or type may be another than the copy's.
struct LoadBox {
  struct Params {
    TensorMap map;
    int rank;
  };
  static constexpr int threads = 32;
  static constexpr OperandTile tile = {16, 16, 64, 1};
  static constexpr TmaBoxes boxes = tma_boxes(tile);
  using Tile = SharedTile<bfloat16, tile>;
  struct SharedStorage {
    Tile tile;
    Mbarrier full;
    template <class F> void name_buffers(F&& name) { name("tile", tile), name("full", full); }
  };
  void operator()(Params const& p, SharedStorage& smem) const {
    if (thread_idx() != 0) return;
    SharedAddr const full = shared_address(&smem.full);
    mbarrier_init(full, 1);
    fence_mbarrier_init();
    auto const g = local_tile<16, 64>(tma_tensor<1, 0, 2>(p.map)(_, _, 0), 0, 0);
    mbarrier_arrive_expect_tx(full, boxes.bytes);
    copy(TmaCopy<boxes>{p.rank}, g, tensor(smem.tile), full);
    mbarrier_wait_parity(full, 0);
    static_cast<void>(static_cast<bfloat16>(tensor(smem.tile)(0, 0)));
  }
};
template <class Change> std::string found_of_map(Change change, int rank = 0) {
  sim::Machine machine({.throw_on_finding = false});
  std::vector<std::uint16_t> const zeros(64 * 64, 0);
  void* const data = machine.allocate(2 * zeros.size(), "data");
  machine.upload(data, zeros.data(), 2 * zeros.size());
  TensorMapDescription map = describe({DType::bf16, data, 64, 64, 1, 64, 0}, LoadBox::boxes);
  change(map);
  sim::Report const report = sim::launch<LoadBox>(machine, {1, 1, 1}, {sim::encode(map), rank});
  return report.findings.empty() ? "" : report.findings.front().message;
}

TEST(TensorMapOfACopy, HasItsBoxesSwizzleAndElements) {
  using Map = TensorMapDescription;
  EXPECT_EQ(found_of_map([](Map&) {}), "");
  EXPECT_EQ(found_of_map([](Map& map) { map.dtype = DType::f16; }), "");
  auto const says = [](std::string const& text, char const* has) {
    EXPECT_NE(
        text.find(std::string("the tensor map has boxes of ") + has +
                  ", but the copy's are boxes of 64 x 16 x 1 elements of 16 bits, swizzle 128B"),
        std::string::npos)
        << text;
  };
  says(found_of_map([](Map& map) {
         map.box = {32, 16, 1};
       }),
       "32 x 16 x 1 elements of 16 bits, swizzle 128B");
  says(found_of_map([](Map& map) {
         map.box = {64, 8, 1};
       }),
       "64 x 8 x 1 elements of 16 bits, swizzle 128B");
  says(found_of_map([](Map& map) { map.swizzle = TmaSwizzle::none; }),
       "64 x 16 x 1 elements of 16 bits, swizzle none");
  says(found_of_map([](Map& map) {
         map.dtype = DType::f32, map.box = {32, 16, 1}, map.extents[0] = 32;
       }),
       "32 x 16 x 1 elements of 32 bits, swizzle 128B");
}
TEST(TensorMapOfACopy, IsLoadedByItsPeers) {
  EXPECT_NE(found_of_map([](TensorMapDescription&) {}, 1)
                .find("whose thread is its rank among its peers, is for threads 0 to 0"),
            std::string::npos);
}

// Tiles are aligned as their swizzle and TMA need, no more.
static_assert(alignof(SharedTile<float, row_major(2, 4)>) == 128);
static_assert(alignof(SharedTile<bfloat16, OperandTile{16, 8, 64, 1}>) == 1024);
static_assert(alignof(SharedTile<bfloat16, OperandTile{16, 8, 32, 1}>) == 512);
static_assert(alignof(SharedTile<bfloat16, OperandTile{16, 8, 8, 1}>) == 128);
static_assert(sizeof(SharedTile<float, row_major(4, 8)>[4]) == 512);

TEST(IsOneToOne, SaysWhichLayoutsOverlap) {
  for (char const* text :
       {"(8,16):(16,1)", "(4,2):(2,1)", "(2,2):(2,3)", "(4,(2,8)):(16,(1,2))", "1:0"})
    EXPECT_TRUE(detail::is_one_to_one(parse_layout(std::string_view(text)))) << text;
  for (char const* text : {"(8,16):(0,1)", "(4,4):(1,1)", "(3,2):(2,4)", "(8,8):(1,4)"})
    EXPECT_FALSE(detail::is_one_to_one(parse_layout(std::string_view(text)))) << text;
}

}  // namespace
}  // namespace tegula
