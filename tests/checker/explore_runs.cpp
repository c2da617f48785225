// Explores the pipelines and the kernels that the library ships, at small problems: which orders of
// the steps that do not commute there are, and whether all of them are covered.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>

#include "command_line.hpp"
#include "explore_kernel.hpp"
#include "explore_pipeline.hpp"
#include "gemm_sm100_problem.hpp"
#include "grouped_gemm_problem.hpp"
#include "page_section.hpp"

namespace tegula {
namespace {

using sim::Exploration;

/// What is explored together: a pipeline in its shapes, a kernel in its configurations.
struct Subject {
  std::string name;
  std::string problem;
  std::vector<std::function<Exploration()>> explorations;
  bool every_order = true;  ///< else there are too many, and some are tried
  double most_seconds = std::numeric_limits<double>::infinity();
};

/// A pipeline is to be covered within a minute.
constexpr double kSecondsOfAPipeline = 60;
/// Orders that are tried where there are too many.
constexpr std::int64_t kSomeOrders = 200;

template <class... Kernel> std::vector<std::function<Exploration()>> rows() {
  return {[] { return pipeline_kernels::explore<Kernel>(pipeline_kernels::words<Kernel>()); }...};
}

template <int Groups, int Warps> std::function<Exploration()> turns(std::int64_t most = 10000) {
  return [most] {
    return pipeline_kernels::explore<pipeline_kernels::MathOrder<Groups, Warps>>(
        pipeline_kernels::words_of_turns<Groups, Warps>(), most);
  };
}

void add_pipelines(std::vector<Subject>& all) {
  using namespace pipeline_kernels;
  auto const add = [&](std::string name, std::string problem,
                       std::vector<std::function<Exploration()>> explorations,
                       bool every_order = true) {
    all.push_back({std::move(name), std::move(problem), std::move(explorations), every_order,
                   kSecondsOfAPipeline});
  };
  add("TmaPipeline", "1 to 4 stages, 1 to 4 consumers",
      rows<TmaFed<1, 1>, TmaFed<2, 1>, TmaFed<2, 2>, TmaFed<3, 2>, TmaFed<4, 4>>());
  add("TmaPipeline of a cluster", "2 or 4 CTAs, multicast",
      rows<Multicast<2, 1, 1>, Multicast<2, 2, 2>, Multicast<2, 3, 1>, Multicast<4, 2, 2>>());
  add("ThreadPipeline", "1 to 4 stages, by st.shared and by cp.async",
      rows<ThreadFed<1, 1, 1, Writes::stores>, ThreadFed<3, 2, 1, Writes::stores>,
           ThreadFed<4, 2, 3, Writes::stores>, ThreadFed<2, 1, 1, Writes::cp_async>,
           ThreadFed<3, 2, 2, Writes::cp_async>, ThreadFed<4, 1, 3, Writes::cp_async>>());
  add("StorePipeline", "1 to 3 buffers", rows<StoreSide<1, 1>, StoreSide<2, 4>, StoreSide<3, 2>>());
  add("OrderedBarrier", "2 or 3 groups of one warp", {turns<2, 1>(), turns<3, 1>()});
  add("OrderedBarrier", "2 groups of 2 warps, 5 turns each", {turns<2, 2>()});
  add("OrderedBarrier",
      "2 groups of 4 warps, 5 turns each: the 4 may come in any order, 24^10 in all",
      {turns<2, 4>(kSomeOrders)}, false);
}

std::function<Exploration()> of_gemm_sm90(int configuration, GemmProblem const& p) {
  return [=] {
    Machine const machine = Machine::simulated(Arch::sm90);
    return explore(machine, [&] {
      return run(machine, p, {.configuration = configuration, .clusters = 1}).d;
    });
  };
}

void add_gemm_sm90(std::vector<Subject>& all) {
  Subject smallest{"gemm_sm90", "each form: a tile for each CTA, two steps of K", {}};
  Subject epilogue{"gemm_sm90", "each form: two tiles, round the ring, C and a bias", {}};
  Subject turns{"gemm_sm90", "ping-pong: four tiles", {}};
  for (int const i : one_of_each_form()) {
    GemmSm90Config const& c = table()[static_cast<std::size_t>(i)];
    GemmProblem p = smallest_problem(c);
    smallest.explorations.push_back(of_gemm_sm90(i, p));
    if (c.schedule == Schedule::pingpong) {
      p.n *= 4;
      turns.explorations.push_back(of_gemm_sm90(i, p));
    }
    p = smallest_problem(c);
    if (c.split_k == 1) p.m += 9;
    p.k = block_k(c) * c.split_k * (std::min(stages(c), 4) / 2 + 1);
    p.beta = 0.5f;
    p.bias = true;
    epilogue.explorations.push_back(of_gemm_sm90(i, p));
  }
  all.push_back(std::move(smallest));
  all.push_back(std::move(epilogue));
  all.push_back(std::move(turns));
}

template <KernelFamily F>
void add_attention(std::vector<Subject>& all, F family, Arch arch = Arch::sm90) {
  Subject attention{F::name, "each configuration: a block of queries, three of keys", {}};
  for (int i = 0; i < static_cast<int>(configurations(family).size()); ++i) {
    if constexpr (requires { configuration(family, i).serving; }) {
      if (configuration(family, i).serving) continue;  // it takes other problems
    }
    attention.explorations.emplace_back([family, i, arch] {
      Machine const machine = Machine::simulated(arch);
      AttentionProblem const p = smallest_problem(configuration(family, i));
      return explore(machine, [&] { return run_on(family, machine, p, i).o; });
    });
  }
  all.push_back(std::move(attention));
}

void add_gemm_sm80(std::vector<Subject>& all) {
  Subject gemm{"gemm_sm80", "each configuration: three blocks of K", {}};
  for (int i = 0; i < static_cast<int>(configurations(gemm_sm80).size()); ++i) {
    gemm.explorations.emplace_back([i] {
      Machine const machine = Machine::simulated(Arch::sm90);
      return explore(machine, [&] {
        return run(machine, smallest_problem(configuration(gemm_sm80, i), i)).d;
      });
    });
  }
  all.push_back(std::move(gemm));
}

/// By one cluster; and under launch control by two.
void add_gemm_sm100(std::vector<Subject>& all) {
  Subject dealt{"gemm_sm100", "each configuration: two tiles, two steps of K", {}};
  Subject launched{"gemm_sm100", "launch control: three tiles, two clusters at a time", {}};
  for (int i = 0; i < static_cast<int>(configurations(gemm_sm100).size()); ++i) {
    GemmSm100Config const& c = configuration(gemm_sm100, i);
    GemmProblem p = problem_for(c);
    p.m = 16, p.n = (c.launched ? 3 : 2) * cluster_of(c).n * c.block_n;
    p.k = (c.launched ? 1 : 2) * block_k(c);
    (c.launched ? launched : dealt).explorations.emplace_back([=] {
      Machine const machine = blackwell({.multiprocessors = 2});
      return explore(
          machine, [&] { return run_sm100(machine, p, i, c.launched ? 3 : 1).d; }, kSomeOrders);
    });
  }
  all.push_back(std::move(dealt));
  all.push_back(std::move(launched));
}

void add_grouped_gemm_sm100(std::vector<Subject>& all) {
  Subject rows{"grouped_gemm_sm100", "each configuration: two groups of rows", {}};
  Subject of_k{"grouped_gemm_sm100", "each configuration: two groups of k, one ends early", {}};
  for (int i = 0; i < static_cast<int>(configurations(grouped_gemm_sm100).size()); ++i) {
    GroupedGemmSm100Config const& c = configuration(grouped_gemm_sm100, i);
    for (Grouping const grouping : {Grouping::contiguous, Grouping::k}) {
      bool const by_k = grouping == Grouping::k;
      GroupedProblem const p{.in = c.a,
                             .in_b = c.b,
                             .out = c.out,
                             .scales = Scales::none,
                             .block_scale = c.scale,
                             .grouping = grouping,
                             .sizes = {by_k ? block_k(c) + 8 : 128, 16},
                             .m = 9,
                             .n = 16,
                             .k = 2 * block_k(c),
                             .constraints = {.configuration = i, .clusters = 1}};
      (by_k ? of_k : rows).explorations.emplace_back([p] {
        Machine const machine = blackwell();
        return explore(machine, [&] { return run(machine, p).d; });
      });
    }
  }
  all.push_back(std::move(rows));
  all.push_back(std::move(of_k));
}

/// What came of the explorations of a subject.
struct Tally {
  std::int64_t least_steps = std::numeric_limits<std::int64_t>::max(), most_steps = 0;
  std::int64_t least_orders = std::numeric_limits<std::int64_t>::max(), most_orders = 0;
  std::int64_t executions = 0;
  bool complete = true, ok = true;
  double seconds = 0;  ///< of the longest
};

Tally tally_of(Subject const& subject) {
  Tally tally;
  for (auto const& explore : subject.explorations) {
    auto const begin = std::chrono::steady_clock::now();
    Exploration const e = explore();
    tally.seconds =
        std::max(tally.seconds,
                 std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    tally.least_steps = std::min(tally.least_steps, e.steps);
    tally.most_steps = std::max(tally.most_steps, e.steps);
    tally.least_orders = std::min(tally.least_orders, e.orders);
    tally.most_orders = std::max(tally.most_orders, e.orders);
    tally.executions += e.executions;
    tally.complete &= e.complete;
    tally.ok &= e.ok();
    if (!e.ok()) std::printf("%s", e.text().c_str());
  }
  return tally;
}

std::string range(std::int64_t least, std::int64_t most) {
  return least == most ? std::to_string(least) : fmt::format("{} to {}", least, most);
}

int run_all(std::string const& only, std::string const& page) {
  std::vector<Subject> all;
  add_pipelines(all);
  add_attention(all, attention_sm80);
  add_attention(all, attention_sm90);
  add_attention(all, attention_sm100, Arch::sm100);
  add_gemm_sm80(all);
  add_gemm_sm90(all);
  add_gemm_sm100(all);
  add_grouped_gemm_sm100(all);
  std::string table =
      "| what | problem | explorations | steps | orders | covered |\n| -- | -- | -- | -- | -- | -- |\n";
  int faults = 0;
  for (Subject const& subject : all) {
    std::string const name = fmt::format("{}: {}", subject.name, subject.problem);
    if (name.find(only) == std::string::npos) continue;
    Tally const tally = tally_of(subject);
    bool const in_time = tally.seconds <= subject.most_seconds;
    bool const right = tally.ok && in_time && (tally.complete || !subject.every_order);
    faults += !right;
    std::printf(
        "%s %s: %zu explorations, %s steps, %s orders, %lld executions, %s, the longest %.1f s%s\n",
        right ? "      " : "FAILED", name.c_str(), subject.explorations.size(),
        range(tally.least_steps, tally.most_steps).c_str(),
        range(tally.least_orders, tally.most_orders).c_str(),
        static_cast<long long>(tally.executions), tally.complete ? "every order" : "some orders",
        tally.seconds, in_time ? "" : ": too long");
    std::fflush(stdout);
    table +=
        fmt::format("| `{}` | {} | {} | {} | {} | {} |\n", subject.name, subject.problem,
                    subject.explorations.size(), range(tally.least_steps, tally.most_steps),
                    tally.complete ? range(tally.least_orders, tally.most_orders) : "more",
                    tally.complete ? "every order" : fmt::format("{} orders", tally.most_orders));
  }
  if (!page.empty()) write_page_section(page, "explored", "explore_runs", table);
  return faults == 0 ? 0 : 1;
}

int main_of(int count, char** arguments) {
  tool::CommandLine const line(
      "Runs the pipelines and the kernels of the library, at small problems, in every order of the steps that "
      "do not commute. Exits 1 where something is found, or not every order of a subject is covered that is to "
      "be, or a pipeline takes more than a minute.");
  std::string only, page;
  line.add_option("--only", only,
                  "those subjects alone whose \"NAME: PROBLEM\" contains this text");
  line.add_option("--markdown", page, "writes the table into this page, between its markers");
  if (auto const status = line.read(count, arguments)) return *status;
  try {
    return run_all(only, page);
  } catch (std::exception const& e) {
    std::fprintf(stderr, "explore_runs: %s\n", e.what());
    return 2;
  }
}

}  // namespace
}  // namespace tegula

int main(int count, char** arguments) { return tegula::main_of(count, arguments); }
