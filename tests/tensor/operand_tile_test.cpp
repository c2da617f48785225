#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "tegula/arch/barrier.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/numeric/dtype.hpp"
#include "tegula/sim/launch.hpp"
#include "tegula/tensor/copy.hpp"
#include "tegula/tensor/gemm.hpp"

/// Operands of tiles whose axes were exchanged, and of tiles that hold an operand's bits.
namespace tegula {
namespace {

constexpr int kExtent = 64;

/// D = A B, whose tile of B lies (k, n) in shared memory, contiguous along `Contiguous` of the two.
/// `Bits` is what the tile of A has.
template <int Contiguous, class Bits> struct TimesTransposed {
  struct Params {
    Bits const* a;      // (m, k)
    bfloat16 const* b;  // (k, n)
    float* d;
  };
  static constexpr int threads = 128;
  using Mma = TiledMma<TiledMmaSpec{warp_mma(DType::bf16, DType::f32, 16), kExtent, kExtent, 4}>;
  using TileA = SharedTile<Bits, OperandTile{16, kExtent, kExtent, 1}>;
  using TileB = SharedTile<bfloat16, OperandTile{16, kExtent, kExtent, Contiguous}>;
  static constexpr TiledCopySpec rows(int contiguous) {
    return share_rows(
        {.threads = threads, .m = kExtent, .n = kExtent, .vector = 8, .contiguous = contiguous});
  }
  struct SharedStorage {
    TileA a;
    TileB b;
    template <class F> void name_buffers(F&& name) { name("A", a), name("B", b); }
  };
  void operator()(Params const& p, SharedStorage& smem) const {
    int const thread = thread_idx();
    auto const tile = [](auto const& m) { return local_tile<kExtent, kExtent>(m, 0, 0); };
    copy(TiledCopy<rows(1), Bits>{thread}, tile(matrix<1>(p.a, kExtent, kExtent, kExtent)),
         tensor(smem.a));
    copy(TiledCopy<rows(Contiguous), bfloat16>{thread},
         tile(matrix<Contiguous>(p.b, kExtent, kExtent, kExtent)), tensor(smem.b));
    cp_async_wait_all();
    cta::sync();
    auto const sB = select<1, 0>(tensor(smem.b));  // (n, k)
    Mma::Accumulator tCrC;
    clear(tCrC);
    gemm<2>(Mma{}, Mma{thread}.partition_a(tensor(smem.a)), Mma{thread}.partition_b(sB), tCrC);
    copy(tCrC, Mma{thread}.partition_c(tile(matrix<1>(p.d, kExtent, kExtent, kExtent))));
  }
};

template <int Contiguous, class Bits> void check_product() {
  using Kernel = TimesTransposed<Contiguous, Bits>;
  constexpr int count = kExtent * kExtent;
  std::vector<Bits> a;
  std::vector<bfloat16> b;
  for (int i = 0; i < count; ++i) {
    bfloat16 const value = to_bfloat16(static_cast<float>(i * 7 % 11 - 5));
    if constexpr (std::is_same_v<Bits, bfloat16>) {
      a.push_back(value);
    } else {
      a.push_back(value.bits);
    }
    b.push_back(to_bfloat16(static_cast<float>(i * 5 % 13 - 6)));
  }
  sim::Machine machine;
  auto const device = [&](auto const& values, char const* name) {
    auto* const p = machine.allocate(values.size() * sizeof(values[0]), name);
    machine.upload(p, values.data(), values.size() * sizeof(values[0]));
    return p;
  };
  auto* const d = static_cast<float*>(machine.allocate(count * sizeof(float), "D"));
  sim::Report const report = sim::launch<Kernel>(
      machine, {1, 1, 1},
      {static_cast<Bits*>(device(a, "A")), static_cast<bfloat16*>(device(b, "B")), d});
  EXPECT_TRUE(report.findings.empty()) << report.text();
  std::vector<float> got(count);
  machine.download(got.data(), d, count * sizeof(float));
  for (int i = 0; i < kExtent; ++i) {
    for (int j = 0; j < kExtent; ++j) {
      float sum = 0;
      for (int k = 0; k < kExtent; ++k) {
        int const at_a = kExtent * i + k,
                  at_b = Contiguous == 1 ? kExtent * k + j : kExtent * j + k;
        sum += static_cast<float>(at_a * 7 % 11 - 5) * static_cast<float>(at_b * 5 % 13 - 6);
      }
      ASSERT_EQ(got[static_cast<std::size_t>(kExtent * i + j)], sum) << i << " " << j;
    }
  }
}

TEST(OperandTile, WhoseAxesWereExchangedIsReadAlongTheOther) {
  check_product<1, bfloat16>();
  check_product<0, bfloat16>();
}

TEST(OperandTile, MayHoldBits) { check_product<1, std::uint16_t>(); }

TEST(OperandTile, HoldsTheTypeOfTheInstruction) {
  static_assert(detail::is_operand_of<bfloat16, DType::bf16>());
  static_assert(!detail::is_operand_of<half, DType::bf16>());
  static_assert(!detail::is_operand_of<std::int16_t, DType::bf16>());
  static_assert(detail::is_operand_of<float, DType::tf32>());
  static_assert(!detail::is_operand_of<std::uint8_t, DType::s8>());
  static_assert(detail::is_operand_of<std::uint8_t, DType::e4m3>());
  static_assert(!detail::is_operand_of<float_e5m2, DType::e4m3>());
  static_assert(detail::is_operand_of<float_e2m1x2, DType::e2m1>());
}

}  // namespace
}  // namespace tegula
