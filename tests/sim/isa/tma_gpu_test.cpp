#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "cuda/tensor_map.hpp"
#include "isa/tma_reduction.hpp"
#include "isolated.hpp"
#include "tegula/device/error.hpp"
#include "tegula/device/tensor_map.hpp"
#include "tma_checks.hpp"
#include "tma_gpu_kernels.hpp"

/// TMA on a GPU: the driver refuses what check() refuses, and the hardware moves what the oracle
/// and the simulated machine say. Each check is told apart from what it broke.
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

/// All the checks of a test are done within a minute, whatever becomes of them.
constexpr isolated::Limits kLimits{.each = std::chrono::seconds(10),
                                   .all = std::chrono::seconds(45)};

/// A check that the hardware ends its kernel with an illegal instruction. It costs a process.
template <class F> isolated::Check illegal_check_of(std::string name, F run) {
  return check_of(std::move(name), [run = std::move(run)](GpuHost& host) -> std::string {
    try {
      std::string const different = run(host);
      return "is legal, and does " +
             (different.empty() ? "what is expected of a legal one" : different);
    } catch (gpu_error const& e) {
      if (std::string(e.what()).find("illegal instruction") == std::string::npos) throw;
      throw isolated::broken_process("");
    }
  });
}

/// Runs the checks on the GPU, in child processes, and reports every one that finds
/// something wrong.
void expect_all(std::vector<isolated::Check> checks) {
  // This process must not touch the GPU: the ones it forks could not.
  checks.insert(checks.begin(),
                {"GPU of compute capability 9", [] { return has_tma() ? "" : "there is none"; }});
  std::vector<std::string> const verdicts = isolated::run(checks, kLimits);
  if (verdicts[0] == "there is none") GTEST_SKIP() << "no GPU of compute capability 9";
  for (std::size_t i = 0; i < checks.size(); ++i) EXPECT_EQ(verdicts[i], "") << checks[i].name;
}

TEST(GpuTma, LoadsEveryBox) {
  std::vector<isolated::Check> checks;
  for (Case const& c : cases())
    checks.push_back(
        check_of("load " + c.name, [c](GpuHost& host) { return check_load(host, c); }));
  expect_all(std::move(checks));
}

TEST(GpuTma, LoadsEveryImage) {
  std::vector<isolated::Check> checks;
  for (Case const& c : image_cases())
    checks.push_back(
        check_of("load " + c.name, [c](GpuHost& host) { return check_load(host, c); }));
  expect_all(std::move(checks));
}

TEST(GpuTma, StoresEveryBox) {
  std::vector<isolated::Check> checks;
  for (Case const& c : cases()) {
    if (!c.can_store()) continue;
    checks.push_back(
        check_of("store " + c.name, [c](GpuHost& host) { return check_store(host, c); }));
  }
  expect_all(std::move(checks));
}

/// The hardware stops a kernel whose store, or reduction, begins before the tensor, as the
/// simulated machine does.
TEST(GpuTma, RefusesStoresThatBeginBeforeTheTensor) {
  std::vector<isolated::Check> checks;
  for (Case const& c : cases_before(5))
    checks.push_back(
        illegal_check_of("store " + c.name, [c](GpuHost& host) { return check_store(host, c); }));
  for (Case const& c : cases_before(2))
    checks.push_back(
        illegal_check_of("add " + c.name, [c](GpuHost& host) { return check_add(host, c); }));
  expect_all(std::move(checks));
}

/// The hardware stops a kernel whose box begins between multiples of 16 bytes, as the simulated
/// machine does.
TEST(GpuTma, RefusesBoxesBetweenMultiplesOf16Bytes) {
  std::vector<isolated::Check> checks;
  for (Case const& c : misaligned_cases()) {
    checks.push_back(
        illegal_check_of("load " + c.name, [c](GpuHost& host) { return check_load(host, c); }));
    if (!c.can_store()) continue;  // illegal anyhow
    checks.push_back(
        illegal_check_of("store " + c.name, [c](GpuHost& host) { return check_store(host, c); }));
  }
  expect_all(std::move(checks));
}

