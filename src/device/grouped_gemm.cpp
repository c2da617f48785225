// Grouped and block-scaled GEMMs: their arguments' checks and defaults, the choice of a
// configuration, the launch.

#include "tegula/device/grouped_gemm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "argument_checker.hpp"
#include "backend.hpp"
#include "families.hpp"
#include "fill_in.hpp"
#include "least_time.hpp"
#include "problem.hpp"
#include "refused.hpp"
#include "tegula/device/launch.hpp"
#include "tegula/device/selection.hpp"
#include "tegula/io/text.hpp"

namespace tegula {

using namespace device;

namespace {

/// visit(family) for each that computes grouped GEMMs.
template <class Visit> void for_each_grouped_family(Visit&& visit) {
  Families::for_each([&]<class F>(F family) {
    if constexpr (Computes<F, GroupedGemmArguments>) visit(family);
  });
}
/// The same for the one of a choice. Throws argument_error where it computes something else.
template <class Visit> void visit_grouped_family(FamilyId kernel, Visit&& visit) {
  kernel.visit([&]<class F>(F family) {
    if constexpr (Computes<F, GroupedGemmArguments>) {
      visit(family);
    } else {
      refuse_argument("grouped_gemm: the choice is of {}, which computes something else.", F::name);
    }
  });
}

class GroupedGemmChecker : Checker {
 public:
  explicit GroupedGemmChecker(GroupedGemmArguments const& arguments)
      : Checker("grouped_gemm"), g_(with_defaults(arguments)) {}

  void run(int compute_capability) const {
    if (compute_capability != 90 && compute_capability != 100)
      refuse_argument(
          "grouped_gemm: the machine is sm_{}; it is computed on sm_90 and sm_100 only.",
          compute_capability);
    types(compute_capability);
    grouping();
    extent("m", g_.m);
    extent("n", g_.n);
    extent("k", g_.k);
    extent("groups", g_.groups);
    if (rows_of_a(g_) > kMaxExtent)
      refuse_argument(
          "grouped_gemm: groups * m is {}, beyond the 32-bit arithmetic of a tile; it must be at most "
          "{}.",
          rows_of_a(g_), kMaxExtent);
    grid("(m / 64 + groups) * n / 32", {(rows_of_a(g_) + 63) / 64 + g_.groups, (g_.n + 31) / 32,
                                        g_.grouping == Grouping::k ? g_.groups : 1});
    pointers();
    operand("a", *g_.lda, rows_of_a(g_), g_.in);
    operand("b", *g_.ldb, g_.n, *g_.in_b);
    if (has_many_b(g_.grouping) && g_.groups > 1)
      whole("b_group_stride", *g_.b_group_stride, bits(*g_.in_b));
    if (scaled()) scale_rows("scale_a_stride", *g_.scale_a_stride, rows_of_a(g_));
    if (g_.scales == Scales::rows_by_rows) scale_rows("scale_b_stride", *g_.scale_b_stride, g_.n);
    output("d", *g_.ldd, *g_.d_group_stride);
    if (g_.c != nullptr) output("c", *g_.ldc, *g_.c_group_stride);
    outputs_apart();
  }

 private:
  bool scaled() const { return g_.scales != Scales::none; }

  bool block_scaled() const { return g_.block_scale.block != 0; }

  void block_scales(int compute_capability) const {
    BlockScale const& scale = g_.block_scale;
    bool const pairs = are_pairs(g_.in, *g_.in_b);
    if (compute_capability != 100)
      refuse_argument(
          "grouped_gemm: block_scale has a block of {} and the machine is sm_{}; block scales are computed on "
          "sm_100 only.",
          scale.block, compute_capability);
    if (scale != kMxScale && scale != kNvScale)
      refuse_argument(
          "grouped_gemm: block_scale has a block of {} and type {}; it must be kMxScale or kNvScale.",
          scale.block, static_cast<int>(scale.type));
    auto const fp8 = [](DType type) { return type == DType::e4m3 || type == DType::e5m2; };
    if (!pairs && (scale == kNvScale || !fp8(g_.in) || !fp8(*g_.in_b)))
      refuse_argument(
          "grouped_gemm: in is {}, in_b is {} and block_scale is {} for each {}; {}.",
          name_of(g_.in), name_of(*g_.in_b), to_string(scale.type), scale.block,
          scale == kNvScale ? "both must be e2m1" : "each must be e4m3 or e5m2, or both e2m1");
    if (scaled())
      refuse_argument("grouped_gemm: scales is {} and there is block_scale; it must be none.",
                      text(*g_.scales));
    if (pairs && g_.k % 2 != 0)
      refuse_argument(
          "grouped_gemm: k is {} and in is e2m1, of which two share a byte; k must be even.", g_.k);
    type("out", *g_.out, {DType::bf16, DType::f16, DType::f32});
  }

