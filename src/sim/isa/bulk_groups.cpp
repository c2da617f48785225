#include "isa/perform.hpp"

/// Groups of bulk stores: cp.async.bulk.commit_group and wait_group.
namespace tegula::sim {

namespace {

void wait_for_bulk_groups(Cta& cta, int groups_left, bool read, SourceLocation where) {
  cta.note(
      read ? Instruction::cp_async_bulk_wait_group_read : Instruction::cp_async_bulk_wait_group,
      where);
  InFlightGroups& groups = cta.current_thread().bulk;
  cta.cluster().before({read ? Visible::Kind::wait_group_read : Visible::Kind::wait_group,
                        cta.rank(), 0, groups_left, &groups});
  std::size_t const left = static_cast<std::size_t>(groups_left);
  groups.note_wait(left, where);
  double const done =
      read ? cta.in_flight().wait_read(groups, left) : cta.in_flight().wait(groups, left);
  if (cta.cluster().timed())
    cta.cluster().observers().waited(cta, cta.thread_index(), 1, done,
                                     read ? "wait stores read" : "wait stores", where);
}

}  // namespace

void bulk_commit_group(SourceLocation where) {
  perform(Instruction::cp_async_bulk_commit_group, where, [=](Cta& cta) {
    cta.note(Instruction::cp_async_bulk_commit_group, where);
    cta.current_thread().bulk.commit();
  });
}
void bulk_wait_group(int groups_left, SourceLocation where) {
  perform(Instruction::cp_async_bulk_wait_group, where, fewer_than(groups_left),
          [=](Cta& cta, Mutation m) {
            wait_for_bulk_groups(cta, counted(groups_left, m), m == Mutation::weakened, where);
          });
}
void bulk_wait_group_read(int groups_left, SourceLocation where) {
  perform(Instruction::cp_async_bulk_wait_group_read, where, fewer_than(groups_left),
          [=](Cta& cta, Mutation m) {
            wait_for_bulk_groups(cta, counted(groups_left, m), true, where);
          });
}

}  // namespace tegula::sim
