// What tcgen05.mma is told, its descriptors and its mask of zero columns: what they are made from
// can be read in them, and what means nothing is refused.
#include "tegula/arch/tcgen05_descriptor.hpp"

#include <gtest/gtest.h>

#include <string>

#include "refusal.hpp"
#include "tegula/arch/global.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/arch/tcgen05.hpp"
#include "tegula/arch/warp.hpp"
#include "tegula/sim/hooks.hpp"
#include "tensor_memory_runs.hpp"

namespace tegula {
namespace {

void expect_read_back(Tcgen05Kind kind, MmaSpec const& spec) {
  EXPECT_EQ(tcgen05_kind(spec), kind);
  Tcgen05Instruction const read =
      decode_tcgen05_instruction(kind, {}, tcgen05_instruction_descriptor(spec));
  EXPECT_EQ(read.spec, spec);
  EXPECT_EQ(read.unknown, 0u);
}

// Starts a product by a descriptor of the given bits, as PTX alone could.
template <Tcgen05Kind K> struct StartsByBits {
  using Params = Words;
  static constexpr int threads = 32;
  struct SharedStorage {
    alignas(1024) std::uint8_t operand[16 * 1024];
    std::uint32_t tmem;
  };
  void operator()(Words const& p, SharedStorage& smem) const {
    tcgen05_alloc<512>(shared_address(&smem.tmem));
    if (thread_idx() != 0) return;
    std::uint64_t const matrix = std::uint64_t{tcgen05_descriptor_high({0, 256, 128})} << 32 |
                                 WgmmaDescriptor{0, 256, 128}.low() |
                                 shared_address(smem.operand) >> 4;
    sim::tcgen05_mma(K, {}, ld_shared<std::uint32_t>(shared_address(&smem.tmem)), matrix, matrix,
                     ld_global<std::uint32_t>(p.in), false, SourceLocation::current());
  }
};
template <Tcgen05Kind K> std::string refusal_of_bits(std::uint32_t bits) {
  return sentence<sim::CheckError>([&] { run<StartsByBits<K>>({bits}, 1, blackwell()); });
}

TEST(Tcgen05Mma, BitsThatMeanNothingAreRefused) {
  using enum DType;
  auto const expect = [](std::string const& found, char const* part) {
    EXPECT_NE(found.find(part), std::string::npos) << found;
  };
  std::uint32_t const f8 = tcgen05_instruction_descriptor(
                          tensor_memory_mma(e4m3, e4m3, f32, 64, 16)),
                      i8 = tcgen05_instruction_descriptor(tensor_memory_mma(s8, s8, s32, 64, 16)),
                      h = tcgen05_instruction_descriptor(
                          tensor_memory_mma(bf16, bf16, f32, 64, 16));
  constexpr char const* none = "are none that the simulated machine has";
  expect(refusal_of_bits<Tcgen05Kind::f8f6f4>(f8 | 2u << 7), none);  // no type has number 2
  expect(refusal_of_bits<Tcgen05Kind::f8f6f4>(f8 | 6u << 10), none);
  expect(refusal_of_bits<Tcgen05Kind::f8f6f4>(f8 | 1u << 2), "ask for sparsity (tcgen05.mma.sp)");
  expect(refusal_of_bits<Tcgen05Kind::f8f6f4>(f8 | 1u << 3), "the variants are plain");
  expect(refusal_of_bits<Tcgen05Kind::f8f6f4>(f8 | 5u << 7 | 1u << 15),
         "6- and 4-bit elements must be contiguous along k");        // e2m1, MN-major
  expect(refusal_of_bits<Tcgen05Kind::f8f6f4>(f8 ^ 3u << 4), none);  // D of number 2
  expect(refusal_of_bits<Tcgen05Kind::f16>(h ^ 1u << 4), "d must be f32, or f16");
  expect(refusal_of_bits<Tcgen05Kind::i8>(i8 | 2u << 7), none);
  expect(refusal_of_bits<Tcgen05Kind::i8>(i8 ^ 3u << 4), none);  // D of number 1, f32
  expect(refusal_of_bits<Tcgen05Kind::i8>(i8 | 1u << 13), "integers cannot be negated");
  expect(refusal_of_bits<Tcgen05Kind::i8>((i8 & ~(63u << 17)) | 5u << 17),
         "n must be 8, 24 or a multiple of 16");
}

TEST(Tcgen05Mma, SpecsThatAreNoneAreRefused) {
  using enum DType;
  auto const spec = [](DType a, DType b, DType d, int m, int n, int ctas = 1,
                       MmaOperands operands = MmaOperands::ss) {
    return tensor_memory_mma(a, b, d, m, n, Major::k, Major::k, operands, ctas);
  };
  for (int const m : {64, 128}) {
    for (int n = 8; n <= 256; n += 8) {
      if (n == 8 || n == 24 || n % 16 == 0) {
        EXPECT_EQ(spec(s8, u8, s32, m, n).n, n);
      } else {
        EXPECT_THROW(spec(s8, u8, s32, m, n), layout_error) << n;
      }
    }
  }
  EXPECT_THROW(spec(s8, u8, s32, 256, 48, 2), layout_error);
  EXPECT_EQ(spec(s8, u8, s32, 256, 64, 2).ctas, 2);
  EXPECT_THROW(spec(s8, e4m3, s32, 64, 16), layout_error);
  EXPECT_THROW(spec(s8, s8, f32, 64, 16), layout_error);
  EXPECT_THROW(spec(e4m3, e4m3, s32, 64, 16), layout_error);
  EXPECT_THROW(spec(bf16, bf16, f16, 64, 16), layout_error);
  EXPECT_THROW(spec(tf32, tf32, f16, 64, 16), layout_error);
  EXPECT_EQ(spec(e2m1, e4m3, f32, 64, 16, 1, MmaOperands::ts).k, 32);
  EXPECT_THROW(spec(bf16, bf16, f32, 32, 64), layout_error) << "weight-stationary only";
  EXPECT_EQ(weight_stationary_mma(bf16, bf16, f32, 32, 64).m, 32);
  EXPECT_THROW(weight_stationary_mma(bf16, bf16, f32, 16, 64), layout_error);
  EXPECT_THROW(weight_stationary_mma(bf16, bf16, f32, 64, 32), layout_error);
  EXPECT_THROW(weight_stationary_mma(s8, s8, f32, 64, 64), layout_error);
  EXPECT_EQ(spec(e4m3, e2m1, f32, 64, 16, 1, MmaOperands::ts).k, 32);
}

/// A product whose mask of zero columns is none: its second part leaves out more than a run.
struct MasksWrongly {
  using Params = Words;
  static constexpr int threads = 32;
  static constexpr MmaSpec op = weight_stationary_mma(DType::bf16, DType::bf16, DType::f32, 64, 64);
  struct SharedStorage {
    std::uint32_t tmem;
    template <class F> void name_buffers(F&& name) { name("tmem", tmem); }
  };
  TEGULA_DEVICE void operator()(Words const&, SharedStorage& smem) const {
    tcgen05_alloc<32>(shared_address(&smem.tmem));
    warp::sync();
    TensorAddr const d = ld_shared<std::uint32_t>(shared_address(&smem.tmem));
    if (thread_idx() == 0)
      tcgen05_mma<op>(d, 0, 0, false, ZeroColumns{.used = 4, .zeros = 3, .part = {{0}, {4}}});
    warp::sync();
    tcgen05_dealloc<32>(d);
  }
};
TEST(Tcgen05Mma, MasksOfZeroColumnsThatAreNoneAreRefused) {
  auto const report = observe<MasksWrongly>({0}, 1).report;
  ASSERT_FALSE(report.findings.empty());
  EXPECT_EQ(report.findings[0].kind, sim::FindingKind::invalid_operand);
  EXPECT_NE(report.findings[0].message.find("part 1 leaves out 4 columns of a run of 4"),
            std::string::npos)
      << report.findings[0].message;
}

// Examples 1 to 4 of the PTX ISA's "Zero-Column Mask Descriptor", the lowest column first; but for
// the last one's shift.
TEST(Tcgen05Mma, MasksOfZeroColumns) {
  auto const mask = [](std::uint64_t bits, int part) {
    std::string text;
    for (int column = 0; column < 14; ++column)
      text += is_zero_column(bits, part, column) ? '1' : '0';
    return text;
  };
  ZeroColumns const runs{.used = 4, .zeros = 3};
  EXPECT_EQ(mask(runs.bits() & ~(std::uint64_t{1} << 39), 0), "00000000000000");
  EXPECT_EQ(mask(runs.bits(), 0), "00001110000111");
  ZeroColumns two = runs;
  two.part[0].zeros_first = true;
  EXPECT_EQ(mask(two.bits(), 0), "11100001110000");
  EXPECT_EQ(mask(two.bits(), 1), "00001110000111");
  ZeroColumns const four{.used = 4, .zeros = 3, .part = {{0, true}, {1, true}, {2}, {1}}};
  EXPECT_EQ(mask(four.bits(), 0), "11100001110000");
  EXPECT_EQ(mask(four.bits(), 1), "11000011100001");
  EXPECT_EQ(mask(four.bits(), 2), "00111000011100");
  EXPECT_EQ(mask(four.bits(), 3), "00011100001110");
  EXPECT_EQ(four.bits(), std::uint64_t{1} << 39 | std::uint64_t{2} << 40 | std::uint64_t{3} << 48 |
                             std::uint64_t{3} << 32 | 0x01020100u);
}

TEST(Tcgen05Mma, DescriptorsSayWhatTheyAreMadeFrom) {
  for (DType const type : {DType::f16, DType::bf16, DType::tf32, DType::e4m3, DType::e5m2}) {
    for (int const m : {64, 128}) {
      for (int n = 16; n <= 256; n += 48) {
        for (auto const operands : {MmaOperands::ss, MmaOperands::ts}) {
          MmaSpec const spec =
              tensor_memory_mma(type, type, DType::f32, m, n, Major::k, Major::k, operands);
          Tcgen05Instruction const read = decode_tcgen05_instruction(
              tcgen05_kind(spec), {.operands = operands}, tcgen05_instruction_descriptor(spec));
          EXPECT_EQ(read.spec, spec);
          EXPECT_EQ(read.unknown, 0u);
        }
      }
    }
  }
  // Every bit that says a type, a negation or saturation: there is no other.
  using enum DType;
  for (DType const a : {e4m3, e5m2, e2m3, e3m2, e2m1}) {
    for (DType const b : {e4m3, e5m2, e2m3, e3m2, e2m1}) {
      for (DType const d : {f32, f16}) {
        for (int const negated : {0, 1, 2, 3}) {
          MmaSpec spec = tensor_memory_mma(a, b, d, 128, 64);
          spec.negate_a = (negated & 1) != 0, spec.negate_b = (negated & 2) != 0;
          expect_read_back(Tcgen05Kind::f8f6f4, spec);
        }
      }
    }
  }
  for (DType const a : {s8, u8}) {
    for (DType const b : {s8, u8}) {
      for (auto const variant : {MmaVariant::plain, MmaVariant::saturate})
        expect_read_back(Tcgen05Kind::i8, tensor_memory_mma(a, b, s32, 64, 24, Major::k, Major::k,
                                                            MmaOperands::ss, 1, variant));
    }
  }
  expect_read_back(Tcgen05Kind::f16, tensor_memory_mma(f16, f16, f16, 64, 8));
  // From the PTX ISA's table: s8 beside u8, saturated, 128 x 48; e2m1 beside e3m2, 64 x 16.
  EXPECT_EQ(
      tcgen05_instruction_descriptor(tensor_memory_mma(s8, u8, s32, 128, 48, Major::k, Major::k,
                                                       MmaOperands::ss, 1, MmaVariant::saturate)),
      1u << 3 | 2u << 4 | 1u << 7 | 6u << 17 | 8u << 24);
  EXPECT_EQ(tcgen05_instruction_descriptor(tensor_memory_mma(e2m1, e3m2, f16, 64, 16)),
            5u << 7 | 4u << 10 | 2u << 17 | 4u << 24);
  // CUTLASS's, of bf16, 128 x 256, both K-major.
  EXPECT_EQ(tcgen05_instruction_descriptor(
                tensor_memory_mma(DType::bf16, DType::bf16, DType::f32, 128, 256)),
            0x08400490u);
  for (int const swizzle : {0, 32, 64, 128}) {
    WgmmaDescriptor const d{swizzle, swizzle == 0 ? 256 : 0, 1024};
    std::uint64_t const bits = std::uint64_t{tcgen05_descriptor_high(d)} << 32 | d.low() | 0x123u;
    Tcgen05Operand const read = decode_tcgen05_descriptor(bits);
    EXPECT_TRUE(read.valid);
    EXPECT_EQ(decode_wgmma_descriptor(read.as_wgmma), d);
    EXPECT_FALSE(decode_tcgen05_descriptor(bits ^ std::uint64_t{1} << 46).valid);
    EXPECT_FALSE(decode_tcgen05_descriptor(bits | std::uint64_t{1} << 50).valid);
  }
}

}  // namespace
}  // namespace tegula
