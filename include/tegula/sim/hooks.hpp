#pragma once

#include <cstdint>

#include "tegula/arch/dim3.hpp"
#include "tegula/arch/mma_op.hpp"
#include "tegula/arch/where.hpp"

/// What the instructions of arch/ call on the host: the simulated machine, as plain declarations, so that a
/// kernel compiles against nothing heavier. Each is called on the fiber of a simulated thread; called outside
/// of a launch it throws std::logic_error. What each does and checks: docs/machine.md.
namespace tegula::sim {

enum class CacheOp : std::uint8_t { ca, cg };
enum class ShuffleMode : std::uint8_t { idx, bfly, up, down };
enum class ReduxOp : std::uint8_t { add, min_s32, min_u32, max_s32, max_u32 };
enum class AtomicOp : std::uint8_t { add_u32, add_f32, max_s32, max_u32, exchange, compare_and_swap };

int thread_index();
Dim3 block_index();
Dim3 grid_extents();

std::uint32_t shared_address(void const* object, Where where);
void ld_shared(void* value, std::uint32_t address, int bytes, Where where);
void st_shared(std::uint32_t address, void const* value, int bytes, Where where);
void ld_global(void* value, void const* address, int bytes, Where where);
void st_global(void* address, void const* value, int bytes, Where where);
std::uint32_t atomic(AtomicOp op, void* address, std::uint32_t value, std::uint32_t expected, Where where);

void cp_async(std::uint32_t dst, void const* src, int bytes, int src_bytes, CacheOp cache, Where where);
void cp_async_commit_group(Where where);
void cp_async_wait_group(int groups_left, Where where);
void cp_async_wait_all(Where where);

void ldmatrix(std::uint32_t* registers, int count, bool transpose, std::uint32_t row, Where where);
void mma_sync(MmaOp op, void* d, std::uint32_t const* a, std::uint32_t const* b, void const* c, Where where);

std::uint32_t shfl(ShuffleMode mode, std::uint32_t value, int lane_operand, std::uint32_t mask, Where where);
/// Bit l of the result: lane l's predicate. A lane that has exited counts as `exited`.
std::uint32_t ballot(bool predicate, std::uint32_t mask, bool exited, Where where);
std::uint32_t redux(ReduxOp op, std::uint32_t value, std::uint32_t mask, Where where);
void warp_sync(std::uint32_t mask, Where where);

void bar_sync_all(Where where);
void bar_sync(int id, int threads, Where where);
void bar_arrive(int id, int threads, Where where);

void fence(int scope, Where where);
[[noreturn]] void trap(Where where);

float ex2_approx_ftz(float x);
float lg2_approx_ftz(float x);
float rcp_approx_ftz(float x);
float rsqrt_approx_ftz(float x);
float tanh_approx(float x);

}  // namespace tegula::sim
