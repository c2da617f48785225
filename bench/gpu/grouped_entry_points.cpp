// Grouped and block-scaled GEMMs for a process that holds device memory of its own, as
// entry_points.cpp.

#include <cstdio>
#include <exception>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>

#include "tegula/device/grouped_gemm.hpp"

namespace {

using namespace tegula;

Machine const& gpu() {
  static Machine const machine = Machine::cuda();
  return machine;
}

/// The numbers of a problem, as Python's ctypes passes them: in 0 for bf16, 1 for e4m3; scales and
/// grouping as their enumerators are numbered.
struct Numbers {
  int in, scales, grouping, out_f32, groups, m, n, k, expected_rows;
};

GroupedGemmArguments problem(Numbers const& p) {
  return {.in = p.in == 0 ? DType::bf16 : DType::e4m3,
          .out = p.out_f32 != 0 ? DType::f32 : DType::bf16,
          .scales = static_cast<Scales>(p.scales),
          .grouping = static_cast<Grouping>(p.grouping),
          .groups = p.groups,
          .m = p.m,
          .n = p.n,
          .k = p.k,
          .expected_rows = p.expected_rows};
}

/// The default choice, or the one of a configuration, made once: launches are timed, not choices.
GroupedGemmChoice const& choice(GroupedGemmArguments const& g, int configuration) {
  static std::map<std::pair<std::string, int>, GroupedGemmChoice> choices;
  std::pair const key(to_string(g), configuration);
  auto const known = choices.find(key);
  if (known != choices.end()) return known->second;
  GroupedGemmConstraints wanted;
  if (configuration >= 0) wanted.configuration = configuration;
  return choices.emplace(key, choose_grouped_gemm(g, gpu().properties(), wanted)).first->second;
}

}  // namespace

extern "C" {

/// By the configuration of that number, or where it is negative by the one that is chosen. Pointers
/// that a problem does not have are null.
int tegula_bench_grouped_gemm(int configuration, Numbers const* numbers, void const* a,
                              void const* b, void const* c, void* d, float const* scale_a,
                              float const* scale_b, int const* ends, void* stream) {
  try {
    GroupedGemmArguments g = problem(*numbers);
    g.a = a, g.b = b, g.c = c, g.d = d, g.scale_a = scale_a, g.scale_b = scale_b,
    g.group_ends = ends;
    grouped_gemm(gpu(), g, choice(g, configuration), {stream});
    return 0;
  } catch (std::exception const& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}

/// The name of that configuration, or of the chosen one; 1 where it does not compute the problem.
int tegula_bench_grouped_gemm_name(int configuration, Numbers const* numbers, char* text,
                                   int size) {
  try {
    std::string const name = configuration_name(
        grouped_gemm_sm90, choice(problem(*numbers), configuration).configuration);
    if (static_cast<int>(name.size()) >= size) throw std::length_error("the name is too long");
    name.copy(text, name.size());
    text[name.size()] = '\0';
    return 0;
  } catch (argument_error const&) {
    return 1;
  }
}

int tegula_bench_grouped_gemm_configurations() {
  return static_cast<int>(configurations(grouped_gemm_sm90).size());
}
}
