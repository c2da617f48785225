#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tegula/sim/machine.hpp"

/// Every kernel of the repository that is correct, each at the smallest problem that exercises all
/// of its lines, to be run under the checker.
namespace tegula {

/// What came of a run.
struct Outcome {
  /// what the kernel wrote; empty where the launch threw CheckError
  std::vector<std::uint8_t> output;
  sim::Report report;  ///< of the last launch, or of the one that threw
};

struct CorrectKernel {
  std::string_view family;  ///< "attention_sm80", "attention_sm90", "attention_sm100", "gemm_sm80",
                            ///< "gemm_sm90", "gemm_sm90_forms", "gemm_sm100", "pipelines", ...
  std::string name;         ///< within the family
  /// Runs it on a machine of its own. CheckError is caught; any other exception is passed on.
  std::function<Outcome(sim::Options const&)> run;
  bool polls = false;  ///< a schedule decides how often it polls by atomics
};

/// All of them, family by family.
std::vector<CorrectKernel> correct_kernels();

namespace detail {

void add_attention(std::vector<CorrectKernel>& all);
void add_attention_sm90(std::vector<CorrectKernel>& all);
void add_attention_sm100(std::vector<CorrectKernel>& all);
void add_gemms(std::vector<CorrectKernel>& all);
void add_gallery(std::vector<CorrectKernel>& all);
void add_pipelines(std::vector<CorrectKernel>& all);
void add_instructions(std::vector<CorrectKernel>& all);

/// The outcome of `launch(outcome)`, which fills it in.
template <class Launch> Outcome outcome_of(Launch launch) {
  Outcome outcome;
  try {
    launch(outcome);
  } catch (sim::CheckError const& e) {
    outcome.report = e.report();
  }
  return outcome;
}

/// The bytes of a vector.
template <class T> std::vector<std::uint8_t> bytes_of(std::vector<T> const& values) {
  auto const* const first = reinterpret_cast<std::uint8_t const*>(values.data());
  return {first, first + sizeof(T) * values.size()};
}

}  // namespace detail
}  // namespace tegula
