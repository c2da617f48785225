#pragma once

#include "tegula/arch/global.hpp"
#include "tegula/arch/grid_dependency.hpp"
#include "tegula/arch/math.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/arch/trap.hpp"
#include "tegula/arch/warp.hpp"
#include "tegula/kernel/append_keys_config.hpp"
#include "tegula/sim/limits.hpp"
#include "tegula/sim/mutable_values.hpp"
#include "tegula/tensor/pack.hpp"

namespace tegula {

/// Copies new rows of K and V to the ends of their sequences in a cache, before attention reads
/// them, or quantises them there: an element x becomes x / descale, rounded to e4m3, and at most
/// 448 in magnitude. A warp writes a row of each, 16 bytes a lane; it waits for the launch before
/// it, and lets the next one start while it copies.
template <AppendKeysConfig C> struct AppendKeys {
  using Params = AppendKeysParams;
  static constexpr AppendKeysConfig config = C;
  static constexpr int threads = 32 * C.warps;
  static constexpr int min_ctas_per_sm = 1;
  static constexpr bool programmatic_dependent_launch = true;  // by griddepcontrol_wait
  static constexpr sim::Limits limits = {.bank_conflicts = 0};

  struct SharedStorage {
    template <class F> void name_buffers(F&&) {}
  };

  TEGULA_HOST_DEVICE static constexpr Dim3 grid(Params const& p) {
    return {(p.rows + C.warps - 1) / C.warps, 1, 1};
  }

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage&) const {
    griddepcontrol_wait();  // the launch before has written rows, lengths, pages
    griddepcontrol_launch_dependents();
    auto const [x, y, z] = block_idx();
    int const row = x * C.warps + warp_id();
    if (row < edge(p.rows)) append(p, row);
  }

 private:
  /// Row `row` of (sequence, new key, head).
  TEGULA_DEVICE static void append(Params const& p, int row) {
    int const keys = row / p.by_kv_heads, head = row - keys * p.kv_heads;
    int const batch = keys / p.by_most, key = keys - batch * p.new_keys.most;
    int token = key, of_batch = batch, count = p.new_keys.most;
    if (p.new_keys.begin != nullptr) {
      int const begin = ld_global<int>(p.new_keys.begin + batch);
      count = ld_global<int>(p.new_keys.begin + batch + 1) - begin;
      token = begin + key, of_batch = 0;
    }
    int const place = length_within(ld_global<int>(p.length + batch), p.seq_k) + key;
    if (key >= count || place >= edge(p.seq_k)) return;
    int to = place, page = batch;
    if (p.page_table != nullptr) {
      int const number = place / p.by_page_size;
      page = ld_global<int>(p.page_table + batch * p.table_stride + number);
      if (static_cast<unsigned>(page) >= static_cast<unsigned>(p.pages)) trap();
      to = place - number * p.page_size;
    }
    auto const copy_row = [&](AppendedTensor const& x) {
      char const* const from = static_cast<char const*>(x.from) + of_batch * x.from_stride.batch +
                               token * x.from_stride.seq + head * x.from_stride.head;
      char* const target = static_cast<char*>(x.to) + page * x.to_stride.batch +
                           to * x.to_stride.seq + head * x.to_stride.head;
      if constexpr (C.quantises) {
        float const descale = x.descale == nullptr
                                  ? 1.0f
                                  : ld_global<float>(x.descale + batch * p.descale_stride.batch +
                                                     head * p.descale_stride.head);
        for (int piece = lane_id(); piece < x.pieces; piece += kWarpSize)
          st_global(target + 16 * piece, p.new_dtype == DType::f16
                                             ? quantised<half>(from + 32 * piece, descale)
                                             : quantised<bfloat16>(from + 32 * piece, descale));
      } else {
        for (int piece = lane_id(); piece < x.pieces; piece += kWarpSize)
          st_global(target + 16 * piece, ld_global<RegisterBits<16>>(from + 16 * piece));
      }
    };
    copy_row(p.k);
    copy_row(p.v);
  }

  /// 16 elements of T, divided, as e4m3.
  template <class T>
  TEGULA_DEVICE static RegisterBits<16> quantised(char const* from, float descale) {
    RegisterBits<16> result;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      auto const x = ld_global<RegisterBits<16>>(from + 16 * i);
      auto const divided = [&](int element) {
        return to_float(unpack<T>(x.word[element / 2], element % 2)) / descale;
      };
#pragma unroll
      for (int j = 0; j < 2; ++j)
        result.word[2 * i + j] = cvt_rn_satfinite_e4m3x4(divided(4 * j), divided(4 * j + 1),
                                                         divided(4 * j + 2), divided(4 * j + 3));
    }
    return result;
  }
};

}  // namespace tegula