  void types(int compute_capability) const {
    if (block_scaled()) return block_scales(compute_capability);
    type("in", g_.in, {DType::e4m3, DType::e5m2, DType::bf16, DType::f16});
    type("in_b", *g_.in_b, {DType::e4m3, DType::e5m2, DType::bf16, DType::f16});
    type("out", *g_.out, {DType::bf16, DType::f16, DType::f32});
    bool const fp8 = bits(g_.in) == 8, fp8_b = bits(*g_.in_b) == 8;
    if (fp8 != fp8_b || (!fp8 && g_.in != *g_.in_b))
      refuse_argument(
          "grouped_gemm: in is {} and in_b is {}; both must be the same type, or each e4m3 or e5m2.",
          to_string(g_.in), to_string(*g_.in_b));
    if (static_cast<int>(*g_.scales) > static_cast<int>(Scales::rows_by_rows))
      refuse_argument(
          "grouped_gemm: scales is {}; it must be Scales::none, rows_by_blocks or rows_by_rows.",
          static_cast<int>(*g_.scales));
    if (compute_capability == 100) {
      if (scaled())
        refuse_argument(
            "grouped_gemm: scales is {} and the machine is sm_100; it must be none, for scales of "
            "128 are multiplied by sm_90's kernel only.",
            text(*g_.scales));
      return;
    }
    if (fp8 != scaled())
      refuse_argument("grouped_gemm: in is {} and scales is {}; {}.", to_string(g_.in),
                      text(*g_.scales),
                      fp8 ? "fp8 is computed with scales of 1x128,128x128 or 1x128,1x128"
                          : "only fp8 has scales");
  }

  void grouping() const {
    if (static_cast<int>(g_.grouping) > static_cast<int>(Grouping::k))
      refuse_argument(
          "grouped_gemm: grouping is {}; it must be Grouping::none, contiguous, masked or k.",
          static_cast<int>(g_.grouping));
    bool const none = g_.grouping == Grouping::none;
    if (none && g_.groups != 1)
      refuse_argument("grouped_gemm: groups is {} and grouping is none; it must be 1.", g_.groups);
    if (none != (g_.group_ends == nullptr))
      refuse_argument("grouped_gemm: group_ends is {} pointer and grouping is {}; it must be {}.",
                      none ? "no null" : "a null", text(g_.grouping),
                      none ? "null" : "a device pointer to an entry for each group");
    if (g_.group_begins != nullptr && (none || g_.grouping == Grouping::masked))
      refuse_argument(
          "grouped_gemm: group_begins is no null pointer and grouping is {}; it must be null, for a "
          "group's begin follows from its number.",
          text(g_.grouping));
    if (g_.grouping == Grouping::k && g_.scales == Scales::rows_by_blocks)
      refuse_argument(
          "grouped_gemm: grouping is k and scales is 1x128,128x128; groups of k have scales of "
          "1x128,1x128.");
  }

  void pointers() const {
    pointer("a", g_.a, 16);
    pointer("b", g_.b, 16);
    for (auto const& [name, scales] :
         {std::pair<char const*, void const*>("block_scale_a", g_.block_scale_a),
          {"block_scale_b", g_.block_scale_b}}) {
      if (block_scaled())
        pointer(name, scales, 16);
      else if (scales != nullptr)
        refuse_argument(
            "grouped_gemm: {} is no null pointer and block_scale has a block of 0; it must be null.",
            name);
    }
    int const out_bytes = bytes_of(*g_.out);
    pointer("d", g_.d, out_bytes);
    optional_pointer("c", g_.c, out_bytes);
    optional_pointer("group_begins", g_.group_begins, alignof(int));
    optional_pointer("group_ends", g_.group_ends, alignof(int));
    if (scaled()) {
      pointer("scale_a", g_.scale_a, 16);
      pointer("scale_b", g_.scale_b, g_.scales == Scales::rows_by_rows ? 16 : alignof(float));
    } else if (g_.scale_a != nullptr || g_.scale_b != nullptr) {
      refuse_argument("grouped_gemm: {} is no null pointer and scales is none; it must be null.",
                      g_.scale_a != nullptr ? "scale_a" : "scale_b");
    }
    for (auto const& [name, input] : {std::pair<char const*, void const*>("a", g_.a),
                                      {"b", g_.b},
                                      {"scale_a", g_.scale_a},
                                      {"scale_b", g_.scale_b},
                                      {"block_scale_a", g_.block_scale_a},
                                      {"block_scale_b", g_.block_scale_b},
                                      {"group_begins", g_.group_begins},
                                      {"group_ends", g_.group_ends}})
      if (input != nullptr) different("d", g_.d, name, input);
  }

