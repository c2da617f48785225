#include <gtest/gtest.h>

#include <string>

#include "run_schedules.hpp"
#include "tegula/arch/atomic.hpp"
#include "tegula/arch/cluster.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/ordered_access.hpp"
#include "tegula/arch/reduction.hpp"

/// What atomics order by themselves, and where their order or their scope is too weak: PTX ISA,
/// memory consistency model, "Release and Acquire Patterns" and "Morally strong operations".
namespace tegula {
namespace {

using sim::FindingKind;
using Word = std::uint32_t;
using enum MemoryOrder;

/// How a thread tells, and how another one sees.
enum class How { atom, red, exchange, store };

/// Base: `in` holds zeros.
struct Flags : Broken {
  static constexpr bool concurrent = true;
  TEGULA_DEVICE static Word* flag(Params const& p) { return reinterpret_cast<Word*>(p.in); }
  TEGULA_DEVICE static Word* data(Params const& p) { return reinterpret_cast<Word*>(p.in) + 512; }
};

template <How H, MemoryOrder O, Scope S> TEGULA_DEVICE void tells(Word* flag) {
  if constexpr (H == How::atom) {
    atom_add<S, O>(flag, 1u);
  } else if constexpr (H == How::red) {
    red_add<S, O>(flag, 1u);
  } else if constexpr (H == How::exchange) {
    atom_exch<S, O>(flag, 1u);
  } else if constexpr (O == release) {
    st_global_release<S>(flag, 1u);
  } else {
    st_global_relaxed<S>(flag, 1u);
  }
}
template <How H, MemoryOrder O, Scope S> TEGULA_DEVICE Word sees(Word* flag) {
  if constexpr (H == How::atom) {
    return atom_or<S, O>(flag, 0u);
  } else if constexpr (O == acquire) {
    return ld_global_acquire<Word, S>(flag);
  } else {
    return ld_global_relaxed<Word, S>(flag);
  }
}

/// A thread of CTA 0 hands a word to one of CTA 1; `Inside`: to one of another warp of its own CTA.
/// `Fences`: each fences, at that scope, too.
template <How Tell, MemoryOrder Told, Scope TellScope, How See, MemoryOrder Seen, Scope SeeScope,
          bool Inside = false, bool Fences = false>
struct Hands : Flags {
  static constexpr int threads = 64;
  void operator()(Params const& p, SharedStorage&) const {
    if (lane_id() != 0 || (!Inside && warp_id() == 1) || (Inside && block_idx().x != 0)) return;
    bool const first = Inside ? warp_id() == 0 : block_idx().x == 0;
    if (first) {
      st_global(data(p), 5u);
      if constexpr (Fences) fence_acq_rel<TellScope>();
      tells<Tell, Told, TellScope>(flag(p));
    } else {
      while (sees<See, Seen, SeeScope>(flag(p)) == 0) {
      }
      if constexpr (Fences) fence_acq_rel<SeeScope>();
      st_global(p.out, ld_global<Word>(data(p)));
    }
  }
};

/// `right`: clean at every schedule; else a data race is found at each, and nothing else.
template <class Kernel> void expect_order(bool right, Dim3 grid = {2, 1, 1}) {
  for_each_schedule([&](sim::Options const& options) {
    sim::Report const report = report_of<Kernel>(options, grid);
    EXPECT_EQ(report.ok(), right) << report.text();
    for (sim::Finding const& finding : report.findings)
      EXPECT_EQ(finding.kind, FindingKind::data_race) << report.text();
  });
}

TEST(AtomicOrder, AReleaseAndAnAcquireHandOn) {
  constexpr Scope gpu = Scope::gpu;
  expect_order<Hands<How::atom, release, gpu, How::atom, acquire, gpu>>(true);
  expect_order<Hands<How::atom, acq_rel, Scope::sys, How::atom, acq_rel, gpu>>(true);
  expect_order<Hands<How::red, release, gpu, How::atom, acquire, gpu>>(true);
  expect_order<Hands<How::exchange, release, gpu, How::store, acquire, gpu>>(true);
  expect_order<Hands<How::store, release, gpu, How::atom, acq_rel, gpu>>(true);
  // Half of it orders nothing.
  expect_order<Hands<How::atom, relaxed, gpu, How::atom, acquire, gpu>>(false);
  expect_order<Hands<How::atom, release, gpu, How::atom, relaxed, gpu>>(false);
  expect_order<Hands<How::atom, acquire, gpu, How::atom, acquire, gpu>>(false);
  expect_order<Hands<How::atom, release, gpu, How::atom, release, gpu>>(false);
  expect_order<Hands<How::red, relaxed, gpu, How::store, acquire, gpu>>(false);
}

TEST(AtomicOrder, FencesMakePatternsOfRelaxedOnes) {
  constexpr Scope gpu = Scope::gpu;
  expect_order<Hands<How::atom, relaxed, gpu, How::atom, relaxed, gpu, false, true>>(true);
  expect_order<Hands<How::red, relaxed, gpu, How::atom, relaxed, gpu, false, true>>(true);
  expect_order<Hands<How::atom, relaxed, Scope::cta, How::atom, relaxed, gpu, false, true>>(false);
  expect_order<Hands<How::atom, acquire, gpu, How::atom, release, gpu, false, true>>(true);
}

TEST(AtomicOrder, ScopesMustIncludeTheOtherThread) {
  expect_order<Hands<How::atom, release, Scope::cta, How::atom, acquire, Scope::gpu>>(false);
  expect_order<Hands<How::atom, release, Scope::gpu, How::atom, acquire, Scope::cta>>(false);
  expect_order<Hands<How::atom, release, Scope::cluster, How::atom, acquire, Scope::cluster>>(
      false);
  // Within a CTA the scope of the CTA will do.
  expect_order<Hands<How::atom, release, Scope::cta, How::atom, acquire, Scope::cta, true>>(true);
  expect_order<Hands<How::atom, release, Scope::cta, How::atom, acquire, Scope::sys, true>>(true);
  expect_order<Hands<How::atom, relaxed, Scope::cta, How::atom, acquire, Scope::cta, true>>(false);
  expect_order<Hands<How::red, release, Scope::cta, How::atom, relaxed, Scope::cta, true>>(false);
}

/// As Hands, between the CTAs of one cluster.
template <Scope TellScope, Scope SeeScope> struct HandsToThePeer : Flags {
  static constexpr Dim3 cluster = {2, 1, 1};
  void operator()(Params const& p, SharedStorage&) const {
    if (lane_id() != 0) return;
    if (cluster_cta_rank() == 0) {
      st_global(data(p), 5u);
      red_or<TellScope, release>(flag(p), 1u);
    } else {
      while (atom_and<SeeScope, acquire>(flag(p), ~0u) == 0) {
      }
      st_global(p.out, ld_global<Word>(data(p)));
    }
  }
};

TEST(AtomicOrder, TheClustersScopeIncludesThePeer) {
  expect_order<HandsToThePeer<Scope::cluster, Scope::cluster>>(true);
  expect_order<HandsToThePeer<Scope::cluster, Scope::gpu>>(true);
  expect_order<HandsToThePeer<Scope::cta, Scope::cluster>>(false);
  expect_order<HandsToThePeer<Scope::cluster, Scope::cta>>(false);
}

/// CTA 0 hands a word on by way of CTA 1, which changes the flag by an atomic of some order; CTA 2
/// acquires what that left. `Fresh`: CTA 1 writes another flag, so that it must hand on itself.
template <MemoryOrder Middle, bool Fresh, bool Red> struct HandsOn : Flags {
  void operator()(Params const& p, SharedStorage&) const {
    if (lane_id() != 0) return;
    Word* const second = flag(p) + (Fresh ? 16 : 0);
    if (block_idx().x == 0) {
      st_global(data(p), 5u);
      atom_add<Scope::gpu, release>(flag(p), 1u);
    } else if (block_idx().x == 1) {
      Word seen;
      do {
        seen = Fresh || !Red ? atom_or < Scope::gpu,
        acquires(Middle) ? acquire : relaxed > (flag(p), 0u)
            : ld_global_relaxed<Word, Scope::gpu>(flag(p));
      } while (seen != 1);
      if constexpr (Red) {
        red_add<Scope::gpu, releases(Middle) ? release : relaxed>(second, 1u);
      } else {
        atom_add<Scope::gpu, Middle>(second, 1u);
      }
    } else {
      while (ld_global_acquire<Word, Scope::gpu>(second) != (Fresh ? 1u : 2u)) {
      }
      st_global(p.out, ld_global<Word>(data(p)));
    }
  }
};

TEST(AtomicOrder, WhatWasAcquiredIsReleasedAgain) {
  Dim3 const grid = {3, 1, 1};
  expect_order<HandsOn<acq_rel, true, false>>(true, grid);
  expect_order<HandsOn<acq_rel, true, true>>(true, grid);
  expect_order<HandsOn<acquire, true, false>>(false, grid);
  expect_order<HandsOn<release, true, false>>(false, grid);
  // "Observation Order": an atomic, a red too, goes on with the release whose value it changes.
  expect_order<HandsOn<relaxed, false, false>>(true, grid);
  expect_order<HandsOn<relaxed, false, true>>(true, grid);
}

/// A red is no read: a fence after it acquires nothing. (It is known to have come after the release
/// by what is not memory: the flag's value, which another thread of the CTA has seen.)
template <bool Red> struct FencesAfterIt : Flags {
  static constexpr bool concurrent = false;
  void operator()(Params const& p, SharedStorage&) const {
    if (lane_id() != 0) return;
    if (block_idx().x == 0) {
      st_global(data(p), 5u);
      red_add<Scope::gpu, release>(flag(p), 1u);
    } else {
      if constexpr (Red) {
        red_add(flag(p), 1u);
      } else {
        atom_add(flag(p), 1u);
      }
      fence_acq_rel<Scope::gpu>();
      st_global(p.out, ld_global<Word>(data(p)));
    }
  }
};

TEST(AtomicOrder, AFenceAfterARedAcquiresNothing) {
  // Clusters execute atomics in their order here, so the second one sees the first one's value.
  EXPECT_TRUE(report_of<FencesAfterIt<false>>({}, {2, 1, 1}).ok());
  EXPECT_FALSE(report_of<FencesAfterIt<true>>({}, {2, 1, 1}).ok());
}

/// A compare-and-swap that fails writes nothing, and so releases nothing.
template <bool Fails> struct Swaps : Flags {
  static constexpr bool concurrent = false;
  void operator()(Params const& p, SharedStorage&) const {
    if (lane_id() != 0) return;
    if (block_idx().x == 0) {
      st_global(data(p), 5u);
      atom_cas<Scope::gpu, acq_rel>(flag(p), Fails ? 7u : 0u, 1u);
    } else {
      atom_cas<Scope::gpu, acq_rel>(flag(p), 9u, 1u);
      st_global(p.out, ld_global<Word>(data(p)));
    }
  }
};

TEST(AtomicOrder, ACompareAndSwapThatFailsAcquiresAlone) {
  EXPECT_TRUE(report_of<Swaps<false>>({}, {2, 1, 1}).ok());
  EXPECT_FALSE(report_of<Swaps<true>>({}, {2, 1, 1}).ok());
}

/// CTA 0 adds pairs or vectors, CTA 1 single elements or other vectors of the same bytes.
template <class One, class Other> struct AddsOver : Flags {
  void operator()(Params const& p, SharedStorage&) const {
    using T = typename detail::AtomicElements<AtomicOp::add, One>::Element;
    using U = typename detail::AtomicElements<AtomicOp::add, Other>::Element;
    if (lane_id() != 0) return;
    if (block_idx().x == 0) red_add(reinterpret_cast<T*>(p.in), One{});
    if (block_idx().x == 1) red_add(reinterpret_cast<U*>(p.in), Other{});
  }
};

TEST(AtomicOrder, EachElementOfAVectorMeetsAnotherOfItsSize) {
  // PTX ISA, "Vector Data-types", "Packed Data-types".
  expect_order<AddsOver<Vector<half, 8>, half>>(true);
  expect_order<AddsOver<Vector<half, 2>, Vector<half, 4>>>(true);
  expect_order<AddsOver<Vector<float, 4>, float>>(true);
  expect_order<AddsOver<Vector<float, 2>, Word>>(true);
  expect_order<AddsOver<Vector<half, 2>, Word>>(false);
  expect_order<AddsOver<Vector<float, 2>, std::uint64_t>>(false);
}

/// Order that a mutation takes away.
struct MutatedHandover : Flags {
  static constexpr int told = __LINE__ + 5, seen = told + 2;
  void operator()(Params const& p, SharedStorage&) const {
    if (lane_id() != 0) return;
    if (block_idx().x == 0) {
      st_global(data(p), 5u);
      red_add<Scope::gpu, release>(flag(p), 1u);
    } else {
      while (atom_or<Scope::gpu, acquire>(flag(p), 0u) == 0) {
      }
      st_global(p.out, ld_global<Word>(data(p)));
    }
  }
};

TEST(AtomicOrder, MutantsAreFound) {
  auto const found = [](int line, Operation operation, Mutation mutation) {
    sim::Options options;
    options.mutant = sim::Mutant{"checker/atomic_order_test.cpp", line, operation, mutation};
    sim::Report const report = report_of<MutatedHandover>(options, {2, 1, 1});
    EXPECT_EQ(report.findings.size(), 1u) << report.text();
    return report.findings.empty() ? FindingKind::trap : report.findings[0].kind;
  };
  EXPECT_TRUE(report_of<MutatedHandover>({}, {2, 1, 1}).ok());
  constexpr int told = MutatedHandover::told, seen = MutatedHandover::seen;
  EXPECT_EQ(found(told, Operation::red, Mutation::weakened), FindingKind::data_race);
  EXPECT_EQ(found(told, Operation::red, Mutation::removed), FindingKind::deadlock);
  EXPECT_EQ(found(seen, Operation::atom, Mutation::weakened), FindingKind::data_race);
}

// Shared memory.

struct SharedWords : Broken {
  static constexpr Dim3 cluster = {2, 1, 1};
  static constexpr int threads = 64;
  struct SharedStorage {
    alignas(16) Word word[4];
    Word data;
    template <class F> void name_buffers(F&& name) {
      name("word", word);
      name("data", data);
    }
  };
  TEGULA_DEVICE static SharedAddr clear(SharedStorage& smem) {
    SharedAddr const word = shared_address(smem.word);
    if (thread_idx() < 4) st_shared(word + 4 * static_cast<SharedAddr>(thread_idx()), 0u);
    cluster::sync();
    return word;
  }
};

/// Each CTA adds to a word of CTA 0, at two scopes. `Ordered`: one after the other.
template <Scope Own, Scope Peers, bool Ordered> struct AddTogether : SharedWords {
  void operator()(Params const&, SharedStorage& smem) const {
    SharedAddr const word = clear(smem);
    bool const first = cluster_cta_rank() == 0;
    if (first && lane_id() == 0) atom_shared_add<Own>(word, 1u);
    if (Ordered) cluster::sync();
    if (!first && lane_id() == 0) red_shared_add<Peers>(mapa(word, 0), 1u);
    cluster::sync();
  }
};

TEST(AtomicOrder, ScopesOfSharedMemoryMustIncludeThePeer) {
  Dim3 const grid = {2, 1, 1};
  expect_order<AddTogether<Scope::cluster, Scope::cluster, false>>(true, grid);
  expect_order<AddTogether<Scope::gpu, Scope::cluster, false>>(true, grid);
  expect_order<AddTogether<Scope::cta, Scope::cluster, true>>(true, grid);
  expect_order<AddTogether<Scope::cta, Scope::cluster, false>>(false, grid);
  sim::Report const report = report_of<AddTogether<Scope::cta, Scope::cluster, false>>({}, grid);
  ASSERT_EQ(report.findings.size(), 1u) << report.text();
  EXPECT_NE(report.findings[0].message.find("and the two do not meet as strong accesses"),
            std::string::npos)
      << report.text();
  EXPECT_NE(report.findings[0].order.find("Scope::cluster for the atom.shared at"),
            std::string::npos)
      << report.text();
}

/// Two warps change the same bytes of shared memory, as elements of two sizes.
template <class One, class Other> struct SharedSizes : SharedWords {
  void operator()(Params const&, SharedStorage& smem) const {
    SharedAddr const word = clear(smem);
    if (thread_idx() == 0) red_shared_add(word, One{});
    if (thread_idx() == 32) red_shared_add(word, Other{});
    cluster::sync();
  }
};

TEST(AtomicOrder, SizesOfSharedMemoryMustBeTheSame) {
  Dim3 const grid = {2, 1, 1};
  expect_order<SharedSizes<half, Vector<half, 2>>>(true, grid);
  expect_order<SharedSizes<float, Word>>(true, grid);
  expect_order<SharedSizes<Word, std::uint64_t>>(false, grid);
  expect_order<SharedSizes<Vector<bfloat16, 2>, Word>>(false, grid);
}

/// A word of a CTA's shared memory and a flag beside it, for another warp of it or for the peer.
template <MemoryOrder Told, MemoryOrder Seen, Scope S, bool Peer> struct HandsShared : SharedWords {
  void operator()(Params const& p, SharedStorage& smem) const {
    SharedAddr const flag = clear(smem), data = shared_address(&smem.data);
    SharedAddr const from = Peer ? mapa(flag, 0) : flag;
    bool const tells = cluster_cta_rank() == 0 && thread_idx() == 0;
    bool const sees = cluster_cta_rank() == (Peer ? 1 : 0) && thread_idx() == 32;
    if (tells) {
      st_shared(data, 5u);
      red_shared_inc<S, Told>(flag, 9u);
    }
    if (sees) {
      while (atom_shared_xor<S, Seen>(from, 0u) == 0) {
      }
      st_global(p.out, Peer ? ld_shared_cluster<Word>(mapa(data, 0)) : ld_shared<Word>(data));
    }
    cluster::sync();
  }
};

TEST(AtomicOrder, AtomicsOfSharedMemoryOrderIt) {
  Dim3 const grid = {2, 1, 1};
  expect_order<HandsShared<release, acquire, Scope::cta, false>>(true, grid);
  expect_order<HandsShared<release, acq_rel, Scope::cluster, true>>(true, grid);
  expect_order<HandsShared<relaxed, acquire, Scope::cta, false>>(false, grid);
  expect_order<HandsShared<release, relaxed, Scope::cta, false>>(false, grid);
  expect_order<HandsShared<release, relaxed, Scope::cluster, true>>(false, grid);
}

}  // namespace
}  // namespace tegula
