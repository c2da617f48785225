// Registers that end, or are copied, while an instruction in flight holds them.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "broken_kernel.hpp"
#include "operand_tiles.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/tcgen05.hpp"
#include "tegula/arch/wgmma.hpp"
#include "tegula/tensor/descriptor.hpp"
#include "tegula/tensor/fragment.hpp"
#include "tegula/tensor/shared_tile.hpp"

namespace tegula {
namespace {

using sim::Finding;
using sim::FindingKind;

template <class T, int N> using Registers1d = Fragment<T, Map<Mode<Along<0, N, 1>>>>;

constexpr MmaSpec kWide = warpgroup_mma(DType::bf16, DType::bf16, DType::f32, 64);
constexpr MmaSpec kWideFromRegisters =
    warpgroup_mma(DType::bf16, DType::bf16, DType::f32, 64, Major::k, Major::k, MmaOperands::rs);
using Accumulators = Registers1d<float, 32>;
using FragmentOfA = Registers1d<bfloat16, 8>;

static_assert(sizeof(Accumulators) == 4 * 32 && sizeof(FragmentOfA) == 4 * 4);
constexpr float sum_of_two() {
  Registers1d<float, 2> two;
  two.data[0] = 3.0f;
  two.data[1] = 4.0f;
  Registers1d<float, 2> copy = two;
  copy = two;
  return copy.data[0] + copy.data[1];
}
static_assert(sum_of_two() == 7.0f);

TEST(Fragments, TheirEndIsToldWhereTheyLie) {
  Accumulators f;
  EXPECT_EQ(static_cast<void*>(&f.whole), static_cast<void*>(f.data));
}

/// Calls to functions that are not inlined: what the first leaves on its stack the second has.
struct HoldsOnTheStack {
  using Params = Buffers;
  using TileA = SharedTile<std::uint16_t, swizzled_operand(16, 64, 64, 1)>;
  using TileB = SharedTile<std::uint16_t, swizzled_operand(16, 64, 64, 1)>;
  using SharedStorage = OperandTiles<TileA, TileB>;
  static constexpr int threads = 128;

  static void fill(SharedStorage& smem) {
    for (TileA const* tile : {&smem.a, &smem.b}) {
      for (int at = 4 * thread_idx(); at < static_cast<int>(sizeof(tile->data)); at += 512)
        st_shared(shared_address(tile->data) + static_cast<SharedAddr>(at), 0u);
    }
    fence_proxy_async_shared();
    cta::sync();
    wgmma_fence();
  }

