// What a GEMM asks of its arguments, with a sentence for each that is not so.

#include <fmt/format.h>

#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "argument_checker.hpp"
#include "problem.hpp"
#include "tegula/device/arguments.hpp"
#include "tegula/device/gemm_plan.hpp"
#include "tegula/io/text.hpp"
#include "tegula/kernel/block_scale.hpp"

namespace tegula {
namespace {

using namespace device;

class GemmChecker : Checker {
 public:
  explicit GemmChecker(GemmArguments const& arguments)
      : Checker("gemm"), g_(with_defaults(arguments)) {}

  void run(int compute_capability) const {
    architecture(compute_capability);
    types(compute_capability);
    block_scales(compute_capability);
    major("a_major", "in", g_.a_major, g_.in);
    major("b_major", "in_b", g_.b_major, *g_.in_b);
    extent("m", g_.m);
    extent("n", g_.n);
    extent("k", g_.k);
    extent("batch", g_.batch);
    grid("m / 64 * n / 64 * batch", {(g_.m + 63) / 64, (g_.n + 63) / 64, g_.batch});
    // Of less than 8 bits: a byte, and for TMA to unpack them 32.
    auto const aligned = [&](DType type) {
      return bits(type) >= 8 ? bits(type) / 8 : are_pairs(g_.in, *g_.in_b) ? 1 : kUnpackedAlignment;
    };
    int const out_bytes = bytes_of(*g_.out);
    bool const a_k = g_.a_major == Major::k, b_k = g_.b_major == Major::k;
    pointer("a", g_.a, aligned(g_.in));
    pointer("b", g_.b, aligned(*g_.in_b));
    pointer("d", g_.d, out_bytes);
    if (g_.block_scale.block != 0) {
      pointer("block_scale_a", g_.block_scale_a, kScaleAlignment);
      pointer("block_scale_b", g_.block_scale_b, kScaleAlignment);
    }
    if (g_.beta != 0) {
      if (g_.c == nullptr)
        refuse_argument(
            "gemm: c is a null pointer and beta is {}; c must be a device pointer where beta is not 0.",
            g_.beta);
      pointer("c", g_.c, out_bytes);
    }
    optional_pointer("bias", g_.bias, out_bytes);
    optional_pointer("scale_a", g_.scale_a, alignof(float));
    optional_pointer("scale_b", g_.scale_b, alignof(float));
    workspace(g_.workspace, g_.workspace_bytes);
    for (auto const& [name, input] : {std::pair<char const*, void const*>("a", g_.a),
                                      {"b", g_.b},
                                      {"bias", g_.bias},
                                      {"scale_a", g_.scale_a},
                                      {"scale_b", g_.scale_b},
                                      {"block_scale_a", g_.block_scale_a},
                                      {"block_scale_b", g_.block_scale_b}})
      if (input != nullptr) different("d", g_.d, name, input);
    matrix("a", *g_.lda, a_k ? "k" : "m", a_k ? g_.k : g_.m, a_k ? g_.m : g_.k, *g_.a_batch_stride,
           g_.in);
    matrix("b", *g_.ldb, b_k ? "k" : "n", b_k ? g_.k : g_.n, b_k ? g_.n : g_.k, *g_.b_batch_stride,
           *g_.in_b);
    matrix("d", *g_.ldd, "n", g_.n, g_.m, *g_.d_batch_stride, *g_.out);
    rows_apart<2>("gemm", "d", g_.n,
                  {{{"ldd", g_.m, *g_.ldd}, {"d_batch_stride", g_.batch, *g_.d_batch_stride}}});
    if (g_.beta != 0) {
      matrix("c", *g_.ldc, "n", g_.n, g_.m, *g_.c_batch_stride, *g_.out);
      if (g_.c == g_.d) in_place();
    }
    overlaps(a_k, b_k);
    finite("alpha", g_.alpha);
    finite("beta", g_.beta);
    if (static_cast<int>(g_.activation) > static_cast<int>(Activation::silu))
      refuse_argument("gemm: activation is {}; it must be Activation::none, relu, gelu or silu.",
                      static_cast<int>(g_.activation));
    if (by_tma_alone(g_.in)) {
      row_of_tma("lda", a_k ? g_.m : g_.k, *g_.lda, g_.in);
      row_of_tma("ldb", b_k ? g_.n : g_.k, *g_.ldb, *g_.in_b);
      row_of_tma("ldd", g_.m, *g_.ldd, *g_.out);
      if (g_.beta != 0) row_of_tma("ldc", g_.m, *g_.ldc, *g_.out);
      auto const obstacle = tma_obstacle(g_);
      if (!obstacle.empty())
        refuse_argument("gemm: {}, and {} is computed only from what TMA can address.", obstacle,
                        to_string(g_.in));
    }
  }

 private:
  static constexpr int kScaleAlignment = 16;  ///< of what a bulk copy reads

