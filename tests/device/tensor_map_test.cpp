#include "tegula/device/tensor_map.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tegula/device/error.hpp"
#include "tegula/sim/tensor_map.hpp"

namespace tegula {
namespace {

/// A description that keeps every rule: of 64 x 128 x 4 bf16.
TensorMapDescription sound() {
  TensorMapDescription d;
  d.dtype = DType::bf16;
  d.rank = 3;
  d.address = reinterpret_cast<void const*>(0x7f0000000400);
  d.extents = {64, 128, 4};
  d.strides = {128, 16384};
  d.box = {64, 64, 1};
  d.swizzle = TmaSwizzle::b128;
  return d;
}

struct Breach {
  std::function<void(TensorMapDescription&)> change;
  std::string says;
};

// Of elements that TMA unpacks: cuTensorMapEncodeTiled's rules for 16U4_ALIGN16B and 16U6_ALIGN16B.
TEST(TensorMap, UnpackedElementsHaveRulesOfTheirOwn) {
  using D = TensorMapDescription;
  D const good = {.dtype = DType::e3m2,
                  .rank = 2,
                  .address = reinterpret_cast<void const*>(0x7f0000000400),
                  .extents = {256, 10},
                  .strides = {192},
                  .box = {128, 8},
                  .swizzle = TmaSwizzle::b128};
  EXPECT_EQ(sim::refusal(good), std::nullopt);
  EXPECT_EQ(box_bytes(good), 96 * 8);
  std::vector<Breach> const breaches = {
      {[](D& d) { d.address = static_cast<char const*>(d.address) + 16; },
       "of e3m2 it must be a multiple of 32"},
      {[](D& d) { d.extents[0] = 200; }, "extents[0] is 200; of e3m2 it must be a multiple of 128"},
      {[](D& d) { d.strides[0] = 208; }, "is 208 bytes; of e3m2 it must be a multiple of 32"},
      {[](D& d) { d.box[0] = 64, d.swizzle = TmaSwizzle::none; },
       "box[0] is 64; of e3m2 it must be 128"},
  };
  for (Breach const& breach : breaches) {
    D d = good;
    breach.change(d);
    EXPECT_NE(sim::refusal(d).value_or("").find(breach.says), std::string::npos) << breach.says;
  }
}

TEST(TensorMap, EachRuleHasItsSentence) {
  using D = TensorMapDescription;
  std::vector<Breach> const breaches = {
      {[](D& d) { d.dtype = DType::s4; },
       "dtype is s4; TMA moves elements of 8, 16, 32 or 64 bits, and e2m1, e2m3 and e3m2"},
      {[](D& d) { d.rank = 0; }, "rank is 0; a tensor map has 1 to 5 axes"},
      {[](D& d) { d.rank = 6; }, "rank is 6; a tensor map has 1 to 5 axes"},
      {[](D& d) { d.address = nullptr; },
       "address is null; it must be that of a tensor in global memory"},
      {[](D& d) { d.address = static_cast<char const*>(d.address) + 8; },
       "address is 0x7f0000000408, 8 bytes past a multiple of 16; it must be a multiple of 16"},
      {[](D& d) { d.extents[1] = 0; }, "extents[1] is 0; it must be 1 to 2^32"},
      {[](D& d) { d.extents[2] = (std::int64_t{1} << 32) + 1; },
       "extents[2] is 4294967297; it must be 1 to 2^32"},
      {[](D& d) { d.strides[0] = 136; },
       "strides[0], of axis 1, is 136 bytes; it must be a multiple of 16"},
      {[](D& d) { d.strides[1] = std::int64_t{1} << 40; },
       "strides[1], of axis 2, is 1099511627776 bytes; it must be less than 2^40 and not negative"},
      {[](D& d) { d.strides[1] = -16; },
       "strides[1], of axis 2, is -16 bytes; it must be less than 2^40 and not negative"},
      {[](D& d) { d.box[1] = 0; }, "box[1] is 0; it must be 1 to 256"},
      {[](D& d) { d.box[1] = 257; }, "box[1] is 257; it must be 1 to 256"},
      {[](D& d) { d.element_strides[1] = 0; }, "element_strides[1] is 0; it must be 1 to 8"},
      {[](D& d) { d.element_strides[2] = 9; }, "element_strides[2] is 9; it must be 1 to 8"},
      {[](D& d) {
         d.box = {64, 256, 8};
       },
       "box (64, 256, 8) of bf16 is 262144 bytes; it must be at most 233472, the shared memory of an SM"},
      {[](D& d) { d.box[0] = 60; },
       "box[0] is 60 elements of bf16, 120 bytes; it must be a multiple of 16 bytes"},
      {[](D& d) { d.swizzle = TmaSwizzle::b64; },
       "box[0] is 64 elements of bf16, 128 bytes; under a swizzle of 64B it must be at most 64 bytes"},
      {[](D& d) {
         d.dtype = DType::s16;
         d.fill = TmaFill::nans;
       },
       "fill is nans for s16; it must be zeros but for f64, f32, tf32, f16 and bf16"},
  };
  for (Breach const& breach : breaches) {
    TensorMapDescription d = sound();
    breach.change(d);
    try {
      check(d);
      ADD_FAILURE() << "accepted: " << to_string(d);
    } catch (argument_error const& error) {
      EXPECT_EQ(std::string(error.what()), "tensor map: " + breach.says + ".");
    }
  }
}

TEST(TensorMap, TheLimitsThemselvesAreAccepted) {
  TensorMapDescription d = sound();
  check(d);
  d.fill = TmaFill::nans;
  check(d);
  d.extents = {std::int64_t{1} << 32, 1, 1};
  d.strides = {(std::int64_t{1} << 40) - 16, 0};
  d.box = {64, 256, 256};
  d.element_strides = {1, 8, 8};
  check(d);
  d.swizzle = TmaSwizzle::none;
  d.box = {256, 256, 112};  // 256 x 32 x 14 held
  check(d);
  d.rank = 1;  // what lies beyond the rank does not count
  d.strides = {3, -5};
  d.box[1] = 1000;
  check(d);
}

TEST(TensorMap, IsDescribedInOneLine) {
  EXPECT_EQ(
      to_string(sound()),
      "bf16 rank 3 at 0x7f0000000400 extents (64, 128, 4) strides (128, 16384) bytes box (64, 64, 1) "
      "element strides (1, 1, 1) swizzle 128B L2 promotion 128B fill zeros");
}

TEST(TensorMap, OfTheSimulatedMachineIsTheDescription) {
  Machine const machine = Machine::simulated();
  TensorMapDescription d = sound();
  EXPECT_EQ(sim::decode(encode(machine, d)), d);
  d.dtype = DType::f64;
  d.rank = 5;
  d.extents = {std::int64_t{1} << 32, 1, 7, (std::int64_t{1} << 32) - 1, 2};
  d.strides = {16, (std::int64_t{1} << 40) - 16, 0, 32};
  d.box = {2, 256, 255, 1, 3};
  d.element_strides = {1, 8, 3, 2, 7};
  d.swizzle = TmaSwizzle::b32;
  d.l2_promotion = TmaL2Promotion::b256;
  d.fill = TmaFill::nans;
  EXPECT_EQ(sim::decode(encode(machine, d)), d);
}

TEST(TensorMap, BytesThatAreNoMapAreNotDecoded) {
  TensorMap map{};
  EXPECT_FALSE(sim::decode(map).has_value());
  for (unsigned char& byte : map.bytes) byte = 0xff;
  EXPECT_FALSE(sim::decode(map).has_value());
}

TEST(TensorMap, IsCheckedBeforeItIsEncoded) {
  TensorMapDescription d = sound();
  d.rank = 7;
  EXPECT_THROW(encode(Machine::simulated(), d), argument_error);
}

TEST(TensorMap, OfTheSimulatedMachineAloneKeepsTheSameRules) {
  TensorMapDescription d = sound();
  EXPECT_EQ(sim::decode(sim::encode(d)), d);
  d.strides[0] = 136;
  try {
    sim::encode(d);
    ADD_FAILURE() << "encoded";
  } catch (std::invalid_argument const& error) {
    EXPECT_STREQ(error.what(),
                 "tensor map: strides[0], of axis 1, is 136 bytes; it must be a multiple of 16.");
  }
}

TEST(TensorMap, NeedsAMachineWithTma) {
  try {
    encode(Machine::simulated(Arch::sm80), sound());
    ADD_FAILURE() << "encoded for sm_80";
  } catch (device_error const& error) {
    EXPECT_NE(std::string(error.what()).find("they need sm_90"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace tegula