  /// A distance that TMA takes.
  void whole(std::string_view name, std::int64_t stride, int bits) const {
    if (stride < 0 || stride >= (std::int64_t{1} << 43) / bits || stride * bits % 128 != 0)
      refuse_argument(
          "grouped_gemm: {} is {} of {}; it must be a multiple of 16 bytes, from 0 to below 2^40 "
          "bytes.",
          name, io::counted(stride, "element"),
          bits % 8 == 0 ? io::counted(bits / 8, "byte") : io::counted(bits, "bit"));
  }

  void operand(std::string_view name, std::int64_t ld, std::int64_t rows, DType type) const {
    if (ld < g_.k)
      refuse_argument(
          "grouped_gemm: ld{} is {}; it must be at least k = {}, or the rows of {} would overlap.",
          name, ld, g_.k, name);
    if (rows > 1) whole(fmt::format("ld{}", name), ld, bits(type));
    int const pack = packed(type);
    span(name, {{rows, ld / pack}}, device::ceil_div(g_.k, pack), bits(type) * pack / 8);
  }

  void scale_rows(std::string_view name, std::int64_t stride, std::int64_t rows) const {
    if (stride < rows || stride % 4 != 0)
      refuse_argument(
          "grouped_gemm: {} is {}; it must be a multiple of 4, at least {}, the rows that have "
          "scales.",
          name, stride, rows);
    whole(name, stride, 32);
  }

  void output(std::string_view name, std::int64_t ld, std::int64_t group_stride) const {
    if (ld < g_.n)
      refuse_argument(
          "grouped_gemm: ld{} is {}; it must be at least n = {}, or the rows of {} would overlap.",
          name, ld, g_.n, name);
    if (group_stride < 0)
      refuse_argument(
          "grouped_gemm: {}_group_stride is {}, which is negative; it must be at least 0.", name,
          group_stride);
    bool const by_k = g_.grouping == Grouping::k;
    span(name, {{by_k ? g_.m : rows_of_a(g_), ld}, {by_k ? g_.groups : 1, group_stride}}, g_.n,
         bytes_of(*g_.out));
  }

