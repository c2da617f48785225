#include "tegula/device/gemm_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "families.hpp"
#include "least_time.hpp"
#include "problem.hpp"
#include "refused.hpp"
#include "tegula/device/selection.hpp"
#include "tegula/io/text.hpp"

namespace tegula {

using device::bytes_of;
using device::text;

namespace {

/// The first rule of TMA that an operand breaks, in words; empty where it breaks none.
class TmaRules {
 public:
  explicit TmaRules(std::int64_t batch) : batch_(batch) {}

  static constexpr int alignment = 16;

  void operand(std::string_view name, void const* address, std::int64_t rows, std::int64_t ld,
               std::int64_t batch_stride, DType type) {
    this->address(name, address, alignment);
    if (rows > 1) stride("ld", name, "", ld, bits(type));
    if (batch_ > 1) stride("", name, "_batch_stride", batch_stride, bits(type));
  }
  void address(std::string_view name, void const* value, int multiple) {
    auto const rest =
        reinterpret_cast<std::uintptr_t>(value) % static_cast<std::uintptr_t>(multiple);
    if (rest != 0 && obstacle_.empty())
      obstacle_ = fmt::format("{} is {}, {} past a multiple of {}", name, value,
                              io::counted(rest, "byte"), multiple);
  }
  std::string const& obstacle() const { return obstacle_; }

 private:
  void stride(std::string_view before, std::string_view name, std::string_view after,
              std::int64_t elements, int element_bits) {
    // bytes: cuTensorMapEncodeTiled's globalStrides
    constexpr std::int64_t limit = std::int64_t{1} << 40;
    if (!obstacle_.empty()) return;
    std::string const size =
        element_bits < 8 ? io::counted(element_bits, "bit") : io::counted(element_bits / 8, "byte");
    if (elements >= 8 * limit / element_bits)
      obstacle_ = fmt::format("{}{}{} is {} of {}, which is not below 2^40 bytes", before, name,
                              after, io::counted(elements, "element"), size);
    else if (elements * element_bits % (8 * alignment) != 0)
      obstacle_ = fmt::format("{}{}{} is {} of {}, which is not a multiple of {} bytes", before,
                              name, after, io::counted(elements, "element"), size, alignment);
  }

