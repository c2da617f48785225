#pragma once

#include <cstring>
#include <iterator>
#include <random>
#include <utility>

#include "gemm_params.hpp"
#include "mutated_kernels.hpp"
#include "mutation_cases.hpp"
#include "tegula/device/global_tensors.hpp"
#include "tegula/sim/launch.hpp"
#include "tegula/sim/tensor_map.hpp"

/// Launching a case on the simulated machine. Tensors end with their last element, so that an
/// access behind it is out of bounds.
namespace tegula::mutants {

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
      std::uint32_t const element = rounded_bits(type, normal(random_));
      std::memcpy(&bytes[i], &element, width);
    }
    void* const memory = machine_.allocate(bytes.size(), name);
    machine_.upload(memory, bytes.data(), bytes.size());
    return memory;
  }
  /// Random bytes, from `least` on `values` of them.
  void const* bytes(char const* name, std::int64_t count, int least, unsigned values) {
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(count));
    for (auto& x : bytes)
      x = static_cast<std::uint8_t>(static_cast<unsigned>(least) + random_() % values);
    void* const memory = machine_.allocate(bytes.size(), name);
    machine_.upload(memory, bytes.data(), bytes.size());
    return memory;
  }
  void* output(char const* name, DType type, std::int64_t row, std::int64_t rows, std::int64_t ld) {
    std::size_t const bytes = static_cast<std::size_t>(ld * (rows - 1) + row) * (bits(type) / 8);
    outputs_.push_back({machine_.allocate(bytes, name), bytes});
    machine_.fill(outputs_.back().memory, kPoison, bytes);
    return outputs_.back().memory;
  }
  void* zeros(char const* name, std::int64_t bytes) {
    void* const memory = machine_.allocate(static_cast<std::size_t>(bytes), name);
    machine_.fill(memory, 0, static_cast<std::size_t>(bytes));
    return memory;
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

/// A case as a mutated kernel, of a family's name: launched with `params(bench)`, on a machine
/// whose options `change` changes.
template <class Kernel, class Config, class Change, class Params>
MutatedKernel mutated_case(char const* name, char const* family, Config const& config,
                           Change change, Params params) {
  return {name, family, [=](sim::Options options) {
            options.throw_on_finding = false;
            change(options);
            Bench bench(std::move(options));
            auto const p = params(bench);
            return bench.outcome(sim::launch<Kernel>(bench.machine(), Kernel::grid(p), p,
                                                     global_tensors(config, p)));
          }};
}
inline void on_sm100(sim::Options& options) { options.generation = sim::Generation::sm100; }
/// Calls `of` with the number of each of a list's cases.
template <auto const& Cases, class Of> std::vector<MutatedKernel> mutated_cases(Of of) {
  return [&]<int... I>(std::integer_sequence<int, I...>) {
    return std::vector<MutatedKernel>{of.template operator()<I>()...};
  }
  (std::make_integer_sequence<int, static_cast<int>(std::size(Cases))>());
}

/// A GEMM's arguments, with its tensors in the bench's memory.
inline GemmArguments gemm_arguments(Bench& bench, Case const& c) {
  GemmArguments g = gemm_arguments(c, /*line_bytes=*/16);
  auto const operand = [&](char const* name, Major major, std::int64_t mn, std::int64_t ld) {
    bool const k_major = major == Major::k;
    return bench.input(name, g.in, k_major ? g.k : mn, (k_major ? mn : g.k) * g.batch, ld);
  };
  g.a = operand("A", g.a_major, g.m, *g.lda);
  g.b = operand("B", g.b_major, g.n, *g.ldb);
  bool const transposed = c.family == Family::gemm_sm90 && c.sm90.transposed;
  g.d =
      bench.output("D", *g.out, transposed ? g.m : g.n, (transposed ? g.n : g.m) * g.batch, *g.ldd);
  if (c.adds) {
    g.c = bench.input("C", *g.out, g.n, g.m * g.batch, *g.ldc);
    g.bias = bench.input("bias", *g.out, g.n, 1, g.n);
  }
  return g;
}

inline GemmSm90Params gemm_sm90_params(Bench& bench, Case const& c) {
  GemmArguments const g = gemm_arguments(bench, c);
  TilePartition const tiling = equal_tiles(c.sm90, g, Raster::along_n, 1, c.parts);
  GemmSm90Parts parts = {.tile = TileParts(c.parts)};
  if (c.parts > 1)
    parts.partial = partial_sums(
        c.sm90, tiling, [&](std::int64_t bytes) { return bench.zeros("workspace", bytes); });
  GemmSm90Params params = independent_params(
      c.sm90, g, {.clusters = clusters_of(c.sm90, tiling, c.clusters), .tiling = tiling},
      sim::encode, parts);
  // A mutant may load C where there is none; it then loads D.
  if (g.c == nullptr) params.epilogue.c = params.epilogue.d;
  return params;
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
  return mutated_case<KernelOf<I>>(
      c.name, kernels[static_cast<int>(c.family)], KernelOf<I>::config, [](sim::Options&) {},
      [](Bench& bench) {
        if constexpr (c.family == Family::gemm_sm80) {
          return independent_params(gemm_arguments(bench, c));
        } else if constexpr (c.family == Family::gemm_sm90) {
          return gemm_sm90_params(bench, c);
        } else {
          return attention_params(bench, c);
        }
      });
}

}  // namespace tegula::mutants
