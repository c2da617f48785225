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
    auto const out =
        local_tile<256>(global_tensor<Axes<Unit>>(p.out, extents(1024), strides(1)), 1);
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
