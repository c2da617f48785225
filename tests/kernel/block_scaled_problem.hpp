#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "tegula/device/quantize_blocks.hpp"
#include "tegula/kernel/gemm_sm100.hpp"
#include "tegula/sim/launch.hpp"
#include "tegula/sim/tensor_map.hpp"

/// Block-scaled problems for gemm_sm100 on the simulated machine: operands quantised on the host,
/// D = A B^T in float64 from the quantised operands, and what a correct kernel may differ by.
namespace tegula {

/// What an element, or a scale, stands for.
inline double value_of(DType type, std::uint8_t code) {
  switch (type) {
    case DType::e4m3:
      return to_float(float_e4m3{code});
    case DType::e5m2:
      return to_float(float_e5m2{code});
    case DType::e2m1:
      return to_float(float_e2m1{code});
    case DType::ue8m0:
      return to_float(float_ue8m0{code});
    default:
      return to_float(float_ue4m3{code});
  }
}
/// The exponent under which the tensor core holds a value: at least the format's least.
inline int held_exponent(DType type, double value) {
  int const least = type == DType::e5m2    ? -14
                    : type == DType::e2m1  ? 0
                    : type == DType::ue8m0 ? -127
                                           : -6;
  return value == 0 ? -4096 : std::max(std::ilogb(value), least);
}

/// An operand (rows, k) as it lies in memory, and what its elements and scales stand for.
struct BlockScaledOperand {
  DType type;
  BlockScale how;
  int rows, k, ld;  ///< ld: elements from row to row
  QuantizedBlocks bytes;

