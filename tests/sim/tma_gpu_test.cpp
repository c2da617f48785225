#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "cuda/tensor_map.hpp"
#include "tegula/device/error.hpp"
#include "tegula/device/tensor_map.hpp"
#include "tma_checks.hpp"
#include "tma_gpu_kernels.hpp"
#include "tma_reduction.hpp"

/// TMA on a GPU: the driver refuses what check() refuses, and the hardware moves what the oracle and the
/// simulated machine say.
namespace tegula {

TensorMap GpuHost::encode(TensorMapDescription const& description) {
  check(description);
  return device::encode_by_driver(description);
}

namespace {

using namespace tma_test;
using tma_kernels::Load, tma_kernels::Multicast, tma_kernels::Reduce;

class GpuTma : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_tma()) GTEST_SKIP() << "no GPU of compute capability 9";
  }
  GpuHost host;
};

TEST_F(GpuTma, LoadsEveryBox) {
  for (Case const& c : cases()) EXPECT_EQ(check_load(host, c), "");
}

TEST_F(GpuTma, StoresEveryBox) {
  for (Case const& c : cases()) EXPECT_EQ(check_store(host, c), "");
}

TEST_F(GpuTma, Multicasts) {
  Case const c = basic_case(2, DType::f32, TmaSwizzle::b64);
  EXPECT_EQ((check_loaded<Multicast<2>>(host, c, 2, 0b11, 0)), "");
  EXPECT_EQ((check_loaded<Multicast<2>>(host, c, 2, 0b01, 1)), "");
  EXPECT_EQ((check_loaded<Multicast<4>>(host, c, 4, 0b1011, 3)), "");
  EXPECT_EQ((check_loaded<Multicast<4>>(host, c, 8, 0b1111, 1)), "");
}

TEST_F(GpuTma, BulkCopies) {
  for (int const bytes : {16, 48, 1024, 16384, 32768 - 16}) EXPECT_EQ(check_bulk(host, bytes, 32, 16), "");
}

TEST_F(GpuTma, HintsAreThePoliciesThatCreatepolicyGives) {
  auto const [first, last] = host.cache_policies();
  EXPECT_EQ(first, cache_policy(L2Hint::evict_first));
  EXPECT_EQ(last, cache_policy(L2Hint::evict_last));
  Case const c = basic_case(2, DType::bf16, TmaSwizzle::b128);
  EXPECT_EQ((check_loaded<Load<2, L2Hint::evict_first>>(host, c)), "");
  EXPECT_EQ((check_loaded<Load<2, L2Hint::evict_last>>(host, c)), "");
  EXPECT_EQ((check_loaded<Load<2, L2Hint::evict_normal>>(host, c)), "");
}

/// Values of the type: all bit patterns are as likely, and every eighth is zero, an infinity, a NaN or a
/// subnormal.
Bytes adversarial(DType dtype, std::size_t count, std::uint32_t seed) {
  auto const size = static_cast<std::size_t>(bits(dtype) / 8);
  Bytes values = noise(count * size, seed);
  if (dtype != DType::f16 && dtype != DType::bf16 && dtype != DType::f32) return values;
  int const exponent_bits = dtype == DType::f16 ? 5 : 8;
  for (std::size_t i = 0; i < count; i += 8) {
    std::uint32_t bit = 0;
    std::memcpy(&bit, &values[i * size], size);
    std::uint32_t const exponent = ((1u << exponent_bits) - 1) << (bits(dtype) - 1 - exponent_bits);
    std::uint32_t const mantissa = (exponent & ~(exponent - 1)) - 1;
    switch (i / 8 % 4) {
      case 0:
        bit &= ~(exponent | mantissa);
        break;
      case 1:
        bit = (bit & ~mantissa) | exponent;
        break;
      case 2:
        bit |= exponent | 1;
        break;
      default:
        bit &= ~exponent;
    }
    std::memcpy(&values[i * size], &bit, size);
  }
  return values;
}

