#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "tegula/arch/atomic_spec.hpp"
#include "tegula/arch/dim3.hpp"
#include "tegula/arch/scope.hpp"
#include "tegula/arch/source_location.hpp"
#include "tegula/arch/tcgen05_descriptor.hpp"
#include "tegula/arch/tensor_copy_shape.hpp"
#include "tegula/arch/tensor_map.hpp"
#include "tegula/arch/tensor_memory_address.hpp"
#include "tegula/atom/mma_spec.hpp"
#include "tegula/atom/scaled_mma_spec.hpp"
#include "tegula/sim/matrix_form.hpp"
#include "tegula/sim/mutation.hpp"

/// What the instructions of arch/ call on the host: the simulated machine, as plain
/// declarations, so that a kernel compiles against nothing heavier. Each is called on the fiber
/// of a simulated thread; called outside of a launch it throws std::logic_error. What each does
/// and checks: docs/machine.md.
namespace tegula::sim {

/// A mma.sync as its lanes hand it to the machine: what it asks of the spec each time, worked
/// out once.
struct WarpMma {
  MmaSpec spec;
  std::uint32_t variant;                    ///< tells two of them apart: the lanes must agree
  std::uint32_t a_bytes, b_bytes, c_bytes;  ///< of one lane's registers; D has as many as C

