#pragma once

#include <type_traits>

#include "tegula/arch/barrier.hpp"
#include "tegula/arch/convert_fp8.hpp"
#include "tegula/arch/global.hpp"
#include "tegula/arch/memory_access.hpp"
#include "tegula/arch/shared.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/arch/warp.hpp"
#include "tegula/kernel/gemm_inputs_config.hpp"
#include "tegula/numeric/bfloat16.hpp"
#include "tegula/numeric/half.hpp"
#include "tegula/sim/limits.hpp"
#include "tegula/sim/mutable_values.hpp"

namespace tegula {

/// Brings operands, scales and groups into the form that grouped_gemm_sm90 reads; see InputStep.
template <GemmInputsConfig C> struct GemmInputs {
  using Params = GemmInputsParams;
  using In = type_of<C.in>;
  using Out = type_of<C.out>;

  static constexpr GemmInputsConfig config = C;
  static constexpr int threads = kInputThreads;
  static constexpr int min_ctas_per_sm = C.step == InputStep::quantize_blocks ? 2 : 4;  // registers
  static constexpr int warps = kInputWarps;
  static constexpr float largest = C.out == DType::e4m3 ? 448.0f : 57344.0f;
  static constexpr sim::Limits limits = {.bank_conflicts = 0};

  struct SharedStorage {
    std::uint32_t most[warps];  // of the magnitudes that each warp has seen
    template <class F> void name_buffers(F&& name) { name("largest magnitudes", most); }
  };

  static constexpr Dim3 grid(Params const& p) {
    InputGrid const g = input_grid(C.step, p);
    return {g.x, g.y, 1};
  }

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    auto const [x, y, z] = block_idx();
    if constexpr (C.step == InputStep::quantize_rows) {
      quantize_row(p, x, y * warps + warp_id());
    } else if constexpr (C.step == InputStep::quantize_blocks) {
      quantize_block(p, smem, x, y);
    } else if constexpr (C.step == InputStep::transform_scales) {
      transform(p, x * threads + thread_idx(), y);
    } else {
      bounds(p);
    }
  }

 private:
  TEGULA_DEVICE static float load(Params const& p, int row, int column) {
    return to_float(ld_global<In>(static_cast<In const*>(p.x) + row * p.ldx + column));
  }
  TEGULA_DEVICE static void store(Params const& p, int row, int column, float x, float scale) {
    st_global(static_cast<Out*>(p.q) + row * p.ldq + column, cvt_rn_satfinite<Out>(x / scale));
  }
  /// The bits of a magnitude: ordered as magnitudes are, NaN last.
  TEGULA_DEVICE static std::uint32_t magnitude(float x) {
    return bits_as<std::uint32_t>(x) & 0x7fffffffu;
  }
  TEGULA_DEVICE static std::uint32_t greater(std::uint32_t a, std::uint32_t b) {
    return a < b ? b : a;
  }

  /// 128 columns of a row, by a warp: a lane has every 32nd.
  TEGULA_DEVICE static void quantize_row(Params const& p, int row, int block) {
    constexpr int own = kScaleBlock / kWarpSize;
    int const first = block * kScaleBlock + lane_id();
    float x[own];
    std::uint32_t most = 0;
#pragma unroll
    for (int i = 0; i < own; ++i) {
      int const column = first + i * kWarpSize;
      x[i] = column < edge(p.columns) ? load(p, row, column) : 0.0f;
      most = greater(most, magnitude(x[i]));
    }
    float const scale = block_scale(warp::reduce_max(most), largest, p.power_of_two);
#pragma unroll
    for (int i = 0; i < own; ++i) {
      int const column = first + i * kWarpSize;
      if (column < edge(p.columns)) store(p, row, column, x[i], scale);
    }
    if (lane_id() == 0 && block * kScaleBlock < edge(p.columns))
      st_global(p.scales + block * p.scale_stride + row, scale);
  }

  /// 128 x 128, by the CTA: a thread has half of a column.
  TEGULA_DEVICE static void quantize_block(Params const& p, SharedStorage& smem, int block_row,
                                           int block_column) {
    constexpr int apart = threads / kScaleBlock, own = kScaleBlock / apart;
    int const row = block_row * kScaleBlock + thread_idx() / kScaleBlock;
    int const column = block_column * kScaleBlock + thread_idx() % kScaleBlock;
    float x[own];
    std::uint32_t most = 0;
#pragma unroll
    for (int i = 0; i < own; ++i) {
      bool const inside = row + i * apart < edge(p.rows) && column < edge(p.columns);
      x[i] = inside ? load(p, row + i * apart, column) : 0.0f;
      most = greater(most, magnitude(x[i]));
    }
    most = warp::reduce_max(most);
    if (lane_id() == 0) st_shared(shared_address(&smem.most[warp_id()]), most);
    cta::sync();  // every warp's largest is there
    std::uint32_t of_all = 0;
#pragma unroll
    for (int i = 0; i < warps; ++i)
      of_all = greater(of_all, ld_shared<std::uint32_t>(shared_address(&smem.most[i])));
    float const scale = block_scale(of_all, largest, p.power_of_two);
#pragma unroll
    for (int i = 0; i < own; ++i) {
      bool const inside = row + i * apart < edge(p.rows) && column < edge(p.columns);
      if (inside) store(p, row + i * apart, column, x[i], scale);
    }
    if (thread_idx() == 0) st_global(p.scales + block_row * p.scale_stride + block_column, scale);
  }

  /// One scale of a row.
  TEGULA_DEVICE static void transform(Params const& p, int row, int block) {
    if (row < edge(p.rows)) {
      float const* const from = static_cast<float const*>(p.x) + row * p.ldx + block;
      st_global(p.scales + block * p.scale_stride + row, ld_global<float>(from));
    }
  }

  /// By one CTA: where the run of each group's rows begins and ends.
  TEGULA_DEVICE static void bounds(Params const& p) {
    for (int g = thread_idx(); g < p.groups; g += threads) {
      st_global(p.begins + g, 0);
      st_global(p.ends + g, 0);
    }
    cta::sync();  // groups without rows are empty; the others are written again
    int const* const group = static_cast<int const*>(p.x);
    for (int row = thread_idx(); row < edge(p.rows); row += threads) {
      int const own = ld_global<int>(group + row);
      if (own < 0 || own >= p.groups) continue;
      if (row == 0 || ld_global<int>(group + row - 1) != own) st_global(p.begins + own, row);
      if (row + 1 == p.rows || ld_global<int>(group + row + 1) != own)
        st_global(p.ends + own, row + 1);
    }
  }
};

}  // namespace tegula