template <TmaReduce Op> std::string check_reduction(GpuHost& host, DType dtype) {
  auto const size = static_cast<std::size_t>(bits(dtype) / 8);
  int const rows = kDumpBytes / 512;
  Case c;
  c.map.dtype = dtype;
  c.map.rank = 2;
  c.map.box = {static_cast<int>(512 / size) / (size == 1 ? 2 : 1), rows};
  c.map.extents = {c.map.box[0], rows};
  c.map.strides = {512};
  Bytes const tensor = adversarial(dtype, kDumpBytes / size, 6),
              dump = adversarial(dtype, kDumpBytes / size, 7);
  Bytes expected = tensor;
  sim::reduce(Op, dtype, expected.data(), dump.data(), kDumpBytes / size);
  std::string const different = difference(stored<Reduce<Op>>(host, c, tensor, dump), expected);
  return different.empty() ? "" : std::string(to_string(Op)) + " of " + to_string(dtype) + ": " + different;
}

TEST_F(GpuTma, ReducesAsTheSimulatedMachine) {
  for (DType const dtype :
       {DType::f16, DType::bf16, DType::f32, DType::f64, DType::s32, DType::u32, DType::s64, DType::u64}) {
    EXPECT_EQ(check_reduction<TmaReduce::add>(host, dtype), "");
    if (sim::can_reduce(TmaReduce::min, dtype)) {
      EXPECT_EQ(check_reduction<TmaReduce::min>(host, dtype), "");
      EXPECT_EQ(check_reduction<TmaReduce::max>(host, dtype), "");
    }
  }
}

/// Whether the driver takes a description, without our check.
bool driver_takes(TensorMapDescription const& description) {
  try {
    static_cast<void>(device::encode_by_driver(description));
    return true;
  } catch (device_error const&) {
    return false;
  }
}

bool check_takes(TensorMapDescription const& description) {
  try {
    check(description);
    return true;
  } catch (argument_error const&) {
    return false;
  }
}

/// Descriptions at and beyond every limit: the driver and check() agree on each.
TEST_F(GpuTma, TheDriverRefusesWhatCheckRefuses) {
  void* const memory = host.allocate(4096);
  std::vector<TensorMapDescription> all;
  TensorMapDescription sound;
  sound.rank = 3;
  sound.address = memory;
  sound.extents = {64, 128, 4};
  sound.strides = {128, 16384};
  sound.box = {64, 64, 1};
  auto const with = [&](auto change) {
    TensorMapDescription d = sound;
    change(d);
    all.push_back(d);
  };
  for (int rank = 0; rank <= 6; ++rank) with([&](auto& d) { d.rank = rank; });
  for (int offset = 0; offset <= 32; offset += 4)
    with([&](auto& d) { d.address = static_cast<char*>(memory) + offset; });
  with([](auto& d) { d.address = nullptr; });
  for (std::int64_t const extent :
       {std::int64_t{0}, std::int64_t{1}, std::int64_t{1} << 32, (std::int64_t{1} << 32) + 1})
    for (std::size_t axis = 0; axis < 3; ++axis) with([&](auto& d) { d.extents[axis] = extent; });
  for (std::int64_t const stride : {std::int64_t{0}, std::int64_t{8}, std::int64_t{16}, std::int64_t{24},
                                    (std::int64_t{1} << 40) - 16, std::int64_t{1} << 40})
    for (std::size_t axis = 0; axis < 2; ++axis) with([&](auto& d) { d.strides[axis] = stride; });
  for (int const box : {0, 1, 8, 12, 63, 256, 257})
    for (std::size_t axis = 0; axis < 3; ++axis) with([&](auto& d) { d.box[axis] = box; });
  for (int const step : {0, 1, 8, 9})
    for (std::size_t axis = 1; axis < 3; ++axis) with([&](auto& d) { d.element_strides[axis] = step; });
  for (TmaSwizzle const swizzle : {TmaSwizzle::b32, TmaSwizzle::b64, TmaSwizzle::b128})
    for (int const box : {8, 16, 32, 64, 72, 128})
      with([&](auto& d) {
        d.swizzle = swizzle;
        d.box[0] = box;
      });
  for (DType const dtype :
       {DType::f64, DType::f32, DType::tf32, DType::f16, DType::bf16, DType::e4m3, DType::e5m2, DType::s64,
        DType::u64, DType::s32, DType::u32, DType::s16, DType::u16, DType::s8, DType::u8})
    for (TmaFill const fill : {TmaFill::zeros, TmaFill::nans})
      with([&](auto& d) {
        d.dtype = dtype;
        d.fill = fill;
      });
  for (TensorMapDescription const& d : all)
    EXPECT_EQ(driver_takes(d), check_takes(d))
        << "the driver " << (driver_takes(d) ? "takes " : "refuses ") << to_string(d);
  host.release(memory);
}

}  // namespace
}  // namespace tegula