TEST(GpuTma, Multicasts) {
  Case const c = basic_case(2, DType::f32, TmaSwizzle::b64);
  expect_all(
      {check_of("2 of 2", [c](auto& h) { return check_loaded<Multicast<2>>(h, c, 2, 0b11, 0); }),
       check_of("1 of 2", [c](auto& h) { return check_loaded<Multicast<2>>(h, c, 2, 0b01, 1); }),
       check_of("3 of 4", [c](auto& h) { return check_loaded<Multicast<4>>(h, c, 4, 0b1011, 3); }),
       check_of("4 of 4",
                [c](auto& h) { return check_loaded<Multicast<4>>(h, c, 8, 0b1111, 1); })});
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
  expect_all({check_of("createpolicy",
                       [](GpuHost& host) -> std::string {
                         std::array<std::uint64_t, 6> const wanted = {
                             cache_policy(L2Hint::evict_first),
                             cache_policy(L2Hint::evict_last),
                             cache_policy(L2Hint::evict_normal),
                             cache_policy(L2Hint::evict_unchanged),
                             cache_policy(L2Policy(L2Hint::evict_first, 8)),
                             cache_policy(L2Policy(L2Hint::evict_last, 4, true))};
                         std::string different;
                         auto const made = host.cache_policies();
                         for (std::size_t i = 0; i < wanted.size(); ++i)
                           if (made[i] != wanted[i])
                             different +=
                                 fmt::format("{:#x} instead of {:#x}; ", made[i], wanted[i]);
                         return different;
                       }),
              check_of("evict_first",
                       [c](auto& h) { return check_loaded<Load<2, L2Hint::evict_first>>(h, c); }),
              check_of("evict_last",
                       [c](auto& h) { return check_loaded<Load<2, L2Hint::evict_last>>(h, c); }),
              check_of("evict_normal", [c](auto& h) {
                return check_loaded<Load<2, L2Hint::evict_normal>>(h, c);
              })});
}