  static constexpr int kUnpackedAlignment = 32;  ///< of elements that TMA unpacks, and their rows
  static constexpr int kUnpackedElements = 128;  ///< of which a row of these has a multiple

  static bool fp8(DType type) { return type == DType::e4m3 || type == DType::e5m2; }
  /// What no tensor-core instruction of sm_80's kernel multiplies.
  static bool by_tma_alone(DType type) { return type == DType::tf32 || fp8(type) || small(type); }
  /// Of 6 or 4 bits.
  static bool small(DType type) {
    return type == DType::e2m1 || type == DType::e2m3 || type == DType::e3m2;
  }

  void types(int compute_capability) const {
    if (g_.block_scale.block == 0) {
      for (auto const& [name, type] :
           {std::pair<char const*, DType>("in", g_.in), {"in_b", *g_.in_b}})
        if (small(type))
          refuse_argument("gemm: {} is {} and there is no block_scale; {} is computed with {}.",
                          name, to_string(type), to_string(type),
                          type == DType::e2m1 ? "kMxScale or kNvScale" : "kMxScale");
      type("in", g_.in, {DType::f16, DType::bf16, DType::tf32, DType::e4m3, DType::e5m2});
      type("in_b", *g_.in_b, {DType::f16, DType::bf16, DType::tf32, DType::e4m3, DType::e5m2});
    }
    type("out", *g_.out, {DType::f16, DType::bf16, DType::f32});
    if (g_.block_scale.block != 0) return;
    if (g_.in != *g_.in_b && !(fp8(g_.in) && fp8(*g_.in_b)))
      refuse_argument(
          "gemm: in is {} and in_b is {}; both must be the same type, or each e4m3 or e5m2.",
          to_string(g_.in), to_string(*g_.in_b));
    if (by_tma_alone(g_.in) && compute_capability != 90 && compute_capability != 100)
      refuse_argument(
          "gemm: in is {} and the machine is sm_{}; {} is computed on sm_90 and sm_100 only.",
          to_string(g_.in), compute_capability, to_string(g_.in));
  }

  void block_scales(int compute_capability) const {
    BlockScale const& scale = g_.block_scale;
    if (scale.block == 0) {
      for (auto const& [name, scales] :
           {std::pair<char const*, void const*>("block_scale_a", g_.block_scale_a),
            {"block_scale_b", g_.block_scale_b}})
        if (scales != nullptr)
          refuse_argument(
              "gemm: {} is {} and block_scale has a block of 0; it must be kMxScale or kNvScale, or {} "
              "a null pointer.",
              name, scales, name);
      return;
    }
    std::string const said = fmt::format("block_scale is {} for each {}", name_of(scale.type),
                                         io::counted(scale.block, "element"));
    if (scale != kMxScale && scale != kNvScale)
      refuse_argument(
          "gemm: {}; it must be kMxScale (ue8m0 for each 32) or kNvScale (ue4m3 for each 16).",
          said);
    bool const pairs = are_pairs(g_.in, *g_.in_b);
    auto const has_scales = [](DType type) { return fp8(type) || small(type); };
    if (!pairs && (scale == kNvScale || !has_scales(g_.in) || !has_scales(*g_.in_b)))
      refuse_argument(
          "gemm: in is {}, in_b is {} and {}; {}.", name_of(g_.in), name_of(*g_.in_b), said,
          scale == kNvScale ? "both must be e2m1" : "each must be e4m3, e5m2, e2m3, e3m2 or e2m1");
    if (compute_capability != 100)
      refuse_argument(
          "gemm: {} and the machine is sm_{}; block scales are computed on sm_100 only.", said,
          compute_capability);
    if (pairs && g_.k % 2 != 0)
      refuse_argument("gemm: k is {} and in is e2m1, of which two share a byte; k must be even.",
                      g_.k);
    if (pairs) return;
    for (auto const& [name, type, ld] :
         {std::tuple<char const*, DType, std::int64_t>("a", g_.in, *g_.lda),
          {"b", *g_.in_b, *g_.ldb}}) {
      if (!small(type)) continue;
      if (g_.k % kUnpackedElements != 0)
        refuse_argument(
            "gemm: k is {} and {} is {}, which TMA unpacks; k must be a multiple of {} (pad with zeros).",
            g_.k, name, to_string(type), kUnpackedElements);
      if (ld * bits(type) / 8 % kUnpackedAlignment != 0 || ld * bits(type) % 8 != 0)
        refuse_argument(
            "gemm: ld{} is {} of {}, which TMA unpacks; rows must be multiples of {} bytes.", name,
            io::counted(ld, "element"), to_string(type), kUnpackedAlignment);
    }
  }

