// Every family of kernels, by what the device layer is told of it alone: what it checks, lowers,
// describes and takes for exact belongs together. (Each configuration: the
// tests of its family.)

#include "families.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "append_keys_problem.hpp"
#include "attention_problem.hpp"
#include "gemm_inputs_problem.hpp"
#include "gemm_problem.hpp"
#include "grouped_gemm_problem.hpp"
#include "tegula/device/global_tensors.hpp"

namespace tegula {
namespace {

/// Problems of an operation, of which each of its families computes one.
template <class Arguments> auto examples();
template <> auto examples<GemmArguments>() {
  std::vector<GemmProblem> all;
  for (DType const type : {DType::bf16, DType::f16, DType::tf32, DType::e4m3})
    all.push_back({.in = type,
                   .m = 70,
                   .n = 80,
                   .k = 72,
                   .batch = 2,
                   .aligned = true,
                   .beta = 0.5f,
                   .bias = true});
  all.push_back({.in = DType::e4m3,
                 .m = 70,
                 .n = 80,
                 .k = 72,
                 .aligned = true,
                 .beta = 0.5f,
                 .block_scale = kMxScale});
  return all;
}
template <> auto examples<AttentionArguments>() {
  std::vector<AttentionProblem> all;
  for (DType const type : {DType::bf16, DType::f16})
    for (bool const causal : {false, true})
      all.push_back({.dtype = type, .heads = 2, .seq_q = 70, .seq_k = 90, .causal = causal});
  return all;
}

template <> auto examples<GroupedGemmArguments>() {
  std::vector<GroupedProblem> all;
  for (DType const type : {DType::e4m3, DType::bf16})
    all.push_back({.in = type, .m = 70, .n = 80, .k = 144, .c = true});
  return all;
}

template <> auto examples<GemmInputsArguments>() {
  return std::vector<QuantizeProblem>{{.rows = 70, .columns = 200}};
}

template <> auto examples<AppendKeysArguments>() { return std::vector<AppendKeysProblem>(1); }

template <class F>
auto choose(F family, GemmArguments const& g, int number, Machine const& machine) {
  return choose_gemm(g, machine.properties(), {.kernel = family, .configuration = number});
}
template <class F> auto choose(F family, AttentionArguments const&, int number, Machine const&) {
  return AttentionChoice{family, number};
}
template <class F>
auto choose(F, GroupedGemmArguments const& g, int number, Machine const& machine) {
  return choose_grouped_gemm(g, machine.properties(), {.configuration = number});
}
template <class F> auto choose(F, GemmInputsArguments const&, int number, Machine const&) {
  return GemmInputsChoice{.configuration = number};
}
template <class F> auto choose(F, AppendKeysArguments const&, int number, Machine const&) {
  return AppendKeysChoice{.configuration = number};
}

/// Whether a machine of this architecture takes the arguments: block scales are for sm_100 only.
template <class Arguments> bool takes(Machine const& machine, Arguments const& arguments) {
  if constexpr (requires { check(arguments, 90); }) {
    try {
      check(arguments, machine.compute_capability());
    } catch (argument_error const&) {
      return false;
    }
  }
  return true;
}

/// Whether the family's configuration of that number computes the problem; its result is right.
template <class F, class Problem>
bool computes(F family, int number, Problem const& problem, Machine const& machine) {
  using Traits = device::FamilyTraits<F>;
  bool computed = false;
  auto const result = run_by(machine, problem, [&](typename Traits::Arguments const& arguments) {
    auto const& config = configuration(family, number);
    if (!takes(machine, arguments) || !Traits::obstacle(arguments, machine.properties()).empty() ||
        Traits::check(arguments, config, machine.properties()) != nullptr)
      return;
    auto const params =
        Traits::lower(machine, arguments, choose(family, arguments, number, machine));
    EXPECT_FALSE(global_tensors(config, params).empty());
    launch_kernel(machine, family, number, params);
    computed = true;
  });
  if (computed) expect_near(problem, result, Traits::reference(result.host, rows_of(problem)));
  return computed;
}

TEST(Families, EachComputesAProblemOfItsOperation) {
  Families::for_each([](auto family) {
    using Traits = device::FamilyTraits<decltype(family)>;
    bool computed = false;
    for (Arch const arch : {Arch::sm90, Arch::sm100})
      for (auto const& problem : examples<typename Traits::Arguments>())
        for (int i = 0; i < static_cast<int>(configurations(family).size()) && !computed; ++i)
          computed = computes(family, i, problem, Machine::simulated(arch));
    EXPECT_TRUE(computed) << family.name;
  });
}

TEST(Families, KnowsWhatEachKernelNeeds) {
  for (int i = 0; i < static_cast<int>(configurations(attention_sm80).size()); ++i) {
    AttentionConfig const& c = configuration(attention_sm80, i);
    auto const r = resources(attention_sm80, i);
    EXPECT_EQ(r.threads, 32 * c.warps);
    EXPECT_EQ(r.shared_bytes, static_cast<std::size_t>(shared_bytes(c)));
    EXPECT_LE(r.shared_bytes, 227u * 1024) << to_string(c);
  }
  for (int i = 0; i < static_cast<int>(configurations(gemm_sm80).size()); ++i) {
    auto const& c = configuration(gemm_sm80, i);
    auto const r = resources(gemm_sm80, i);
    EXPECT_EQ(r.threads, 32 * c.warps_m * c.warps_n);
    EXPECT_EQ(r.shared_bytes, static_cast<std::size_t>(shared_bytes(c)));
    EXPECT_LE(r.shared_bytes, 227u * 1024) << to_string(c);
  }
  for (int i = 0; i < static_cast<int>(configurations(gemm_sm90).size()); ++i) {
    auto const& c = configuration(gemm_sm90, i);
    auto const r = resources(gemm_sm90, i);
    EXPECT_EQ(r.threads, 128 * (1 + consumers(c)));
    EXPECT_GE(r.shared_bytes, static_cast<std::size_t>(stages(c) * stage_bytes(c)));
    EXPECT_LE(r.shared_bytes * static_cast<unsigned>(c.min_ctas_per_sm), 227u * 1024)
        << to_string(c);
  }
}

TEST(AttentionSm80, WeighsTilesByRoundsOfCtas) {
  using Traits = device::FamilyTraits<AttentionSm80Family>;
  constexpr DeviceProperties device = properties_of(sim::Generation::sm90);
  AttentionArguments const decode = {.seq_q = 1, .seq_k = 1000, .head_dim = 64};
  AttentionArguments const prefill = {.batch = 4, .heads = 16, .seq_q = 4096, .head_dim = 64};
  AttentionConfig const small = {.block_m = 64}, large = {.block_m = 128};
  EXPECT_LT(Traits::cost(decode, small, device), Traits::cost(decode, large, device));
  EXPECT_LT(Traits::cost(prefill, large, device), Traits::cost(prefill, small, device));
}

}  // namespace
}  // namespace tegula
