#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tegula/numeric/half.hpp"
#include "tegula/sim/launch.hpp"
#include "tegula/sim/tensor_map.hpp"
#include "tma_checks.hpp"

/// TMA on the simulated machine, as instructions of kernels.
namespace tegula {
namespace {

using namespace tma_test;
using tma_kernels::Load, tma_kernels::Multicast, tma_kernels::Reduce;

class SimulatedHost {
 public:
  explicit SimulatedHost(sim::Options options = {}) : machine_(options) {}
  void* allocate(std::size_t bytes) { return machine_.allocate(bytes, "memory"); }
  void upload(void* to, void const* from, std::size_t bytes) { machine_.upload(to, from, bytes); }
  void download(void* to, void const* from, std::size_t bytes) { machine_.download(to, from, bytes); }
  void release(void* pointer) { machine_.deallocate(pointer); }
  TensorMap encode(TensorMapDescription const& description) { return sim::encode(description); }
  template <class Kernel> void launch(tma_kernels::Params const& params, int ctas) {
    report = sim::launch<Kernel>(machine_, {ctas, 1, 1}, params);
  }

  sim::Report report;

 private:
  sim::Machine machine_;
};

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

TEST(SimulatedTma, StoresEveryBox) {
  SimulatedHost host;
  for (Case const& c : cases()) EXPECT_EQ(check_store(host, c), "");
}

TEST(SimulatedTma, AtEverySchedule) {
  for (sim::Options const& options : schedules()) {
    SimulatedHost host(options);
    for (int const rank : {1, 3, 5}) {
      Case c = basic_case(rank, DType::bf16, TmaSwizzle::b128);
      EXPECT_EQ(check_load(host, c), "");
      EXPECT_EQ(check_store(host, c), "");
      c.coordinate[0] = -4;
      EXPECT_EQ(check_load(host, c), "");
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
  for (int const bytes : {16, 48, 1024, 16384, 32768 - 16}) EXPECT_EQ(check_bulk(host, bytes, 32, 16), "");
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
  // 2048 + 1 and 2050 + 1 lie between neighbours: to the even one. 65504 + 16 rounds to infinity. Subnormals
  // stay. inf - inf is a NaN.
  std::vector<half> const halves = reduced<TmaReduce::add, half>(
      {{0x6800}, {0x6801}, {0x7bff}, {0x0001}, {0x7c00}, {0x3c00}, {0x8000}, {0x4248}},
      {{0x3c00}, {0x3c00}, {0x4c00}, {0x0002}, {0xfc00}, {0xbc00}, {0x8000}, {0x1400}});
  constexpr std::uint16_t kSums[] = {0x6800, 0x6802, 0x7c00, 0x0003, 0x7fff, 0x0000, 0x8000, 0x4248};
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(halves[i].bits, kSums[i]) << i;
  // 256 + 1 and 258 + 1 in bfloat16.
  std::vector<bfloat16> const sums =
      reduced<TmaReduce::add, bfloat16>({{0x4380}, {0x4381}, {0x3f80}, {0x7f7f}, {0x0001}, {0}, {0}, {0}},
                                        {{0x3f80}, {0x3f80}, {0x3f80}, {0x7f7f}, {0x0001}, {0}, {0}, {0}});
  EXPECT_EQ(sums[0].bits, 0x4380);
  EXPECT_EQ(sums[1].bits, 0x4382);
  EXPECT_EQ(sums[2].bits, 0x4000);
  EXPECT_EQ(sums[3].bits, 0x7f80);
  EXPECT_EQ(sums[4].bits, 0x0002);
  // A subnormal operand, or result, of binary32 counts as zero.
  EXPECT_EQ((reduced<TmaReduce::add, float>({16777216.0f, 1.5f, 0x1p-149f, -0x1p-126f},
                                            {1.0f, 2.25f, 0x1p-140f, 0x1.8p-126f})),
            (std::vector<float>{16777216.0f, 3.75f, 0.0f, 0.0f}));
  EXPECT_EQ((reduced<TmaReduce::add, std::int32_t>({2147483647, -5, 7, 0}, {1, -6, -7, 0})),
            (std::vector<std::int32_t>{-2147483647 - 1, -11, 0, 0}));
  EXPECT_EQ((reduced<TmaReduce::add, double>({1.0, 2.0}, {0x1p-52, 0x1p-53})),
            (std::vector<double>{1.0 + 0x1p-52, 2.0}));
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
  c.coordinate = {-5, 20};
  Bytes const tensor = tensor_of(c), dump = noise(kDumpBytes, 5);
  Bytes expected = tensor;
  for (Element const& element : elements_of(c)) {
    if (element.global < 0) continue;
    std::uint32_t a, b;
    std::memcpy(&a, tensor.data() + element.global, 4);
    std::memcpy(&b, dump.data() + element.shared, 4);
    a += b;
    std::memcpy(expected.data() + element.global, &a, 4);
  }
  for (sim::Options const& options : schedules()) {
    SimulatedHost host(options);
    EXPECT_EQ(difference(stored<Reduce<TmaReduce::add>>(host, c, tensor, dump), expected), "");
  }
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
  c.coordinate = {9, 20};  // a row now takes part of a fifth sector
  EXPECT_EQ(check_load(host, c), "");
  EXPECT_EQ(host.report.instruction("cp.async.bulk.tensor").global_sectors, 4 * 5);
  EXPECT_EQ((check_loaded<Multicast<2>>(host, c, 2, 0b11)), "");
  EXPECT_EQ(host.report.instruction("cp.async.bulk.tensor").shared_bytes, 2 * 11 * 128);
  EXPECT_EQ(host.report.instruction("cp.async.bulk.tensor").global_bytes, 4 * 128);
}

}  // namespace
}  // namespace tegula
