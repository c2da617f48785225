#include "tegula/sim/hooks.hpp"

#include <stdexcept>

#include "cluster.hpp"
#include "current_cta.hpp"
#include "mutation.hpp"

/// The instructions of arch/ on the host: each finds the CTA that runs on this host thread and goes there.
namespace tegula::sim {

namespace {

constinit thread_local Cta* running = nullptr;

[[noreturn, gnu::noinline]] void outside_of_a_launch() {
  throw std::logic_error("an instruction was executed outside of a launch on the simulated machine");
}

Cta& cta() {
  if (running == nullptr) [[unlikely]]
    outside_of_a_launch();
  return *running;
}

/// As cta(), for an instruction proper: one that has an effect or waits.
Cta& cta_at_instruction() {
  if (mutating.load(std::memory_order_relaxed) != 0) [[unlikely]]
    execute_delayed();
  return cta();
}

}  // namespace

// Fibers may go on on another of the host's threads in a later launch, so these are never inlined elsewhere.
Cta* running_cta() { return running; }
void set_running_cta(Cta* cta) { running = cta; }
Cta& current_cta() { return cta_at_instruction(); }

int thread_index() { return cta().thread_index(); }
Dim3 block_index() { return cta().block_index(); }
Dim3 grid_extents() { return cta().grid(); }

std::uint32_t shared_address(void const* object, Where where) { return cta().shared_address(object, where); }
bool holds_layouts() { return cta().checking(); }
void wrong_address(std::uint32_t right, std::uint32_t computed, std::string const& layout, Where made,
                   Where where) {
  cta().wrong_address(right, computed, layout, made, where);
}
void ld_shared(void* value, std::uint32_t address, int bytes, Where where) {
  cta_at_instruction().ld_shared(value, address, bytes, where);
}
void st_shared(std::uint32_t address, void const* value, int bytes, Where where) {
  cta_at_instruction().st_shared(address, value, bytes, where);
}
void ld_global(void* value, void const* address, int bytes, Where where) {
  cta_at_instruction().ld_global(value, address, bytes, where);
}
void st_global(void* address, void const* value, int bytes, Where where) {
  cta_at_instruction().st_global(address, value, bytes, where);
}
std::uint32_t atomic(AtomicOp op, void* address, std::uint32_t value, std::uint32_t expected, Where where) {
  return cta_at_instruction().atomic(op, address, value, expected, where);
}

// L1 is not modelled: .ca and .cg differ in nothing else.
void cp_async(std::uint32_t dst, void const* src, int bytes, int src_bytes, CacheOp, Where where) {
  cta_at_instruction().cp_async(dst, src, bytes, src_bytes, where);
}
void cp_async_commit_group(Where where) { cta_at_instruction().cp_async_commit_group(where); }
void cp_async_wait_group(int groups_left, Where where) {
  cta_at_instruction().cp_async_wait_group(groups_left, where);
}
void cp_async_wait_all(Where where) { cta_at_instruction().cp_async_wait_all(where); }

void ldmatrix(std::uint32_t* registers, int count, bool transpose, std::uint32_t row, Where where) {
  cta_at_instruction().ldmatrix(registers, count, transpose, row, where);
}
void mma_sync(WarpMma const& op, void* d, std::uint32_t const* a, std::uint32_t const* b, void const* c,
              Where where) {
  cta_at_instruction().mma_sync(op, d, a, b, c, where);
}
std::uint32_t shfl(ShuffleMode mode, std::uint32_t value, int lane_operand, std::uint32_t mask, Where where) {
  return cta_at_instruction().shfl(mode, value, lane_operand, mask, where);
}
std::uint32_t ballot(bool predicate, std::uint32_t mask, bool exited, Where where) {
  return cta_at_instruction().ballot(predicate, mask, exited, where);
}
std::uint32_t redux(ReduxOp op, std::uint32_t value, std::uint32_t mask, Where where) {
  return cta_at_instruction().redux(op, value, mask, where);
}
void warp_sync(std::uint32_t mask, Where where) { cta_at_instruction().warp_sync(mask, where); }

void bar_sync_all(Where where) { cta_at_instruction().bar(Instruction::bar_sync, 0, cta().threads(), where); }
void bar_sync(int id, int threads, Where where) {
  cta_at_instruction().bar(Instruction::bar_sync, id, threads, where);
}
void bar_arrive(int id, int threads, Where where) {
  cta_at_instruction().bar(Instruction::bar_arrive, id, threads, where);
}

void fence(int scope, Where where) {
  constexpr int cta_scope = 0;  // of tegula::Scope
  cta_at_instruction().memory_fence(scope == cta_scope, where);
}
void trap(Where where) { cta_at_instruction().trap(where); }

int cluster_cta_rank() { return cta().rank(); }
int cluster_cta_count() { return cta().cluster().ctas(); }
Dim3 cluster_cta_id() { return cta().cluster().coordinate(cta().rank()); }
Dim3 cluster_dim() { return cta().cluster().extents(); }
void cluster_arrive(Where where) { cta_at_instruction().cluster_arrive(where); }
void cluster_arrive_relaxed(Where where) { cta_at_instruction().cluster_arrive(where, true); }
void cluster_wait(Where where) { cta_at_instruction().cluster_wait(where); }
std::uint32_t mapa(std::uint32_t local, int cta_rank, Where where) {
  return cta().mapa(local, cta_rank, where);
}
void ld_shared_cluster(void* value, std::uint32_t address, int bytes, Where where) {
  cta_at_instruction().ld_shared_cluster(value, address, bytes, where);
}
void st_shared_cluster(std::uint32_t address, void const* value, int bytes, Where where) {
  cta_at_instruction().st_shared_cluster(address, value, bytes, where);
}
void st_async(std::uint32_t address, void const* value, int bytes, std::uint32_t mbarrier, Where where) {
  cta_at_instruction().st_async(address, value, bytes, mbarrier, where);
}

void mbarrier_init(std::uint32_t address, int count, Where where) {
  cta_at_instruction().mbarrier_init(address, count, where);
}
void mbarrier_inval(std::uint32_t address, Where where) {
  cta_at_instruction().mbarrier_inval(address, where);
}
void mbarrier_arrive(std::uint32_t address, bool relaxed, Where where) {
  cta_at_instruction().mbarrier_arrive(address, where, relaxed);
}
void mbarrier_arrive_cluster(std::uint32_t address, bool relaxed, Where where) {
  cta_at_instruction().mbarrier_arrive_cluster(address, where, relaxed);
}
void mbarrier_arrive_cluster_release(std::uint32_t address, Where where) {
  cta_at_instruction().mbarrier_arrive_cluster(address, where, false, true);
}
void mbarrier_arrive_expect_tx(std::uint32_t address, int bytes, bool relaxed, Where where) {
  cta_at_instruction().mbarrier_arrive_expect_tx(address, bytes, where, relaxed);
}
void mbarrier_expect_tx(std::uint32_t address, int bytes, Where where) {
  cta_at_instruction().mbarrier_expect_tx(address, bytes, where);
}
void mbarrier_complete_tx(std::uint32_t address, int bytes, Where where) {
  cta_at_instruction().mbarrier_complete_tx(address, bytes, where);
}
bool mbarrier_test_wait_parity(std::uint32_t address, int parity, Where where) {
  return cta_at_instruction().mbarrier_test_wait(address, parity, where);
}
// How long try_wait suspends a thread is the machine's to choose: here, until the phase is complete or nobody
// else can run.
bool mbarrier_try_wait_parity(std::uint32_t address, int parity, Where where) {
  return cta_at_instruction().mbarrier_try_wait(address, parity, where);
}
void mbarrier_wait_parity(std::uint32_t address, int parity, bool relaxed, Where where) {
  cta_at_instruction().mbarrier_wait(address, parity, where, relaxed);
}
void fence_mbarrier_init(Where where) { cta_at_instruction().fence_mbarrier_init(where); }

void fence_proxy_async(Where where) { cta_at_instruction().fence_proxy_async(where); }
void fence_proxy_async_shared(Where where) { cta_at_instruction().fence_proxy_async(where); }
void bulk_commit_group(Where where) { cta_at_instruction().bulk_commit_group(where); }
void bulk_wait_group(int groups_left, Where where) {
  cta_at_instruction().bulk_wait_group(groups_left, false, where);
}
void bulk_wait_group_read(int groups_left, Where where) {
  cta_at_instruction().bulk_wait_group(groups_left, true, where);
}

// Launches run one after another: what a grid may touch of the memory of others is checked, not delayed.
void griddepcontrol_wait(Where where) { cta_at_instruction().griddepcontrol_wait(where); }
void griddepcontrol_launch_dependents(Where where) {
  cta_at_instruction().fence(Instruction::griddepcontrol_launch_dependents, where);
}

void setmaxnreg_inc(int registers, Where where) { cta_at_instruction().setmaxnreg(registers, true, where); }
void setmaxnreg_dec(int registers, Where where) { cta_at_instruction().setmaxnreg(registers, false, where); }
bool elect_one(Where where) { return cta_at_instruction().elect_one(where); }
void stmatrix(std::uint32_t row, std::uint32_t const* registers, int count, bool transpose, Where where) {
  cta_at_instruction().stmatrix(row, registers, count, transpose, where);
}

}  // namespace tegula::sim
