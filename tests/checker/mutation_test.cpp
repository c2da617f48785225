// The marks for mutation testing, and what a launch does with them.

#include <gtest/gtest.h>

#include "tegula/arch/barrier.hpp"
#include "tegula/arch/global.hpp"
#include "tegula/arch/shared.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/sim/launch.hpp"
#include "tegula/sim/mutable_values.hpp"

namespace tegula {
namespace {

constexpr int kSyncLine = __LINE__ + 14;

/// Each thread reads what another one wrote, behind a barrier.
struct Exchanges {
  struct Params {
    int* out;
  };
  struct SharedStorage {
    int words[64];
  };
  static constexpr int threads = 64;
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    int const i = thread_idx();
    st_shared(shared_address(&smem.words[i]), i);
    cta::sync();
    int const found = ld_shared<int>(shared_address(&smem.words[63 - i]));
    if (i < edge(64)) st_global(p.out + i, found);
  }
};

sim::Report run(sim::Options options) {
  options.throw_on_finding = false;
  sim::Machine machine(options);
  auto* const out = static_cast<int*>(machine.allocate(64 * sizeof(int), "out"));
  return sim::launch<Exchanges>(machine, {1, 1, 1}, {out});
}

sim::Report run(sim::Mutant const& mutant) { return run(sim::Options{.mutant = mutant}); }

sim::Mutant of_sync(Mutation mutation) {
  return {"checker/mutation_test.cpp", kSyncLine, Operation::bar_sync, mutation};
}

TEST(Mutation, AMarkedStatementIsListedWithWhatItAdmits) {
  auto const marked = run(sim::Options{.list_marked = true}).marked;
  ASSERT_EQ(marked.size(), 2u);
  EXPECT_EQ(marked[0].where.line, kSyncLine);
  EXPECT_EQ(marked[0].operation, Operation::bar_sync);
  EXPECT_EQ(marked[0].admitted, Mutation::removed | Mutation::weakened | Mutation::delayed);
  EXPECT_EQ(marked[0].executions, 64);
  EXPECT_EQ(marked[1].operation, Operation::predicate);
}

TEST(Mutation, NothingIsListedWhereNobodyAsks) { EXPECT_TRUE(run(sim::Options{}).marked.empty()); }

TEST(Mutation, EachMutantOfABarrierIsFound) {
  EXPECT_TRUE(run(sim::Options{}).ok());
  for (Mutation const mutation : {Mutation::removed, Mutation::weakened, Mutation::delayed})
    EXPECT_FALSE(run(of_sync(mutation)).ok()) << to_string(mutation);
}

TEST(Mutation, OnlyTheStatementOfThatLineOperationAndFileIsChanged) {
  sim::Mutant other = of_sync(Mutation::removed);
  ++other.line;
  EXPECT_TRUE(run(other).ok());
  other = of_sync(Mutation::removed);
  other.operation = Operation::bar_arrive;
  EXPECT_TRUE(run(other).ok());
  other = of_sync(Mutation::removed);
  other.file = "ecker/mutation_test.cpp";  // no whole parts of the path
  EXPECT_TRUE(run(other).ok());
}

TEST(Mutation, AnEdgeOneLessLeavesTheLastElementOut) {
  sim::Mutant const mutant{"mutation_test.cpp", kSyncLine + 2, Operation::predicate,
                           Mutation::less};
  sim::Machine machine({.mutant = mutant});
  auto* const out = static_cast<int*>(machine.allocate(64 * sizeof(int), "out"));
  sim::launch<Exchanges>(machine, {1, 1, 1}, {out});
  EXPECT_TRUE(machine.written(out, 63 * sizeof(int)));
  EXPECT_FALSE(machine.written(out + 63, sizeof(int)));
}

}  // namespace
}  // namespace tegula
