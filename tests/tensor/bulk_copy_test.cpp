// Copies of tensors in bulk, to several CTAs and with reductions, and hints of tiled copies.
#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <vector>

#include "schedules.hpp"
#include "tegula/arch/barrier.hpp"
#include "tegula/arch/cluster.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/mbarrier.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/sim/launch.hpp"
#include "tegula/tensor/copy.hpp"
#include "tegula/tensor/tma.hpp"

namespace tegula {
namespace {

constexpr int kRow = 64;

struct Rows {
  std::uint32_t const* in;
  std::uint32_t* out;
};

/// CTA 0 of each cluster of four multicasts a row; each CTA adds its rank to its copy, and then all
/// of them to the first one's sums, which it adds to global memory.
struct SumsOfRows {
  using Params = Rows;
  static constexpr int threads = kRow;
  static constexpr Dim3 cluster = {4, 1, 1};
  using Tile = SharedTile<std::uint32_t, Layout(layout(kRow))>;
  struct SharedStorage {
    Tile row, sums;
    Mbarrier full, summed;
    template <class F> void name_buffers(F&& name) {
      name("row", row), name("sums", sums), name("full", full), name("summed", summed);
    }
  };

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    int const rank = cluster_cta_rank(), t = thread_idx();
    SharedAddr const full = shared_address(&smem.full), summed = shared_address(&smem.summed);
    auto const row = tensor(smem.row), sums = tensor(smem.sums);
    auto const in = local_tile<kRow>(global_tensor<Axes<Unit>>(p.in, extents(4 * kRow), strides(1)),
                                     block_idx().x / 4);
    auto const out = local_tile<kRow>(
        global_tensor<Axes<Unit>>(p.out, extents(4 * kRow), strides(1)), block_idx().x / 4);
    sums(t) = std::uint32_t{0};
    fence_proxy_async_shared();
    if (t == 0) {
      mbarrier_init(full, 1);
      mbarrier_init(summed, 1);
      fence_mbarrier_init();
      mbarrier_arrive_expect_tx(full, 4 * kRow);
      mbarrier_arrive_expect_tx(summed, rank == 0 ? 4 * 4 * kRow : 0);
    }
    cluster::sync();
    if (t == 0 && rank == 0) copy(BulkMulticast<L2Hint::evict_first>{0b1111}, in, row, full);
    mbarrier_wait_parity(full, 0);
    row(t) = row(t) + static_cast<std::uint32_t>(rank);
    fence_proxy_async_shared();
    cta::sync();
    if (t == 0) reduce<TmaReduce::add>(BulkCopy{}, row, in_peer(sums, 0), mapa(summed, 0));
    if (t == 0 && rank == 0) {
      mbarrier_wait_parity(summed, 0);
      reduce<TmaReduce::add>(BulkCopy<L2Hint::evict_last>{}, sums, out);
      bulk_commit_group();
      bulk_wait_group<0>();
    }
    cluster::sync();
  }
};

TEST(BulkCopy, MulticastsRowsAndReducesThemInAPeerAndInGlobalMemory) {
  std::vector<std::uint32_t> in(4 * kRow);
  std::iota(in.begin(), in.end(), 100u);
  for (sim::Options options : every_schedule(2)) {
    options.generation = sim::Generation::sm90;
    sim::Machine machine(options);
    auto* const from = static_cast<std::uint32_t*>(machine.allocate(4 * in.size(), "in"));
    auto* const to = static_cast<std::uint32_t*>(machine.allocate(4 * in.size(), "out"));
    machine.upload(from, in.data(), 4 * in.size());
    machine.upload(to, in.data(), 4 * in.size());
    sim::launch<SumsOfRows>(machine, Dim3{16, 1, 1}, Rows{from, to});
    std::vector<std::uint32_t> out(in.size());
    machine.download(out.data(), to, 4 * out.size());
    for (std::size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], 5 * in[i] + 6) << i;
  }
}

/// A ragged matrix to shared memory, to registers, and back, with hints on every access.
struct Hinted {
  struct Params {
    float const* in;
    float* out;
    int rows, columns;
  };
  static constexpr int threads = 64;
  using Tile = SharedTile<float, Layout(row_major(16, 32))>;
  static constexpr TiledCopySpec shares =
      share_rows({.threads = threads, .m = 16, .n = 32, .vector = 4});
  using Load =
      TiledCopy<shares, float, CacheHint{.l2 = L2Hint::evict_first, .prefetch = L2Prefetch::b256}>;
  using LoadThroughL1 = TiledCopy<shares, float, CacheHint{.op = CacheOperator::ca}>;
  using ToRegisters = TiledCopy<shares, float, CacheHint{.l1 = L1Eviction::no_allocate}>;
  using Store = TiledCopy<shares, float, CacheHint{.op = CacheOperator::cs}>;
  struct SharedStorage {
    Tile tile[2];
    template <class F> void name_buffers(F&& name) {
      name("first", tile[0]), name("second", tile[1]);
    }
  };

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    auto const in = [&](int i) {
      return local_tile<16, 32>(matrix<1>(p.in, p.columns, p.rows, p.columns), i, 0);
    };
    auto const out = [&](int i) {
      return local_tile<16, 32>(matrix<1>(p.out, p.columns, p.rows, p.columns), i, 0);
    };
    int const t = thread_idx();
    copy(Load{t}, in(0), tensor(smem.tile[0]));
    copy(LoadThroughL1{t}, in(1), tensor(smem.tile[1]));
    cp_async_wait_all();
    cta::sync();
    copy(Store{t}, tensor(smem.tile[0]), out(0));
    copy(Store{t}, tensor(smem.tile[1]), out(1));
    ToRegisters const by{t};
    auto values = make_fragment_like(by.partition(in(2)));
    copy(by, in(2), values);
    copy(Store{t}, values, out(2));
  }
};

TEST(TiledCopy, HintsChangeNothing) {
  int const rows = 45, columns = 28;
  std::vector<float> in(static_cast<std::size_t>(rows * columns));
  std::iota(in.begin(), in.end(), 1.0f);
  sim::Machine machine;
  auto* const from = static_cast<float*>(machine.allocate(4 * in.size(), "in"));
  auto* const to = static_cast<float*>(machine.allocate(4 * in.size(), "out"));
  machine.upload(from, in.data(), 4 * in.size());
  sim::launch<Hinted>(machine, Dim3{1, 1, 1}, Hinted::Params{from, to, rows, columns});
  std::vector<float> out(in.size());
  machine.download(out.data(), to, 4 * out.size());
  EXPECT_EQ(out, in);
}

}  // namespace
}  // namespace tegula
