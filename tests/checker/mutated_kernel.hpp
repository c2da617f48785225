#pragma once

#include <algorithm>
#include <cstring>
#include <random>

#include "mutated_kernels.hpp"
#include "mutation_cases.hpp"
#include "tegula/device/global_tensors.hpp"
#include "tegula/sim/launch.hpp"
#include "tegula/sim/tensor_map.hpp"

/// Launching a case on the simulated machine. Tensors end with their last element, so that an
/// access behind it is out of bounds.
namespace tegula::mutants {

inline std::int64_t whole_lines(std::int64_t elements, DType type) {
  std::int64_t const line = 128 / bits(type);
  return (elements + line - 1) / line * line;
}

/// A machine, and a case's tensors in its memory.
class Bench {
 public:
  explicit Bench(sim::Options options) : machine_(std::move(options)) {}
  sim::Machine& machine() { return machine_; }

  /// `rows` rows of `row` random elements, `ld` apart.
  void const* input(char const* name, DType type, std::int64_t row, std::int64_t rows,
                    std::int64_t ld) {
    std::normal_distribution<float> normal;
    std::size_t const width = bits(type) / 8;
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(ld * (rows - 1) + row) * width);
    for (std::size_t i = 0; i < bytes.size(); i += width) {
      float const x = normal(random_);
      std::uint32_t const element = type == DType::f32   ? __builtin_bit_cast(std::uint32_t, x)
                                    : type == DType::f16 ? std::uint32_t{to_half(x).bits}
                                                         : std::uint32_t{to_bfloat16(x).bits};
      std::memcpy(&bytes[i], &element, width);
    }
    void* const memory = machine_.allocate(bytes.size(), name);
    machine_.upload(memory, bytes.data(), bytes.size());
    return memory;
  }
  void* output(char const* name, DType type, std::int64_t row, std::int64_t rows, std::int64_t ld) {
    std::size_t const bytes = static_cast<std::size_t>(ld * (rows - 1) + row) * (bits(type) / 8);
    outputs_.push_back({machine_.allocate(bytes, name), bytes});
    machine_.fill(outputs_.back().memory, 0xa5, bytes);
    return outputs_.back().memory;
  }
  Outcome outcome(sim::Report report) const {
    Outcome result{.report = std::move(report)};
    for (Output const& output : outputs_) {
      std::size_t const before = result.output.size();
      result.output.resize(before + output.bytes);
      machine_.download(result.output.data() + before, output.memory, output.bytes);
    }
    return result;
  }

 private:
  struct Output {
    void* memory;
    std::size_t bytes;
  };
  sim::Machine machine_;
  std::mt19937_64 random_{1};
  std::vector<Output> outputs_;
};

/// `batch` matrices of `rows` rows of `row` elements.
struct Matrices {
  DType type;
  void const* address;
  std::int64_t row, rows, batch, ld;

  /// (mn, k) of which k, or mn, is contiguous.
  TensorMap map(TmaBoxes const& boxes) const {
    bool const along_mn = boxes.contiguous == 0;
    return sim::encode(describe(
        {type, address, along_mn ? row : rows, along_mn ? rows : row, batch, ld, ld * rows},
        boxes));
  }
};

/// A GEMM's tensors.
struct GemmTensors {
  Matrices a, b, c, d;
  void const* bias = nullptr;
  void* d_address;
};

inline GemmTensors gemm_tensors(Bench& bench, Case const& c, DType in, DType out, Major a_major,
                                Major b_major) {
  GemmTensors t{};
  auto const operand = [&](char const* name, Major major, std::int64_t mn) {
    std::int64_t const row = major == Major::k ? c.k : mn, rows = major == Major::k ? mn : c.k;
    std::int64_t const ld = whole_lines(row, in);
    return Matrices{in, bench.input(name, in, row, rows * c.batch, ld), row, rows, c.batch, ld};
  };
  t.a = operand("A", a_major, c.m);
  t.b = operand("B", b_major, c.n);
  std::int64_t const ld = whole_lines(c.n, out);
  t.d_address = bench.output("D", out, c.n, c.m * c.batch, ld);
  t.d = {out, t.d_address, c.n, c.m, c.batch, ld};
  t.c = t.d;
  if (c.adds) {
    t.c.address = bench.input("C", out, c.n, c.m * c.batch, ld);
    t.bias = bench.input("bias", out, c.n, 1, c.n);
  }
  return t;
}

