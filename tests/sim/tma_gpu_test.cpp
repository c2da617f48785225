#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "cuda/tensor_map.hpp"
#include "isolated.hpp"
#include "tegula/device/error.hpp"
#include "tegula/device/tensor_map.hpp"
#include "tma_checks.hpp"
#include "tma_gpu_kernels.hpp"
#include "tma_reduction.hpp"

/// TMA on a GPU: the driver refuses what check() refuses, and the hardware moves what the oracle and the
/// simulated machine say. Each check is told apart from what it broke.
namespace tegula {

TensorMap GpuHost::encode(TensorMapDescription const& description) {
  check(description);
  return device::encode_by_driver(description);
}

namespace {

using namespace tma_test;
using tma_kernels::Load, tma_kernels::Multicast, tma_kernels::Reduce;

/// What a check of the list is called and does; each gets a host of its own.
isolated::Check check_of(std::string name, std::function<std::string(GpuHost&)> run) {
  return {std::move(name), [run = std::move(run)] {
            GpuHost host;
            try {
              return run(host);
            } catch (gpu_error const& e) {
              throw isolated::broken_process(e.what());
            }
          }};
}

/// Runs the checks on the GPU, in processes of their own, and reports every one that finds something wrong.
void expect_all(std::vector<isolated::Check> checks) {
  // This process must not touch the GPU: the ones it forks could not.
  checks.insert(checks.begin(),
                {"GPU of compute capability 9", [] { return has_tma() ? "" : "there is none"; }});
  std::vector<std::string> const verdicts = isolated::run(checks);
  if (verdicts[0] == "there is none") GTEST_SKIP() << "no GPU of compute capability 9";
  for (std::size_t i = 0; i < checks.size(); ++i) EXPECT_EQ(verdicts[i], "") << checks[i].name;
}

TEST(GpuTma, LoadsEveryBox) {
  std::vector<isolated::Check> checks;
  for (Case const& c : cases())
    checks.push_back(check_of("load " + c.name, [c](GpuHost& host) { return check_load(host, c); }));
  expect_all(std::move(checks));
}

TEST(GpuTma, StoresEveryBox) {
  std::vector<isolated::Check> checks;
  for (Case const& c : cases())
    checks.push_back(check_of("store " + c.name, [c](GpuHost& host) { return check_store(host, c); }));
  expect_all(std::move(checks));
}

/// The hardware stops a kernel whose box begins between multiples of 16 bytes, as the simulated machine does.
TEST(GpuTma, RefusesBoxesBetweenMultiplesOf16Bytes) {
  std::vector<isolated::Check> checks;
  for (Case const& c : misaligned_cases()) {
    auto const refused = [c](GpuHost& host, auto check) {
      try {
        std::string const different = check(host, c);
        return "moved, " + (different.empty() ? "as if it were aligned" : different);
      } catch (gpu_error const& e) {
        if (std::string(e.what()).find("illegal instruction") == std::string::npos) throw;
        throw isolated::broken_process("");
      }
    };
    checks.push_back(check_of("load " + c.name, [=](GpuHost& host) {
      return refused(host, [](GpuHost& h, Case const& at) { return check_load(h, at); });
    }));
    checks.push_back(check_of("store " + c.name, [=](GpuHost& host) {
      return refused(host, [](GpuHost& h, Case const& at) { return check_store(h, at); });
    }));
  }
  expect_all(std::move(checks));
}

TEST(GpuTma, Multicasts) {
  Case const c = basic_case(2, DType::f32, TmaSwizzle::b64);
  expect_all({check_of("2 of 2", [c](auto& h) { return check_loaded<Multicast<2>>(h, c, 2, 0b11, 0); }),
              check_of("1 of 2", [c](auto& h) { return check_loaded<Multicast<2>>(h, c, 2, 0b01, 1); }),
              check_of("3 of 4", [c](auto& h) { return check_loaded<Multicast<4>>(h, c, 4, 0b1011, 3); }),
              check_of("4 of 4", [c](auto& h) { return check_loaded<Multicast<4>>(h, c, 8, 0b1111, 1); })});
}

TEST(GpuTma, BulkCopies) {
  std::vector<isolated::Check> checks;
  for (int const bytes : {16, 48, 1024, 16384, 32768 - 16})
    checks.push_back(check_of(std::to_string(bytes) + " bytes",
                              [bytes](GpuHost& host) { return check_bulk(host, bytes, 32, 16); }));
  expect_all(std::move(checks));
}

TEST(GpuTma, HintsAreThePoliciesThatCreatepolicyGives) {
  Case const c = basic_case(2, DType::bf16, TmaSwizzle::b128);
  expect_all(
      {check_of("createpolicy",
                [](GpuHost& host) -> std::string {
                  auto const [first, last] = host.cache_policies();
                  if (first == cache_policy(L2Hint::evict_first) && last == cache_policy(L2Hint::evict_last))
                    return "";
                  return fmt::format("evict_first is {:#x}, evict_last {:#x}", first, last);
                }),
       check_of("evict_first", [c](auto& h) { return check_loaded<Load<2, L2Hint::evict_first>>(h, c); }),
       check_of("evict_last", [c](auto& h) { return check_loaded<Load<2, L2Hint::evict_last>>(h, c); }),
       check_of("evict_normal", [c](auto& h) { return check_loaded<Load<2, L2Hint::evict_normal>>(h, c); })});
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

TEST(GpuTma, ReducesAsTheSimulatedMachine) {
  std::vector<isolated::Check> checks;
  for (DType const dtype :
       {DType::f16, DType::bf16, DType::f32, DType::f64, DType::s32, DType::u32, DType::s64, DType::u64}) {
    auto const add = [&]<TmaReduce Op>(std::integral_constant<TmaReduce, Op>) {
      if (!sim::can_reduce(Op, dtype)) return;
      checks.push_back(check_of(std::string(to_string(Op)) + " of " + to_string(dtype),
                                [dtype](GpuHost& host) { return check_reduction<Op>(host, dtype); }));
    };
    add(std::integral_constant<TmaReduce, TmaReduce::add>{});
    add(std::integral_constant<TmaReduce, TmaReduce::min>{});
    add(std::integral_constant<TmaReduce, TmaReduce::max>{});
  }
  expect_all(std::move(checks));
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
TEST(GpuTma, TheDriverRefusesWhatCheckRefuses) {
  // Neither looks at what is there: an address will do that is aligned as an allocation's.
  auto* const memory = reinterpret_cast<char*>(std::uintptr_t{0x7f0000000000});
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
  for (int offset = 0; offset <= 32; offset += 4) with([&](auto& d) { d.address = memory + offset; });
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
  std::vector<isolated::Check> checks;
  for (TensorMapDescription const& d : all) {
    checks.push_back(check_of(to_string(d), [d](GpuHost&) -> std::string {
      if (driver_takes(d) == check_takes(d)) return "";
      return driver_takes(d) ? "the driver takes what check() refuses"
                             : "the driver refuses what check() takes";
    }));
  }
  expect_all(std::move(checks));
}

}  // namespace
}  // namespace tegula
