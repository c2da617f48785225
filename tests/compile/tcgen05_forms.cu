// Every form of the text of tcgen05.mma, cp and shift that arch/ pastes together: the assembler of
// sm_100a must take it, and nothing runs it.
#include "tegula/arch/tcgen05.hpp"
#include "tegula/arch/tcgen05_cp.hpp"
#include "tegula/arch/tcgen05_scaled.hpp"

namespace tegula {
namespace {

using enum DType;

struct Operands {
  TensorAddr d, a_in_tensor_memory;
  std::uint64_t a, b;
};

constexpr MmaSpec spec(DType a, DType b, DType d, int ctas, MmaOperands operands = MmaOperands::ss,
                       MmaVariant variant = MmaVariant::plain) {
  return tensor_memory_mma(a, b, d, 128 * ctas, 64, Major::k, Major::k, operands, ctas, variant);
}

template <MmaSpec S, int Scale = 0> __device__ void start(Operands const& x) {
  if constexpr (S.operands == MmaOperands::ss) {
    tcgen05_mma<S, Scale>(x.d, x.a, x.b, true);
  } else {
    tcgen05_mma_ts<S, Scale>(x.d, x.a_in_tensor_memory, x.b, true);
  }
}

/// Lanes that stay as they are.
template <MmaSpec S, int Scale = 0>
__device__ void start(Operands const& x, DisabledLanes<S.ctas> const& left) {
  if constexpr (S.operands == MmaOperands::ss) {
    tcgen05_mma<S, Scale>(x.d, x.a, x.b, true, left);
  } else {
    tcgen05_mma_ts<S, Scale>(x.d, x.a_in_tensor_memory, x.b, true, left);
  }
}

template <ScaledMmaSpec S, Collector C> __device__ void collect_scaled(Operands const& x) {
  if constexpr (S.a_in_tensor_memory) {
    tcgen05_mma_scaled_ts<S, C>(x.d, x.a_in_tensor_memory, x.b, x.d + 256, x.d + 264, {}, true);
  } else {
    tcgen05_mma_scaled<S, C>(x.d, x.a, x.b, x.d + 256, x.d + 264, {}, true);
  }
}
template <ScaledMmaSpec S> __device__ void start_scaled(Operands const& x) {
  collect_scaled<S, Collector::discard>(x);
  collect_scaled<S, Collector::fill>(x);
  collect_scaled<S, Collector::use>(x);
  collect_scaled<S, Collector::last_use>(x);
}
template <int Ctas, bool InTensorMemory> __device__ void start_every_scaled(Operands const& x) {
  start_scaled<scaled_mma(e3m2, e4m3, ue8m0, 32, 64, Ctas, InTensorMemory)>(x);
  start_scaled<scaled_mma(e4m3, e2m1, ue8m0, 32, 64, Ctas, InTensorMemory)>(x);
  start_scaled<scaled_mma(e2m1, e2m1, ue8m0, 32, 64, Ctas, InTensorMemory)>(x);
  start_scaled<scaled_mma(e2m1, e2m1, ue8m0, 16, 64, Ctas, InTensorMemory)>(x);
  start_scaled<scaled_mma(e2m1, e2m1, ue4m3, 16, 64, Ctas, InTensorMemory)>(x);
}

template <MmaSpec S, Collector C, int Buffer> __device__ void collect(Operands const& x) {
  if constexpr (S.operands == MmaOperands::ss) {
    tcgen05_mma_collected<S, C, Buffer>(x.d, x.a, x.b, true);
  } else {
    tcgen05_mma_collected_ts<S, C, Buffer>(x.d, x.a_in_tensor_memory, x.b, true);
  }
}
template <MmaSpec S, int Buffer = 0> __device__ void collect_all(Operands const& x) {
  collect<S, Collector::discard, Buffer>(x);
  collect<S, Collector::fill, Buffer>(x);
  collect<S, Collector::use, Buffer>(x);
  collect<S, Collector::last_use, Buffer>(x);
}

__device__ void start_weight_stationary(Operands const& x) {
  constexpr MmaOperands ts = MmaOperands::ts;
  constexpr Major k = Major::k;
  start<weight_stationary_mma(bf16, bf16, f32, 32, 64)>(x);
  start<weight_stationary_mma(f16, f16, f16, 64, 128, k, k, ts)>(x);
  start<weight_stationary_mma(tf32, tf32, f32, 128, 256)>(x);
  start<weight_stationary_mma(e4m3, e2m1, f32, 32, 256)>(x);
  start<weight_stationary_mma(e5m2, e5m2, f16, 64, 64, k, k, ts)>(x);
  start<weight_stationary_mma(s8, u8, s32, 128, 64)>(x);
  collect_all<weight_stationary_mma(bf16, bf16, f32, 64, 64), 2>(x);
  collect_all<weight_stationary_mma(tf32, tf32, f32, 32, 64, k, k, ts), 3>(x);
  ZeroColumns const columns{.used = 4, .zeros = 3};
  tcgen05_mma<weight_stationary_mma(bf16, bf16, f32, 32, 64)>(x.d, x.a, x.b, true, columns);
  tcgen05_mma_ts<weight_stationary_mma(s8, u8, s32, 64, 64, k, k, ts)>(x.d, x.a_in_tensor_memory,
                                                                       x.b, true, columns);
}

/// Copies of every shape, as they are and unpacked, and shifts.
template <int Ctas, TensorCopyFormat F> __device__ void copy_every_shape(Operands const& x) {
  using enum TensorCopyShape;
  tcgen05_cp<rows128_bits256, Ctas, F>(x.d, x.a);
  tcgen05_cp<rows4_bits256, Ctas, F>(x.d, x.a);
  tcgen05_cp<rows128_bits128, Ctas, F>(x.d, x.a);
  tcgen05_cp<rows64_bits128_02_13, Ctas, F>(x.d, x.a);
  tcgen05_cp<rows64_bits128_01_23, Ctas, F>(x.d, x.a);
  tcgen05_cp<rows32_bits128_warpx4, Ctas, F>(x.d, x.a);
}
template <int Ctas> __device__ void copy_and_shift(Operands const& x) {
  copy_every_shape<Ctas, TensorCopyFormat::same>(x);
  copy_every_shape<Ctas, TensorCopyFormat::from_4_bits>(x);
  copy_every_shape<Ctas, TensorCopyFormat::from_6_bits>(x);
  tcgen05_shift_down<Ctas>(x.d);
}

template <int Ctas> __device__ void start_all(Operands const& x) {
  constexpr MmaOperands ts = MmaOperands::ts;
  start<spec(f16, f16, f16, Ctas)>(x);
  collect_all<spec(bf16, bf16, f32, Ctas)>(x);
  collect_all<spec(e4m3, e4m3, f32, Ctas, ts)>(x);
  start<spec(bf16, bf16, f32, Ctas), 15>(x);
  start<spec(f16, f16, f32, Ctas, ts), 1>(x);
  start<spec(tf32, tf32, f32, Ctas), 3>(x);
  start<spec(tf32, tf32, f32, Ctas, ts)>(x);
  start<spec(e4m3, e5m2, f32, Ctas)>(x);
  start<spec(e2m1, e3m2, f32, Ctas)>(x);
  start<spec(e2m3, e4m3, f16, Ctas)>(x);
  start<spec(e5m2, e2m1, f16, Ctas, ts)>(x);
  start<spec(e2m1, e3m2, f32, Ctas, ts)>(x);
  start<spec(s8, u8, s32, Ctas)>(x);
  start<spec(u8, u8, s32, Ctas, ts, MmaVariant::saturate)>(x);
  DisabledLanes<Ctas> left;
  for (int i = 0; i < 4 * Ctas; ++i) left.words[i] = 0x1u << i;
  start<spec(bf16, bf16, f32, Ctas), 15>(x, left);
  start<spec(f16, f16, f16, Ctas, ts)>(x, left);
  start<spec(e4m3, e2m1, f32, Ctas)>(x, left);
  start<spec(s8, u8, s32, Ctas, ts)>(x, left);
  copy_and_shift<Ctas>(x);
  start_every_scaled<Ctas, false>(x);
  start_every_scaled<Ctas, true>(x);
}

}  // namespace

__global__ void of_one_cta(Operands x) {
  if (threadIdx.x != 0) return;
  start_all<1>(x);
  start_weight_stationary(x);
}
__global__ void of_a_pair(Operands x) {
  if (threadIdx.x == 0) start_all<2>(x);
}

}  // namespace tegula
