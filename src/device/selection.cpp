#include "tegula/device/selection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "families.hpp"
#include "problem.hpp"
#include "refused.hpp"
#include "tegula/device/attention_plan.hpp"
#include "tegula/io/text.hpp"

namespace tegula {

void check(DeviceProperties const& device) {
  if (device.multiprocessors < 1)
    throw argument_error(fmt::format("the device has {}; it must have at least 1.",
                                     io::counted(device.multiprocessors, "multiprocessor")));
  if (!(device.clock_ghz > 0 && device.memory_tb_per_s > 0 && device.l2_mb > 0))
    throw argument_error(
        fmt::format("the device has a clock of {} GHz, memory of {} TB/s and an L2 of {} MB; each "
                    "must be more than 0.",
                    device.clock_ghz, device.memory_tb_per_s, device.l2_mb));
}

int vector_bytes(GemmArguments const& arguments) {
  GemmArguments const g = with_defaults(arguments);
  int const element = bits(g.in) / 8;
  auto const aligned = [&](void const* pointer, std::int64_t ld, std::int64_t contiguous,
                           std::int64_t batch_stride) {
    return reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0 && ld * element % 16 == 0 &&
           contiguous * element % 16 == 0 && (g.batch == 1 || batch_stride * element % 16 == 0);
  };
  return aligned(g.a, *g.lda, g.a_major == Major::k ? g.k : g.m, *g.a_batch_stride) &&
                 aligned(g.b, *g.ldb, g.b_major == Major::k ? g.k : g.n, *g.b_batch_stride)
             ? 16
             : element;
}

namespace {

/// visit(family) for each that computes attention, the preferred first.
template <class Visit> void for_each_attention_family(Visit&& visit) {
  Families::for_each_from_last([&]<class F>(F family) {
    if constexpr (device::Computes<F, AttentionArguments>) visit(family);
  });
}

/// Whether a family computes attention's keys in parts, with sums in a workspace.
template <KernelFamily F>
constexpr bool of_parts = device::Computes<F, AttentionArguments>&& requires {
  device::FamilyTraits<F>::workspace_bytes;
};

/// What tells a configuration from what is asked for: a clause, or null.
char const* unwanted(AttentionConstraints const& wanted, FamilyId family, int number) {
  if (wanted.kernel && *wanted.kernel != family) return "another kernel is asked for";
  if (wanted.configuration && *wanted.configuration != number)
    return "another configuration is asked for";
  return nullptr;
}

/// visit(number, refusal, cost) for every configuration of the family. The refusal is empty where
/// there is none, and only then there is a cost.
template <KernelFamily F, class Visit>
void weigh(F family, AttentionArguments const& a, DeviceProperties const& device,
           AttentionConstraints const& wanted, Visit&& visit) {
  using Traits = device::FamilyTraits<F>;
  std::string const obstacle = Traits::obstacle(a, device);
  int number = 0;
  for (auto const& c : configurations(family, device.kernels)) {
    std::string_view refusal;
    if (char const* const why = Traits::check(a, c, device)) refusal = why;
    if (refusal.empty()) refusal = obstacle;
    if (refusal.empty()) {
      if (char const* const why = unwanted(wanted, family, number)) refusal = why;
    }
    visit(number++, refusal, refusal.empty() ? Traits::cost(a, c, device) : 0.0);
  }
}

/// Nothing where no configuration will do.
std::optional<AttentionChoice> find_best(AttentionArguments const& a,
                                         DeviceProperties const& device,
                                         AttentionConstraints const& wanted) {
  std::optional<AttentionChoice> best;
  for_each_attention_family([&](auto family) {
    if (best) return;  // of a family that is preferred
    double least = 0;
    weigh(family, a, device, wanted, [&](int number, std::string_view refusal, double cost) {
      if (refusal.empty() && (!best || cost < least))
        best = AttentionChoice{family, number}, least = cost;
    });
  });
  return best;
}

/// Says of a problem that asks for keys in parts what is in the way of them, if that is all.
void refuse_parts(AttentionArguments const& a, DeviceProperties const& device,
                  AttentionConstraints const& wanted) {
  if (!device::asks_for_parts(a)) return;
  AttentionArguments other = a;
  other.workspace_bytes = std::numeric_limits<std::int64_t>::max();
  if (find_best(other, device, wanted))
    throw argument_error(fmt::format(
        "attention: splits is {} and workspace_bytes is {}; so many parts need {}.", *a.splits,
        a.workspace_bytes, io::counted(attention_workspace_bytes(a, device, wanted), "byte")));
  other.splits = 1;
  if (find_best(other, device, wanted))
    throw argument_error(fmt::format(
        "attention: splits is {}, and no configuration {} computes the keys of this problem on an sm_{} "
        "in so many parts; say fewer, or leave it out.",
        *a.splits, wanted.kernel || wanted.configuration ? "that is asked for" : "of this build",
        device.compute_capability));
}

[[noreturn]] void refuse_all(AttentionArguments const& a, DeviceProperties const& device,
                             AttentionConstraints const& wanted) {
  refuse_parts(a, device, wanted);
  std::vector<std::pair<FamilyId, int>> computing;  // whatever is asked for
  std::string why;
  for_each_attention_family([&]<class F>(F family) {
    weigh(family, a, device, {}, [&](int number, std::string_view refusal, double) {
      if (refusal.empty()) computing.emplace_back(FamilyId(family), number);
    });
    std::string const obstacle = device::FamilyTraits<F>::obstacle(a, device);
    if (!obstacle.empty()) why += fmt::format("; {} cannot compute it: {}", family.name, obstacle);
  });
  if (!computing.empty()) device::refuse_unwanted("attention", to_string(a), computing);
  device::refuse_uncomputed("attention", to_string(a) + why, device,
                            find_best(a, device::with_all_kernels(device), {}).has_value());
}

DeviceProperties with_kernels_for(AttentionArguments const& a, DeviceProperties const& device,
                                  AttentionConstraints const& wanted) {
  check(device);
  return device::with_kernels(
      device, [&](DeviceProperties const& d) { return find_best(a, d, wanted).has_value(); });
}

}  // namespace

AttentionChoice choose_attention(AttentionArguments const& a, DeviceProperties const& properties,
                                 AttentionConstraints const& wanted) {
  DeviceProperties const device = with_kernels_for(a, properties, wanted);
  auto const best = find_best(a, device, wanted);
  if (!best) refuse_all(a, device, wanted);
  return *best;
}

AttentionPlan plan_attention(AttentionArguments const& a, DeviceProperties const& properties,
                             AttentionConstraints const& wanted) {
  DeviceProperties const device = with_kernels_for(a, properties, wanted);
  AttentionPlan plan{.problem = to_string(a)};
  std::string preferred;  // "attention_sm90 computes the problem", where it does
  std::string ruled_out;
  for_each_attention_family([&]<class F>(F family) {
    bool computes = false;
    weigh(family, a, device, wanted, [&](int number, std::string_view refusal, double cost) {
      computes = computes || refusal.empty();
      if (refusal.empty()) refusal = preferred;
      plan.candidates.push_back({.choice = {family, number},
                                 .name = configuration_name(family, number),
                                 .refused = std::string(refusal),
                                 .cost = refusal.empty() ? cost : 0});
    });
    if (computes && preferred.empty())
      preferred = fmt::format("{} computes the problem", family.name);
    std::string const obstacle = device::FamilyTraits<F>::obstacle(a, device);
    if (!obstacle.empty()) ruled_out += fmt::format("; {} is ruled out: {}", family.name, obstacle);
  });
  auto& candidates = plan.candidates;
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](AttentionCandidate const& x, AttentionCandidate const& y) {
                     if (x.refused.empty() != y.refused.empty()) return x.refused.empty();
                     return x.refused.empty() && x.cost < y.cost;
                   });
  if (candidates.empty() || !candidates.front().refused.empty()) refuse_all(a, device, wanted);

  plan.reason = candidates.front().name;
  if (candidates.size() > 1 && candidates[1].refused.empty())
    plan.reason +=
        fmt::format(" is estimated to take the least time; the next would take {:.1f} % more",
                    100 * (candidates[1].cost / candidates.front().cost - 1));
  else
    plan.reason += " is the only one that remains";
  plan.chosen().kernel.visit([&]<class F>(F family) {
    using Traits = device::FamilyTraits<F>;
    if constexpr (of_parts<F>) {
      auto const& config = configuration(family, plan.chosen().configuration);
      std::string const remark = Traits::remark(a, config, device);
      if (!remark.empty()) plan.reason += "; " + remark;
    }
  });
  plan.reason += ruled_out + ".";
  return plan;
}

std::int64_t attention_workspace_bytes(AttentionArguments const& arguments,
                                       DeviceProperties const& device,
                                       AttentionConstraints const& wanted) {
  AttentionArguments a = arguments;
  a.workspace_bytes = std::numeric_limits<std::int64_t>::max();
  AttentionChoice const choice = choose_attention(a, device, wanted);
  std::int64_t bytes = 0;
  choice.kernel.visit([&]<class F>(F family) {
    using Traits = device::FamilyTraits<F>;
    if constexpr (of_parts<F>)
      bytes = Traits::workspace_bytes(a, configuration(family, choice.configuration), device);
  });
  return bytes;
}

std::string to_string(AttentionPlan const& plan, bool all) {
  std::string s = fmt::format("{}\n\n{:>8}  configuration\n", plan.problem, "cost");
  for (AttentionCandidate const& candidate : plan.candidates)
    if (candidate.refused.empty())
      s += fmt::format("{:>8.2f}  {}: {}\n", candidate.cost / plan.candidates.front().cost,
                       candidate.choice.configuration, candidate.name);
  return fmt::format("{}\n{}\n{}\n", s, device::text_of_refused(plan.candidates, all), plan.reason);
}

}  // namespace tegula
