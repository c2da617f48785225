#include <fmt/format.h>

#include <memory>

#include "isa/perform.hpp"
#include "tegula/io/text.hpp"

/// cp.async: issue, groups and waits. How a copy lands is the machine's (machine/async_copies.cpp).
namespace tegula::sim {

// Caches are not modelled: .ca and .cg differ in nothing else.
void cp_async(std::uint32_t destination, void const* source, int bytes, int source_bytes,
              SourceLocation where) {
  Cta& cta = current_cta();
  if (source_bytes < 0 || source_bytes > bytes) {
    cta.fail(FindingKind::invalid_operand, where, cta.here(),
             fmt::format("cp.async of {} bytes is to read {}: it can read 0 to {}", bytes,
                         source_bytes, bytes));
  }
  cta.note(Instruction::cp_async, where, {bytes, destination, source_bytes, source});
  std::uint32_t const n = static_cast<std::uint32_t>(bytes);
  if (destination % n != 0) {
    cta.report(FindingKind::misaligned, where, cta.here(), "", "",
               fmt::format("cp.async of {} bytes to shared address {:#x}, {} past a multiple of {}",
                           bytes, destination, io::counted(destination % n, "byte"), bytes));
  }
  if (!cta.shared().contains(destination, n)) {
    cta.out_of_shared(Instruction::cp_async, destination, n, where, cta.here());
    return;
  }
  if (source_bytes > 0 && !cta.global_access(Instruction::cp_async, source, source_bytes,
                                             GlobalAccess::read, where, bytes))
    return;
  if (cta.cluster().stepped())
    cta.cluster().observers().before(
        {.kind = Visible::Kind::store, .cta = cta.rank(), .address = destination, .amount = bytes});
  AsyncCopy const issued{where,
                         static_cast<unsigned char const*>(source),
                         destination,
                         static_cast<std::uint8_t>(bytes),
                         static_cast<std::uint8_t>(source_bytes),
                         false};
  if (cta.checking()) cta.observers().copy_issuing(cta, issued);
  AsyncCopy& copy = cta.current_thread().async.copies.emplace_back(issued);
  if (cta.cluster().timed()) cta.observers().copy_issued(cta, copy);
  if (cta.cluster().completion() == Completion::first ||
      (cta.cluster().completion() == Completion::random && cta.cluster().random() % 4 == 0))
    cta.land(copy);
}

namespace {

void wait_for_groups(Cta& cta, int groups_left, SourceLocation where) {
  cta.note(Instruction::cp_async_wait_group, where);
  AsyncCopies& async = cta.current_thread().async;
  std::size_t const keep = static_cast<std::size_t>(groups_left);
  async.waited = {where, keep,
                  async.forgotten + (async.group_ends.empty() ? 0 : async.group_ends.back())};
  if (async.group_ends.size() - async.first_group <= keep) return;
  async.first_group = async.group_ends.size() - keep;
  cta.wait_for_copies(async, async.group_ends[async.first_group - 1], where);
}

}  // namespace

void cp_async_commit_group(SourceLocation where) {
  perform(Instruction::cp_async_commit_group, where, [=](Cta& cta) {
    cta.note(Instruction::cp_async_commit_group, where);
    AsyncCopies& async = cta.current_thread().async;
    async.group_ends.push_back(async.copies.size());
    ++async.groups;
  });
}

void cp_async_wait_group(int groups_left, SourceLocation where) {
  perform(Instruction::cp_async_wait_group, where, fewer_than(groups_left),
          [=](Cta& cta, Mutation m) { wait_for_groups(cta, counted(groups_left, m), where); });
}

namespace {

/// Arrives at an mbarrier when a thread's copies so far have landed.
class CopiesArrive final : public InFlight {
 public:
  CopiesArrive(Cta const& issuer, SourceLocation where)
      : InFlight(Instruction::cp_async_mbarrier_arrive, issuer, where),
        thread_(issuer.current_thread()),
        end_(thread_.async.forgotten + thread_.async.copies.size()) {}
  void land(Cluster& cluster) override { cluster.cta(cta).land_for_arrival(thread_, end_); }

 private:
  Thread& thread_;
  std::size_t end_;  ///< of its copies, in all
};

void arrive_when_landed(Cta& cta, std::uint32_t address, bool counted_by_init,
                        SourceLocation where) {
  constexpr Instruction instruction = Instruction::cp_async_mbarrier_arrive;
  cta.note(instruction, where);
  if (!counted_by_init)
    cta.cluster().before(cta.at_shared(Visible::Kind::mbarrier_expect, address, 0, -1));
  MbarrierState* const mbarrier = cta.own_mbarrier(instruction, address, where);
  if (mbarrier == nullptr) return;
  if (!counted_by_init) cta.expect_arrival(instruction, *mbarrier, where);
  AsyncCopies& async = cta.current_thread().async;
  for (std::size_t i = async.first_copy; i < async.copies.size(); ++i)
    async.copies[i].arrives = true;
  auto arrival = std::make_unique<CopiesArrive>(cta, where);
  arrival->arrives_at(cta.rank(), mbarrier->address);
  cta.in_flight().add(std::move(arrival));
}

}  // namespace

void cp_async_mbarrier_arrive(std::uint32_t mbarrier, SourceLocation where) {
  perform(Instruction::cp_async_mbarrier_arrive, where,
          [=](Cta& cta) { arrive_when_landed(cta, mbarrier, false, where); });
}
void cp_async_mbarrier_arrive_noinc(std::uint32_t mbarrier, SourceLocation where) {
  perform(Instruction::cp_async_mbarrier_arrive, where,
          [=](Cta& cta) { arrive_when_landed(cta, mbarrier, true, where); });
}

void cp_async_wait_all(SourceLocation where) {
  perform(Instruction::cp_async_wait_group, where, Mutation::less | Mutation::more, [=](Cta& cta) {
    cta.note(Instruction::cp_async_wait_group, where);
    AsyncCopies& async = cta.current_thread().async;
    async.first_group = async.group_ends.size();
    ++async.groups;
    cta.wait_for_copies(async, async.copies.size(), where);
  });
}

}  // namespace tegula::sim