/// Values of the type: all bit patterns are as likely, and every eighth is zero, an infinity, a NaN
/// or a subnormal.
Bytes adversarial(DType dtype, std::size_t count, std::uint32_t seed) {
  auto const size = static_cast<std::size_t>(bits(dtype) / 8);
  Bytes values = noise(count * size, seed);
  if (dtype != DType::f16 && dtype != DType::bf16 && dtype != DType::f32 && dtype != DType::f64)
    return values;
  int const exponent_bits = dtype == DType::f16 ? 5 : dtype == DType::f64 ? 11 : 8;
  for (std::size_t i = 0; i < count; i += 8) {
    std::uint64_t bit = 0;
    std::memcpy(&bit, &values[i * size], size);
    std::uint64_t const exponent = ((std::uint64_t{1} << exponent_bits) - 1)
                                   << (bits(dtype) - 1 - exponent_bits);
    std::uint64_t const mantissa = (exponent & ~(exponent - 1)) - 1;
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

/// A tensor as large as the dump, and a box that is all of it.
Case whole_dump(DType dtype) {
  auto const size = static_cast<std::size_t>(bits(dtype) / 8);
  int const rows = kDumpBytes / 512;
  Case c;
  c.map.dtype = dtype;
  c.map.rank = 2;
  c.map.box = {static_cast<int>(512 / size) / (size == 1 ? 2 : 1), rows};
  c.map.extents = {c.map.box[0], rows};
  c.map.strides = {512};
  return c;
}

/// What differs of each kind of values that adversarial() makes: how many, and the first few.
template <TmaReduce Op> std::string check_reduction(GpuHost& host, DType dtype) {
  auto const size = static_cast<std::size_t>(bits(dtype) / 8);
  std::size_t const count = kDumpBytes / size;
  Bytes const tensor = adversarial(dtype, count, 6), dump = adversarial(dtype, count, 7);
  Bytes expected = tensor;
  sim::reduce(Op, dtype, expected.data(), dump.data(), count);
  Bytes const actual = stored<Reduce<Op>>(host, whole_dump(dtype), tensor, dump);
  auto const text = [&](Bytes const& values, std::size_t i) {
    std::uint64_t bit = 0;
    std::memcpy(&bit, &values[i * size], size);
    return fmt::format("{:0{}x}", bit, 2 * size);
  };
  constexpr char const* kKinds[] = {"zeros", "infinities", "NaNs", "subnormals", "others"};
  std::array<int, 5> wrong{};
  std::array<std::string, 5> examples;
  for (std::size_t i = 0; i < count; ++i) {
    if (std::memcmp(&actual[i * size], &expected[i * size], size) == 0) continue;
    std::size_t const kind = i % 8 == 0 ? i / 8 % 4 : 4;
    if (++wrong[kind] > 4) continue;
    examples[kind] += fmt::format("; {} and {} give {} instead of {}", text(tensor, i),
                                  text(dump, i), text(actual, i), text(expected, i));
  }
  std::string different;
  for (std::size_t kind = 0; kind < 5; ++kind)
    if (wrong[kind] > 0)
      different += fmt::format("\n{} differ of {}{}", wrong[kind], kKinds[kind], examples[kind]);
  return different.empty()
             ? ""
             : std::string(to_string(Op)) + " of " + to_string(dtype) + ":" + different;
}

TEST(GpuTma, ReducesAsTheSimulatedMachine) {
  std::vector<isolated::Check> checks;
  for (DType const dtype : {DType::f16, DType::bf16, DType::f32, DType::f64, DType::s32, DType::u32,
                            DType::s64, DType::u64}) {
    auto const add = [&]<TmaReduce Op>(std::integral_constant<TmaReduce, Op>) {
      if (!can_reduce(Op, dtype)) return;
      checks.push_back(
          check_of(std::string(to_string(Op)) + " of " + to_string(dtype),
                   [dtype](GpuHost& host) { return check_reduction<Op>(host, dtype); }));
    };
    add(std::integral_constant<TmaReduce, TmaReduce::add>{});
    add(std::integral_constant<TmaReduce, TmaReduce::min>{});
    add(std::integral_constant<TmaReduce, TmaReduce::max>{});
    add(std::integral_constant<TmaReduce, TmaReduce::inc>{});
    add(std::integral_constant<TmaReduce, TmaReduce::dec>{});
    add(std::integral_constant<TmaReduce, TmaReduce::bit_and>{});
    add(std::integral_constant<TmaReduce, TmaReduce::bit_or>{});
    add(std::integral_constant<TmaReduce, TmaReduce::bit_xor>{});
  }
  Case const c = whole_dump(DType::s64);
  checks.push_back(illegal_check_of("add of s64", [c](GpuHost& host) {
    stored<Reduce<TmaReduce::add>>(host, c, noise(kDumpBytes, 6), noise(kDumpBytes, 7));
    return "";
  }));
  checks.push_back(illegal_check_of("or of s64", [c](GpuHost& host) {
    stored<Reduce<TmaReduce::bit_or>>(host, c, noise(kDumpBytes, 6), noise(kDumpBytes, 7));
    return "";
  }));
  expect_all(std::move(checks));
}

TEST(GpuTma, ReductionsClipAsStoresDo) {
  std::vector<isolated::Check> checks;
  Case c = basic_case(2, DType::u32, TmaSwizzle::b128);
  auto const add = [&](std::string const& what) {
    checks.push_back(check_of(what, [c](GpuHost& host) { return check_add(host, c); }));
  };
  add("inside");
  c.coordinate[1] = static_cast<int>(c.map.extents[1]) - 2;
  add("beyond axis 1");
  c.coordinate[0] = aligned(c.map, c.map.extents[0] - 1);
  add("beyond axes 0 and 1");
  c.coordinate[0] = 1 << 20;
  add("wholly beyond axis 0");
  expect_all(std::move(checks));
}

/// What the driver says against a description, without our check; nothing where it takes it.
std::string refusal_of_driver(TensorMapDescription const& description) {
  try {
    static_cast<void>(device::encode_by_driver(description));
    return "";
  } catch (device_error const& e) {
    return e.what();
  }
}

/// What check() says.
std::string refusal_of_check(TensorMapDescription const& description) {
  try {
    check(description);
    return "";
  } catch (argument_error const& e) {
    return e.what();
  }
}

/// Descriptions at and beyond every limit: the driver and check() agree on each (but on null, which
/// the driver takes).
TEST(GpuTma, TheDriverRefusesWhatCheckRefuses) {
  // An address here is an offset in memory of the GPU.
  constexpr std::uintptr_t kFirst = 1 << 20;
  auto const at = [](std::uintptr_t offset) { return reinterpret_cast<char*>(kFirst + offset); };
  std::vector<TensorMapDescription> all;
  TensorMapDescription sound;
  sound.rank = 3;
  sound.address = at(0);
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
    with([&](auto& d) { d.address = at(static_cast<std::uintptr_t>(offset)); });
  for (std::int64_t const extent :
       {std::int64_t{0}, std::int64_t{1}, std::int64_t{1} << 32, (std::int64_t{1} << 32) + 1})
    for (std::size_t axis = 0; axis < 3; ++axis) with([&](auto& d) { d.extents[axis] = extent; });
  for (std::int64_t const stride :
       {std::int64_t{0}, std::int64_t{8}, std::int64_t{16}, std::int64_t{24},
        (std::int64_t{1} << 40) - 16, std::int64_t{1} << 40})
    for (std::size_t axis = 0; axis < 2; ++axis) with([&](auto& d) { d.strides[axis] = stride; });
  for (int const box : {0, 1, 8, 12, 28, 29, 63, 256, 257})  // 28 along axis 2 is the most
    for (std::size_t axis = 0; axis < 3; ++axis) with([&](auto& d) { d.box[axis] = box; });
  // of every second element; of 57, 29 held, the driver counts 28
  for (int const box : {56, 58, 114})
    with([&](auto& d) {
      d.box[2] = box;
      d.element_strides[2] = 2;
    });
  for (int const step : {0, 1, 8, 9})
    for (std::size_t axis = 1; axis < 3; ++axis)
      with([&](auto& d) { d.element_strides[axis] = step; });
  for (TmaSwizzle const swizzle : {TmaSwizzle::b32, TmaSwizzle::b64, TmaSwizzle::b128})
    for (int const box : {8, 16, 32, 64, 72, 128})
      with([&](auto& d) {
        d.swizzle = swizzle;
        d.box[0] = box;
      });
  for (DType const dtype : {DType::f64, DType::f32, DType::tf32, DType::f16, DType::bf16,
                            DType::e4m3, DType::e5m2, DType::s64, DType::u64, DType::s32,
                            DType::u32, DType::s16, DType::u16, DType::s8, DType::u8})
    for (TmaFill const fill : {TmaFill::zeros, TmaFill::nans})
      with([&](auto& d) {
        d.dtype = dtype;
        d.fill = fill;
      });
  std::vector<isolated::Check> checks;
  for (TensorMapDescription const& d : all) {
    checks.push_back(check_of(to_string(d), [d](GpuHost& host) -> std::string {
      static char* const memory =
          static_cast<char*>(host.allocate(4096));  // makes the process's context, too
      TensorMapDescription placed = d;
      placed.address = memory + (reinterpret_cast<std::uintptr_t>(d.address) - kFirst);
      std::string const driver = refusal_of_driver(placed), ours = refusal_of_check(placed);
      if (driver.empty() == ours.empty()) return "";
      return driver.empty() ? "the driver takes what check() refuses: " + ours
                            : "the driver refuses what check() takes: " + driver;
    }));
  }
  expect_all(std::move(checks));
}

}  // namespace
}  // namespace tegula
