#include "tegula/sim/hooks.hpp"

#include <stdexcept>

#include "cta.hpp"
#include "current_cta.hpp"

/// The instructions of arch/ on the host: each finds the CTA that runs on this host thread and goes there.
namespace tegula::sim {

namespace {

thread_local Cta* running = nullptr;

Cta& cta() {
  if (running == nullptr) [[unlikely]] {
    throw std::logic_error("an instruction was executed outside of a launch on the simulated machine");
  }
  return *running;
}

}  // namespace

CurrentCta::CurrentCta(Cta& cta) { running = &cta; }
CurrentCta::~CurrentCta() { running = nullptr; }
Cta* running_cta() { return running; }

int thread_index() { return cta().thread_index(); }
Dim3 block_index() { return cta().block_index(); }
Dim3 grid_extents() { return cta().grid(); }

std::uint32_t shared_address(void const* object, Where where) { return cta().shared_address(object, where); }
void ld_shared(void* value, std::uint32_t address, int bytes, Where where) {
  cta().ld_shared(value, address, bytes, where);
}
void st_shared(std::uint32_t address, void const* value, int bytes, Where where) {
  cta().st_shared(address, value, bytes, where);
}
void ld_global(void* value, void const* address, int bytes, Where where) {
  cta().ld_global(value, address, bytes, where);
}
void st_global(void* address, void const* value, int bytes, Where where) {
  cta().st_global(address, value, bytes, where);
}
std::uint32_t atomic(AtomicOp op, void* address, std::uint32_t value, std::uint32_t expected, Where where) {
  return cta().atomic(op, address, value, expected, where);
}

// L1 is not modelled: .ca and .cg differ in nothing else.
void cp_async(std::uint32_t dst, void const* src, int bytes, int src_bytes, CacheOp, Where where) {
  cta().cp_async(dst, src, bytes, src_bytes, where);
}
void cp_async_commit_group(Where where) { cta().cp_async_commit_group(where); }
void cp_async_wait_group(int groups_left, Where where) { cta().cp_async_wait_group(groups_left, where); }
void cp_async_wait_all(Where where) { cta().cp_async_wait_all(where); }

void ldmatrix(std::uint32_t* registers, int count, bool transpose, std::uint32_t row, Where where) {
  cta().ldmatrix(registers, count, transpose, row, where);
}
void mma_sync(MmaOp op, void* d, std::uint32_t const* a, std::uint32_t const* b, void const* c, Where where) {
  cta().mma_sync(op, d, a, b, c, where);
}
std::uint32_t shfl(ShuffleMode mode, std::uint32_t value, int lane_operand, std::uint32_t mask, Where where) {
  return cta().shfl(mode, value, lane_operand, mask, where);
}
std::uint32_t ballot(bool predicate, std::uint32_t mask, bool exited, Where where) {
  return cta().ballot(predicate, mask, exited, where);
}
std::uint32_t redux(ReduxOp op, std::uint32_t value, std::uint32_t mask, Where where) {
  return cta().redux(op, value, mask, where);
}
void warp_sync(std::uint32_t mask, Where where) { cta().warp_sync(mask, where); }

void bar_sync_all(Where where) { cta().bar(Instruction::bar_sync, 0, cta().threads(), where); }
void bar_sync(int id, int threads, Where where) { cta().bar(Instruction::bar_sync, id, threads, where); }
void bar_arrive(int id, int threads, Where where) { cta().bar(Instruction::bar_arrive, id, threads, where); }

// Memory is sequentially consistent here; a fence orders nothing more. It is counted.
void fence(int, Where where) { cta().fence(where); }
void trap(Where where) { cta().trap(where); }

}  // namespace tegula::sim