  void outputs_apart() const {
    bool const by_k = g_.grouping == Grouping::k;
    std::int64_t const rows = by_k ? g_.m : rows_of_a(g_), groups = by_k ? g_.groups : 1;
    rows_apart<2>("grouped_gemm", "d", g_.n,
                  {{{"ldd", rows, *g_.ldd}, {"d_group_stride", groups, *g_.d_group_stride}}});
    if (g_.c == g_.d && (*g_.ldc != *g_.ldd || (by_k && *g_.c_group_stride != *g_.d_group_stride)))
      refuse_argument(
          "grouped_gemm: c and d are the same pointer, and ldc is {} but ldd is {}, c_group_stride {} "
          "but d_group_stride {}; in place, they must be equal.",
          *g_.ldc, *g_.ldd, *g_.c_group_stride, *g_.d_group_stride);
    int const out_bytes = bytes_of(*g_.out);
    auto const of_d = [&](std::string_view name, void const* address, std::int64_t ld,
                          std::int64_t group_stride) {
      return region(name, address, {{rows, ld}, {groups, group_stride}}, g_.n, out_bytes);
    };
    Region const d = of_d("d", g_.d, *g_.ldd, *g_.d_group_stride);
    std::int64_t const groups_b = has_many_b(g_.grouping) ? g_.groups : 1;
    int const pack = packed(g_.in);  // of both alike
    auto const operand = [&](std::string_view name, void const* address, DType type,
                             std::int64_t rows, std::int64_t ld, std::int64_t groups,
                             std::int64_t group_stride) {
      return region(name, address, {{rows, ld / pack}, {groups, group_stride / pack}},
                    device::ceil_div(g_.k, pack), bits(type) * pack / 8);
    };
    apart("grouped_gemm", d, operand("a", g_.a, g_.in, rows_of_a(g_), *g_.lda, 1, 0));
    apart("grouped_gemm", d,
          operand("b", g_.b, *g_.in_b, g_.n, *g_.ldb, groups_b, *g_.b_group_stride));
    if (block_scaled()) {
      int const block = g_.block_scale.block;
      apart("grouped_gemm", d,
            region("block_scale_a", g_.block_scale_a, {},
                   block_scale_bytes(g_.m, g_.k, block) *
                       (g_.grouping == Grouping::masked ? g_.groups : 1),
                   1));
      apart("grouped_gemm", d,
            region("block_scale_b", g_.block_scale_b, {},
                   block_scale_bytes(g_.n, g_.k, block) * groups_b, 1));
    }
    if (g_.c != g_.d) apart("grouped_gemm", d, of_d("c", g_.c, *g_.ldc, *g_.c_group_stride));
    apart("grouped_gemm", d, region("group_ends", g_.group_ends, {}, g_.groups, sizeof(int)));
    apart("grouped_gemm", d, region("group_begins", g_.group_begins, {}, g_.groups, sizeof(int)));
    if (g_.scales == Scales::none) return;
    std::int64_t const blocks = scale_blocks(g_);
    bool const of_rows = g_.scales == Scales::rows_by_rows;
    span("scale_a", {{blocks, *g_.scale_a_stride}}, rows_of_a(g_), sizeof(float));
    if (of_rows) span("scale_b", {{groups_b * blocks, *g_.scale_b_stride}}, g_.n, sizeof(float));
    apart("grouped_gemm", d,
          region("scale_a", g_.scale_a, {{blocks, *g_.scale_a_stride}}, rows_of_a(g_),
                 sizeof(float)));
    apart("grouped_gemm", d,
          of_rows ? region("scale_b", g_.scale_b, {{groups_b * blocks, *g_.scale_b_stride}}, g_.n,
                           sizeof(float))
                  : region("scale_b", g_.scale_b, {},
                           groups_b * device::ceil_div(g_.n, kScaleBlock) * blocks, sizeof(float)));
  }

