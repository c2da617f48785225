// What the checker costs: simulated attention and GEMM kernels with the checker off, without its
// search for races, and with all of it. Prints a JSON line for each: the slowdown ("value"),
// milliseconds of a launch in each of the three cases ("ms"), and bytes that the checker keeps for
// each byte of shared memory ("shadow_bytes"). checker_cost --limits instead exits 1 where they are
// beyond what the project allows.

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "tegula/arch/barrier.hpp"
#include "tegula/arch/global.hpp"
#include "tegula/arch/shared.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/arch/warp.hpp"
#include "tegula/device/buffer.hpp"
#include "tegula/device/launch.hpp"
#include "tegula/device/selection.hpp"
#include "tegula/sim/launch.hpp"

namespace {

/// The heap of this process while `counting`: what is allocated now, and the most there was.
std::atomic<bool> counting = false;
std::atomic<std::int64_t> live = 0, peak = 0;

void* counted(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  if (counting) {
    std::int64_t const now = live += static_cast<std::int64_t>(malloc_usable_size(memory));
    std::int64_t before = peak;
    while (now > before && !peak.compare_exchange_weak(before, now)) {
    }
  }
  return memory;
}

void release(void* memory) {
  if (counting && memory != nullptr) live -= static_cast<std::int64_t>(malloc_usable_size(memory));
  std::free(memory);
}

}  // namespace

