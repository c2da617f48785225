// The library's entry points for a process that holds device memory and a stream of its own
// (PyTorch's): plain C, for ctypes.

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "tegula/device/buffer.hpp"
#include "tegula/device/gemm_plan.hpp"
#include "tegula/device/launch.hpp"
#include "tegula/device/selection.hpp"

namespace {

using namespace tegula;

constexpr int kFastSums = -2;

template <class Call> int guarded(Call call) {
  try {
    call();
    return 0;
  } catch (std::exception const& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}

Machine const& gpu() {
  static Machine const machine = Machine::cuda();
  return machine;
}

/// As large as the peer's (cublaslt.py).
Buffer<std::byte> const& workspace() {
  static Buffer<std::byte> const memory(gpu(), 64 << 20, "workspace");
  return memory;
}

/// D (m, n) bf16 = A (m, k) B (n, k)^T, all contiguous. Types: 0 is bf16, 1 is fp8 e4m3.
GemmArguments problem(int type, int m, int n, int k) {
  return {.in = type == 0 ? DType::bf16 : DType::e4m3,
          .out = DType::bf16,
          .m = m,
          .n = n,
          .k = k,
          .workspace = workspace().data(),
          .workspace_bytes = workspace().size()};
}

/// The choice for a problem, made once: launches are timed, not choices.
GemmChoice const& choice(GemmArguments const& arguments) {
  static std::map<std::tuple<DType, std::int64_t, std::int64_t, std::int64_t>, GemmChoice> choices;
  auto const key = std::tuple(arguments.in, arguments.m, arguments.n, arguments.k);
  auto const known = choices.find(key);
  if (known != choices.end()) return known->second;
  check(arguments, gpu().compute_capability());
  return choices.emplace(key, choose_gemm(arguments, gpu().properties())).first->second;
}

/// The choices to time for a problem: tuning_candidates, until weigh() asks for more.
std::vector<GemmChoice>& candidates(GemmArguments const& arguments) {
  static std::map<std::tuple<DType, std::int64_t, std::int64_t, std::int64_t>,
                  std::vector<GemmChoice>>
      all;
  auto const key = std::tuple(arguments.in, arguments.m, arguments.n, arguments.k);
  auto const known = all.find(key);
  if (known != all.end()) return known->second;
  return all.emplace(key, tuning_candidates(arguments, gpu().properties())).first->second;
}

/// Every configuration whose predicted time is at most `worth` times the least, the choice first;
/// and of one in parts each number of parts up to kWeighedParts.
std::vector<GemmChoice> weigh(GemmArguments const& arguments, double worth) {
  constexpr int kWeighedParts = 12;
  GemmPlan const plan = plan_gemm(arguments, gpu().properties());
  std::vector<GemmChoice> weighed;
  auto const add = [&](GemmChoice const& choice) {
    if (choice.cost.total <= worth * plan.chosen().cost.total) weighed.push_back(choice);
  };
  for (GemmCandidate const& candidate : plan.candidates) {
    if (!candidate.refused.empty()) continue;
    add(candidate.choice);
    if (candidate.choice.parts == 1) continue;
    for (int parts = 2; parts <= kWeighedParts; ++parts) {
      if (parts == candidate.choice.parts) continue;
      try {
        add(choose_gemm(arguments, gpu().properties(),
                        {.kernel = gemm_sm90,
                         .configuration = candidate.choice.configuration,
                         .split_k = parts}));
      } catch (argument_error const&) {  // more parts than K or the workspace has room for
        break;
      }
    }
  }
  return weighed;
}

/// Writes a string, with its end, into `text` of `size` bytes.
void put(std::string const& what, char* text, int size) {
  if (static_cast<int>(what.size()) >= size)
    throw std::length_error(fmt::format("the text needs {} bytes", what.size() + 1));
  what.copy(text, what.size());
  text[what.size()] = '\0';
}

/// Writes a choice's name.
void put(GemmChoice const& chosen, char* text, int size) {
  std::string name = configuration_name(chosen.kernel, chosen.configuration);
  if (chosen.kernel == gemm_sm90)
    name += fmt::format(", {} clusters, raster along {}, group {}", chosen.clusters,
                        chosen.tiling.order().raster == Raster::along_m ? "m" : "n",
                        chosen.tiling.order().group) +
            (chosen.tiling.fitted() ? ", two widths" : "") +
            (chosen.parts > 1 ? fmt::format(", {} parts of k", chosen.parts) : "");
  put(name, text, size);
}

struct Tokens {
  void const *q = nullptr, *k = nullptr, *v = nullptr;
  void* o = nullptr;
};

/// bf16 attention with keys that seqused_k counts, in pages or not; nulls for what is left out.
AttentionArguments decoding(Tokens const& at, void const* seqused_k, void const* page_table,
                            void* workspace, long long workspace_bytes, int batch, int heads,
                            int kv_heads, int seq_q, int seq_k, int head_dim, int pages,
                            int page_size) {
  AttentionArguments a = {.q = at.q,
                          .k = at.k,
                          .v = at.v,
                          .o = at.o,
                          .batch = batch,
                          .heads = heads,
                          .kv_heads = kv_heads,
                          .seq_q = seq_q,
                          .seq_k = seq_k,
                          .head_dim = head_dim};
  a.seqused_k = static_cast<std::int32_t const*>(seqused_k);
  a.page_table = static_cast<std::int32_t const*>(page_table);
  a.pages = pages, a.page_size = page_size;
  a.workspace = workspace_bytes > 0 ? workspace : nullptr, a.workspace_bytes = workspace_bytes;
  return a;
}

}  // namespace

extern "C" {

/// (batch, seq, heads, head_dim) contiguous bf16 tensors, by the sm_80 kernel.
int tegula_bench_attention_sm80(void const* q, void const* k, void const* v, void* o, int batch,
                                int heads, int seq, int head_dim, int causal, void* stream) {
  return guarded([&] {
    AttentionArguments const a = {.q = q,
                                  .k = k,
                                  .v = v,
                                  .o = o,
                                  .batch = batch,
                                  .heads = heads,
                                  .seq_q = seq,
                                  .head_dim = head_dim,
                                  .causal = causal != 0};
    attention(gpu(), a, choose_attention(a, gpu().properties(), {.kernel = attention_sm80}),
              {stream});
  });
}

/// The same by the kernel that is chosen, with fewer heads of K and V, and another number of keys.
int tegula_bench_attention(void const* q, void const* k, void const* v, void* o, int batch,
                           int heads, int kv_heads, int seq_q, int seq_k, int head_dim, int causal,
                           void* stream) {
  return guarded([&] {
    attention(gpu(),
              {.q = q,
               .k = k,
               .v = v,
               .o = o,
               .batch = batch,
               .heads = heads,
               .kv_heads = kv_heads,
               .seq_q = seq_q,
               .seq_k = seq_k,
               .head_dim = head_dim,
               .causal = causal != 0},
              {stream});
  });
}

/// The same of e4m3, with one factor each for q, k and v, and by a configuration of attention_sm90,
/// or by the one that is chosen where `number` is negative.
/// `number`: of a configuration; kFastSums: what is chosen for sums in the tensor core; another
/// negative one: what is chosen.
int tegula_bench_attention_e4m3(void const* q, void const* k, void const* v, float const* q_descale,
                                float const* k_descale, float const* v_descale, void* o, int batch,
                                int heads, int kv_heads, int seq_q, int seq_k, int head_dim,
                                int causal, int number, void* stream) {
  return guarded([&] {
    AttentionArguments a = {.dtype = DType::e4m3,
                            .q = q,
                            .k = k,
                            .v = v,
                            .o = o,
                            .batch = batch,
                            .heads = heads,
                            .kv_heads = kv_heads,
                            .seq_q = seq_q,
                            .seq_k = seq_k,
                            .head_dim = head_dim,
                            .causal = causal != 0,
                            .q_descale = q_descale,
                            .k_descale = k_descale,
                            .v_descale = v_descale,
                            .descale_stride = DescaleStrides{0, 0}};
    AttentionConstraints wanted;
    if (number == kFastSums) a.precise = false;
    if (number >= 0) {
      wanted = {.kernel = attention_sm90, .configuration = number};
      a.precise = configuration(attention_sm90, number).promoted > 0;
    }
    attention(gpu(), a, choose_attention(a, gpu().properties(), wanted), {stream});
  });
}

/// Queries of sequences with keys that seqused_k counts (or null: seq_k), contiguous (batch, seq_k,
/// kv_heads, head_dim) or, with a page_table of seq_k / page_size pages for each, (pages,
/// page_size,
/// ...). The choice is made once for a problem.
int tegula_bench_attention_decode(void const* q, void const* k, void const* v, void* o,
                                  void const* seqused_k, void const* page_table, void* workspace,
                                  long long workspace_bytes, int batch, int heads, int kv_heads,
                                  int seq_q, int seq_k, int head_dim, int pages, int page_size,
                                  void* stream) {
  return guarded([&] {
    AttentionArguments const a =
        decoding({q, k, v, o}, seqused_k, page_table, workspace, workspace_bytes, batch, heads,
                 kv_heads, seq_q, seq_k, head_dim, pages, page_size);
    static std::map<std::string, AttentionChoice> choices;
    auto const [known, made] = choices.try_emplace(to_string(a));
    if (made) {
      check(a, gpu().compute_capability());
      known->second = choose_attention(a, gpu().properties());
    }
    attention(gpu(), a, known->second, {stream});
  });
}

/// Bytes of the workspace that such a problem takes.
int tegula_bench_attention_workspace(int batch, int heads, int kv_heads, int seq_q, int seq_k,
                                     int head_dim, int lengths, int pages, int page_size) {
  int bytes = 0;
  int const failed = guarded([&] {
    static int const there = 0;  // an address: whether there are lengths and pages decides
    bytes = static_cast<int>(attention_workspace_bytes(
        decoding({}, lengths != 0 ? &there : nullptr, pages > 0 ? &there : nullptr, nullptr, 0,
                 batch, heads, kv_heads, seq_q, seq_k, head_dim, pages, page_size),
        gpu().properties()));
  });
  return failed != 0 ? -1 : bytes;
}

/// A problem of `type` (see problem); the scales are device pointers to one value each, or null.
int tegula_bench_gemm(int type, void const* a, void const* b, float const* scale_a,
                      float const* scale_b, void* d, int m, int n, int k, void* stream) {
  return guarded([&] {
    GemmArguments arguments = problem(type, m, n, k);
    arguments.a = a, arguments.b = b, arguments.d = d;
    arguments.scale_a = scale_a, arguments.scale_b = scale_b;
    gemm(gpu(), arguments, choice(arguments), {stream});
  });
}

/// A bf16 problem whose result is activated: 0 none, 1 relu, 2 gelu, 3 silu, as Activation
/// numbers them.
int tegula_bench_gemm_activated(int activation, void const* a, void const* b, void* d, int m, int n,
                                int k, void* stream) {
  return guarded([&] {
    GemmArguments arguments = problem(0, m, n, k);
    arguments.a = a, arguments.b = b, arguments.d = d;
    arguments.activation = static_cast<Activation>(activation);
    gemm(gpu(), arguments, {stream});
  });
}

/// What the model of a GEMM's time knows of the GPU: multiprocessors, clock in GHz, memory in TB/s,
/// L2 in MB.
int tegula_bench_device(double* values) {
  return guarded([&] {
    DeviceProperties const& p = gpu().properties();
    double const all[] = {static_cast<double>(p.multiprocessors), p.clock_ghz, p.memory_tb_per_s,
                          p.l2_mb};
    std::copy(std::begin(all), std::end(all), values);
  });
}

/// How many choices are worth timing for a problem that tegula_bench_gemm has computed before.
int tegula_bench_gemm_candidates(int type, int m, int n, int k) {
  int count = 0;
  int const failed =
      guarded([&] { count = static_cast<int>(candidates(problem(type, m, n, k)).size()); });
  return failed != 0 ? -1 : count;
}

/// Makes every configuration of a predicted time of at most `worth` times the least a candidate;
/// returns how many there are.
int tegula_bench_gemm_weigh(int type, int m, int n, int k, double worth) {
  int count = 0;
  int const failed = guarded([&] {
    GemmArguments const arguments = problem(type, m, n, k);
    candidates(arguments) = weigh(arguments, worth);
    count = static_cast<int>(candidates(arguments).size());
  });
  return failed != 0 ? -1 : count;
}

/// The predicted time of a candidate, in microseconds: total, launch, fill, tensor, l2, dram,
/// epilogue.
int tegula_bench_gemm_candidate_cost(int type, int number, int m, int n, int k, double* costs) {
  return guarded([&] {
    GemmCost const& c =
        candidates(problem(type, m, n, k)).at(static_cast<std::size_t>(number)).cost;
    double const all[] = {c.total, c.launch, c.fill, c.tensor, c.l2, c.dram, c.epilogue};
    std::copy(std::begin(all), std::end(all), costs);
  });
}

/// tegula_bench_gemm by the candidate of that number.
int tegula_bench_gemm_candidate(int type, int number, void const* a, void const* b,
                                float const* scale_a, float const* scale_b, void* d, int m, int n,
                                int k, void* stream) {
  return guarded([&] {
    GemmArguments arguments = problem(type, m, n, k);
    GemmChoice const& choice = candidates(arguments).at(static_cast<std::size_t>(number));
    arguments.a = a, arguments.b = b, arguments.d = d;
    arguments.scale_a = scale_a, arguments.scale_b = scale_b;
    gemm(gpu(), arguments, choice, {stream});
  });
}

/// The name of a candidate.
int tegula_bench_gemm_candidate_name(int type, int number, int m, int n, int k, char* text,
                                     int size) {
  return guarded([&] {
    put(candidates(problem(type, m, n, k)).at(static_cast<std::size_t>(number)), text, size);
  });
}

/// A candidate of gemm_sm90 in numbers, as bench/gemm_time_features.cpp takes it.
int tegula_bench_gemm_candidate_numbers(int type, int number, int m, int n, int k, char* text,
                                        int size) {
  return guarded([&] {
    GemmChoice const& choice =
        candidates(problem(type, m, n, k)).at(static_cast<std::size_t>(number));
    GemmSm90Config const& c = configuration(gemm_sm90, choice.configuration);
    put(fmt::format("{} {} {} {} {} {} {:d} {} {} {} {:d} {}", c.block_m, c.block_n,
                    static_cast<int>(c.schedule), c.cluster_m, c.cluster_n, c.split_k, c.in_parts,
                    c.narrow_n, c.store_buffers, c.min_ctas_per_sm, c.transposed, choice.parts),
        text, size);
  });
}

/// What tegula_bench_gemm has chosen for a problem that it has computed before.
int tegula_bench_gemm_configuration(int type, int m, int n, int k, char* text, int size) {
  return guarded([&] { put(choice(problem(type, m, n, k)), text, size); });
}

/// A bf16 problem by the sm_80 kernel, whatever would be chosen.
int tegula_bench_gemm_sm80(void const* a, void const* b, void* d, int m, int n, int k,
                           void* stream) {
  return guarded([&] {
    GemmArguments arguments = problem(0, m, n, k);
    arguments.a = a, arguments.b = b, arguments.d = d;
    check(arguments, gpu().compute_capability());
    static GemmConstraints const sm80{.kernel = gemm_sm80};
    gemm(gpu(), arguments, choose_gemm(arguments, gpu().properties(), sm80), {stream});
  });
}
}