  GroupedGemmArguments const g_;  // with defaults
};

}  // namespace

GroupedGemmArguments with_defaults(GroupedGemmArguments const& arguments) {
  GroupedGemmArguments g = arguments;
  bool const fp8 = bits(g.in) == 8;
  fill_in(g.in_b, fp8 ? DType::e4m3 : g.in);
  fill_in(g.out, default_output(g.in));
  fill_in(g.scales, !fp8 || g.block_scale.block != 0 ? Scales::none
                    : g.grouping == Grouping::k      ? Scales::rows_by_rows
                                                     : Scales::rows_by_blocks);
  // Of D, C and A masked rows follow each other through all groups.
  std::int64_t const rows = rows_of_a(g), groups_b = has_many_b(g.grouping) ? g.groups : 1,
                     groups_d = g.grouping == Grouping::k ? g.groups : 1;
  std::int64_t const rows_d = g.grouping == Grouping::k ? g.m : rows;
  fill_in_stride(g.lda, rows, g.k);
  fill_in_stride(g.ldb, g.n, g.k);
  fill_in_stride(g.ldd, rows_d, g.n);
  fill_in_stride(g.ldc, rows_d, g.n);
  fill_in_stride(g.b_group_stride, groups_b, contiguous_batch(g.n, *g.ldb));
  fill_in_stride(g.d_group_stride, groups_d, contiguous_batch(g.m, *g.ldd));
  fill_in_stride(g.c_group_stride, groups_d, contiguous_batch(g.m, *g.ldc));
  // Of scales a row has all rows' of a block of k.
  bool const one_block =
      g.grouping == Grouping::k ? g.groups == 1 && g.k < kScaleBlock : g.k <= kScaleBlock;
  fill_in_stride(g.scale_a_stride, one_block ? 1 : 2, scale_stride(rows));
  fill_in_stride(g.scale_b_stride, one_block && groups_b == 1 ? 1 : 2, scale_stride(g.n));
  fill_in(g.expected_rows, g.grouping == Grouping::contiguous && g.groups > 0
                               ? device::ceil_div(g.m, g.groups)
                               : g.m);
  return g;
}

std::int64_t rows_of_a(GroupedGemmArguments const& g) {
  if (g.grouping != Grouping::masked) return g.m;
  std::int64_t rows = 0;
  return __builtin_mul_overflow(g.m, g.groups, &rows) ? std::numeric_limits<std::int64_t>::max() / 2
                                                      : rows;
}

std::int64_t scale_blocks(GroupedGemmArguments const& g) {
  return g.grouping == Grouping::k ? g.k / kScaleBlock + g.groups
                                   : device::ceil_div(g.k, kScaleBlock);
}

std::string to_string(GroupedGemmArguments const& arguments) {
  GroupedGemmArguments const g = with_defaults(arguments);
  std::string s =
      fmt::format("D = A B^T{}: m {}, n {}, k {}, A {}, B {}, D {}", g.c == nullptr ? "" : " + C",
                  g.m, g.n, g.k, to_string(g.in), to_string(*g.in_b), to_string(*g.out));
  if (g.scales != Scales::none) s += fmt::format(", scales {}", text(*g.scales));
  if (g.block_scale.block != 0)
    s += fmt::format(", {} for each {}", to_string(g.block_scale.type), g.block_scale.block);
  switch (g.grouping) {
    case Grouping::none:
      return s;
    case Grouping::contiguous:
      return s + fmt::format(", {} of rows", io::counted(g.groups, "group"));
    case Grouping::masked:
      return s + fmt::format(", {} of at most m rows", io::counted(g.groups, "group"));
    default:
      return s + fmt::format(", {} of k", io::counted(g.groups, "group"));
  }
}

void check(GroupedGemmArguments const& arguments, int compute_capability) {
  GroupedGemmChecker(arguments).run(compute_capability);
}

namespace {

/// visit(family, number, refusal) for every configuration; the refusal is empty where there is
/// none.
template <class Visit>
void enumerate(GroupedGemmArguments const& g, DeviceProperties const& device,
               GroupedGemmConstraints const& wanted, Visit&& visit) {
  for_each_grouped_family([&]<class F>(F family) {
    using Traits = FamilyTraits<F>;
    std::string const obstacle = Traits::obstacle(g, device);
    int number = 0;
    for (auto const& c : configurations(family, device.kernels)) {
      std::string refusal = obstacle;
      if (char const* const why = Traits::check(g, c, device); why != nullptr && refusal.empty())
        refusal = why;
      if (char const* const why = Traits::unwanted(wanted, c, number);
          why != nullptr && refusal.empty())
        refusal = why;
      visit(FamilyId(family), number++, refusal);
    }
  });
}

bool can_choose(GroupedGemmArguments const& g, DeviceProperties const& device,
                GroupedGemmConstraints const& wanted) {
  bool found = false;
  enumerate(g, device, wanted,
            [&](FamilyId, int, std::string const& refusal) { found = found || refusal.empty(); });
  return found;
}

[[noreturn]] void refuse_all(GroupedGemmArguments const& g, DeviceProperties const& device) {
  std::vector<std::pair<FamilyId, int>> computing;  // whatever is asked for
  enumerate(g, device, {}, [&](FamilyId family, int number, std::string const& refusal) {
    if (refusal.empty()) computing.emplace_back(family, number);
  });
  if (!computing.empty()) device::refuse_unwanted("grouped_gemm", to_string(g), computing);
  device::refuse_uncomputed("grouped_gemm", to_string(g), device,
                            can_choose(g, device::with_all_kernels(device), {}));
}

DeviceProperties with_kernels_for(GroupedGemmArguments const& g, DeviceProperties const& device,
                                  GroupedGemmConstraints const& wanted) {
  check(device);
  return with_kernels(device, [&](DeviceProperties const& d) { return can_choose(g, d, wanted); });
}

GroupedGemmChoice predict(FamilyId kernel, int number, GroupedGemmArguments const& g,
                          DeviceProperties const& device, GroupedGemmConstraints const& wanted) {
  GroupedGemmChoice choice;
  visit_grouped_family(kernel, [&]<class F>(F family) {
    choice = FamilyTraits<F>::predict(g, configuration(family, number), device, wanted);
  });
  choice.configuration = number;
  return choice;
}

}  // namespace

GroupedGemmChoice choose_grouped_gemm(GroupedGemmArguments const& g,
                                      DeviceProperties const& properties,
                                      GroupedGemmConstraints const& wanted) {
  DeviceProperties const device = with_kernels_for(g, properties, wanted);
  std::optional<GroupedGemmChoice> best;
  enumerate(g, device, wanted, [&](FamilyId kernel, int number, std::string const& refusal) {
    if (!refusal.empty()) return;
    GroupedGemmChoice const choice = predict(kernel, number, g, device, wanted);
    if (!best || choice.cost.total < best->cost.total) best = choice;
  });
  if (!best) refuse_all(g, device);
  return *best;
}

GroupedGemmPlan plan_grouped_gemm(GroupedGemmArguments const& g, DeviceProperties const& properties,
                                  GroupedGemmConstraints const& wanted) {
  DeviceProperties const device = with_kernels_for(g, properties, wanted);
  GroupedGemmPlan plan{.problem = to_string(g)};
  enumerate(g, device, wanted, [&](FamilyId kernel, int number, std::string const& refusal) {
    GroupedGemmCandidate candidate{.name = configuration_name(kernel, number), .refused = refusal};
    if (refusal.empty()) candidate.choice = predict(kernel, number, g, device, wanted);
    candidate.choice.kernel = kernel, candidate.choice.configuration = number;
    plan.candidates.push_back(std::move(candidate));
  });
  auto& candidates = plan.candidates;
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](GroupedGemmCandidate const& x, GroupedGemmCandidate const& y) {
                     if (x.refused.empty() != y.refused.empty()) return x.refused.empty();
                     return x.refused.empty() && x.choice.cost.total < y.choice.cost.total;
                   });
  if (candidates.empty() || !candidates.front().refused.empty()) refuse_all(g, device);
  plan.reason = device::least_time(candidates);
  if (plan.chosen().kernel == grouped_gemm_sm90) {
    int const shares = configuration(grouped_gemm_sm90, plan.chosen().configuration).split_k;
    if (shares > 1)
      plan.reason += fmt::format("; for each tile {} CTAs have a share of K each", shares);
  }
  plan.reason += ".";
  return plan;
}