void* operator new(std::size_t bytes) { return counted(std::malloc(bytes)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  auto const to = static_cast<std::size_t>(alignment);
  return counted(std::aligned_alloc(to, (bytes + to - 1) / to * to));
}
void operator delete(void* memory) noexcept { release(memory); }
void operator delete(void* memory, std::size_t) noexcept { release(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { release(memory); }

namespace tegula {
namespace {

constexpr double kSlowdownLimit = 5;  ///< times the machine with the checker off
constexpr double kShadowLimit = 110;  ///< bytes for each byte of shared memory

/// How much of the checker is on.
enum class Checking { off, no_races, all };
constexpr Checking kAll[] = {Checking::off, Checking::no_races, Checking::all};

sim::Options options_for(Checking checking) {
  sim::Options options{.check = checking != Checking::off, .workers = 1};
  options.races = checking == Checking::all;
  return options;
}

/// A kernel with a problem of one cluster.
struct Case {
  std::string name;
  std::int64_t shared_bytes;                                     ///< of the cluster's CTAs together
  std::function<std::function<void()>(Machine const&)> prepare;  ///< gives what launches it
};

/// 16-bit numbers of both signs around 1.
std::vector<std::uint16_t> numbers(std::int64_t count) {
  std::vector<std::uint16_t> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<std::uint16_t>(0x3f00 | (i * 40503 >> 4 & 0x80ff));
  return values;
}

/// The operands of a launch, alive as long as it.
using Operands = std::vector<Buffer<std::uint16_t>>;

Case attention_case(int head_dim, int seq_k) {
  AttentionArguments a{
      .dtype = DType::bf16, .batch = 1, .heads = 1, .seq_k = seq_k, .head_dim = head_dim};
  auto const table = configurations(attention_sm80);
  AttentionConfig const c =
      *std::find_if(table.begin(), table.end(), [&](AttentionConfig const& c) {
        return c.dtype == a.dtype && c.head_dim == head_dim && !c.causal;
      });
  a.seq_q = c.block_m;
  return {to_string(c), shared_bytes(c), [a](Machine const& machine) mutable {
            auto const operands = std::make_shared<Operands>();
            auto const make = [&](int seq, char const* name) {
              operands->emplace_back(machine, numbers(std::int64_t{seq} * a.head_dim), name);
              return operands->back().data();
            };
            a.q = make(a.seq_q, "Q"), a.k = make(*a.seq_k, "K"), a.v = make(*a.seq_k, "V"),
            a.o = make(a.seq_q, "O");
            AttentionChoice const choice =
                choose_attention(a, machine.properties(), {.kernel = attention_sm80});
            return [operands, machine, a, choice] { attention(machine, a, choice); };
          }};
}

Case gemm_case(std::string const& name, std::int64_t shared_bytes, int m, int n, int k,
               GemmConstraints const& constraints) {
  return {name, shared_bytes, [=](Machine const& machine) {
            auto const operands = std::make_shared<Operands>();
            auto const make = [&](std::int64_t count, char const* of) {
              operands->emplace_back(machine, numbers(count), of);
              return operands->back().data();
            };
            GemmArguments g{.m = m, .n = n, .k = k};
            g.a = make(std::int64_t{m} * k, "A"), g.b = make(std::int64_t{n} * k, "B"),
            g.d = make(std::int64_t{m} * n, "D");
            GemmChoice choice = choose_gemm(g, machine.properties(), constraints);
            choice.clusters = 1;
            return [operands, machine, g, choice] { gemm(machine, g, choice); };
          }};
}

Case gemm_sm80_case(int k) {
  auto const table = configurations(gemm_sm80);
  auto const at = std::find_if(table.begin(), table.end(), [](GemmConfig const& c) {
    return c.in == DType::bf16 && c.out == DType::bf16 && c.a_major == Major::k &&
           c.b_major == Major::k && c.vector_bytes == 16;
  });
  return gemm_case(to_string(*at), shared_bytes(*at), at->block_m, at->block_n, k,
                   {.kernel = gemm_sm80, .configuration = static_cast<int>(at - table.begin())});
}

/// The first configuration of a schedule, cluster and split of K: one tile for each consumer.
Case gemm_sm90_case(Schedule schedule, int cluster_m, int split_k, int k) {
  auto const table = configurations(gemm_sm90);
  auto const at = std::find_if(table.begin(), table.end(), [&](GemmSm90Config const& c) {
    return c.a == DType::bf16 && c.b == DType::bf16 && c.out == DType::bf16 &&
           c.a_major == Major::k && c.b_major == Major::k && !c.activates &&
           c.schedule == schedule && c.cluster_m == cluster_m && c.cluster_n == 1 &&
           c.split_k == split_k && !c.in_parts;
  });
  if (at == table.end())
    throw std::logic_error("gemm_sm90's table has no such configuration: choose another one");
  std::int64_t const bytes =
      std::int64_t{cluster_size(*at)} * (stages(*at) * stage_bytes(*at) + epilogue_bytes(*at));
  int const tiles = schedule == Schedule::pingpong ? 2 : 1;
  return gemm_case(to_string(*at), bytes, tiles * at->block_m * cluster_m, at->block_n, k,
                   {.kernel = gemm_sm90, .configuration = static_cast<int>(at - table.begin())});
}

struct Quad {
  alignas(16) std::uint32_t words[4];
};

/// What takes the most memory: every byte of a word has a writer of its own, and all warps of the
/// largest CTA read every byte, several lanes of each at unlike times, where only the lanes of a
/// warp are ordered.
struct EveryoneReadsAll {
  struct Params {
    std::uint32_t* out;
  };
  static constexpr int quads = 4096, times = 3;
  struct SharedStorage {
    Quad all[quads];
  };
  static constexpr int threads = 1024;
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    int const t = thread_idx();
    SharedAddr const first = shared_address(&smem.all[0]);
    for (unsigned i = t; i < sizeof smem.all; i += threads) st_shared(first + i, std::uint8_t{});
    cta::sync();
    std::uint32_t sum = 0;
    for (int time = 0; time < times; ++time) {
      for (int i = 0; i < quads; i += 32) {
        sum += ld_shared<Quad>(shared_address(&smem.all[i + (lane_id() + time) % 32])).words[0];
        warp::sync();
      }
    }
    st_global(p.out + t, sum);
  }
};

Case everyone_reads_all() {
  return {"1024 threads that write 64 KB by bytes, and each read from all of it",
          sizeof(EveryoneReadsAll::SharedStorage), [](Machine const& machine) {
            auto const out =
                std::make_shared<Buffer<std::uint32_t>>(machine, EveryoneReadsAll::threads, "out");
            return [out, machine] {
              sim::launch<EveryoneReadsAll>(*machine.simulation(), {1, 1, 1}, {out->data()});
            };
          }};
}

std::vector<Case> cases() {
  return {attention_case(64, 512),
          attention_case(128, 256),
          gemm_sm80_case(512),
          gemm_sm90_case(Schedule::basic, 1, 1, 1024),
          gemm_sm90_case(Schedule::cooperative, 1, 1, 1024),
          gemm_sm90_case(Schedule::cooperative, 2, 1, 512),
          gemm_sm90_case(Schedule::pingpong, 2, 1, 512),
          gemm_sm90_case(Schedule::basic, 1, 4, 1024),
          everyone_reads_all()};
}

/// Processor time of this process, in milliseconds: what else the host does does not count.
double processor_ms() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec);
}

double median(std::vector<double> values) {
  auto const middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

struct Cost {
  double ms[3];          ///< of a launch, by Checking
  double heap_bytes[3];  ///< the most that a launch allocated
  double slowdown() const { return ms[2] / ms[0]; }
  double shadow_bytes() const { return heap_bytes[2] - heap_bytes[0]; }
};

/// Processor time of a launch, in milliseconds: of as many as take a while together, for some hosts
/// count that time in steps of 10 ms.
double ms_of(std::function<void()> const& launch) {
  constexpr double long_enough = 40;
  double const begin = processor_ms();
  for (int launches = 1;; ++launches) {
    launch();
    double const passed = processor_ms() - begin;
    if (passed >= long_enough) return passed / launches;
  }
}

/// Medians of `rounds` times, of each kind in turn.
Cost measure(Case const& c, int rounds) {
  std::vector<double> ms[3];
  Cost cost{};
  std::vector<std::function<void()>> launch;
  for (Checking const checking : kAll)
    launch.push_back(c.prepare(Machine::simulated(Arch::sm90, options_for(checking))));
  for (int i = 0; i < 3; ++i) {  // the first launch of each: not timed
    live = peak = 0;
    counting = true;
    launch[static_cast<std::size_t>(i)]();
    counting = false;
    cost.heap_bytes[i] = static_cast<double>(peak);
  }
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < 3; ++i) ms[i].push_back(ms_of(launch[static_cast<std::size_t>(i)]));
  }
  for (int i = 0; i < 3; ++i) cost.ms[i] = median(ms[i]);
  return cost;
}

void print_costs() {
  for (Case const& c : cases()) {
    Cost const cost = measure(c, 9);
    fmt::print(
        "{{\"benchmark\": \"checker_cost\", \"case\": \"{}\", \"value\": {:.4g}, \"unit\": \"times the time "
        "without the checker\", \"ms\": [{:.4g}, {:.4g}, {:.4g}], \"shadow_bytes\": {:.4g}}}\n",
        c.name, cost.slowdown(), cost.ms[0], cost.ms[1], cost.ms[2],
        cost.shadow_bytes() / static_cast<double>(c.shared_bytes));
    std::fflush(stdout);
  }
}

int hold_to_limits() {
  bool within = true;
  for (Case const& c : cases()) {
    // Neighbours that use the same caches make either slower: what is beyond the limit is
    // measured again.
    Cost cost = measure(c, 5);
    for (int again = 0; again < 3 && cost.slowdown() > kSlowdownLimit; ++again)
      cost = measure(c, 9);
    double const shadow = cost.shadow_bytes() / static_cast<double>(c.shared_bytes);
    bool const good = cost.slowdown() <= kSlowdownLimit && shadow < kShadowLimit;
    within = within && good;
    fmt::print(
        "{}: {:.2f} times as slow as without the checker (at most {}), {:.1f} bytes for a byte of shared memory (less than {}){}\n",
        c.name, cost.slowdown(), kSlowdownLimit, shadow, kShadowLimit,
        good ? "" : ": BEYOND THE LIMIT");
  }
  return within ? 0 : 1;
}

}  // namespace
}  // namespace tegula

int main(int count, char** arguments) {
  if (count > 1 && std::strcmp(arguments[1], "--limits") == 0) return tegula::hold_to_limits();
  tegula::print_costs();
}
