#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "tegula/numeric/half.hpp"
#include "tegula/sim/launch.hpp"
#include "tegula/sim/tensor_map.hpp"
#include "tegula/tensor/shared_tile.hpp"
#include "tegula/tensor/tma_box.hpp"
#include "tma_checks.hpp"
#include "tma_simulated_host.hpp"

/// TMA on the simulated machine, as instructions of kernels.
namespace tegula {
namespace {

using namespace tma_test;
using tma_kernels::Load, tma_kernels::Multicast, tma_kernels::Reduce;

/// Hosts that differ in when operations land and who runs first.
std::vector<sim::Options> schedules() {
  using sim::Completion, sim::Interleaving;
  std::vector<sim::Options> all(4);
  all[0].completion = Completion::last;
  all[1].completion = Completion::first;
  all[1].interleaving = Interleaving::round_robin;
  for (std::size_t i = 2; i < all.size(); ++i) {
    all[i].completion = Completion::random;
    all[i].interleaving = Interleaving::random;
    all[i].seed = i;
  }
  return all;
}

TEST(SimulatedTma, LoadsEveryBox) {
  SimulatedHost host;
  for (Case const& c : cases()) EXPECT_EQ(check_load(host, c), "");
}

TEST(SimulatedTma, LoadsEveryImage) {
  SimulatedHost host;
  for (Case const& c : image_cases()) EXPECT_EQ(check_load(host, c), "");
}

/// A store writes beyond the end of axis 0 up to a multiple of 16 bytes. There lies what the test
/// put there: the checker says so, and goes on.
TEST(SimulatedTma, StoresEveryBox) {
  sim::Options options;
  options.throw_on_finding = false;
  SimulatedHost host(options);
  int beyond = 0;
  for (Case const& c : cases()) {
    if (!c.can_store()) continue;
    EXPECT_EQ(check_store(host, c), "");
    auto const elements = elements_of(c);
    bool const writes_beyond = std::any_of(elements.begin(), elements.end(), [](Element const& e) {
      return e.stored >= 0 && e.global < 0;
    });
    beyond += writes_beyond ? 1 : 0;
    ASSERT_EQ(host.report.findings.size(), writes_beyond ? 1u : 0u)
        << c.name << ": " << host.report.text();
    if (writes_beyond) {
      EXPECT_EQ(host.report.findings[0].kind, sim::FindingKind::out_of_bounds) << c.name;
    }
  }
  EXPECT_GT(beyond, 50);
}

TEST(SimulatedTma, AtEverySchedule) {
  for (sim::Options const& options : schedules()) {
    SimulatedHost host(options);
    for (int const rank : {1, 3, 5}) {
      Case c = basic_case(rank, DType::bf16, TmaSwizzle::b128);
      EXPECT_EQ(check_load(host, c), "");
      EXPECT_EQ(check_store(host, c), "");
      c.coordinate[0] = -8;
      EXPECT_EQ(check_load(host, c), "");
      c.map.extents[0] -= 5;  // a multiple of 16 bytes
      c.coordinate[0] = static_cast<int>(c.map.extents[0]) - 32;
      EXPECT_EQ(check_store(host, c), "");
    }
    Case const c = basic_case(2, DType::f32, TmaSwizzle::b64);
    EXPECT_EQ((check_loaded<Multicast<4>>(host, c, 4, 0b1011, 3)), "");
    EXPECT_EQ((check_loaded<Multicast<4>>(host, c, 8, 0b1111, 1)), "");
    EXPECT_EQ((check_loaded<Multicast<2>>(host, c, 2, 0b01, 1)), "");
    EXPECT_EQ(check_bulk(host, 4096, 256, 1024), "");
  }
}

TEST(SimulatedTma, BulkCopies) {
  SimulatedHost host;
  for (int const bytes : {16, 48, 1024, 16384, 32768 - 16})
    EXPECT_EQ(check_bulk(host, bytes, 32, 16), "");
}

TEST(SimulatedTma, HintsChangeNothing) {
  SimulatedHost host;
  Case const c = basic_case(2, DType::bf16, TmaSwizzle::b128);
  EXPECT_EQ((check_loaded<Load<2, L2Hint::evict_first>>(host, c)), "");
  EXPECT_EQ((check_loaded<Load<2, L2Hint::evict_last>>(host, c)), "");
  EXPECT_EQ((check_loaded<Load<2, L2Hint::evict_normal>>(host, c)), "");
}

/// Reduces each `a` in a row of a tensor with each `b`.
template <TmaReduce Op, class T> std::vector<T> reduced(std::vector<T> a, std::vector<T> b) {
  std::size_t const bytes = a.size() * sizeof(T);
  Case c;
  c.map.dtype = dtype_of<T>;
  c.map.rank = 2;
  c.map.extents = {static_cast<std::int64_t>(a.size()), 1};
  c.map.strides = {1024};
  c.map.box = {static_cast<int>(a.size()), 1};
  Bytes tensor(bytes), dump(kDumpBytes);
  std::memcpy(tensor.data(), a.data(), bytes);
  std::memcpy(dump.data(), b.data(), bytes);
  SimulatedHost host;
  Bytes const result = stored<Reduce<Op>>(host, c, tensor, dump);
  std::memcpy(a.data(), result.data(), bytes);
  return a;
}

TEST(SimulatedTma, AddsWithOneRounding) {
  // 2048 + 1 and 2050 + 1 lie between neighbours: to the even one. 65504 + 16 rounds to infinity.
  // Subnormals stay. inf - inf is a NaN.
  std::vector<half> const halves = reduced<TmaReduce::add, half>(
      {{0x6800}, {0x6801}, {0x7bff}, {0x0001}, {0x7c00}, {0x3c00}, {0x8000}, {0x4248}},
      {{0x3c00}, {0x3c00}, {0x4c00}, {0x0002}, {0xfc00}, {0xbc00}, {0x8000}, {0x1400}});
  constexpr std::uint16_t kSums[] = {0x6800, 0x6802, 0x7c00, 0x0003,
                                     0x7fff, 0x0000, 0x8000, 0x4248};
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(halves[i].bits, kSums[i]) << i;
  // 256 + 1 and 258 + 1 in bfloat16.
  std::vector<bfloat16> const sums = reduced<TmaReduce::add, bfloat16>(
      {{0x4380}, {0x4381}, {0x3f80}, {0x7f7f}, {0x0001}, {0}, {0}, {0}},
      {{0x3f80}, {0x3f80}, {0x3f80}, {0x7f7f}, {0x0001}, {0}, {0}, {0}});
  EXPECT_EQ(sums[0].bits, 0x4380);
  EXPECT_EQ(sums[1].bits, 0x4382);
  EXPECT_EQ(sums[2].bits, 0x4000);
  EXPECT_EQ(sums[3].bits, 0x7f80);
  EXPECT_EQ(sums[4].bits, 0x0002);
  // Subnormals of binary32 stay, too.
  EXPECT_EQ((reduced<TmaReduce::add, float>({16777216.0f, 1.5f, 0x1p-149f, -0x1p-126f},
                                            {1.0f, 2.25f, 0x1p-140f, 0x1.8p-126f})),
            (std::vector<float>{16777216.0f, 3.75f, 0x1p-149f + 0x1p-140f, 0x1p-127f}));
  EXPECT_EQ((reduced<TmaReduce::add, std::int32_t>({2147483647, -5, 7, 0}, {1, -6, -7, 0})),
            (std::vector<std::int32_t>{-2147483647 - 1, -11, 0, 0}));
  EXPECT_EQ((reduced<TmaReduce::add, double>({1.0, 2.0}, {0x1p-52, 0x1p-53})),
            (std::vector<double>{1.0 + 0x1p-52, 2.0}));
  // NaNs of binary64 stay as they are, signalling ones too.
  constexpr std::uint64_t kSignalling = 0xfff037d9b88bb337;
  std::vector<double> const nans = reduced<TmaReduce::add, double>(
      {0x1p60, std::bit_cast<double>(kSignalling)}, {std::bit_cast<double>(kSignalling), 1.0});
  for (double const nan : nans) EXPECT_EQ(std::bit_cast<std::uint64_t>(nan), kSignalling);
}

TEST(SimulatedTma, TakesTheLeastAndTheGreatest) {
  EXPECT_EQ((reduced<TmaReduce::min, std::int32_t>({-1, 5, 3, 3}, {1, -5, 2, 4})),
            (std::vector<std::int32_t>{-1, -5, 2, 3}));
  EXPECT_EQ((reduced<TmaReduce::max, std::uint32_t>({0xffffffffu, 5, 3, 3}, {1, 6, 2, 4})),
            (std::vector<std::uint32_t>{0xffffffffu, 6, 3, 4}));
  EXPECT_EQ((reduced<TmaReduce::min, std::uint64_t>({1ull << 63, 5}, {1, 6})),
            (std::vector<std::uint64_t>{1, 5}));
  // 1 and -2, 0 and -0, NaN and 1, NaN and NaN.
  std::vector<half> const a = {{0x3c00}, {0x0000}, {0x7e00}, {0x7e01}, {0}, {0}, {0}, {0}};
  std::vector<half> const b = {{0xc000}, {0x8000}, {0x3c00}, {0xfe00}, {0}, {0}, {0}, {0}};
  std::vector<half> const least = reduced<TmaReduce::min, half>(a, b),
                          most = reduced<TmaReduce::max, half>(a, b);
  for (std::size_t i = 0; i < 4; ++i) {
    constexpr std::uint16_t kLeast[] = {0xc000, 0x8000, 0x3c00, 0x7fff},
                            kMost[] = {0x3c00, 0x0000, 0x3c00, 0x7fff};
    EXPECT_EQ(least[i].bits, kLeast[i]) << i;
    EXPECT_EQ(most[i].bits, kMost[i]) << i;
  }
}

TEST(SimulatedTma, ReducesOnlyWhatLiesInTheTensor) {
  Case c = basic_case(2, DType::u32, TmaSwizzle::b128);
  c.map.extents[0] -= 1;  // a multiple of 16 bytes
  c.coordinate = {static_cast<int>(c.map.extents[0]) - 12, 20};
  for (sim::Options const& options : schedules()) {
    SimulatedHost host(options);
    EXPECT_EQ(check_add(host, c), "");
  }
}

/// Each CTA adds 1 / (3 + its index) to the same 32 floats.
struct AddShares {
  using Params = TensorMap;
  struct SharedStorage {
    alignas(128) float share[32];
  };
  static constexpr int threads = 32;
  void operator()(Params const& map, SharedStorage& smem) const {
    st_shared(shared_address(&smem.share[thread_idx()]),
              1.0f / static_cast<float>(3 + block_idx().x));
    fence_proxy_async();
    cta::sync();
    if (thread_idx() != 0) return;
    tma_reduce<1, TmaReduce::add>(map, TmaCoordinate{0}, shared_address(smem.share));
    bulk_commit_group();
    bulk_wait_group<0>();
  }
};

TEST(SimulatedTma, AddsInTheOrderOfCtasWhateverTheHostsThreads) {
  constexpr int kCtas = 40;
  float expected = 0;
  for (int cta = 0; cta < kCtas; ++cta) expected += 1.0f / static_cast<float>(3 + cta);
  for (int const workers : {1, 2, 4}) {
    sim::Options options;
    options.workers = workers;
    SimulatedHost host(options);
    Memory<SimulatedHost> const out(host, Bytes(128));
    TensorMapDescription d;
    d.dtype = DType::f32;
    d.rank = 1;
    d.address = out.as<void>();
    d.extents = {32};
    d.box = {32};
    host.launch_kernel<AddShares>(sim::encode(d), kCtas);
    Bytes const sums = out.content();
    for (std::size_t i = 0; i < 32; ++i) {
      float sum;
      std::memcpy(&sum, &sums[4 * i], 4);
      EXPECT_EQ(sum, expected) << workers << " workers, element " << i;
    }
  }
}

/// Fills stage 1 of a tile (mn, k, stage) with the boxes that its layout asks for, and gives back
/// its elements by coordinate.
struct TileParams {
  TensorMap map;
  half* out;
};

template <int Mn, int K, int Contiguous> struct LoadTile {
  using Params = TileParams;
  static constexpr SwizzledLayout layout = swizzled_operand(16, Mn, K, Contiguous, 2);
  static constexpr TmaBox box = tma_box(layout, 16, Contiguous);
  struct SharedStorage {
    SharedTile<half, layout> tile;
    Mbarrier full;
  };
  static constexpr int threads = 32;

  void operator()(Params const& p, SharedStorage& smem) const {
    SharedAddr const mbarrier = shared_address(&smem.full);
    SharedAddr const tile = shared_address(smem.tile.data);
    if (thread_idx() == 0) {
      mbarrier_init(mbarrier, 1);
      fence_mbarrier_init();
      mbarrier_arrive_expect_tx(mbarrier, static_cast<int>(box.stage_bytes));
      for (int i = 0; i < box.count; ++i) {
        tma_load(tile + static_cast<SharedAddr>(box.stage_bytes + i * box.distance), p.map,
                 TmaCoordinate{i * box.contiguous_extent, 0}, mbarrier);
      }
    }
    cta::sync();
    mbarrier_wait_parity(mbarrier, 0);
    for (int i = thread_idx(); i < Mn * K; i += threads) {
      auto const offset = static_cast<SharedAddr>(
          sizeof(half) * static_cast<std::size_t>(layout(i % Mn, i / Mn, 1)));
      st_global(p.out + i, ld_shared<half>(tile + offset));
    }
  }
};

template <int Mn, int K, int Contiguous> void expect_tile_loaded() {
  SCOPED_TRACE(std::to_string(Mn) + " x " + std::to_string(K) + ", contiguous " +
               std::to_string(Contiguous));
  using Kernel = LoadTile<Mn, K, Contiguous>;
  constexpr int kAlong = Contiguous == 0 ? Mn : K, kAcross = Contiguous == 0 ? K : Mn;
  SimulatedHost host;
  Bytes const matrix = noise(2 * Mn * K, 8);
  Memory<SimulatedHost> const in(host, matrix), out(host, Bytes(matrix.size()));
  TensorMapDescription d;
  d.dtype = DType::f16;
  d.rank = 2;
  d.address = in.as<void>();
  d.extents = {kAlong, kAcross};
  d.strides = {2 * kAlong};
  d.box = {Kernel::box.contiguous_extent, Kernel::box.strided_extent};
  d.swizzle = Kernel::box.swizzle;
  host.launch_kernel<Kernel>(TileParams{sim::encode(d), out.as<half>()});
  Bytes const tile = out.content();
  for (std::size_t mn = 0; mn < Mn; ++mn) {
    for (std::size_t k = 0; k < K; ++k) {
      std::size_t const from = Contiguous == 0 ? k * Mn + mn : mn * K + k;
      ASSERT_EQ(std::memcmp(&tile[2 * (mn + Mn * k)], &matrix[2 * from], 2), 0) << mn << ", " << k;
    }
  }
}

TEST(SimulatedTma, FillsTilesOfEitherMajor) {
  expect_tile_loaded<128, 64, 1>();
  expect_tile_loaded<64, 32, 1>();
  expect_tile_loaded<64, 128, 1>();
  expect_tile_loaded<128, 64, 0>();
  expect_tile_loaded<96, 32, 0>();
  expect_tile_loaded<16, 64, 0>();
}

TEST(SimulatedTma, CountsBytesAndSectors) {
  SimulatedHost host;
  Case c = basic_case(2, DType::f32, TmaSwizzle::b128);
  c.map.strides = {1024};  // every row begins a sector
  c.coordinate = {8, 20};  // 4 of 11 rows lie in the tensor, 32 elements each
  EXPECT_EQ(check_load(host, c), "");
  sim::LineCounters const load = host.report.instruction("cp.async.bulk.tensor");
  EXPECT_EQ(load.instructions, 1);
  EXPECT_EQ(load.shared_bytes, 11 * 128);
  EXPECT_EQ(load.global_bytes, 4 * 128);
  EXPECT_EQ(load.global_sectors, 4 * 4);
  sim::LineCounters const prefetch = host.report.instruction("cp.async.bulk.prefetch.tensor");
  EXPECT_EQ(prefetch.instructions, 1);
  EXPECT_EQ(prefetch.shared_bytes, 0);
  EXPECT_EQ(prefetch.global_sectors, 4 * 4);
  EXPECT_EQ(host.report.instruction("prefetch.tensormap").instructions, 1);
  c.coordinate = {12, 20};  // a row now takes part of a fifth sector
  EXPECT_EQ(check_load(host, c), "");
  EXPECT_EQ(host.report.instruction("cp.async.bulk.tensor").global_sectors, 4 * 5);
  EXPECT_EQ((check_loaded<Multicast<2>>(host, c, 2, 0b11)), "");
  EXPECT_EQ(host.report.instruction("cp.async.bulk.tensor").shared_bytes, 2 * 11 * 128);
  EXPECT_EQ(host.report.instruction("cp.async.bulk.tensor").global_bytes, 4 * 128);
}

}  // namespace
}  // namespace tegula
