// On a machine with a GPU: grouped GEMMs give the same bits there and on the simulated machine, and
// ten thousand random splits into groups are right, untouched beside, and end.

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>

#include "grouped_gemm_problem.hpp"

namespace tegula {
namespace {

/// Ends the process where nothing has happened for a minute: a launch that hangs is never waited
/// for.
class Watchdog {
 public:
  Watchdog() : thread_([this] { watch(); }) {}
  ~Watchdog() {
    {
      std::scoped_lock const lock(mutex_);
      done_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }
  void step(std::string const& what) {
    std::scoped_lock const lock(mutex_);
    what_ = what;
    ++steps_;
  }

 private:
  void watch() {
    std::unique_lock lock(mutex_);
    while (!done_) {
      std::int64_t const seen = steps_;
      if (wake_.wait_for(lock, std::chrono::seconds(60), [&] { return done_; })) return;
      if (steps_ != seen) continue;
      std::fprintf(stderr, "nothing has happened for a minute: %s hangs\n", what_.c_str());
      std::abort();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  bool done_ = false;
  std::int64_t steps_ = 0;
  std::string what_ = "the first launch";
  std::thread thread_;  // last: it uses the others
};

class GroupedGemmOnGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU on this machine";
    if (Machine::cuda().compute_capability() != 90) GTEST_SKIP() << "it needs an sm_90";
  }
};

TEST_F(GroupedGemmOnGpu, GivesTheSimulatedBits) {
  Machine const gpu = Machine::cuda(), simulated = Machine::simulated(Arch::sm90);
  Watchdog watchdog;
  for (int i = 0; i < static_cast<int>(configurations(grouped_gemm_sm90).size()); ++i) {
    GroupedGemmSm90Config const& c = configuration(grouped_gemm_sm90, i);
    SCOPED_TRACE(to_string(c));
    GroupedProblem p{.in = c.a,
                     .in_b = c.b,
                     .out = c.out,
                     .scales = c.scales,
                     .sizes = {cluster_rows(c) + 3, 0, 5, 70},
                     .m = cluster_rows(c) + 9,
                     .n = cluster_columns(c) + 13,
                     .k = 3 * block_k(c) + 5,
                     .c = i % 2 == 0,
                     .constraints = {.configuration = i, .clusters = 3}};
    for (Grouping const grouping :
         {Grouping::none, Grouping::contiguous, Grouping::masked, Grouping::k}) {
      if (grouping == Grouping::k && !computes_groups_of_k(c)) continue;
      p.grouping = grouping;
      watchdog.step(to_string(p));
      GroupedResult const theirs = run(gpu, p), ours = run(simulated, p);
      ASSERT_EQ(theirs.d.size(), ours.d.size());
      EXPECT_EQ(std::memcmp(theirs.d.data(), ours.d.data(), ours.d.size()), 0) << to_string(p);
    }
  }
}

/// One set of operands of eight groups, and what each group's B gives for every row: an element of
/// D is the same sum whichever tile and split it is computed in, by configurations whose CTAs share
/// K among as many.
template <class T> class Splits {
 public:
  static constexpr int rows = 1500, n = 200, k = 384, groups = 8;

  Splits(Machine const& machine, DType in)
      : machine_(machine),
        in_(in),
        a_(machine, random_elements(in, rows * k, 1, normal), "a"),
        b_(machine, random_elements(in, std::int64_t{groups} * n * k, 2, normal), "b"),
        scale_a_(machine, scales(3 * rows, 3), "scale_a"),
        scale_b_(machine, scales(groups * 2 * 3, 4), "scale_b"),
        d_(machine, rows * n, "d"),
        ends_(machine, groups, "ends") {}

  /// Runs one split: `masked`, `ends` are how many rows; else running sums.
  void run(std::vector<int> const& ends, bool masked, int number) {
    int const most = rows / groups;
    GroupedGemmArguments g = arguments();
    g.grouping = masked ? Grouping::masked : Grouping::contiguous, g.groups = groups;
    if (masked) g.m = most;
    g.scale_a_stride = rows;
    g.group_ends = ends_.data();
    ends_.upload(ends);
    auto const candidates = plan_grouped_gemm(g, machine_.properties()).candidates;
    std::size_t usable = 0;
    while (usable < candidates.size() && candidates[usable].refused.empty()) ++usable;
    GroupedGemmChoice const& choice = candidates[static_cast<std::size_t>(number) % usable].choice;
    std::vector<std::vector<T>> const& expected =
        of_shares(configuration(grouped_gemm_sm90, choice.configuration).split_k);
    d_.upload(poison_);
    grouped_gemm(machine_, g, choice);
    machine_.synchronize();
    auto const d = d_.download();
    for (int row = 0; row < rows; ++row) {
      int group = 0;
      if (masked) {
        group = row / most;
        if (group >= groups || row % most >= ends[static_cast<std::size_t>(group)]) group = groups;
      } else {
        while (group < groups && row >= ends[static_cast<std::size_t>(group)]) ++group;
      }
      auto const& right = group == groups ? poison_ : expected[static_cast<std::size_t>(group)];
      ASSERT_EQ(std::memcmp(&d[static_cast<std::size_t>(row) * n],
                            &right[static_cast<std::size_t>(row) * n], n * sizeof(T)),
                0)
          << "split " << number << ", row " << row << " of group " << group;
    }
  }

 private:
  /// D of every row with each group's B, by CTAs that share K among so many.
  std::vector<std::vector<T>> const& of_shares(int shares) {
    std::vector<std::vector<T>>& known = expected_[shares];
    while (static_cast<int>(known.size()) < groups) {
      std::int64_t const g = std::ssize(known);
      GroupedGemmArguments one = arguments();
      one.b = b_.data() + g * n * k * (bits(in_) / 8);
      if (one.scale_b != nullptr) one.scale_b += g * 2 * 3;
      grouped_gemm(machine_, one,
                   choose_grouped_gemm(one, machine_.properties(), {.split_k = shares}));
      machine_.synchronize();
      known.push_back(d_.download());
    }
    return known;
  }
  static std::vector<float> scales(int count, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<float> all(static_cast<std::size_t>(count));
    for (float& x : all) x = scale_like(random);
    return all;
  }
  GroupedGemmArguments arguments() const {
    bool const scaled = bits(in_) == 8;
    return {.in = in_,
            .m = rows,
            .n = n,
            .k = k,
            .a = a_.data(),
            .b = b_.data(),
            .d = d_.data(),
            .scale_a = scaled ? scale_a_.data() : nullptr,
            .scale_b = scaled ? scale_b_.data() : nullptr};
  }

  Machine const& machine_;
  DType in_;
  Buffer<std::uint8_t> a_, b_;
  Buffer<float> scale_a_, scale_b_;
  Buffer<T> d_;
  Buffer<int> ends_;
  std::map<int, std::vector<std::vector<T>>> expected_;  // by shares of K
  std::vector<T> poison_ = std::vector<T>(static_cast<std::size_t>(rows) * n,
                                          __builtin_bit_cast(T, std::uint16_t{0xa5a5}));
};

TEST_F(GroupedGemmOnGpu, IsRightForTenThousandSplits) {
  Machine const machine = Machine::cuda();
  Watchdog watchdog;
  Splits<bfloat16> fp8(machine, DType::e4m3), bf16(machine, DType::bf16);
  constexpr int rows = Splits<bfloat16>::rows, groups = Splits<bfloat16>::groups;
  std::mt19937_64 random(5);
  for (int i = 0; i < 10000; ++i) {
    bool const masked = i % 4 == 3;
    int const most = masked ? rows / groups : rows;
    std::vector<int> ends(groups);
    for (int& end : ends)
      end = random() % 4 == 0 ? 0 : static_cast<int>(random() % static_cast<unsigned>(most + 1));
    if (random() % 50 == 0) std::fill(ends.begin(), ends.end(), random() % 2 == 0 ? 0 : most);
    if (!masked) std::sort(ends.begin(), ends.end());
    watchdog.step(fmt::format("split {}", i));
    (i % 2 == 0 ? fp8 : bf16).run(ends, masked, i);
    if (HasFatalFailure()) return;
  }
}

// A group of k is the product of its columns alone.
TEST_F(GroupedGemmOnGpu, IsRightForAThousandSplitsOfK) {
  Machine const machine = Machine::cuda();
  Watchdog watchdog;
  std::mt19937_64 random(6);
  for (int i = 0; i < 1000; ++i) {
    GroupedProblem p{.in = i % 2 == 0 ? DType::e4m3 : DType::bf16,
                     .out = DType::f32,
                     .grouping = Grouping::k,
                     .m = 1 + static_cast<int>(random() % 150),
                     .n = 1 + static_cast<int>(random() % 150),
                     .c = i % 3 == 0,
                     .seed = static_cast<std::uint64_t>(i) + 1};
    p.sizes.resize(1 + random() % 12);
    for (int& size : p.sizes) size = random() % 4 == 0 ? 0 : static_cast<int>(random() % 300);
    watchdog.step(to_string(p));
    expect_right(machine, p);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace tegula
