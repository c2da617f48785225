#include <fmt/format.h>

#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "isa/current_cta.hpp"
#include "machine/cluster.hpp"
#include "machine/pending_clusters.hpp"
#include "tegula/io/text.hpp"
#include "tegula/sim/hooks.hpp"
#include "values/place.hpp"

/// Cluster launch control: PTX ISA, clusterlaunchcontrol.try_cancel and query_cancel. A request is
/// decided when it is made; its answer comes when it lands.
namespace tegula::sim {

namespace {

constexpr Instruction kTryCancel = Instruction::clusterlaunchcontrol_try_cancel;
constexpr Instruction kQueryCancel = Instruction::clusterlaunchcontrol_query_cancel;

/// An answer in shared memory, in a form of this machine's own.
struct Answer {
  std::uint32_t known = kAnswer;  ///< else these bytes are no answer
  std::int32_t x = -1;            ///< of the first CTA of the cluster; -1: there is none
  std::uint16_t y = 0, z = 0;
  std::uint32_t unused = 0;

  static constexpr std::uint32_t kAnswer = 0x434c4321;
};
constexpr std::uint32_t kBytes = sizeof(Answer);
static_assert(kBytes == 16);

/// An answer on its way into the shared memory of one CTA.
class Response final : public InFlight {
 public:
  Response(Cta const& issuer, SourceLocation where, SharedRange to, Answer const& answer)
      : InFlight(kTryCancel, issuer, where), answer_(answer) {
    writes = {to};
    cost = {.engine = Cost::Engine::peer, .bytes = kBytes, .place = to};
  }
  void land(Cluster& cluster) override {
    std::memcpy(cluster.cta(writes[0].cta).shared().at(writes[0].address), &answer_, kBytes);
  }

 private:
  Answer answer_;
};

/// Ends the cluster where there is no cluster launch control, or the answer's place is none.
void check(Cta& cta, Instruction instruction, std::uint32_t response, SourceLocation where) {
  ArchSpec const& spec = spec_of(cta.generation());
  if (spec.compute_capability < 100)
    cta.fail(FindingKind::invalid_operand, where, cta.here(),
             fmt::format("{} is an instruction of sm_100, and the machine an sm_{}",
                         ptx_name(instruction), spec.compute_capability));
  if (response % kBytes != 0)
    cta.fail(FindingKind::misaligned, where, cta.here(),
             fmt::format("{} of an answer at shared address {:#x}, {} past a multiple of {}",
                         ptx_name(instruction), response, io::counted(response % kBytes, "byte"),
                         kBytes));
}

/// A cluster that will not start. Where completion is random, now and then there is none though
/// some wait: the hardware promises no more. An exploration may say so, too.
Answer decide(Cta& cta, PendingClusters& pending) {
  Cluster& cluster = cta.cluster();
  cluster.before({.kind = Visible::Kind::launch_request, .cta = -1});
  cluster.take_turn(&pending);
  if (cluster.stepped() && cta.observers().refuses(cluster)) return {};
  if (cluster.completion() == Completion::random && cluster.random() % 8 == 0) return {};
  std::optional<std::int64_t> const taken = pending.take();
  if (!taken) return {};
  Dim3 const first = cta_index(cta.launch(), *taken, 0);
  return {.x = first.x,
          .y = static_cast<std::uint16_t>(first.y),
          .z = static_cast<std::uint16_t>(first.z)};
}

}  // namespace

void clusterlaunchcontrol_try_cancel(std::uint32_t response, std::uint32_t mbarrier, bool multicast,
                                     SourceLocation where) {
  Cta& cta = current_cta();
  cta.note(kTryCancel, where);
  check(cta, kTryCancel, response, where);
  PendingClusters* const pending = cta.launch().pending;
  if (pending == nullptr)
    cta.fail(
        FindingKind::invalid_operand, where, cta.here(),
        fmt::format("{} by a kernel that does not say `static constexpr bool "
                    "cluster_launch_control = true;`, by which the machine holds clusters back",
                    ptx_name(kTryCancel)));
  if (cta.launch_refused.line != 0)
    cta.report(
        FindingKind::invalid_operand, where, cta.here(), "", "",
        fmt::format("{} after the CTA has seen that there is no cluster to cancel ({}): what "
                    "it does is undefined",
                    ptx_name(kTryCancel), place_text(cta.launch_refused)));
  Answer const answer = decide(cta, *pending);
  int const first = multicast ? 0 : cta.rank();
  int const last = multicast ? cta.cluster().ctas() - 1 : cta.rank();
  for (int rank = first; rank <= last; ++rank) {
    std::uint32_t at = static_cast<std::uint32_t>(rank + 1) << kRankShift | response;
    if (cta.target(kTryCancel, at, where) == nullptr) continue;
    auto operation =
        std::make_unique<Response>(cta, where, SharedRange{rank, response, kBytes}, answer);
    operation->completes_on(rank, mbarrier, kBytes);
    cta.in_flight().add(std::move(operation));
  }
}

bool clusterlaunchcontrol_query_cancel(std::uint32_t response, Dim3& first, SourceLocation where) {
  Cta& cta = current_cta();
  cta.note(kQueryCancel, where, {kBytes, response});
  check(cta, kQueryCancel, response, where);
  Answer answer;
  if (!cta.shared_access(kQueryCancel, response, kBytes, false, where, cta.current_thread().lane))
    return false;
  std::memcpy(&answer, cta.shared().at(response), kBytes);
  if (answer.known != Answer::kAnswer) {
    cta.report(FindingKind::invalid_operand, where, cta.here(), cta.buffer_name(response),
               cta.shared_place(response),
               fmt::format("{} of {}, which is no answer of a clusterlaunchcontrol.try_cancel",
                           ptx_name(kQueryCancel), cta.shared_place(response)));
    return false;
  }
  if (answer.x < 0) {
    cta.launch_refused = where;
    return false;
  }
  first = {answer.x, answer.y, answer.z};
  return true;
}

}  // namespace tegula::sim
