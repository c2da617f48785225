#include "tegula/tensor/tma.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tegula/arch/barrier.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/mbarrier.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/sim/launch.hpp"
#include "tegula/sim/tensor_map.hpp"
#include "tegula/tensor/tma_rows.hpp"

/// TMA and bulk copies of tensors: loads of several boxes, stores, reductions, and what lies in
/// one piece.
namespace tegula {
namespace {

constexpr int kRows = 48, kColumns = 96;

/// D += S through a tile of 16 x 64, two boxes of 16 x 32 floats, at row 16 and column 32.
struct AddTile {
  struct Params {
    TensorMap s, d;
  };
  static constexpr int threads = 32;
  static constexpr OperandTile tile = {32, 16, 64, 1};
  static constexpr TmaBoxes boxes = tma_boxes(tile);
  using Tile = SharedTile<float, tile>;
  struct SharedStorage {
    Tile tile;
    Mbarrier full;
    template <class F> void name_buffers(F&& name) { name("tile", tile), name("full", full); }
  };
  void operator()(Params const& p, SharedStorage& smem) const {
    SharedAddr const full = shared_address(&smem.full);
    if (thread_idx() != 0) return;
    auto const gS = local_tile<16, 64>(domain_offset(tma_tensor<1, 0>(p.s), 0, 32), 1, 0);
    auto const gD = local_tile<16, 64>(domain_offset(tma_tensor<1, 0>(p.d), 0, 32), 1, 0);
    mbarrier_init(full, 1);
    fence_mbarrier_init();
    prefetch(TmaCopy<boxes>{}, gS);
    mbarrier_arrive_expect_tx(full, TmaCopy<boxes>::bytes);
    copy(TmaCopy<boxes>{}, gS, tensor(smem.tile), full);
    mbarrier_wait_parity(full, 0);
    reduce<TmaReduce::add>(TmaCopy<boxes>{}, tensor(smem.tile), gD);
    bulk_commit_group();
    bulk_wait_group<0>();
  }
};

TensorMap map_of(float* data, TmaBoxes const& boxes) {
  return sim::encode({.dtype = DType::f32,
                      .rank = 2,
                      .address = data,
                      .extents = {kColumns, kRows},
                      .strides = {4 * kColumns},
                      .box = {boxes.box(0), boxes.box(1)},
                      .swizzle = boxes.swizzle});
}

template <class T>
T* device(sim::Machine& machine, std::vector<T> const& values, char const* name) {
  auto* const p = static_cast<T*>(machine.allocate(values.size() * sizeof(T), name));
  machine.upload(p, values.data(), values.size() * sizeof(T));
  return p;
}

TEST(TmaCopy, LoadsATileOfSeveralBoxesAndReducesItIntoAnother) {
  static_assert(AddTile::boxes.boxes_k == 2 && AddTile::boxes.bytes == 16 * 64 * 4);
  std::vector<float> s(kRows * kColumns), d(s.size());
  for (std::size_t i = 0; i < s.size(); ++i)
    s[i] = static_cast<float>(i), d[i] = static_cast<float>(3 * i % 17);
  sim::Machine machine;
  float* const device_d = device(machine, d, "d");
  sim::Report const report = sim::launch<AddTile>(
      machine, Dim3{1, 1, 1},
      {map_of(device(machine, s, "s"), AddTile::boxes), map_of(device_d, AddTile::boxes)});
  EXPECT_TRUE(report.findings.empty()) << report.text();
  std::vector<float> got(d.size());
  machine.download(got.data(), device_d, 4 * got.size());
  for (int i = 0; i < kRows * kColumns; ++i) {
    int const row = i / kColumns, column = i % kColumns;
    bool const added = row >= 16 && row < 32 && column >= 32;
    auto const at = static_cast<std::size_t>(i);
    ASSERT_EQ(got[at], d[at] + (added ? s[at] : 0.0f)) << row << ", " << column;
  }
}

/// The rows of S that a table names, four at a time, through a tile of 16 x 64 floats, two boxes of
/// a row, to the rows of D that another names. A lane moves a group.
struct MoveRows {
  struct Params {
    TensorMap s, d;
    std::int32_t const *from, *to;
  };
  static constexpr int threads = 32;
  static constexpr OperandTile tile = {32, 16, 64, 1, 2};
  static constexpr TmaBoxes boxes = tma_boxes(tile);
  using Rows = TmaFourRows<boxes>;
  using Tile = SharedTile<float, tile>;
  struct SharedStorage {
    Tile tile;
    Mbarrier full;
    template <class F> void name_buffers(F&& name) { name("tile", tile), name("full", full); }
  };
  static Rows rows(std::int32_t const* table, int group) {
    Rows result{group, {}};
    for (int i = 0; i < 4; ++i) result.row[i] = ld_global_nc<int>(table + 4 * group + i);
    return result;
  }
  void operator()(Params const& p, SharedStorage& smem) const {
    SharedAddr const full = shared_address(&smem.full);
    auto const sTile = tensor(smem.tile)(_, _, 1);
    auto const gS = local_tile<16, 64>(tma_tensor<1, 0>(p.s), 0, _)(_, _, 1);
    auto const gD = local_tile<16, 64>(domain_offset(tma_tensor<1, 0>(p.d), 0, 32), 0, 0);
    int const group = thread_idx();
    if (group == 0) {
      mbarrier_init(full, 1);
      fence_mbarrier_init();
      mbarrier_arrive_expect_tx(full, boxes.bytes);
    }
    cta::sync();
    static_assert(4 * Rows::bytes == boxes.bytes);
    if (group >= 4) return;
    copy(rows(p.from, group), gS, sTile, full);
    mbarrier_wait_parity(full, 0);
    copy(rows(p.to, group), sTile, gD);
    bulk_commit_group();
    bulk_wait_group<0>();
  }
};

TEST(TmaFourRows, GathersAndScattersRowsOfATile) {
  std::vector<float> s(kRows * 128), d(kRows * kColumns, -1);
  for (std::size_t i = 0; i < s.size(); ++i) s[i] = static_cast<float>(i);
  std::vector<std::int32_t> from, to;
  for (int i = 0; i < 16; ++i) {
    from.push_back(i == 5 ? kRows + 7 : i == 6 ? -3 : (i * 11 + 2) % kRows);  // some outside
    to.push_back(i == 9 ? kRows + 1 : (i * 13 + 40) % kRows);
  }
  sim::Machine machine({.generation = sim::Generation::sm100});
  float* const device_d = device(machine, d, "d");
  auto const map = [&](float* data, int columns) {
    return sim::encode(
        describe_rows({DType::f32, data, kRows, columns, 1, columns, 0}, MoveRows::boxes));
  };
  sim::Report const report =
      sim::launch<MoveRows>(machine, Dim3{1, 1, 1},
                            {map(device(machine, s, "s"), 128), map(device_d, kColumns),
                             device(machine, from, "from"), device(machine, to, "to")});
  EXPECT_TRUE(report.findings.empty()) << report.text();
  std::vector<float> expected = d;
  for (std::size_t i = 0; i < 16; ++i) {
    for (int j = 0; j < 64 && to[i] < kRows; ++j) {
      bool const inside = from[i] >= 0 && from[i] < kRows;
      expected[static_cast<std::size_t>(to[i] * kColumns + 32 + j)] =
          inside ? s[static_cast<std::size_t>(from[i] * 128 + 64 + j)] : 0.0f;
    }
  }
  machine.download(d.data(), device_d, 4 * d.size());
  for (std::size_t i = 0; i < d.size(); ++i) ASSERT_EQ(d[i], expected[i]) << i;
}

/// 256 words in one piece, to shared memory and on.
struct BulkBothWays {
  struct Params {
    std::uint32_t const* in;
    std::uint32_t* out;
  };
  static constexpr int threads = 32;
  using Tile = SharedTile<std::uint32_t, Layout(layout(256))>;
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
    auto const in = local_tile<256>(global_tensor<Axes<Unit>>(p.in, extents(1024), strides(1)), 2);
    auto const out = local_tile<1, 256>(matrix<1>(p.out, 256, 4, 256), 1, 0);  // of one row
    mbarrier_arrive_expect_tx(full, 1024);
    copy(BulkCopy{}, in, tensor(smem.tile), full);
    mbarrier_wait_parity(full, 0);
    copy(BulkCopy{}, tensor(smem.tile), out);
    bulk_commit_group();
    bulk_wait_group<0>();
  }
};

/// Stores 256 numbers from element 768 of a tensor of 1000 on.
struct BulkBeyondTheEdge {
  struct Params {
    std::uint32_t* out;
  };
  static constexpr int threads = 32;
  struct SharedStorage {
    SharedTile<std::uint32_t, Layout(layout(256))> tile;
    template <class F> void name_buffers(F&& name) { name("tile", tile); }
  };
  void operator()(Params const& p, SharedStorage& smem) const {
    auto const tile = tensor(smem.tile);
    for (int i = thread_idx(); i < 256; i += threads) tile(i) = 1;
    fence_proxy_async_shared();
    cta::sync();
    if (thread_idx() != 0) return;
    copy(BulkCopy{}, tile,
         local_tile<256>(global_tensor<Axes<Unit>>(p.out, extents(1000), strides(1)), 3));
    bulk_commit_group();
    bulk_wait_group<0>();
  }
};

TEST(BulkCopy, ClipsNothing) {
  sim::Machine machine({.throw_on_finding = false});
  std::uint32_t* const out = device(machine, std::vector<std::uint32_t>(1024, 7), "out");
  sim::Report const report = sim::launch<BulkBeyondTheEdge>(machine, Dim3{1, 1, 1}, {out});
  EXPECT_NE(report.text().find(
                "a bulk copy reaches beyond the edge of the tensor, and clips nothing: 232 of 256"),
            std::string::npos)
      << report.text();
}

TEST(BulkCopy, MovesWhatLiesInOnePiece) {
  std::vector<std::uint32_t> in(1024), out(1024, 7);
  for (std::uint32_t i = 0; i < 1024; ++i) in[i] = 5 * i;
  sim::Machine machine;
  std::uint32_t* const device_out = device(machine, out, "out");
  sim::Report const report =
      sim::launch<BulkBothWays>(machine, Dim3{1, 1, 1}, {device(machine, in, "in"), device_out});
  EXPECT_TRUE(report.findings.empty()) << report.text();
  machine.download(out.data(), device_out, 4 * out.size());
  for (std::uint32_t i = 0; i < 1024; ++i)
    ASSERT_EQ(out[i], i >= 256 && i < 512 ? 5 * (i + 256) : 7) << i;
}

}  // namespace
}  // namespace tegula