std::string to_string(GroupedGemmPlan const& plan, bool all) {
  std::string s =
      fmt::format("{}\n\n{:>8} {:>6} {:>6} {:>7} {:>7} {:>7} {:>7}  {}\n", plan.problem, "total us",
                  "tiles", "waves", "tensor", "L2", "DRAM", "epilog.", "configuration");
  for (GroupedGemmCandidate const& candidate : plan.candidates) {
    if (!candidate.refused.empty()) continue;
    GroupedGemmChoice const& choice = candidate.choice;
    GroupedGemmCost const& c = choice.cost;
    s += fmt::format(
        "{:>8.2f} {:>6} {:>6} {:>7.2f} {:>7.2f} {:>7.2f} {:>7.2f}  {}: {}, bands of {}, {}\n",
        c.total, c.tiles, c.waves, c.tensor, c.l2, c.dram, c.epilogue, choice.configuration,
        candidate.name, choice.band, io::counted(choice.clusters, "cluster"));
  }
  return fmt::format("{}\n{}\n{}\n", s, text_of_refused(plan.candidates, all), plan.reason);
}

namespace {
void run(Machine const& machine, GroupedGemmArguments const& arguments,
         GroupedGemmChoice const& choice, Stream stream) {
  visit_grouped_family(choice.kernel, [&]<class F>(F family) {
    launch_kernel(machine, family, choice.configuration,
                  FamilyTraits<F>::lower(machine, arguments, choice), stream);
  });
}
}  // namespace

void grouped_gemm(Machine const& machine, GroupedGemmArguments const& arguments, Stream stream) {
  check(arguments, machine.compute_capability());
  DeviceProperties const device = machine.properties();
  GroupedGemmChoice const choice = machine.backend().grouped_gemm_choices.of(
      key_of(arguments, device), [&] { return choose_grouped_gemm(arguments, device); });
  run(machine, arguments, choice, stream);
}

void grouped_gemm(Machine const& machine, GroupedGemmArguments const& arguments,
                  GroupedGemmChoice const& choice, Stream stream) {
  visit_grouped_family(choice.kernel, [&]<class F>(F family) {
    auto const& c = configuration(family, choice.configuration);
    if (FamilyTraits<F>::check(arguments, c, machine.properties()) != nullptr ||
        !FamilyTraits<F>::obstacle(arguments, machine.properties()).empty() ||
        choice.clusters < 1 || choice.band < 1)
      throw argument_error(fmt::format(
          "grouped_gemm: the choice is {} on {} in bands of {}, which does not compute {}; it "
          "must be chosen for such arguments.",
          to_string(c), io::counted(choice.clusters, "cluster"), choice.band,
          to_string(arguments)));
  });
  run(machine, arguments, choice, stream);
}

}  // namespace tegula
