// What several threads may do at once: eight of them share a machine, or each has its own.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tegula/device/buffer.hpp"
#include "tegula/device/launch.hpp"
#include "tegula/device/selection.hpp"

namespace tegula {
namespace {

using ::testing::HasSubstr;

constexpr int kThreads = 8;

/// Runs f(0), ..., f(7), each in a thread of its own, all let go at once.
void at_once(std::function<void(int)> const& f) {
  std::atomic<int> ready{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (++ready; ready < kThreads;) std::this_thread::yield();
      f(t);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

std::vector<half> numbers(std::int64_t count, int seed) {
  std::vector<half> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = to_half(
        static_cast<float>(static_cast<int>((i * 7 + static_cast<std::size_t>(seed)) % 5) - 2));
  return values;
}

/// D of a small problem that the seed decides: integers, exactly.
std::vector<float> product(Machine const& machine, int seed) {
  std::int64_t const m = 40, n = 24 + 8 * (seed % 3), k = 32;
  Buffer<half> const a(machine, numbers(m * k, seed), "A"),
      b(machine, numbers(n * k, seed + 1), "B");
  Buffer<float> const d(machine, m * n, "D");
  OwnedStream const stream = machine.create_stream();
  gemm(machine,
       {.in = DType::f16,
        .out = DType::f32,
        .m = m,
        .n = n,
        .k = k,
        .a = a.data(),
        .b = b.data(),
        .d = d.data()},
       stream);
  machine.synchronize(stream);
  return d.download();
}

/// O of a small problem with one key: V of that key.
std::vector<half> attended(Machine const& machine, int seed) {
  constexpr std::int64_t heads = 2, seq_q = 5, dim = 32;
  Buffer<half> const q(machine, numbers(heads * seq_q * dim, seed), "Q"),
      k(machine, numbers(heads * dim, 1), "K"), v(machine, numbers(heads * dim, seed), "V"),
      o(machine, heads * seq_q * dim, "O");
  attention(machine, {.dtype = DType::f16,
                      .q = q.data(),
                      .k = k.data(),
                      .v = v.data(),
                      .o = o.data(),
                      .heads = heads,
                      .seq_q = seq_q,
                      .seq_k = 1,
                      .head_dim = dim});
  return o.download();
}

TEST(Threads, ShareAMachine) {
  for (Arch const arch : {Arch::sm80, Arch::sm90}) {
    Machine const alone = Machine::simulated(arch);
    std::vector<std::vector<float>> expected;
    for (int t = 0; t < kThreads; ++t) expected.push_back(product(alone, t));
    Machine const shared = Machine::simulated(arch);
    at_once([&](int t) {
      for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(product(shared, t), expected[static_cast<std::size_t>(t)]) << "thread " << t;
        EXPECT_TRUE(shared.last_report()->ok());
      }
    });
  }
}

TEST(Threads, LaunchBothKernelsOnOneMachine) {
  Machine const shared = Machine::simulated();
  at_once([&](int t) {
    if (t % 2 == 0) {
      EXPECT_EQ(product(shared, t).size(), static_cast<std::size_t>(40 * (24 + 8 * (t % 3))));
      return;
    }
    std::vector<half> const o = attended(shared, t), v = numbers(64, t);
    for (std::size_t i = 0; i < o.size(); ++i) ASSERT_EQ(to_float(o[i]), to_float(v[i % 64])) << i;
  });
}

TEST(Threads, AskAMachineWhileOthersLaunch) {
  Machine const shared = Machine::simulated();
  at_once([&](int t) {
    if (t < 2) {
      product(shared, t);
      return;
    }
    for (int i = 0; i < 20; ++i) {
      EXPECT_EQ(shared.compute_capability(), 90);
      EXPECT_THAT(shared.name(), HasSubstr("sm_90"));
      Buffer<int> buffer(shared, std::vector<int>{t, i}, "of thread " + std::to_string(t));
      EXPECT_EQ(buffer.download()[0], t);
      buffer.fill(0);
      auto const report = shared.last_report();
      EXPECT_TRUE(!report || report->ok());
      Event begin = shared.create_event(), end = shared.create_event();
      begin.record(), end.record();
      EXPECT_GE(milliseconds(begin, end), 0);
    }
  });
}

TEST(Threads, HaveMachinesOfTheirOwn) {
  at_once([](int t) {
    Machine const machine =
        Machine::simulated(t % 2 == 0 ? Arch::sm80 : Arch::sm90, {.workers = 2});
    EXPECT_EQ(product(machine, t), product(machine, t));
    EXPECT_TRUE(machine.last_report()->ok());
  });
}

TEST(Threads, EachGetTheFindingsOfTheirOwnLaunch) {
  Machine const shared = Machine::simulated();
  Buffer<half> const unwritten(shared, 32 * 32, "never written"),
      b(shared, numbers(32 * 32, 1), "B");
  at_once([&](int t) {
    if (t % 2 == 0) {
      product(shared, t);
      return;
    }
    Buffer<half> const d(shared, 32 * 32, "D");
    try {
      gemm(shared, {.in = DType::f16,
                    .m = 32,
                    .n = 32,
                    .k = 32,
                    .a = unwritten.data(),
                    .b = b.data(),
                    .d = d.data()});
      ADD_FAILURE() << "thread " << t;
    } catch (sim::CheckError const& error) {
      EXPECT_THAT(error.what(), HasSubstr("never written"));
    }
  });
}

TEST(Threads, PlanWithoutAMachine) {
  GemmArguments const g = {.m = 4096, .n = 4096, .k = 4096};
  DeviceProperties const device = {90, 132};
  std::string const expected = plan_gemm(g, device).reason;
  at_once([&](int) { EXPECT_EQ(plan_gemm(g, device).reason, expected); });
}

}  // namespace
}  // namespace tegula