  std::int64_t batch_;
  std::string obstacle_;
};

}  // namespace

std::string to_string(TilePartition const& tiling, TileWidths widths) {
  struct Rows {
    int rows = 0, tiles = 0;
  };
  std::map<int, Rows> kinds;  // rows of as many tiles each, by the first of them
  for (TileRegion const& region : tiling.regions) {
    if (region.first >= tiling.tiles) continue;
    kinds[region.m].rows = region.order.tiles_m;
    kinds[region.m].tiles += region.order.tiles_n;
  }
  std::string s;
  for (auto const& [m, kind] : kinds)
    s += s.empty() ? fmt::format("{} of {}", io::counted(kind.rows, "row"),
                                 io::counted(kind.tiles, "tile"))
                   : fmt::format(" and {} of {}", io::counted(kind.rows, "row"), kind.tiles);
  int const batches = tiling.order().batches;
  int const narrow = tiling.fitted() ? (tiling.tiles - tiling.first_narrow) / batches : 0;
  if (narrow == tiling.tiles / batches)
    s += fmt::format(", all {} columns wide", widths.narrow);
  else if (narrow > 0)
    s += fmt::format(", of which {} {} {} columns wide and the others {}", narrow,
                     narrow == 1 ? "is" : "are", widths.narrow, widths.wide);
  if (batches > 1) s += fmt::format(", in each of {} batches", batches);
  return s;
}

std::string to_string(GemmArguments const& arguments) {
  GemmArguments const g = with_defaults(arguments);
  std::string sum =
      fmt::format("{}{}{}A B", g.alpha == 1 ? "" : fmt::format("{} ", g.alpha),
                  g.scale_a == nullptr ? "" : "scale_a ", g.scale_b == nullptr ? "" : "scale_b ");
  if (g.beta != 0) sum += fmt::format(" + {} C", g.beta);
  if (g.bias != nullptr) sum += " + bias";
  if (g.activation != Activation::none) sum = fmt::format("{}({})", to_string(g.activation), sum);
  std::string const scaled = g.block_scale.block == 0
                                 ? ""
                                 : fmt::format(", scales {} for each {} of k",
                                               to_string(g.block_scale.type), g.block_scale.block);
  return fmt::format("D = {}: m {}, n {}, k {}{}, A {} {}-major, B {} {}-major{}, D {}", sum, g.m,
                     g.n, g.k, g.batch == 1 ? "" : fmt::format(", batch {}", g.batch),
                     to_string(g.in), text(g.a_major), to_string(*g.in_b), text(g.b_major), scaled,
                     to_string(*g.out));
}

std::string tma_obstacle(GemmArguments const& arguments) {
  GemmArguments const g = with_defaults(arguments);
  DType const out = *g.out;
  TmaRules rules(g.batch);
  rules.operand("a", g.a, g.a_major == Major::k ? g.m : g.k, *g.lda, *g.a_batch_stride, g.in);
  rules.operand("b", g.b, g.b_major == Major::k ? g.n : g.k, *g.ldb, *g.b_batch_stride, *g.in_b);
  rules.operand("d", g.d, g.m, *g.ldd, *g.d_batch_stride, out);
  if (g.beta != 0) rules.operand("c", g.c, g.m, *g.ldc, *g.c_batch_stride, out);
  rules.address("bias", g.bias, 2 * bytes_of(out));  // read in pairs
  return rules.obstacle();
}

namespace {

/// visit(family) for each that computes GEMMs, the preferred first.
template <class Visit> void for_each_gemm_family(Visit&& visit) {
  Families::for_each_from_last([&]<class F>(F family) {
    if constexpr (device::Computes<F, GemmArguments>) {
      static_assert(device::GemmFamily<F>);
      visit(family);
    }
  });
}

/// What keeps each family from a problem, by FamilyId::index(): a clause, or nothing.
using Obstacles = std::array<std::string, Families::size>;
Obstacles obstacles(GemmArguments const& g, DeviceProperties const& device) {
  Obstacles all;
  for_each_gemm_family([&]<class F>(F family) {
    all[static_cast<std::size_t>(FamilyId(family).index())] =
        device::FamilyTraits<F>::obstacle(g, device);
  });
  return all;
}

/// Calls visit(family, number, refusal) for every configuration that computes GEMMs, those of the
/// preferred family first; the refusal is empty where there is none.
template <class Visit>
void enumerate(GemmArguments const& g, DeviceProperties const& device,
               GemmConstraints const& wanted, Obstacles const& obstacles, Visit&& visit) {
  std::string preferred;  // "gemm_sm90 computes the problem", where it does
  for_each_gemm_family([&]<class F>(F family) {
    using Traits = device::FamilyTraits<F>;
    std::string const& obstacle = obstacles[static_cast<std::size_t>(FamilyId(family).index())];
    bool computes = false;
    int number = 0;
    for (auto const& c : configurations(family, device.kernels)) {
      std::string_view refusal;
      if (char const* const why = Traits::check(g, c, device)) refusal = why;
      if (refusal.empty()) refusal = obstacle;
      if (refusal.empty()) {
        if (char const* const why = Traits::unwanted(wanted, g, c, number)) refusal = why;
      }
      if (refusal.empty()) refusal = preferred;
      computes = computes || refusal.empty();
      visit(FamilyId(family), number++, refusal);
    }
    if (computes) preferred = fmt::format("{} computes the problem", family.name);
  });
}

GemmChoice predict(FamilyId kernel, int number, GemmArguments const& g,
                   DeviceProperties const& device, GemmConstraints const& wanted,
                   GemmCostModel const& model) {
  GemmChoice choice;
  kernel.visit([&](auto family) {
    choice = predict(g, configuration(family, number), device, wanted, model);
    choice.configuration = number;
  });
  return choice;
}

bool can_choose(GemmArguments const& g, DeviceProperties const& device,
                GemmConstraints const& wanted, Obstacles const& obstacles) {
  bool found = false;
  enumerate(g, device, wanted, obstacles,
            [&](FamilyId, int, std::string_view refusal) { found = found || refusal.empty(); });
  return found;
}

[[noreturn]] void refuse_all(GemmArguments const& g, DeviceProperties const& device,
                             Obstacles const& obstacles) {
  std::string const problem = to_string(g);
  std::vector<std::pair<FamilyId, int>> computing;  // whatever is asked for
  enumerate(g, device, {}, obstacles, [&](FamilyId family, int number, std::string_view refusal) {
    if (refusal.empty()) computing.emplace_back(family, number);
  });
  if (!computing.empty()) device::refuse_unwanted("gemm", problem, computing);
  std::string why;
  for_each_gemm_family([&](auto family) {
    std::string const& obstacle = obstacles[static_cast<std::size_t>(FamilyId(family).index())];
    if (!obstacle.empty()) why += fmt::format("; {} does not, for {}", family.name, obstacle);
  });
  device::refuse_uncomputed("gemm", fmt::format("this problem ({}){}", problem, why), device,
                            can_choose(g, device::with_all_kernels(device), {}, obstacles));
}

DeviceProperties with_kernels_for(GemmArguments const& g, DeviceProperties const& device,
                                  GemmConstraints const& wanted, Obstacles const& obstacles) {
  return device::with_kernels(
      device, [&](DeviceProperties const& d) { return can_choose(g, d, wanted, obstacles); });
}

/// Whether a choice's configuration cannot compute what is asked for.
bool refused(GemmChoice const& choice, GemmArguments const& g, DeviceProperties const& device,
             GemmConstraints const& wanted) {
  bool refused = false;
  choice.kernel.visit([&]<class F>(F family) {
    if constexpr (device::Computes<F, GemmArguments>) {
      using Traits = device::FamilyTraits<F>;
      auto const& c = configuration(family, choice.configuration);
      refused = Traits::check(g, c, device) != nullptr ||
                Traits::unwanted(wanted, g, c, choice.configuration) != nullptr;
    }
  });
  return refused;
}

bool walks_tiles(FamilyId kernel) {
  bool walks = false;
  kernel.visit([&]<class F>(F) {
    if constexpr (device::Computes<F, GemmArguments>) walks = device::FamilyTraits<F>::walks_tiles;
  });
  return walks;
}

}  // namespace

GemmChoice device::predict(FamilyId kernel, void const* config, GemmArguments const& g,
                           DeviceProperties const& device, GemmConstraints const& wanted,
                           GemmCostModel const& model) {
  GemmChoice choice;
  kernel.visit([&]<class F>(F) {
    if constexpr (Computes<F, GemmArguments>) {
      choice = FamilyTraits<F>::predict(g, *static_cast<typename F::Config const*>(config), device,
                                        wanted, model);
    } else {
      throw argument_error(fmt::format("predict: {} computes no GEMM.", F::name));
    }
  });
  return choice;
}

GemmChoice choose_gemm(GemmArguments const& g, DeviceProperties const& properties,
                       GemmConstraints const& wanted, GemmCostModel const& model) {
  check(properties);
  Obstacles const why_not = obstacles(g, properties);
  DeviceProperties const device = with_kernels_for(g, properties, wanted, why_not);
  // What was learned takes several times as long as the model, and shortens a prediction by so much
  // at the most: those that the model puts far behind need none.
  struct Predicted {
    double total;  // by the model alone
    int order;
    FamilyId kernel;
    int number;
  };
  std::vector<Predicted> predicted;
  GemmCostModel alone = model;
  alone.sm90.corrected = false;
  enumerate(g, device, wanted, why_not, [&](FamilyId kernel, int number, std::string_view refusal) {
    if (!refusal.empty()) return;
    double const total = predict(kernel, number, g, device, wanted, alone).cost.total;
    predicted.push_back({total, static_cast<int>(predicted.size()), kernel, number});
  });
  std::sort(predicted.begin(), predicted.end(), [](Predicted const& x, Predicted const& y) {
    return std::pair(x.total, x.order) < std::pair(y.total, y.order);
  });
  std::optional<GemmChoice> best;
  int order_of_best = 0;
  for (Predicted const& p : predicted) {
    if (best && p.total * model.sm90.least_correction > best->cost.total) break;
    GemmChoice const choice = predict(p.kernel, p.number, g, device, wanted, model);
    if (!best || std::pair(choice.cost.total, p.order) < std::pair(best->cost.total, order_of_best))
      best = choice, order_of_best = p.order;
  }
  if (!best) refuse_all(g, device, why_not);
  return *best;
}

std::vector<GemmChoice> tuning_candidates(GemmArguments const& g, DeviceProperties const& device,
                                          int most, GemmConstraints const& wanted,
                                          GemmCostModel const& model) {
  constexpr double worth_timing =
      1.1;  // of the best predicted time: about what the model has been seen to be off by
  if (most < 1)
    throw argument_error(
        fmt::format("tuning_candidates: most is {}; it must be at least 1.", most));
  GemmPlan const plan = plan_gemm(g, device, wanted, model);
  std::vector<GemmChoice> candidates = {plan.chosen()};
  auto const add = [&](GemmChoice const& choice) {
    bool const known =
        std::any_of(candidates.begin(), candidates.end(), [&](GemmChoice const& other) {
          return choice.kernel == other.kernel && choice.configuration == other.configuration &&
                 choice.tiling == other.tiling;
        });
    if (!known && static_cast<int>(candidates.size()) < most) candidates.push_back(choice);
  };
  auto const worth = [&](GemmCandidate const& candidate) {
    return candidate.refused.empty() &&
           candidate.choice.cost.total <= worth_timing * plan.chosen().cost.total;
  };
  for (GemmCandidate const& candidate : plan.candidates)
    if (worth(candidate)) add(candidate.choice);
  for (GemmCandidate const& candidate : plan.candidates) {
    if (!worth(candidate) || !walks_tiles(candidate.choice.kernel)) continue;
    if (candidate.choice.parts > 1 && !wanted.split_k) {
      for (int const more : {-1, 1}) {  // parts
        GemmConstraints parts = wanted;
        parts.split_k = candidate.choice.parts + more;
        if (!refused(candidate.choice, g, device, parts))
          add(predict(candidate.choice.kernel, candidate.choice.configuration, g, device, parts,
                      model));
      }
    }
    GemmConstraints cut = wanted;  // into tiles of two widths, or not
    if (!cut.fitted) cut.fitted = !candidate.choice.tiling.fitted();
    add(predict(candidate.choice.kernel, candidate.choice.configuration, g, device, cut, model));
    for (Raster const raster : {Raster::along_n, Raster::along_m}) {
      for (int const factor : {1, 2}) {
        GemmConstraints order = wanted;
        if (!order.raster) order.raster = raster;
        if (!order.group) order.group = factor * candidate.choice.tiling.order().group;
        add(predict(candidate.choice.kernel, candidate.choice.configuration, g, device, order,
                    model));
      }
    }
  }
  return candidates;
}

std::int64_t gemm_workspace_bytes(GemmArguments const& arguments, DeviceProperties const& device,
                                  GemmConstraints const& wanted, GemmCostModel const& model) {
  GemmArguments with_room = arguments;
  with_room.workspace_bytes = std::numeric_limits<std::int64_t>::max();
  GemmChoice const choice = choose_gemm(with_room, device, wanted, model);
  std::int64_t bytes = 0;
  choice.kernel.visit([&]<class F>(F) {
    using Traits = device::FamilyTraits<F>;
    if constexpr (device::Computes<F, GemmArguments>) {
      if constexpr (requires { Traits::workspace_bytes(with_room, choice); })
        bytes = Traits::workspace_bytes(with_room, choice);
    }
  });
  return bytes;
}

GemmPlan plan_gemm(GemmArguments const& arguments, DeviceProperties const& properties,
                   GemmConstraints const& wanted, GemmCostModel const& model) {
  GemmArguments const g = with_defaults(arguments);
  check(properties);
  Obstacles const why_not = obstacles(g, properties);
  DeviceProperties const device = with_kernels_for(g, properties, wanted, why_not);
  GemmPlan plan{.problem = to_string(g)};
  enumerate(g, device, wanted, why_not, [&](FamilyId kernel, int number, std::string_view refusal) {
    GemmCandidate candidate{.name = configuration_name(kernel, number)};
    if (refusal.empty()) {
      candidate.choice = predict(kernel, number, g, device, wanted, model);
    } else {
      candidate.choice.kernel = kernel;
      candidate.choice.configuration = number;
      candidate.refused = refusal;
    }
    plan.candidates.push_back(std::move(candidate));
  });
  std::stable_sort(plan.candidates.begin(), plan.candidates.end(),
                   [](GemmCandidate const& x, GemmCandidate const& y) {
                     if (x.refused.empty() != y.refused.empty()) return x.refused.empty();
                     return x.refused.empty() && x.choice.cost.total < y.choice.cost.total;
                   });
  if (plan.candidates.empty() || !plan.candidates.front().refused.empty())
    refuse_all(g, device, why_not);

  plan.reason = device::least_time(plan.candidates);
  for_each_gemm_family([&]<class F>(F family) {
    if (plan.chosen().kernel != family) return;
    std::string const remark = device::FamilyTraits<F>::remark(g, plan.chosen());
    if (!remark.empty()) plan.reason += "; " + remark;
  });
  for_each_gemm_family([&](auto family) {
    std::string const& obstacle = why_not[static_cast<std::size_t>(FamilyId(family).index())];
    if (!obstacle.empty())
      plan.reason += fmt::format("; {} is ruled out: {}", family.name, obstacle);
  });
  plan.reason += ".";
  return plan;
}

std::string to_string(GemmPlan const& plan, bool all) {
  std::string s = plan.problem + "\n\n";
  s += fmt::format("{:>8} {:>6} {:>6} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7}  {}\n", "total us",
                   "tiles", "waves", "launch", "fill", "tensor", "L2", "DRAM", "epilog.", "learned",
                   "configuration");
  for (GemmCandidate const& candidate : plan.candidates) {
    if (!candidate.refused.empty()) continue;
    GemmCost const& c = candidate.choice.cost;
    s += fmt::format(
        "{:>8.2f} {:>6} {:>6} {:>7.2f} {:>7.2f} {:>7.2f} {:>7.2f} {:>7.2f} {:>7.2f} {:>7.3f}  {}: {}",
        c.total, c.tiles, c.waves, c.launch, c.fill, c.tensor, c.l2, c.dram, c.epilogue,
        c.correction, candidate.choice.configuration, candidate.name);
    TileScheduler const& t = candidate.choice.tiling.order();
    if (walks_tiles(candidate.choice.kernel))
      s += fmt::format(", raster along {} in groups of {}, {}{}{}", to_string(t.raster), t.group,
                       io::counted(candidate.choice.clusters, "cluster"),
                       candidate.choice.parts > 1
                           ? fmt::format(", {} parts of k", candidate.choice.parts)
                       : candidate.choice.tiling.fitted() ? ", two widths"
                                                          : "",
                       candidate.choice.lockstep_steps > 0 ? ", in step" : "");
    s += "\n";
  }
  return fmt::format("{}\n{}\n{}\n", s, device::text_of_refused(plan.candidates, all), plan.reason);
}

}  // namespace tegula