  double element(int row, int i) const {
    int const at = row * ld + i, per_byte = packed(type);
    std::uint8_t const byte = bytes.elements[static_cast<std::size_t>(at / per_byte)];
    return value_of(type, per_byte == 1 ? byte : float_e2m1x2{byte}[at % 2].bits);
  }
  double scale(int row, int i) const {
    return value_of(how.type, bytes.scales[static_cast<std::size_t>(block_scale_offset(
                                  row, i / how.block, scale_pieces_k(k, how.block)))]);
  }
};

inline BlockScaledOperand quantize(DType type, BlockScale how, int rows, int k, int ld,
                                   std::vector<float> const& values) {
  BlockScaledOperand x{type, how, rows,
                       k,    ld,  quantize_blocks(type, how, rows, k, ld, values.data())};
  // What lies between rows is nobody's: NaN, or 6.
  for (int row = 0; row < rows; ++row)
    std::fill_n(x.bytes.elements.begin() + (row * ld + k) / packed(type), (ld - k) / packed(type),
                std::uint8_t{0xff});
  return x;
}

struct BlockScaledProblem {
  GemmSm100Config config;
  int m, n, k;
  std::uint32_t seed = 1;
  float spread = 1;  ///< magnitudes are within a factor of 2^spread of each other, or so
};

struct BlockScaledData {
  BlockScaledOperand a, b;
};

inline BlockScaledData data_of(BlockScaledProblem const& p) {
  std::uint32_t state = p.seed;
  auto const values = [&](int count) {
    std::vector<float> drawn(static_cast<std::size_t>(count));
    for (float& x : drawn) {
      state = state * 1664525u + 1013904223u;
      float const u = static_cast<float>(state >> 8) * 0x1p-23f - 1;
      state = state * 1664525u + 1013904223u;
      x = u * std::exp2(p.spread * (static_cast<float>(state >> 8) * 0x1p-23f - 1));
    }
    return drawn;
  };
  int const unit = 16 * packed(p.config.a);  // a row is a multiple of 16 bytes
  int const ld = (p.k + unit - 1) / unit * unit + unit;
  std::vector<float> const a = values(p.m * p.k), b = values(p.n * p.k);
  return {quantize(p.config.a, p.config.scale, p.m, p.k, ld, a),
          quantize(p.config.b, p.config.scale, p.n, p.k, ld, b)};
}

struct BlockScaledResult {
  std::vector<double> d;            ///< (m, n)
  std::vector<unsigned char> bits;  ///< of all of D, gaps between rows included
  sim::Report report;
};

/// A problem in a machine's memory, to be launched on so many CTAs.
template <GemmSm100Config C> class BlockScaledLaunch {
  using Kernel = GemmSm100<C>;

 public:
  BlockScaledLaunch(sim::Machine& machine, BlockScaledProblem const& p, BlockScaledData const& data,
                    int ctas)
      : machine_(machine), m_(p.m), n_(p.n) {
    int const unit = store_unit(C.out);
    ldd_ = (p.n + unit - 1) / unit * unit + unit;
    bytes_ = static_cast<std::size_t>(p.m * ldd_ * out_bytes);
    d_ = machine.allocate(bytes_, "D");
    params_.problem = {.a = map(data.a, a_fetch(C), "A"),
                       .b = map(data.b, b_fetch(C), "B"),
                       .m = p.m,
                       .n = p.n,
                       .k = p.k};
    TileScheduler const tiles{.tiles_m = (p.m + C.block_m - 1) / C.block_m,
                              .tiles_n = (p.n + C.block_n - 1) / C.block_n};
    params_.schedule = {.clusters = std::min(ctas, tiles.tiles_m * tiles.tiles_n), .tiling = tiles};
    PerPiece<TmaBoxes> const boxes = store_boxes(epilogue(C));
    int const by_tma = columns_by_tma(p.n, unit);
    auto const out = [&](TmaBoxes const& box) {
      return sim::encode(describe(
          {.dtype = C.out, .address = d_, .mn = p.m, .k = by_tma > 0 ? by_tma : p.n, .ld = ldd_},
          box));
    };
    params_.epilogue.d = {out(boxes.whole), out(boxes.last), out(boxes.whole)};
    params_.epilogue.c = params_.epilogue.d;
    params_.epilogue.d_address = d_;
    params_.epilogue.ldd = ldd_;
    params_.block_scale_a = upload(data.a.bytes.scales, "scales of A");
    params_.block_scale_b = upload(data.b.bytes.scales, "scales of B");
  }

  /// D is poisoned before, and what lies between its rows must stay so.
  BlockScaledResult run() {
    machine_.fill(d_, 0xff, bytes_);
    BlockScaledResult result;
    result.report = sim::launch<Kernel>(machine_, Kernel::grid(params_), params_);
    result.bits.resize(bytes_);
    machine_.download(result.bits.data(), d_, bytes_);
    for (int row = 0; row < m_; ++row) {
      for (int column = 0; column < ldd_; ++column) {
        unsigned char const* const at = result.bits.data() + (row * ldd_ + column) * out_bytes;
        if (column < n_) {
          result.d.push_back(value(at));
        } else {
          EXPECT_TRUE(std::all_of(at, at + out_bytes, [](unsigned char x) { return x == 0xff; }))
              << "row " << row << ", column " << column << " is not D's";
        }
      }
    }
    return result;
  }

 private:
  static constexpr int out_bytes = bits(C.out) / 8;

  void* upload(std::vector<std::uint8_t> const& bytes, char const* name) {
    void* const to = machine_.allocate(bytes.size(), name);
    machine_.upload(to, bytes.data(), bytes.size());
    return to;
  }
  TensorMap map(BlockScaledOperand const& x, TmaBoxes const& boxes, char const* name) {
    int const per = packed(x.type);
    return sim::encode(describe({.dtype = per > 1 ? DType::u8 : x.type,
                                 .address = upload(x.bytes.elements, name),
                                 .mn = x.rows,
                                 .k = (x.k + per - 1) / per,
                                 .ld = x.ld / per},
                                boxes));
  }
  static double value(unsigned char const* at) {
    if constexpr (C.out == DType::f32) {
      float x = 0;
      std::memcpy(&x, at, 4);
      return x;
    } else {
      bfloat16 x{};
      std::memcpy(&x, at, 2);
      return to_float(x);
    }
  }

  sim::Machine& machine_;
  int m_, n_, ldd_;
  std::size_t bytes_;
  void* d_;
  ScaledGemmSm100Params params_;
};

/// One launch on a machine of its own, whose findings do not throw.
template <GemmSm100Config C>
BlockScaledResult run_block_scaled(BlockScaledProblem const& p, BlockScaledData const& data,
                                   sim::Options options, int ctas) {
  options.generation = sim::Generation::sm100;
  options.throw_on_finding = false;
  sim::Machine machine(options);
  return BlockScaledLaunch<C>(machine, p, data, ctas).run();
}

/// D within what the arithmetic may lose. With kind mxf8f6f4 an instruction truncates 33 terms to
/// 25 fraction bits below 2^e, e the largest exponent of a product (a subnormal factor counting as
/// the least normal one) or of the sum so far; with the kinds of 4 bits 5 terms to 35, e of two
/// scales, or of the sum. Then it truncates the sum to 23 bits. With R the magnitude of the exact
/// sum before it or after it, whichever is larger, and E the error so far, the sum is at most R +
/// E. D is rounded once to its type.
inline void expect_block_scaled(BlockScaledProblem const& p, BlockScaledData const& data,
                                std::vector<double> const& d) {
  bool const of_8bits = bits(p.config.a) == 8;
  int const step = 256 / bits(p.config.a);
  struct Factor {
    double value;  // with its scale
    int exponent;  // under which it is aligned
  };
  auto const factors = [&](BlockScaledOperand const& x) {
    std::vector<Factor> all;
    for (int row = 0; row < x.rows; ++row) {
      for (int i = 0; i < x.k; ++i) {
        double const element = x.element(row, i), scale = x.scale(row, i);
        all.push_back({element * scale, held_exponent(x.how.type, scale) +
                                            (of_8bits ? held_exponent(x.type, element) : 0)});
      }
    }
    return all;
  };
  std::vector<Factor> const a = factors(data.a), b = factors(data.b);
  double const lost = of_8bits ? 33 * 0x1p-25 : 5 * 0x1p-35;
  for (int row = 0; row < p.m; ++row) {
    for (int column = 0; column < p.n; ++column) {
      double sum = 0, error = 0;
      for (int first = 0; first < p.k; first += step) {
        double const before = std::abs(sum);
        int exponent = -1000;
        for (int i = first; i < std::min(p.k, first + step); ++i) {
          Factor const& x = a[static_cast<std::size_t>(row * p.k + i)];
          Factor const& y = b[static_cast<std::size_t>(column * p.k + i)];
          sum += x.value * y.value;
          exponent = std::max(exponent, x.exponent + y.exponent);
        }
        double const held = std::max(before, std::abs(sum)) + error;
        error += lost * std::max(std::ldexp(1.0, exponent), held) + 0x1p-23 * held + 0x1p-149;
      }
      double const rounding = p.config.out == DType::bf16 ? 0x1p-8 : 0;
      double const bound = error + rounding * (std::abs(sum) + error);
      double const got = d[static_cast<std::size_t>(row * p.n + column)];
      ASSERT_LE(std::abs(got - sum), bound)
          << "row " << row << ", column " << column << ": " << got << " instead of " << sum;
    }
  }
}

}  // namespace tegula
