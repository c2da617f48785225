#include "correct_kernels.hpp"
#include "gemm_sm100_problem.hpp"
#include "gemm_sm90_forms.hpp"
#include "gemm_sm90_problem.hpp"
#include "grouped_gemm_problem.hpp"

namespace tegula::detail {
namespace {

void add_gemm_sm80(std::vector<CorrectKernel>& all) {
  for (std::size_t i = 0; i < configurations(gemm_sm80).size(); ++i) {
    GemmConfig const& c = configurations(gemm_sm80)[i];
    int const ragged = c.vector_bytes == 16 ? 8 : 3;
    GemmProblem const p{.in = c.in,
                        .out = c.out,
                        .a_major = c.a_major,
                        .b_major = c.b_major,
                        .m = i % 2 == 0 ? c.block_m + ragged : c.block_m / 2 + ragged,
                        .n = c.block_n / 2 + ragged,
                        .k = c.block_k * c.stages + ragged,
                        .padding = ragged,
                        .beta = i % 3 == 0 ? 0.5f : 0,
                        .bias = i % 2 == 1,
                        .constraints = {.kernel = gemm_sm80, .configuration = static_cast<int>(i)}};
    all.push_back({"gemm_sm80", to_string(c), [p](sim::Options const& options) {
                     return outcome_of([&](Outcome& outcome) {
                       Machine const machine = Machine::simulated(Arch::sm90, options);
                       outcome.output = run(machine, p).d;
                       outcome.report = *machine.last_report();
                     });
                   }});
  }
}

void add_gemm_sm90(std::vector<CorrectKernel>& all) {
  auto const add = [&](std::string name, GemmProblem const& p, Launch const& launch) {
    all.push_back({"gemm_sm90", std::move(name),
                   [p, launch](sim::Options const& options) {
                     return outcome_of([&](Outcome& outcome) {
                       Machine const machine = Machine::simulated(Arch::sm90, options);
                       outcome.output = run(machine, p, launch).d;
                       outcome.report = *machine.last_report();
                     });
                   },
                   table()[static_cast<std::size_t>(launch.configuration)].in_parts});
  };
  for (std::size_t i = 0; i < table().size(); ++i) {
    GemmSm90Config const& c = table()[i];
    // One cluster walks two tiles, the second with few rows, and goes just over once round the ring
    // of stages.
    GemmProblem p = problem_for(c);
    // Of parts of K each of three clusters has one.
    bool const shared = c.split_k > 1 || c.in_parts;
    p.m = shared ? c.block_m / 2 + 1 : c.block_m * c.cluster_m + 9;
    p.n = c.block_n * c.cluster_n / 2 + 3;
    p.k = block_k(c) * (std::min(stages(c), 4) / 2 + 1) + 8;
    p.beta = i % 3 == 0 ? 0.5f : 0;
    p.bias = i % 2 == 1;
    add(to_string(c), p, {.configuration = static_cast<int>(i), .clusters = c.in_parts ? 3 : 1});
  }
  // Tiles of two widths: one cluster walks a wide one and two narrow ones. (Other types:
  // the forms.)
  for (int const i :
       configurations_that([](auto const& c) { return plain_bf16(c) && of_two_widths(c); })) {
    GemmSm90Config const& c = table()[static_cast<std::size_t>(i)];
    GemmProblem p = fitted_problem(c, /*even=*/false);
    p.batch = 1, p.beta = 0.5f;
    add(fmt::format("{}, {} or {} columns", to_string(c), c.block_n, c.narrow_n), p,
        {.configuration = i, .clusters = 1, .fitted = true});
  }
}

/// Of gemm_sm100 or scaled_gemm_sm100.
template <KernelFamily F> void add_gemm_sm100(F family, std::vector<CorrectKernel>& all) {
  for (std::size_t i = 0; i < configurations(family).size(); ++i) {
    auto const& c = configurations(family)[i];
    // One cluster walks two tiles, the second with few rows, and goes once round the ring.
    GemmProblem p = problem_for(c);
    p.m = cluster_of(c).m * c.block_m + 9;
    p.n = (cluster_of(c).n - 1) * c.block_n + c.block_n / 2 + 3;
    // What TMA unpacks it takes by 128 elements.
    bool const unpacks = !are_pairs(c.a, c.b) && (bits(c.a) < 8 || bits(c.b) < 8);
    p.k = block_k(c) * std::min(stages(c), 4) + (unpacks ? 128 : 8);
    p.beta = i % 3 == 0 ? 0.5f : 0;
    p.bias = i % 2 == 1;
    all.push_back({family.name, to_string(c), [family, p, i](sim::Options const& options) {
                     return outcome_of([&](Outcome& outcome) {
                       Machine const machine = Machine::simulated(Arch::sm100, options);
                       outcome.output = run_sm100(family, machine, p, static_cast<int>(i), 1).d;
                       outcome.report = *machine.last_report();
                     });
                   }});
  }
}

/// Each configuration on one problem of groups: two row tiles of one, an empty one, a few rows; or
/// of K with an end within a block.
void add_grouped_gemm_sm90(std::vector<CorrectKernel>& all) {
  for (int i = 0; i < static_cast<int>(configurations(grouped_gemm_sm90).size()); ++i) {
    GroupedGemmSm90Config const& c = configuration(grouped_gemm_sm90, i);
    bool const by_k = c.cluster_n == 1 && c.scales != Scales::rows_by_blocks && c.out == DType::f32;
    GroupedProblem p{.in = c.a,
                     .in_b = c.b,
                     .out = c.out,
                     .scales = c.scales,
                     .grouping = by_k         ? Grouping::k
                                 : i % 2 == 0 ? Grouping::contiguous
                                              : Grouping::masked,
                     .m = c.block_m + 5,
                     .n = c.block_n * c.cluster_n / 2 + 8,
                     .k = (c.split_k + 1) * block_k(c) + 16,
                     .c = i % 3 == 0,
                     .constraints = {.configuration = i, .clusters = 2}};
    p.sizes = by_k ? std::vector{block_k(c) + 3, 0, 5} : std::vector{c.block_m + 2, 0, 5};
    all.push_back({"grouped_gemm_sm90", to_string(c), [p](sim::Options const& options) {
                     return outcome_of([&](Outcome& outcome) {
                       Machine const machine = Machine::simulated(Arch::sm90, options);
                       outcome.output = run(machine, p).d;
                       outcome.report = *machine.last_report();
                     });
                   }});
  }
}

/// Likewise: the tile's second row, or its end within a step of K, goes round the ring. Of f32 they
/// are groups of k.
void add_grouped_gemm_sm100(std::vector<CorrectKernel>& all) {
  for (int i = 0; i < static_cast<int>(configurations(grouped_gemm_sm100).size()); ++i) {
    GroupedGemmSm100Config const& c = configuration(grouped_gemm_sm100, i);
    bool const by_k = c.out == DType::f32;
    int const rows = c.ctas * c.block_m, around = std::min(stages(c), 4), pair = packed(c.a);
    GroupedProblem p{.in = c.a,
                     .in_b = c.b,
                     .out = c.out,
                     .scales = Scales::none,
                     .block_scale = c.scale,
                     .grouping = by_k         ? Grouping::k
                                 : i % 2 == 0 ? Grouping::contiguous
                                              : Grouping::masked,
                     .m = rows + 5,
                     .n = c.block_n / 2 + 8,
                     .k = around * block_k(c) + 16,
                     .c = i % 3 == 0,
                     .constraints = {.configuration = i, .clusters = 1}};
    p.sizes = by_k ? std::vector{around * block_k(c) + 3 * pair, 0, 5 * pair}
                   : std::vector{rows + 2, 0, 5};
    if (c.scale.block != 0 && !by_k) p.padded_to = 128;
    all.push_back({"grouped_gemm_sm100", to_string(c), [p](sim::Options const& options) {
                     return outcome_of([&](Outcome& outcome) {
                       Machine const machine = Machine::simulated(Arch::sm100, options);
                       outcome.output = run(machine, p).d;
                       outcome.report = *machine.last_report();
                     });
                   }});
  }
}

void add_forms(std::vector<CorrectKernel>& all) {
  for (std::size_t i = 0; i < gemm_sm90_forms().size(); ++i) {
    GemmSm90Config const& c = gemm_sm90_forms()[i];
    int const form = static_cast<int>(i);
    GemmProblem p = problem_of_form(form);
    int const tiles = c.split_k > 1 ? 1 : 2;  // clusters that split K compute one each
    p.m = tiles * c.block_m * c.cluster_m - 3, p.n = c.block_n * c.cluster_n - 5;
    // round the ring, of the cheaper types
    p.k = block_k(c) * (bits(c.a) == 16 ? std::min(stages(c), 4) + 1 : 3);
    int clusters = 1;
    if (c.narrow_n > 0) {  // each of two clusters computes a wide tile and two narrow ones
      p.n = tile_widths(c).wide + 2 * tile_widths(c).narrow - 5, p.k = 3 * block_k(c);
      clusters = 2;
    }
    if (c.in_parts) p.m = c.block_m * c.cluster_m - 3, clusters = 2;  // each has a part
    p.beta = i % 2 == 0 ? 0.5f : 0;
    p.bias = i % 2 == 1;
    p = callers_problem(form, p);
    all.push_back({"gemm_sm90_forms", gemm_sm90_form_name(form),
                   [p, form, clusters](sim::Options const& options) {
                     return outcome_of([&](Outcome& outcome) {
                       FormResult result =
                           run_form(Machine::simulated(Arch::sm90, options), form, p, clusters);
                       outcome.output = std::move(result.d);
                       outcome.report = std::move(result.report);
                     });
                   },
                   c.in_parts});
  }
}

}  // namespace

void add_gemms(std::vector<CorrectKernel>& all) {
  add_gemm_sm80(all);
  add_gemm_sm90(all);
  add_grouped_gemm_sm90(all);
  add_gemm_sm100(gemm_sm100, all);
  add_gemm_sm100(scaled_gemm_sm100, all);
  add_grouped_gemm_sm100(all);
  add_forms(all);
}

}  // namespace tegula::detail
