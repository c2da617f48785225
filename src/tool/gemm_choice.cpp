#include "gemm_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <tuple>
#include <vector>

#include "draw_tiling.hpp"
#include "output.hpp"
#include "tegula/device/launch.hpp"
#include "tegula/device/selection.hpp"
#include "tegula/io/text.hpp"

namespace tegula::tool {
namespace {

nlohmann::ordered_json describe(GemmCandidate const& candidate) {
  GemmChoice const& choice = candidate.choice;
  GemmCost const& cost = choice.cost;
  nlohmann::ordered_json j;
  j["microseconds"] = {{"total", cost.total},      {"launch", cost.launch}, {"fill", cost.fill},
                       {"tensor", cost.tensor},    {"l2", cost.l2},         {"dram", cost.dram},
                       {"epilogue", cost.epilogue}};
  j["tiles"] = cost.tiles;
  j["waves"] = cost.waves;
  if (choice.kernel == gemm_sm90) {
    j["raster"] = to_string(choice.tiling.order().raster);
    j["group"] = choice.tiling.order().group;
    j["clusters"] = choice.clusters;
    j["share"] = cost.share;
    j["learned"] = cost.correction;
    if (choice.parts > 1) j["parts"] = choice.parts;
    if (choice.tiling.fitted()) j["narrower"] = choice.tiling.tiles - choice.tiling.first_narrow;
  }
  return j;
}

}  // namespace

std::pair<int, int> extents(char const* option, std::string const& text, char const* example) {
  auto const read = read_extents(text);
  if (!read)
    throw argument_error(
        fmt::format("{} is {}; it must be two whole numbers from 1 to 2^31 - 1, such as {}.",
                    option, io::in_quotes(text), example));
  return {read->first, read->second};
}

GemmConstraints constraints(GemmOptions const& o) {
  auto const& c = o.choice;
  GemmConstraints wanted{.configuration = c.configuration, .split_k = c.split_k, .group = c.group};
  if (!c.kernel.empty())
    wanted.kernel = named<FamilyId>(
        c.kernel, {{"sm80", gemm_sm80},
                   {"sm90", gemm_sm90},
                   {"sm100", has_block_scales(o) ? FamilyId(scaled_gemm_sm100) : gemm_sm100}});
  if (!c.schedule.empty())
    wanted.schedule = named<Schedule>(c.schedule, {{"basic", Schedule::basic},
                                                   {"cooperative", Schedule::cooperative},
                                                   {"pingpong", Schedule::pingpong}});
  if (!c.raster.empty())
    wanted.raster = named<Raster>(c.raster, {{to_string(Raster::along_m), Raster::along_m},
                                             {to_string(Raster::along_n), Raster::along_n}});
  if (!c.widths.empty()) wanted.fitted = named<bool>(c.widths, {{"one", false}, {"two", true}});
  if (c.tile) std::tie(wanted.block_m, wanted.block_n) = extents("--tile", *c.tile, "128x256");
  if (c.cluster)
    std::tie(wanted.cluster_m, wanted.cluster_n) = extents("--cluster", *c.cluster, "2x1");
  return wanted;
}

Asked asked_of_choice(GemmOptions const& o) {
  auto const& c = o.choice;
  return {{"--kernel", c.kernel},
          {"--config", text_of(c.configuration)},
          {"--schedule", c.schedule},
          {"--tile", c.tile.value_or("")},
          {"--cluster", c.cluster.value_or("")},
          {"--split-k", text_of(c.split_k)},
          {"--raster", c.raster},
          {"--group", text_of(c.group)},
          {"--widths", c.widths}};
}

void require_computed(GemmArguments const& g, GemmOptions const& o, Machine const& machine) {
  auto const choose = [&](GemmArguments arguments, GemmConstraints const& wanted) {
    check(arguments, machine.compute_capability());
    // It has the workspace that it needs.
    arguments.workspace_bytes = std::numeric_limits<std::int64_t>::max();
    choose_gemm(arguments, machine.properties(), wanted);
  };
  auto const computed = [&](auto const& change) {
    return [&, change](bool as_asked) {
      GemmArguments other = g;
      change(other);
      try {
        choose(other, as_asked ? constraints(o) : GemmConstraints{});
        return true;
      } catch (argument_error const&) {
        return false;
      }
    };
  };
  std::vector<Alternative> alternatives;
  for (DType const type : {DType::bf16, DType::f16, DType::f32})
    alternatives.push_back(
        {"--out-type", to_string(type), computed([=](GemmArguments& other) { other.out = type; })});
  constexpr DType kOperandTypes[] = {DType::bf16, DType::f16,  DType::tf32, DType::e4m3,
                                     DType::e5m2, DType::e2m3, DType::e3m2, DType::e2m1};
  for (DType const type : kOperandTypes)
    alternatives.push_back(
        {"--in-b", to_string(type), computed([=](GemmArguments& other) { other.in_b = type; })});
  // What follows from A's type where it is not said does so for another one, too.
  for (DType const type : kOperandTypes)
    alternatives.push_back({"--dtype", to_string(type), computed([&, type](GemmArguments& other) {
                              other.in = type;
                              if (!o.dtype_b && o.b.empty()) other.in_b = type;
                              if (!o.out_type) other.out = default_output(type);
                            })});
  alternatives.push_back({"--activation", "none", computed([](GemmArguments& other) {
                            other.activation = Activation::none;
                          })});
  tool::require_computed({{"--dtype", o.dtype.value_or("")},
                          {"--in-b", o.dtype_b.value_or("")},
                          {"--out-type", o.out_type.value_or("")},
                          {"--scales", o.scales},
                          {"--activation", o.activation == "none" ? "" : o.activation}},
                         asked_of_choice(o), alternatives, [&] { choose(g, {}); });
}

nlohmann::ordered_json describe(GemmArguments const& g, GemmOptions const& o,
                                GemmProblem const& p) {
  nlohmann::ordered_json j = {{"kernel", "gemm"},
                              {"m", g.m},
                              {"n", g.n},
                              {"k", g.k},
                              {"batch", g.batch},
                              {"in", to_string(g.in)},
                              {"in_b", to_string(*g.in_b)},
                              {"out", to_string(*g.out)},
                              {"trans_a", o.trans_a},
                              {"trans_b", g.b_major == Major::k},
                              {"alpha", g.alpha},
                              {"beta", g.beta},
                              {"bias", g.bias != nullptr},
                              {"scale_a", p.scale_a.value_or(1)},
                              {"scale_b", p.scale_b.value_or(1)},
                              {"scales", has_block_scales(o) ? o.scales : "none"},
                              {"activation", to_string(g.activation)},
                              {"seed", o.machine.seed}};
  if (p.tensor_factor_a != 1) j["tensor_factor_a"] = p.tensor_factor_a;
  if (p.tensor_factor_b != 1) j["tensor_factor_b"] = p.tensor_factor_b;
  return j;
}

void draw_tiles(GemmOptions const& o, GemmArguments const& g, GemmChoice const& choice) {
  if (o.tiles_drawing.empty()) return;
  std::string const drawing =
      chosen_as_asked({{"--draw-tiles", o.tiles_drawing}}, [&] { return draw_tiling(g, choice); });
  write_output("--draw-tiles", o.tiles_drawing, drawing);
}

void explain(GemmArguments g, GemmProblem const& p, GemmOptions const& o, Machine const& machine) {
  g.workspace_bytes = std::numeric_limits<std::int64_t>::max();
  GemmPlan const plan = chosen_by(
      o, [&](GemmConstraints const& wanted) { return plan_gemm(g, machine.properties(), wanted); });
  draw_tiles(o, g, plan.chosen());
  print_plan(plan, machine, o, describe(g, o, p),
             [](GemmCandidate const& c) { return describe(c); });
}

void measure(GemmArguments const& arguments, GemmProblem const& p, GemmOptions const& o,
             Machine const& machine) {
  if (machine.is_simulated())
    throw argument_error("gemm: --measure is asked of " + machine.name() +
                         "; only a GPU has times to measure.");
  struct Measured {
    double microseconds;
    GemmCandidate const* candidate;
  };
  GemmPlan const plan = chosen_by(o, [&](GemmConstraints const& wanted) {
    return plan_gemm(arguments, machine.properties(), wanted);
  });
  std::vector<Measured> all;
  for (GemmCandidate const& candidate : plan.candidates) {
    if (!candidate.refused.empty()) break;
    double const milliseconds =
        time_launches(machine, o.repeat, [&] { gemm(machine, arguments, candidate.choice); });
    all.push_back({1e3 * milliseconds, &candidate});
  }
  std::stable_sort(all.begin(), all.end(), [](Measured const& x, Measured const& y) {
    return x.microseconds < y.microseconds;
  });
  if (o.json) {
    nlohmann::ordered_json out = describe(arguments, o, p);
    out["machine"] = machine.name();
    for (auto const& [microseconds, candidate] : all) {
      out["candidates"].push_back(
          described(*candidate, [](GemmCandidate const& c) { return describe(c); }));
      out["candidates"].back()["measured_microseconds"] = microseconds;
    }
    print("{}\n", dump(out));
    return;
  }
  print("{}\n{}\n\n{:>11} {:>12}  configuration\n", machine.name(), plan.problem, "measured us",
        "predicted us");
  for (auto const& [microseconds, candidate] : all)
    print("{:>11.2f} {:>12.2f}  {}: {}{}\n", microseconds, candidate->choice.cost.total,
          candidate->choice.configuration, candidate->name,
          candidate == &plan.candidates.front() ? " (chosen)" : "");
}

}  // namespace tegula::tool