  /// The rule of TMA that extents break, with what would keep it.
  void row_of_tma(std::string_view name, std::int64_t rows, std::int64_t ld, DType type) const {
    int const unit = 128 / std::gcd(128, bits(type));  // elements of whole 16 bytes
    if (rows > 1 && ld % unit != 0)
      refuse_argument(
          "gemm: {} is {} of {}, and {} is computed only where TMA can address rows, at multiples of 16 "
          "bytes; it must be a multiple of {}.",
          name, io::counted(ld, "element"),
          bits(type) < 8 ? io::counted(bits(type), "bit") : io::counted(bits(type) / 8, "byte"),
          to_string(g_.in), unit);
  }

  void major(std::string_view name, std::string_view type_name, Major value, DType type) const {
    if (value != Major::k && value != Major::mn)
      refuse_argument("gemm: {} is {}; it must be Major::k or Major::mn.", name,
                      static_cast<int>(value));
    if (value == Major::mn && by_tma_alone(type))
      refuse_argument(
          "gemm: {} is Major::mn and {} is {}; of 4-, 8- and 32-bit types the tensor cores read Major::k only.",
          name, type_name, to_string(type));
  }

  void matrix(std::string_view name, std::int64_t ld, std::string_view row_name, std::int64_t row,
              std::int64_t rows, std::int64_t batch_stride, DType type) const {
    if (ld < row)
      refuse_argument(
          "gemm: ld{} is {}; it must be at least {} = {}, or the rows of {} would overlap.", name,
          ld, row_name, row, name);
    if (batch_stride < 0)
      refuse_argument("gemm: {}_batch_stride is {}, which is negative; it must be at least 0.",
                      name, batch_stride);
    int const pack = packed(type);
    span(name, {{rows, ld / pack}, {g_.batch, batch_stride / pack}}, device::ceil_div(row, pack),
         bits(type) * pack / 8);
  }

  void overlaps(bool a_k, bool b_k) const {
    auto const matrix = [&](std::string_view name, void const* address, std::int64_t ld,
                            std::int64_t rows, std::int64_t row, std::int64_t batch_stride,
                            DType type) {
      int const pack = packed(type);
      return region(name, address, {{rows, ld / pack}, {g_.batch, batch_stride / pack}},
                    device::ceil_div(row, pack), bits(type) * pack / 8);
    };
    Region const d = matrix("d", g_.d, *g_.ldd, g_.m, g_.n, *g_.d_batch_stride, *g_.out);
    Region const workspace = region("workspace", g_.workspace, {}, g_.workspace_bytes, 1);
    auto const is_read = [&](Region const& input) {
      apart("gemm", d, input);
      if (g_.workspace != nullptr) apart("gemm", workspace, filled(input));
    };
    is_read(matrix("a", g_.a, *g_.lda, a_k ? g_.m : g_.k, a_k ? g_.k : g_.m, *g_.a_batch_stride,
                   g_.in));
    is_read(matrix("b", g_.b, *g_.ldb, b_k ? g_.n : g_.k, b_k ? g_.k : g_.n, *g_.b_batch_stride,
                   *g_.in_b));
    if (g_.beta != 0 && g_.c != g_.d)
      is_read(matrix("c", g_.c, *g_.ldc, g_.m, g_.n, *g_.c_batch_stride, *g_.out));
    is_read(region("bias", g_.bias, {}, g_.n, bytes_of(*g_.out)));
    is_read(region("scale_a", g_.scale_a, {}, 1, sizeof(float)));
    is_read(region("scale_b", g_.scale_b, {}, 1, sizeof(float)));
    if (g_.workspace != nullptr) apart("gemm", workspace, filled(d));
    if (g_.block_scale.block == 0) return;
    for (auto const& [name, scales, rows, stride] :
         {std::tuple<char const*, void const*, std::int64_t, std::int64_t>(
              "block_scale_a", g_.block_scale_a, g_.m, *g_.a_batch_stride),
          {"block_scale_b", g_.block_scale_b, g_.n, *g_.b_batch_stride}})
      is_read(region(
          name, scales, {},
          block_scale_bytes(rows, g_.k, g_.block_scale.block) * (stride == 0 ? 1 : g_.batch), 1));
  }

  void in_place() const {
    if (*g_.ldc != *g_.ldd)
      refuse_argument(
          "gemm: c and d are the same pointer, and ldc is {} but ldd is {}; in place, both must be equal.",
          *g_.ldc, *g_.ldd);
    if (g_.batch > 1 && *g_.c_batch_stride != *g_.d_batch_stride)
      refuse_argument(
          "gemm: c and d are the same pointer, and c_batch_stride is {} but d_batch_stride is {}; in place, "
          "both must be equal.",
          *g_.c_batch_stride, *g_.d_batch_stride);
  }

  GemmArguments const g_;  // with defaults
};

}  // namespace

void check(GemmArguments const& arguments, int compute_capability) {
  GemmChecker(arguments).run(compute_capability);
}

}  // namespace tegula