  constexpr explicit WarpMma(MmaSpec const& s)
      : spec(s),
        variant(0),
        a_bytes(4 * static_cast<std::uint32_t>(a_registers(s))),
        b_bytes(4 * static_cast<std::uint32_t>(b_registers(s))),
        c_bytes(4 * static_cast<std::uint32_t>(d_registers(s))) {
    static_assert(kDTypes <= 32);
    for (DType const type : {s.d, s.a, s.b}) variant = variant * 32 + static_cast<unsigned>(type);
    variant = variant * 1024 + static_cast<unsigned>(s.k);
    variant = variant * 32 + static_cast<unsigned>(s.m);
    variant = variant * 4 + static_cast<unsigned>(s.variant);
  }
};

enum class ShuffleMode : std::uint8_t { idx, bfly, up, down };
enum class ReduxOp : std::uint8_t {
  add,
  min_s32,
  min_u32,
  max_s32,
  max_u32,
  bit_and,
  bit_or,
  bit_xor
};
/// redux.sync of f32: the greatest or the least, of magnitudes with .abs; with .NaN a NaN wins.
struct FloatRedux {
  bool greatest, abs, nan;
};
enum class MatchMode : std::uint8_t { any, all };
/// What the predicates of a barrier's threads are combined to.
enum class BarrierReduction : std::uint8_t { popc, all, any };

// Mutation testing.

/// Launches under way that mutate a statement or list those that could be.
extern std::atomic<int> mutating;
/// What the running launch does to the statement; none outside of a launch.
Mutation mutation(SourceLocation where, Operation operation, Mutation admitted);

int thread_index();
Dim3 block_index();
Dim3 grid_extents();

std::uint32_t shared_address(void const* object, SourceLocation where);
/// Whether accessors are to hold the addresses that they compute against their tile's layout, and
/// what they say of one that differs. `right` is the element's, `made` where the accessor
/// was made.
bool holds_layouts();
void wrong_address(std::uint32_t right, std::uint32_t computed, std::string const& layout,
                   SourceLocation made, SourceLocation where);
/// What a tensor, a copy or a pipeline refuses while the kernel runs: ends the launch with a
/// finding (invalid_operand) of that sentence at that line. Outside of a launch it throws
/// std::logic_error.
[[noreturn]] void misuse(std::string sentence, SourceLocation where);
/// An element outside of a tensor is named, or reached by a copy: a finding (out_of_bounds) of that
/// sentence, and the access follows. Outside of a launch, std::logic_error.
void outside_of_tensor(std::string const& sentence, SourceLocation where);
void ld_shared(void* value, std::uint32_t address, int bytes, SourceLocation where);
void st_shared(std::uint32_t address, void const* value, int bytes, SourceLocation where);
/// Not an instruction (arch/unpoison.hpp).
void unpoison_shared(std::uint32_t address, int bytes, SourceLocation where);
/// Nor is this (arch/discard.hpp).
void discard_shared(std::uint32_t address, int bytes, SourceLocation where);
void ld_global(void* value, void const* address, int bytes, SourceLocation where);
void ld_global_nc(void* value, void const* address, int bytes, SourceLocation where);
void st_global(void* address, void const* value, int bytes, SourceLocation where);
/// Of 128 bytes (arch/prefetch.hpp).
void prefetch_global(void const* address, SourceLocation where);
void apply_priority(void const* address, SourceLocation where);
void discard_global(void* address, SourceLocation where);
void st_bulk_zero(std::uint32_t address, int bytes, SourceLocation where);
/// An atomic: of compare_and_swap alone there is an `expected`, and what was there goes to `old`
/// where the spec returns it. Each is as many bytes as the spec says.
void atomic(AtomicSpec const& spec, void* address, void const* value, void const* expected,
            void* old, SourceLocation where);
void atomic(AtomicSpec const& spec, std::uint32_t address, void const* value, void const* expected,
            void* old, SourceLocation where);
/// Strong accesses (arch/ordered_access.hpp) of 4 or 8 bytes.
void ld_global_ordered(void* value, void const* address, int bytes, MemoryOrder order, Scope scope,
                       SourceLocation where);
void st_global_ordered(void* address, void const* value, int bytes, MemoryOrder order, Scope scope,
                       SourceLocation where);
void ld_shared_ordered(void* value, std::uint32_t address, int bytes, MemoryOrder order,
                       Scope scope, SourceLocation where);
void st_shared_ordered(std::uint32_t address, void const* value, int bytes, MemoryOrder order,
                       Scope scope, SourceLocation where);

void cp_async(std::uint32_t dst, void const* src, int bytes, int src_bytes, SourceLocation where);
void cp_async_commit_group(SourceLocation where);
void cp_async_wait_group(int groups_left, SourceLocation where);
void cp_async_wait_all(SourceLocation where);
void cp_async_mbarrier_arrive(std::uint32_t mbarrier, SourceLocation where);
void cp_async_mbarrier_arrive_noinc(std::uint32_t mbarrier, SourceLocation where);

/// `count` registers.
void ldmatrix(std::uint32_t* registers, int count, MatrixForm form, std::uint32_t row,
              SourceLocation where);
std::uint32_t movmatrix(std::uint32_t source, SourceLocation where);
void mma_sync(WarpMma const& op, void* d, void const* a, void const* b, void const* c,
              SourceLocation where);

/// `clamp` is PTX's operand c: a lane that a shuffle may reach in bits 0-4, which bits of a lane's
/// number name its segment in bits 8-12. `in_range`, unless null: whether the source lane was.
std::uint32_t shfl(ShuffleMode mode, std::uint32_t value, int lane_operand, std::uint32_t clamp,
                   std::uint32_t mask, bool* in_range, SourceLocation where);
/// Bit l of the result: whether lane l's value is the caller's; with `all` every bit of the mask,
/// or none. The lanes give values of one size, `bytes`.
std::uint32_t match(MatchMode mode, std::uint64_t value, int bytes, std::uint32_t mask,
                    SourceLocation where);
/// Bit l of the result: lane l's predicate. A lane that has exited counts as `exited`.
std::uint32_t ballot(bool predicate, std::uint32_t mask, bool exited, SourceLocation where);
std::uint32_t redux(ReduxOp op, std::uint32_t value, std::uint32_t mask, SourceLocation where);
float redux_f32(FloatRedux op, float value, std::uint32_t mask, SourceLocation where);
void warp_sync(std::uint32_t mask, SourceLocation where);

void bar_sync_all(SourceLocation where);
void bar_sync(int id, int threads, SourceLocation where);
void barrier_sync(int id, int threads, SourceLocation where);
void bar_arrive(int id, int threads, SourceLocation where);
/// Of all threads of the CTA, at barrier 0.
int bar_red_all(BarrierReduction op, bool predicate, SourceLocation where);
/// `aligned`: bar.red, else barrier.cta.red.
int bar_red(BarrierReduction op, int id, int threads, bool predicate, bool aligned,
            SourceLocation where);

void fence(Scope scope, SourceLocation where);
void nanosleep(int nanoseconds, SourceLocation where);
[[noreturn]] void trap(SourceLocation where);

// Clusters. A shared::cluster address is (rank + 1) << 24 | the address in that CTA's
// window; an address without a rank means the CTA's own.
int cluster_cta_rank();
int cluster_cta_count();
Dim3 cluster_cta_id();
Dim3 cluster_dim();
void cluster_arrive(SourceLocation where);
void cluster_arrive_relaxed(SourceLocation where);
void cluster_wait(SourceLocation where);
std::uint32_t mapa(std::uint32_t local, int cta_rank, SourceLocation where);
void ld_shared_cluster(void* value, std::uint32_t address, int bytes, SourceLocation where);
void st_shared_cluster(std::uint32_t address, void const* value, int bytes, SourceLocation where);
/// `bytes` is 4, 8 or 16; the same number is completed on the mbarrier, which lies in the same CTA.
void st_async(std::uint32_t address, void const* value, int bytes, std::uint32_t mbarrier,
              SourceLocation where);
/// Likewise 4 bytes, or 8.
void red_async(AtomicOp op, AtomicType type, std::uint32_t address, std::uint64_t value,
               std::uint32_t mbarrier, SourceLocation where);

// Mbarriers.
void mbarrier_init(std::uint32_t address, int count, SourceLocation where);
void mbarrier_inval(std::uint32_t address, SourceLocation where);
/// mbarrier_arrive_cluster releases at the scope of the CTA.
void mbarrier_arrive(std::uint32_t address, int count, SourceLocation where);
void mbarrier_arrive_cluster(std::uint32_t address, int count, SourceLocation where);
void mbarrier_arrive_cluster_release(std::uint32_t address, int count, SourceLocation where);
void mbarrier_arrive_expect_tx(std::uint32_t address, int bytes, SourceLocation where);
void mbarrier_expect_tx(std::uint32_t address, int bytes, SourceLocation where);
void mbarrier_complete_tx(std::uint32_t address, int bytes, SourceLocation where);
bool mbarrier_test_wait_parity(std::uint32_t address, int parity, MemoryOrder order, Scope scope,
                               SourceLocation where);
bool mbarrier_try_wait_parity(std::uint32_t address, int parity, MemoryOrder order, Scope scope,
                              SourceLocation where);
void mbarrier_wait_parity(std::uint32_t address, int parity, MemoryOrder order, Scope scope,
                          SourceLocation where);
void fence_mbarrier_init(SourceLocation where);

// The asynchronous proxy.
void fence_proxy_async(SourceLocation where);
void fence_proxy_async_shared(SourceLocation where);

void griddepcontrol_wait(SourceLocation where);
void griddepcontrol_launch_dependents(SourceLocation where);

// Small instructions of sm_90.
void setmaxnreg_inc(int registers, SourceLocation where);
void setmaxnreg_dec(int registers, SourceLocation where);
bool elect_one(std::uint32_t mask, SourceLocation where);
void stmatrix(std::uint32_t row, std::uint32_t const* registers, int count, MatrixForm form,
              SourceLocation where);

// Copies by the TMA unit (arch/tma.hpp, arch/bulk_copy.hpp).

/// How an instruction names what it moves: the coordinate of a box; a column and four rows of a
/// matrix (.tile::gather4, .tile::scatter4); a pixel of an image, and offsets from there.
enum class TmaNaming : std::uint8_t { tile, rows, im2col };
struct TmaPlace {
  TmaNaming naming;
  int coordinates;                        ///< how many there are
  int const* coordinate;                  ///< innermost axis first
  std::uint16_t const* offset = nullptr;  ///< im2col: two less than coordinates
};
/// `ctas`: 2 where the mbarrier may be the peer's of the pair.
void tma_load(std::uint32_t dst, TensorMap const& map, TmaPlace const& place,
              std::uint32_t mbarrier, int ctas, SourceLocation where);
void tma_load_multicast(std::uint32_t dst, TensorMap const& map, TmaPlace const& place,
                        std::uint32_t mbarrier, std::uint16_t cta_mask, int ctas,
                        SourceLocation where);
/// Not an instruction: the box that a copy of a tensor (tensor/tma.hpp) takes a map to have, axis
/// by axis, its swizzle, and the bits of an element. Ends the launch where it has another
/// (invalid_operand).
struct BoxOfCopy {
  int rank = 0;
  int extent[5] = {};
  TmaSwizzle swizzle{};
  int bits = 0;
};
void hold_box(TensorMap const& map, BoxOfCopy const& expected, SourceLocation where);
void tma_store(TensorMap const& map, TmaPlace const& place, std::uint32_t src,
               SourceLocation where);
void tma_reduce(TensorMap const& map, TmaPlace const& place, std::uint32_t src, TmaReduce op,
                SourceLocation where);
void tma_prefetch(TensorMap const& map, TmaPlace const& place, SourceLocation where);
void prefetch_tensor_map(TensorMap const& map, SourceLocation where);
void bulk_load(std::uint32_t dst, void const* src, int bytes, std::uint32_t mbarrier,
               SourceLocation where);
void bulk_load_multicast(std::uint32_t dst, void const* src, int bytes, std::uint32_t mbarrier,
                         std::uint16_t cta_mask, SourceLocation where);
/// `byte_mask`: of each 16 bytes, which are written.
void bulk_store(void* dst, std::uint32_t src, int bytes, std::uint16_t byte_mask,
                SourceLocation where);
void bulk_reduce(void* dst, std::uint32_t src, int bytes, TmaReduce op, DType type,
                 SourceLocation where);
void bulk_copy_cluster(std::uint32_t dst, std::uint32_t src, int bytes, std::uint32_t mbarrier,
                       SourceLocation where);
void bulk_reduce_cluster(std::uint32_t dst, std::uint32_t src, int bytes, TmaReduce op, DType type,
                         std::uint32_t mbarrier, SourceLocation where);
void bulk_prefetch(void const* src, int bytes, SourceLocation where);
void bulk_commit_group(SourceLocation where);
void bulk_wait_group(int groups_left, SourceLocation where);
void bulk_wait_group_read(int groups_left, SourceLocation where);

// wgmma. `d` is the thread's array of accumulators: it must stay in place until a
// wgmma_wait_group covers the operation.
void wgmma_fence(SourceLocation where);
void wgmma_commit_group(SourceLocation where);
void wgmma_wait_group(int groups_left, SourceLocation where);
void wgmma(MmaSpec const& op, void* d, std::uint64_t a_descriptor, std::uint64_t b_descriptor,
           bool scale_d, SourceLocation where);
void wgmma(MmaSpec const& op, void* d, std::uint32_t const (&a)[4], std::uint64_t b_descriptor,
           bool scale_d, SourceLocation where);

// Tensor memory and tcgen05 (arch/tcgen05.hpp). `registers` of a tcgen05.ld must stay in place
// until a tcgen05_wait_ld. `ctas`: .cta_group.
void tcgen05_alloc(std::uint32_t destination, int columns, int ctas, SourceLocation where);
void tcgen05_dealloc(std::uint32_t address, int columns, int ctas, SourceLocation where);
void tcgen05_relinquish_alloc_permit(int ctas, SourceLocation where);
void tcgen05_ld(TensorMove const& move, void* registers, std::uint32_t address,
                SourceLocation where);
void tcgen05_st(TensorMove const& move, void const* registers, std::uint32_t address,
                SourceLocation where);
void tcgen05_wait_ld(SourceLocation where);
void tcgen05_wait_st(SourceLocation where);
void tcgen05_fence_before_thread_sync(SourceLocation where);
void tcgen05_fence_after_thread_sync(SourceLocation where);
void tcgen05_cp(TensorCopyShape shape, TensorCopyFormat format, int ctas, std::uint32_t to,
                std::uint64_t descriptor, SourceLocation where);
void tcgen05_shift_down(int ctas, std::uint32_t at, SourceLocation where);
/// With block scales in tensor memory (arch/tcgen05_scaled.hpp): `block` elements share one. `a` is
/// a matrix descriptor, or with ts an address of tensor memory; `collector` says what becomes of
/// A's collector buffer.
void tcgen05_mma_scaled(ScaledMmaKind kind, MmaOperands operands, int block, int ctas,
                        Collector collector, std::uint32_t d, std::uint64_t a,
                        std::uint64_t b_descriptor, std::uint32_t instruction_descriptor,
                        std::uint32_t scale_a, std::uint32_t scale_b, bool accumulate,
                        SourceLocation where);
/// `a` is a matrix descriptor, or an address of tensor memory.
void tcgen05_mma(Tcgen05Kind kind, Tcgen05Form const& form, std::uint32_t d, std::uint64_t a,
                 std::uint64_t b_descriptor, std::uint32_t instruction_descriptor, bool accumulate,
                 SourceLocation where);
/// `cta_mask`: of the CTAs at whose mbarriers it arrives; 0: its own.
void tcgen05_commit(std::uint32_t mbarrier, int ctas, std::uint16_t cta_mask, SourceLocation where);

// Cluster launch control (arch/cluster_launch_control.hpp). A query returns whether a cluster was
// cancelled, and in `first` its first CTA.
void clusterlaunchcontrol_try_cancel(std::uint32_t response, std::uint32_t mbarrier, bool multicast,
                                     SourceLocation where);
bool clusterlaunchcontrol_query_cancel(std::uint32_t response, Dim3& first, SourceLocation where);

// Registers in flight: how many operations hold some, of all machines; and an access of the running
// thread to a register, which is a finding where an operation in flight holds it.
inline std::atomic<int> registers_held{0};
void touch_register(void const* place, SourceLocation where);
/// Likewise of a fragment as a whole, its registers from `first` on. Of one that is destroyed no
/// operation writes a register thereafter.
enum class FragmentUse { copied, assigned, destroyed };
void use_fragment(void const* first, int bytes, FragmentUse use) noexcept;
/// Findings of a fragment: value `value`, `steps` from the thread's first along each of `axes`
/// axes, is read, and nobody has written its register; an index lies beyond `extent`, that of mode
/// `mode`, or where `mode` is -1 the number of all values.
void read_unwritten_register(int value, int const* steps, int axes, SourceLocation where);
void beyond_fragment(int index, int extent, int mode, SourceLocation where);

// The special-function units. Their instructions move no bytes and order nothing: the machine
// computes them without knowing who asks. Only who keeps time is told: how many clusters do, of all
// machines, and that the running thread executes one; `exponential`: an ex2.
inline std::atomic<int> timed_clusters{0};
void special_function(bool exponential);
float ex2_approx_ftz(float x);
float lg2_approx_ftz(float x);
float rcp_approx_ftz(float x);
float rsqrt_approx_ftz(float x);
float tanh_approx(float x);

}  // namespace tegula::sim