  /// Waits for the group, with values of its own all over the stack. True where they stay.
  [[gnu::noinline]] static bool wait_over_values() {
    std::array<int volatile, 1024> values;
    for (int volatile& value : values) value = 7;
    wgmma_wait_group<0>();
    return std::all_of(values.begin(), values.end(), [](int value) { return value == 7; });
  }
};

struct AccumulatorsOutOfScope : HoldsOnTheStack {
  static constexpr int line = __LINE__ + 5, commit_line = line + 2;
  [[gnu::noinline]] static void start(SharedStorage& smem) {
    Accumulators d;
    clear(d);
    wgmma_fence();
    wgmma<kWide>(d.take<32>(0), matrix_descriptor(tensor(smem.a)),
                 matrix_descriptor(tensor(smem.b)), true);
    wgmma_commit_group();
  }
  void operator()(Params const& p, SharedStorage& smem) const {
    fill(smem);
    start(smem);
    st_global(p.out + 4 * thread_idx(), wait_over_values() ? 1 : 0);
  }
};

struct AOutOfScope : HoldsOnTheStack {
  static constexpr int line = __LINE__ + 4;
  [[gnu::noinline]] static void start(SharedStorage& smem, float (&d)[32]) {
    FragmentOfA a = {};
    wgmma_fence();
    wgmma<kWideFromRegisters>(d, a.take<4>(0), matrix_descriptor(tensor(smem.b)), true);
    wgmma_commit_group();
  }
  void operator()(Params const& p, SharedStorage& smem) const {
    fill(smem);
    float d[32] = {};
    start(smem, d);
    st_global(p.out + 4 * thread_idx(), wait_over_values() ? 1 : 0);
  }
};

/// An array tells nobody of its end.
struct ArrayOutOfScope : HoldsOnTheStack {
  static constexpr int line = __LINE__ + 4;
  [[gnu::noinline]] static void start(SharedStorage& smem) {
    float d[32] = {};
    wgmma_fence();
    wgmma<kWide>(d, matrix_descriptor(tensor(smem.a)), matrix_descriptor(tensor(smem.b)), true);
    wgmma_commit_group();
  }
  void operator()(Params const& p, SharedStorage& smem) const {
    fill(smem);
    start(smem);
    st_global(p.out + 4 * thread_idx(), wait_over_values() ? 1 : 0);
  }
};

template <bool Assigns> struct CopiesAccumulators : HoldsOnTheStack {
  static constexpr int line = __LINE__ + 6;
  void operator()(Params const& p, SharedStorage& smem) const {
    fill(smem);
    Accumulators d, zero;
    clear(d), clear(zero);
    wgmma_fence();
    wgmma<kWide>(d.take<32>(0), matrix_descriptor(tensor(smem.a)),
                 matrix_descriptor(tensor(smem.b)), true);
    if constexpr (Assigns) {
      d = zero;
    } else {
      zero = d;
    }
    wgmma_commit_group();
    wgmma_wait_group<0>();
    st_global(p.out + 4 * thread_idx(), zero(0));
  }
};

/// Runs the kernel at each completion, and expects each thread to have its values still. What is
/// found at the last.
template <class Kernel> sim::Report keeps_values(sim::Options options = {}) {
  sim::Report report;
  options.throw_on_finding = false;
  for (auto const completion :
       {sim::Completion::first, sim::Completion::random, sim::Completion::last}) {
    options.completion = completion;
    sim::Machine machine(options);
    Buffers const buffers{nullptr, static_cast<char*>(machine.allocate(4096, "out"))};
    report = sim::launch<Kernel>(machine, {1, 1, 1}, buffers);
    std::array<int, 128> kept = {};
    machine.download(kept.data(), buffers.out, sizeof(kept));
    EXPECT_EQ(kept, ([] {
                std::array<int, 128> ones;
                ones.fill(1);
                return ones;
              }()));
    if (options.check) {
      EXPECT_FALSE(report.ok()) << "at every completion";
    }
  }
  return report;
}

TEST(Fragments, AccumulatorsInFlightOutliveTheirScopeInNothing) {
  Finding const f = only_finding(keeps_values<AccumulatorsOutOfScope>(), FindingKind::register_race,
                                 AccumulatorsOutOfScope::line);
  EXPECT_EQ(f.message,
            "the fragment of its accumulators goes out of scope while this wgmma.mma_async is in "
            "flight, after the wgmma.commit_group of checker/fragments_test.cpp:" +
                std::to_string(AccumulatorsOutOfScope::commit_line));
  EXPECT_EQ(f.order,
            "a wgmma_wait_group that covers it before the end of that scope would order them");
  EXPECT_EQ(f.count, 128);
  keeps_values<AccumulatorsOutOfScope>({.check = false});
}

TEST(Fragments, RegistersOfAInFlightOutliveTheirScopeInNothing) {
  Finding const f =
      only_finding(keeps_values<AOutOfScope>(), FindingKind::register_race, AOutOfScope::line);
  EXPECT_SAYS(f, "the fragment of its A goes out of scope while this wgmma.mma_async is in flight");
}

TEST(Fragments, WhatWasWrittenOverAnArrayInFlightStays) {
  // Where the results come at once the array is still there, and nothing is wrong with this run.
  sim::Options options;
  options.throw_on_finding = false;
  for (bool const check : {true, false}) {
    options.check = check;
    sim::Machine machine(options);
    Buffers const buffers{nullptr, static_cast<char*>(machine.allocate(4096, "out"))};
    sim::Report const report = sim::launch<ArrayOutOfScope>(machine, {1, 1, 1}, buffers);
    int kept = 0;
    machine.download(&kept, buffers.out, sizeof(kept));
    EXPECT_EQ(kept, 1);
    if (check) {
      EXPECT_SAYS(only_finding(report, FindingKind::register_race, ArrayOutOfScope::line),
                  "was written while a wgmma.mma_async that owns it was in flight");
    }
  }
}

TEST(Fragments, CopiesInFlightAreFound) {
  using Copies = CopiesAccumulators<false>;
  Finding const f = only_finding(report_of<Copies>(), FindingKind::register_race, Copies::line);
  EXPECT_EQ(f.message,
            "the fragment of its accumulators is copied while this wgmma.mma_async is in flight");
  EXPECT_EQ(f.order, "a wgmma_wait_group that covers it before the copy would order them");
  using Assigns = CopiesAccumulators<true>;
  EXPECT_SAYS(only_finding(report_of<Assigns>(), FindingKind::register_race, Assigns::line),
              "is assigned to while this wgmma.mma_async is in flight");
}

/// A load from tensor memory into a fragment of a function that returns before the load is waited
/// for.
template <bool Waits> struct LoadOutOfScope {
  using Params = Buffers;
  struct SharedStorage {
    std::uint32_t tmem;
    template <class F> void name_buffers(F&& name) { name("tmem", tmem); }
  };
  static constexpr int threads = 128;
  static constexpr int line = __LINE__ + 3;
  [[gnu::noinline]] static void start(TensorAddr from) {
    Registers1d<float, 32> loaded;
    tcgen05_ld<TensorShape::lanes32_bits32, 32>(loaded.take<32>(0), from);
    if (Waits) tcgen05_wait_ld();
  }
  [[gnu::noinline]] static bool wait_over_values() {
    std::array<int volatile, 1024> values;
    for (int volatile& value : values) value = 7;
    tcgen05_wait_ld();
    return std::all_of(values.begin(), values.end(), [](int value) { return value == 7; });
  }
  void operator()(Params const& p, SharedStorage& smem) const {
    if (warp_id() == 0) tcgen05_alloc<32>(shared_address(&smem.tmem));
    cta::sync();
    TensorAddr const base = ld_shared<std::uint32_t>(shared_address(&smem.tmem));
    TensorAddr const own = base + tensor_address(32 * warp_id(), 0);
    float const zeros[32] = {};
    tcgen05_st<TensorShape::lanes32_bits32, 32>(zeros, own);
    tcgen05_wait_st();
    start(own);
    st_global(p.out + 4 * thread_idx(), wait_over_values() ? 1 : 0);
    cta::sync();
    if (warp_id() == 0) tcgen05_dealloc<32>(base);
  }
};

/// What a thread does to plain registers that a load from tensor memory in flight is to write.
enum class Meanwhile { nothing, writes, scales, loads_again };
template <Meanwhile What> struct TouchesLoadedRegisters : LoadOutOfScope<true> {
  static constexpr int line = __LINE__ + 10;
  void operator()(Params const& p, SharedStorage& smem) const {
    if (warp_id() == 0) tcgen05_alloc<32>(shared_address(&smem.tmem));
    cta::sync();
    TensorAddr const base = ld_shared<std::uint32_t>(shared_address(&smem.tmem));
    TensorAddr const own = base + tensor_address(32 * warp_id(), 0);
    float const ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    tcgen05_st<TensorShape::lanes32_bits32, 8>(ones, own);
    tcgen05_wait_st();
    float loaded[8] = {};
    tcgen05_ld<TensorShape::lanes32_bits32, 8>(loaded, own);
    if (What == Meanwhile::writes && thread_idx() == 37) loaded[3] = 5;
    if (What == Meanwhile::scales && thread_idx() == 37) loaded[3] *= 2;
    if (What == Meanwhile::loads_again) tcgen05_ld<TensorShape::lanes32_bits32, 8>(loaded, own);
    tcgen05_wait_ld();
    loaded[2] *= 2;
    st_global(p.out + 4 * thread_idx(), loaded[2]);
    cta::sync();
    if (warp_id() == 0) tcgen05_dealloc<32>(base);
  }
};

TEST(Fragments, WritesToPlainRegistersThatAreBeingLoadedAreFound) {
  for (auto const completion :
       {sim::Completion::last, sim::Completion::first, sim::Completion::random}) {
    sim::Options const options{.generation = sim::Generation::sm100, .completion = completion};
    for (sim::Report const& report :
         {report_of<TouchesLoadedRegisters<Meanwhile::nothing>>(options),
          report_of<TouchesLoadedRegisters<Meanwhile::loads_again>>(options)})
      EXPECT_TRUE(report.ok()) << report.text();
    for (sim::Report const& report :
         {report_of<TouchesLoadedRegisters<Meanwhile::writes>>(options),
          report_of<TouchesLoadedRegisters<Meanwhile::scales>>(options)}) {
      Finding const f = only_finding(report, FindingKind::register_race,
                                     TouchesLoadedRegisters<Meanwhile::writes>::line);
      EXPECT_EQ(f.message,
                "register 3 of those that this tcgen05.ld loads was written while it was "
                "in flight");
      EXPECT_EQ(f.warp, 1);
      EXPECT_EQ(f.lane, 5);
    }
  }
}

TEST(Fragments, LoadsFromTensorMemoryOutliveTheirScopeInNothing) {
  sim::Options const sm100{.generation = sim::Generation::sm100};
  EXPECT_TRUE(report_of<LoadOutOfScope<true>>(sm100).ok());
  using Kernel = LoadOutOfScope<false>;
  Finding const f =
      only_finding(keeps_values<Kernel>(sm100), FindingKind::register_race, Kernel::line);
  EXPECT_EQ(f.message,
            "the fragment that this tcgen05.ld loads goes out of scope while it is in flight");
  EXPECT_EQ(f.order, "a tcgen05_wait_ld before the end of that scope would order them");
}

}  // namespace
}  // namespace tegula
