// The exhaustive sweep: every layout of one or two modes with extents up to 6 and strides 0 to 6.
// Both halves of "never silently wrong": what is accepted satisfies its law at every index, and
// what is refused is refused rightly, by brute force (see oracle.hpp). Of pairs a quick run takes
// one in kPairs, which another A pairs with other Bs.
#include <gtest/gtest.h>

#include <map>

#include "oracle.hpp"
#include "refusal.hpp"
#include "tegula/layout/algebra.hpp"
#include "tegula/layout/text.hpp"
#include "thorough.hpp"

namespace tegula {
namespace {

using oracle::Integer;
using oracle::Leaves;
using oracle::Table;

struct Sample {
  Layout layout;
  Leaves leaves;
  Table table;   // over its domain
  Table beyond;  // over [0, kReach)
};

// Beyond the largest offset of a sample, 5 * 6 + 5 * 6, times the largest extent that a divide
// rounds up by.
constexpr Integer kReach = 512;

constexpr int kPairs = 11;

std::vector<Sample> all_samples(std::vector<Integer> const& extents,
                                std::vector<Integer> const& strides) {
  std::vector<Sample> samples;
  auto const add = [&](Layout const& layout) {
    Leaves const leaves = oracle::leaves_of(layout);
    samples.push_back({layout, leaves, oracle::table(leaves), oracle::table(leaves, kReach)});
  };
  for (Integer const s0 : extents) {
    for (Integer const d0 : strides) {
      add(layout(Tuple(s0), Tuple(d0)));
      for (Integer const s1 : extents) {
        for (Integer const d1 : strides) add(layout(tuple(s0, s1), tuple(d0, d1)));
      }
    }
  }
  return samples;
}

std::vector<Sample> const& samples() {
  static std::vector<Sample> const all = all_samples({1, 2, 3, 4, 5, 6}, {0, 1, 2, 3, 4, 5, 6});
  return all;
}

std::string pair_text(Sample const& a, Sample const& b) {
  return to_string(a.layout) + " and " + to_string(b.layout);
}

/// Whether each leaf of `b` is refined by the next leaves of `fine`.
bool refines(Leaves const& fine, Leaves const& b) {
  std::size_t k = 0;
  for (oracle::Leaf const& leaf : b) {
    Integer product = k < fine.size() ? fine[k++].extent : 0;
    while (product < leaf.extent && k < fine.size()) product *= fine[k++].extent;
    if (product != leaf.extent) return false;
  }
  return k == fine.size();
}

struct Counts {
  Integer accepted = 0;
  Integer refused = 0;
};

/// Composes a and b, and holds the result to the law or the refusal to its proof.
void check_composition(Sample const& a, Sample const& b, Counts& counts) {
  std::optional<Layout> const result = attempt([&] { return composition(a.layout, b.layout); });
  if (!result) {
    ++counts.refused;
    ASSERT_FALSE(oracle::composable(a.beyond, b.leaves))
        << "refused, but possible: " << pair_text(a, b);
    return;
  }
  ++counts.accepted;
  Leaves const leaves = oracle::leaves_of(*result);
  ASSERT_TRUE(refines(leaves, b.leaves)) << pair_text(a, b) << " gives " << to_string(*result);
  for (std::size_t i = 0; i < b.table.size(); ++i) {
    ASSERT_EQ(oracle::at(leaves, static_cast<Integer>(i)),
              a.beyond[static_cast<std::size_t>(b.table[i])])
        << pair_text(a, b) << " gives " << to_string(*result) << " at " << i;
  }
}

TEST(Sweep, Composition) {
  Counts counts;
  std::int64_t pair = 0;
  for (Sample const& a : samples()) {
    for (Sample const& b : samples()) {
      if (!chosen(pair++, kPairs)) continue;
      check_composition(a, b, counts);
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(counts.accepted, 1000000 / kPairs);
  EXPECT_GT(counts.refused, 1000000 / kPairs);
}

// With three modes in A carries can cancel: a jump at one of A's modes and the opposite jump at
// the next.
TEST(Sweep, CompositionWithThreeModes) {
  Counts counts;
  std::int64_t pair = 0;
  std::vector<Sample> const small = all_samples({2, 3, 4, 6}, {1, 2, 3, 4, 5, 7});
  for (Integer const s0 : {2, 3, 4}) {
    for (Integer const s1 : {2, 3, 4}) {
      for (Integer const d0 : {-1, 0, 1, 2}) {
        for (Integer const d1 : {-2, 0, 1, 2, 3, 5}) {
          for (Integer const d2 : {-2, -1, 0, 1, 2, 3, 4, 6}) {
            Layout const layout = tegula::layout(tuple(s0, s1, 4), tuple(d0, d1, d2));
            Leaves const leaves = oracle::leaves_of(layout);
            Sample const a{layout, leaves, oracle::table(leaves), oracle::table(leaves, kReach)};
            for (Sample const& b : small) {
              if (!chosen(pair++, kPairs)) continue;
              check_composition(a, b, counts);
              if (HasFatalFailure()) return;
            }
          }
        }
      }
    }
  }
  EXPECT_GT(counts.accepted, 100000 / kPairs);
  EXPECT_GT(counts.refused, 100000 / kPairs);
}

TEST(Sweep, Complement) {
  Integer refused = 0;
  for (Sample const& a : samples()) {
    for (Integer const cotarget : {1, 2, 5, 6, 12, 24, 35, 36, 60}) {
      std::optional<Layout> const result = attempt([&] { return complement(a.layout, cotarget); });
      std::optional<oracle::Complement> const wanted = oracle::complement(a.leaves, cotarget);
      refused += result ? 0 : 1;
      ASSERT_EQ(result.has_value(), wanted.has_value())
          << to_string(a.layout) << " to " << cotarget;
      if (!result) continue;
      Leaves const leaves = oracle::leaves_of(*result);
      ASSERT_EQ(oracle::table(leaves), oracle::table(wanted->leaves))
          << to_string(a.layout) << " to " << cotarget;
      for (std::size_t i = 0; i < leaves.size(); ++i) {
        Integer const before = i == 0 ? 0 : leaves[i - 1].stride;
        ASSERT_TRUE(leaves[i].stride > before || oracle::size(leaves) == 1) << to_string(*result);
      }
    }
  }
  EXPECT_GT(refused, 1000);
}

TEST(Sweep, RightInverse) {
  for (Sample const& a : samples()) {
    Layout const result = right_inverse(a.layout);
    Leaves const leaves = oracle::leaves_of(result);
    Integer const size = oracle::size(leaves);
    for (Integer i = 0; i < size; ++i) {
      Integer const index = oracle::at(leaves, i);
      ASSERT_LT(index, static_cast<Integer>(a.table.size()));
      ASSERT_EQ(a.table[static_cast<std::size_t>(index)], i)
          << to_string(a.layout) << " gives " << to_string(result);
    }
    for (oracle::Leaf const& leaf : a.leaves) {
      bool const goes_on = leaf.extent > 1 && leaf.stride == size;
      ASSERT_FALSE(goes_on) << to_string(a.layout) << " gives only " << to_string(result);
    }
  }
}

/// The condition that left_inverse states, for the moving leaves of the layout. Splitting a run
/// into leaves does not change it.
bool invertible_by_digits(Leaves leaves) {
  leaves = oracle::moving(leaves);
  std::sort(leaves.begin(), leaves.end(),
            [](auto const& x, auto const& y) { return x.stride < y.stride; });
  for (std::size_t i = 1; i < leaves.size(); ++i) {
    if (leaves[i].stride % leaves[i - 1].stride != 0) return false;
    if (leaves[i].stride < leaves[i - 1].stride * leaves[i - 1].extent) return false;
  }
  return true;
}

TEST(Sweep, LeftInverse) {
  Integer refused = 0;
  for (Sample const& a : samples()) {
    std::optional<Layout> const result = attempt([&] { return left_inverse(a.layout); });
    ASSERT_EQ(result.has_value(), invertible_by_digits(a.leaves)) << to_string(a.layout);
    refused += result ? 0 : 1;
    if (!result) continue;
    bool const injective =
        std::set<Integer>(a.table.begin(), a.table.end()).size() == a.table.size();
    Leaves const leaves = oracle::leaves_of(*result);
    for (std::size_t i = 0; i < a.table.size(); ++i) {
      Integer const found = oracle::at(leaves, a.table[i]);
      ASSERT_EQ(oracle::at(a.leaves, found), a.table[i])
          << to_string(a.layout) << " gives " << to_string(*result);
      if (injective) {
        ASSERT_EQ(found, static_cast<Integer>(i))
            << to_string(a.layout) << " gives " << to_string(*result);
      }
    }
  }
  EXPECT_GT(refused, 100);
}

TEST(Sweep, Nullspace) {
  for (Sample const& a : samples()) {
    Table const zeros = oracle::table(oracle::leaves_of(nullspace(a.layout)));
    std::set<Integer> const distinct(zeros.begin(), zeros.end());
    ASSERT_EQ(distinct.size(), zeros.size());
    for (Integer const index : zeros)
      ASSERT_EQ(a.table.at(static_cast<std::size_t>(index)), 0) << to_string(a.layout);
    ASSERT_EQ(static_cast<Integer>(zeros.size()) * oracle::size(oracle::moving(a.leaves)),
              a.layout.size());
  }
}

TEST(Sweep, CoalesceFilterFlatten) {
  for (Sample const& a : samples()) {
    Layout const simple = coalesce(a.layout);
    ASSERT_EQ(oracle::table(oracle::leaves_of(simple)), a.table) << to_string(a.layout);
    Leaves const leaves = oracle::leaves_of(simple);
    for (std::size_t i = 1; i < leaves.size(); ++i) {
      ASSERT_NE(leaves[i - 1].extent * leaves[i - 1].stride, leaves[i].stride) << to_string(simple);
    }
    Table const filtered = oracle::table(oracle::leaves_of(filter(a.layout)));
    ASSERT_EQ(std::set<Integer>(filtered.begin(), filtered.end()),
              std::set<Integer>(a.table.begin(), a.table.end()));
    ASSERT_EQ(static_cast<Integer>(filtered.size()), oracle::size(oracle::moving(a.leaves)));
    ASSERT_EQ(oracle::table(oracle::leaves_of(flatten(a.layout))), a.table);
  }
}

/// (B, B*) as one list of leaves, B* from the oracle.
std::optional<Leaves> with_complement(Leaves const& b, Integer cotarget) {
  std::optional<oracle::Complement> const rest = oracle::complement(b, cotarget);
  if (!rest) return std::nullopt;
  Leaves both = b;
  both.insert(both.end(), rest->leaves.begin(), rest->leaves.end());
  return both;
}

TEST(Sweep, LogicalDivide) {
  Integer accepted = 0;
  std::int64_t pair = 0;
  for (Sample const& b : samples()) {
    std::vector<std::optional<Leaves>> tilings(40);
    std::vector<bool> known(40, false);
    for (Sample const& a : samples()) {
      if (!chosen(pair++, kPairs)) continue;
      std::size_t const size = a.table.size();
      if (!known[size]) tilings[size] = with_complement(b.leaves, static_cast<Integer>(size));
      known[size] = true;
      std::optional<Layout> const result =
          attempt([&] { return logical_divide(a.layout, b.layout); });
      if (!result) {
        bool const possible = tilings[size] && oracle::composable(a.beyond, *tilings[size]);
        ASSERT_FALSE(possible) << "refused, but possible: " << pair_text(a, b);
        continue;
      }
      ++accepted;
      ASSERT_TRUE(tilings[size].has_value()) << pair_text(a, b);
      ASSERT_EQ(result->rank(), 2);
      ASSERT_EQ((*result)[0].size(), b.layout.size());
      Leaves const leaves = oracle::leaves_of(*result);
      ASSERT_EQ(oracle::size(leaves), oracle::size(*tilings[size])) << pair_text(a, b);
      for (Integer i = 0; i < oracle::size(leaves); ++i) {
        Integer const index = oracle::at(*tilings[size], i);
        ASSERT_EQ(oracle::at(leaves, i), a.beyond.at(static_cast<std::size_t>(index)))
            << pair_text(a, b);
      }
    }
  }
  EXPECT_GT(accepted, 10000);
}

TEST(Sweep, LogicalProduct) {
  Integer accepted = 0;
  std::int64_t pair = 0;
  for (Sample const& a : samples()) {
    std::map<Integer, std::optional<oracle::Complement>> complements;
    for (Sample const& b : samples()) {
      if (!chosen(pair++, kPairs)) continue;
      Integer const last = *std::max_element(b.table.begin(), b.table.end());
      Integer const cotarget = static_cast<Integer>(a.table.size()) * (last + 1);
      std::optional<Layout> const result =
          attempt([&] { return logical_product(a.layout, b.layout); });
      if (complements.count(cotarget) == 0)
        complements[cotarget] = oracle::complement(a.leaves, cotarget);
      std::optional<oracle::Complement> const& copies = complements[cotarget];
      if (!result) {
        bool const possible =
            copies && oracle::composable(oracle::table(copies->leaves, last + 1), b.leaves);
        ASSERT_FALSE(possible) << "refused, but possible: " << pair_text(a, b);
        continue;
      }
      ++accepted;
      ASSERT_TRUE(copies.has_value()) << pair_text(a, b);
      ASSERT_EQ((*result)[0], a.layout);
      ASSERT_EQ(result->rank(), 2);
      ASSERT_EQ((*result)[1].size(), b.layout.size());
      Leaves const leaves = oracle::leaves_of(*result);
      for (std::size_t j = 0; j < b.table.size(); ++j) {
        Integer const start = oracle::at(copies->leaves, b.table[j]);
        for (std::size_t i = 0; i < a.table.size(); ++i) {
          Integer const index = static_cast<Integer>(i + a.table.size() * j);
          ASSERT_EQ(oracle::at(leaves, index), a.table[i] + start)
              << pair_text(a, b) << " gives " << to_string(*result);
        }
      }
    }
  }
  EXPECT_GT(accepted, 10000);
}

/// Whether upcast's law can hold with the strides it may choose: shrink factors 1 or n / d, and
/// strides forced by the law.
TEST(Sweep, Upcast) {
  Integer accepted = 0;
  for (Sample const& a : samples()) {
    for (Integer const n : {1, 2, 3, 4, 6, 8}) {
      std::optional<Layout> const result = attempt([&] { return upcast(a.layout, n); });
      Leaves const wide = a.leaves;
      bool possible = true;
      std::vector<Integer> shrink;
      for (oracle::Leaf const& leaf : wide) {
        bool const whole = leaf.stride % n == 0 || leaf.extent == 1;
        possible = possible && (whole || n % leaf.stride == 0);
        shrink.push_back(whole || n % leaf.stride != 0 ? 1 : n / leaf.stride);
      }
      Integer inside = 0;
      for (std::size_t i = 0; i < wide.size(); ++i) {
        if (shrink[i] > 1) inside += (std::min(wide[i].extent, shrink[i]) - 1) * wide[i].stride;
      }
      ASSERT_EQ(result.has_value(), possible && inside < n) << to_string(a.layout) << " by " << n;
      if (!result) continue;
      ++accepted;
      for (std::size_t i = 0; i < a.table.size(); ++i) {
        Integer rest = static_cast<Integer>(i);
        Integer large = 0;
        for (std::size_t k = 0; k < wide.size(); ++k) {
          large += rest % wide[k].extent / shrink[k] * result->stride(static_cast<int>(k)).value;
          rest /= wide[k].extent;
        }
        ASSERT_EQ(large, a.table[i] / n)
            << to_string(a.layout) << " by " << n << " gives " << to_string(*result);
      }
    }
  }
  EXPECT_GT(accepted, 1000);
}

TEST(Sweep, Downcast) {
  for (Sample const& a : samples()) {
    bool has_unit = false;
    for (oracle::Leaf const& leaf : a.leaves) has_unit = has_unit || leaf.stride == 1;
    for (Integer const n : {1, 2, 3, 4}) {
      std::optional<Layout> const result = attempt([&] { return downcast(a.layout, n); });
      ASSERT_EQ(result.has_value(), has_unit || n == 1) << to_string(a.layout);
      if (!result) continue;
      ASSERT_EQ(result->size(), a.layout.size() * n);
      Table const fine = oracle::table(oracle::leaves_of(*result));
      // The same elements n times finer: each old element's n new ones, as multisets.
      std::multiset<Integer> wanted;
      for (Integer const offset : a.table) {
        for (Integer k = 0; k < n; ++k) wanted.insert(offset * n + k);
      }
      ASSERT_EQ(std::multiset<Integer>(fine.begin(), fine.end()), wanted)
          << to_string(a.layout) << " by " << n;
    }
  }
}

TEST(Sweep, MaxCommonVector) {
  std::int64_t pair = 0;
  for (Sample const& a : samples()) {
    for (Sample const& b : samples()) {
      if (!chosen(pair++, kPairs)) continue;
      Layout const inverse = right_inverse(b.layout);
      Layout const common = max_common_layout(a.layout, b.layout);
      Leaves const leaves = oracle::leaves_of(common);
      Integer const size = oracle::size(leaves);
      ASSERT_EQ(size, max_common_vector(a.layout, b.layout));
      for (Integer i = 0; i < size; ++i) {
        std::size_t const index = static_cast<std::size_t>(oracle::at(leaves, i));
        ASSERT_EQ(a.table.at(index), i) << pair_text(a, b);
        ASSERT_EQ(b.table.at(index), i) << pair_text(a, b);
      }
      // The longest: no longer prefix of the inverse is a layout on which `a` is the identity.
      Table const places = oracle::table(oracle::leaves_of(inverse));
      for (std::size_t n = static_cast<std::size_t>(size) + 1; n <= places.size(); ++n) {
        std::size_t const index = static_cast<std::size_t>(places[n - 1]);
        if (index >= a.table.size() || a.table[index] != static_cast<Integer>(n - 1)) break;
        Table const prefix(places.begin(), places.begin() + static_cast<std::ptrdiff_t>(n));
        ASSERT_FALSE(oracle::as_layout(prefix)) << pair_text(a, b) << " hold " << n;
      }
    }
  }
}

}  // namespace
}  // namespace tegula