inline GemmParams gemm_sm80_params(Bench& bench, Case const& c) {
  GemmTensors const t =
      gemm_tensors(bench, c, c.sm80.in, c.sm80.out, c.sm80.a_major, c.sm80.b_major);
  return {.a = t.a.address,
          .b = t.b.address,
          .c = c.adds ? t.c.address : nullptr,
          .bias = t.bias,
          .d = t.d_address,
          .m = c.m,
          .n = c.n,
          .k = c.k,
          .lda = t.a.ld,
          .ldb = t.b.ld,
          .ldc = t.c.ld,
          .ldd = t.d.ld,
          .batch = c.batch,
          .a_batch = t.a.ld * t.a.rows,
          .b_batch = t.b.ld * t.b.rows,
          .c_batch = t.c.ld * t.c.rows,
          .d_batch = t.d.ld * t.d.rows,
          .beta = c.adds ? 0.5f : 0.0f};
}

inline GemmSm90Params gemm_sm90_params(Bench& bench, Case const& c) {
  GemmSm90Config const& config = c.sm90;
  GemmTensors const t =
      gemm_tensors(bench, c, config.a, config.out, config.a_major, config.b_major);
  auto const tiles = [](int extent, int tile) { return (extent + tile - 1) / tile; };
  TileScheduler const scheduler{.tiles_m = tiles(c.m, config.block_m * config.cluster_m),
                                .tiles_n = tiles(c.n, config.block_n * config.cluster_n),
                                .batches = c.batch};
  Matrices by_tma = t.d;
  by_tma.row = columns_by_tma(c.n, store_unit(config.out));
  TmaBoxes const piece = store_boxes(epilogue(config)).whole;
  GemmSm90Params p{};
  p.problem = {.a = t.a.map(a_fetch(config)),
               .b = t.b.map(b_fetch(config)),
               .m = c.m,
               .n = c.n,
               .k = c.k,
               .a_batched = c.batch > 1,
               .b_batched = c.batch > 1};
  p.schedule.tiling = scheduler;
  p.schedule.clusters =
      config.split_k > 1 ? scheduler.tiles() : std::min(c.clusters, scheduler.tiles());
  p.epilogue.c.whole = t.c.map(piece);
  p.epilogue.d.whole = by_tma.map(piece);
  p.epilogue.d_address = t.d_address;
  p.epilogue.ldd = t.d.ld;
  p.epilogue.d_batch_stride = t.d.ld * t.d.rows;
  p.epilogue.bias = t.bias;
  p.epilogue.c_batched = c.batch > 1;
  p.epilogue.beta = c.adds ? 0.5f : 0.0f;
  return p;
}

inline AttentionParams attention_params(Bench& bench, Case const& c) {
  DType const type = c.attention.dtype;
  auto const kv_heads = c.kv_heads;
  std::int64_t const q_row = c.heads * c.attention.head_dim,
                     k_row = kv_heads * c.attention.head_dim;
  auto const strides = [&](std::int64_t row, int seq) {
    return TokenStrides{row * seq, row, c.attention.head_dim};
  };
  AttentionParams p{};
  p.q = bench.input("Q", type, q_row, c.m * c.batch, q_row);
  p.k = bench.input("K", type, k_row, c.n * c.batch, k_row);
  p.v = bench.input("V", type, k_row, c.n * c.batch, k_row);
  p.o = bench.output("O", type, q_row, c.m * c.batch, q_row);
  p.lse =
      static_cast<float*>(bench.output("lse", DType::f32, c.m * c.heads, c.batch, c.m * c.heads));
  p.q_stride = p.o_stride = strides(q_row, c.m);
  p.k_stride = p.v_stride = strides(k_row, c.n);
  p.batch = c.batch;
  p.heads = c.heads;
  p.kv_heads = c.kv_heads;
  p.seq_q = c.m;
  p.seq_k = c.n;
  p.scale = 0.25f;
  return p;
}

template <int I> MutatedKernel mutated_kernel_of_case() {
  static constexpr Case const& c = kCases[I];
  constexpr char const* kernels[] = {"gemm_sm80", "gemm_sm90", "attention_sm80"};
  return {c.name, kernels[static_cast<int>(c.family)], [](sim::Options options) {
            options.throw_on_finding = false;
            Bench bench(std::move(options));
            using Kernel = KernelOf<I>;
            auto const params = [&] {
              if constexpr (c.family == Family::gemm_sm80) {
                return gemm_sm80_params(bench, c);
              } else if constexpr (c.family == Family::gemm_sm90) {
                return gemm_sm90_params(bench, c);
              } else {
                return attention_params(bench, c);
              }
            }();
            sim::Report report = sim::launch<Kernel>(bench.machine(), Kernel::grid(params), params,
                                                     global_tensors(Kernel::config, params));
            return bench.outcome(std::move(report));
          }};
}

}  // namespace tegula::mutants
