// Machines, memory, streams, events and launches through the public handle, on the simulated
// machine and, where there is one, on a GPU.

#include "tegula/device/machine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <thread>
#include <vector>

#include "scratch.hpp"
#include "tegula/device/buffer.hpp"
#include "tegula/device/launch.hpp"
#include "tegula/device/reference.hpp"

namespace tegula {
namespace {

using tegula::testing::message_of;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::vector<Machine> machines() {
  std::vector<Machine> all = {Machine::simulated(Arch::sm80), Machine::simulated(Arch::sm90)};
  if (cuda_device_count() > 0) all.push_back(Machine::cuda());
  return all;
}

std::vector<half> random_halves(std::int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<half> values(static_cast<std::size_t>(count));
  for (auto& v : values) v = to_half(uniform(random));
  return values;
}

template <class T> std::vector<double> doubles(std::vector<T> const& values) {
  std::vector<double> result;
  for (auto const v : values) result.push_back(to_float(v));
  return result;
}

TEST(Machine, IsFoundByName) {
  EXPECT_EQ(Machine::from_name("sim").name(), "simulated sm_90");
  EXPECT_EQ(Machine::from_name("sim", Arch::sm80).name(), "simulated sm_80");
  EXPECT_EQ(Machine::simulated(Arch::sm80).compute_capability(), 80);
  EXPECT_TRUE(Machine::simulated().is_simulated());
  EXPECT_EQ(Machine::from_name("auto").is_simulated(), cuda_device_count() == 0);
  for (auto const* name : {"", "gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:1x", "SIM"})
    EXPECT_THAT(message_of<argument_error>([&] { Machine::from_name(name); }),
                AllOf(HasSubstr("'" + std::string(name) + "'"),
                      HasSubstr("sim, cuda, cuda:NUMBER or auto")));
}

TEST(Machine, SaysWhyThereIsNoGpu) {
  if (cuda_device_count() == 0) {
    EXPECT_THAT(message_of<device_error>([] { Machine::cuda(); }),
                AnyOf(HasSubstr("no CUDA driver"), HasSubstr("no GPU"), HasSubstr("cuInit")));
  } else {
    EXPECT_THAT(message_of<device_error>([] { Machine::cuda(4096); }),
                HasSubstr("no GPU number 4096"));
    EXPECT_THAT(message_of<device_error>([] { Machine::cuda(-1); }), HasSubstr("no GPU number -1"));
  }
}

TEST(Buffer, HoldsWhatWasUploaded) {
  for (auto const& machine : machines()) {
    SCOPED_TRACE(machine.name());
    Buffer<int> buffer(machine, std::vector<int>{1, 2, 3, 4}, "numbers");
    EXPECT_EQ(buffer.size(), 4);
    EXPECT_EQ(buffer.name(), "numbers");
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 256, 0u);
    EXPECT_EQ(buffer.download(), (std::vector<int>{1, 2, 3, 4}));
    buffer.upload(std::vector<int>{7, 8}, 1);
    EXPECT_EQ(buffer.download(), (std::vector<int>{1, 7, 8, 4}));
    buffer.fill(0xff);
    EXPECT_EQ(buffer.download(), (std::vector<int>{-1, -1, -1, -1}));
    Buffer<int> const moved = std::move(buffer);
    EXPECT_EQ(moved.download().size(), 4u);
    EXPECT_EQ(Buffer<int>(machine, 0, "empty").download().size(), 0u);
    EXPECT_EQ(Buffer<int>(machine, 0, "empty").data(), nullptr);
  }
}

TEST(Buffer, RefusesWhatLiesBeyondItsEnd) {
  for (auto const& machine : machines()) {
    SCOPED_TRACE(machine.name());
    Buffer<int> buffer(machine, 4, "numbers");
    std::vector<int> const two = {1, 2};
    EXPECT_THAT(message_of<argument_error>([&] { buffer.upload(two, 3); }),
                HasSubstr("8 bytes at offset 12 would not lie in numbers, which has 16"));
    EXPECT_THROW(buffer.upload(two, -1), argument_error);
    EXPECT_THROW(buffer.upload(two, std::numeric_limits<std::int64_t>::max() / 4), argument_error);
    EXPECT_THAT(message_of<argument_error>([&] { Buffer<int>(machine, -1, "negative"); }),
                HasSubstr("negative would have -4 bytes"));
    EXPECT_THAT(message_of<argument_error>([&] {
                  Buffer<int>(machine, std::numeric_limits<std::int64_t>::max(), "huge");
                }),
                HasSubstr("huge would have"));
  }
}

TEST(Buffer, OutlivesTheHandleItWasMadeThrough) {
  auto machine = std::make_unique<Machine>(Machine::simulated());
  Buffer<int> const buffer(*machine, std::vector<int>{5}, "number");
  machine.reset();
  EXPECT_EQ(buffer.download(), std::vector<int>{5});
}

TEST(Event, MeasuresTimeBetweenTwoPoints) {
  for (auto const& machine : machines()) {
    SCOPED_TRACE(machine.name());
    OwnedStream const stream = machine.create_stream();
    Event begin = machine.create_event(), end = machine.create_event();
    EXPECT_THROW(milliseconds(begin, end), device_error) << "never recorded";
    begin.record(stream);
    end.record(stream);
    machine.synchronize(stream);
    EXPECT_GE(milliseconds(begin, end), 0.0f);
    EXPECT_LT(milliseconds(begin, end), 1000.0f);
  }
}

/// One GEMM on the machine, held against the reference.
void run_gemm(Machine const& machine, GemmArguments g, Stream stream, unsigned seed) {
  auto const a = random_halves(g.m * g.k, seed), b = random_halves(g.n * g.k, seed + 1);
  Buffer<half> const a_buffer(machine, a, "A"), b_buffer(machine, b, "B");
  Buffer<float> d_buffer(machine, g.m * g.n, "D");
  g.a = a_buffer.data(), g.b = b_buffer.data(), g.d = d_buffer.data();
  gemm(machine, g, stream);
  machine.synchronize(stream);
  g.a = a.data(), g.b = b.data();
  auto const comparison = reference::compare(doubles(d_buffer.download()),
                                             reference::gemm(g, reference::some_rows(g.m, g.m)),
                                             reference::largest_finite(*g.out));
  EXPECT_TRUE(comparison.within())
      << machine.name() << ": element " << comparison.worst << " is " << comparison.worst_result
      << ", off by " << comparison.max_ratio << " bounds";
}

TEST(Launch, ComputesAGemmAndKeepsItsReport) {
  for (auto const& machine : machines()) {
    EXPECT_FALSE(machine.last_report().has_value());
    run_gemm(machine, {.in = DType::f16, .out = DType::f32, .m = 70, .n = 50, .k = 40}, {}, 1);
    run_gemm(machine,
             {.in = DType::f16, .out = DType::f32, .a_major = Major::mn, .m = 33, .n = 20, .k = 9},
             {}, 2);
    ASSERT_EQ(machine.last_report().has_value(), machine.is_simulated());
    if (machine.is_simulated()) {
      EXPECT_TRUE(machine.last_report()->ok());
      EXPECT_GT(machine.last_report()->instruction("mma.sync").fused_multiply_adds, 33 * 20 * 9);
    }
  }
}

// What gemm_sm90 is not built for, gemm_sm80 computes: batches, scales and activations too, of
// any alignment.
TEST(Launch, ComputesBatchesScalesAndActivationsByEitherKernel) {
  for (auto const& machine : machines())
    for (int const n : {64, 61})
      for (Activation const activation :
           {Activation::none, Activation::relu, Activation::gelu, Activation::silu}) {
        constexpr int batch = 3, m = 70, k = 40;
        auto const a = random_halves(m * k, 1), b = random_halves(batch * n * k, 2),
                   c = random_halves(m * n, 3);
        std::vector<float> const scales = {0.5f, 3};
        Buffer<half> const a_buffer(machine, a, "A"), b_buffer(machine, b, "B"),
            c_buffer(machine, c, "C");
        Buffer<float> const scale_buffer(machine, scales, "scales");
        Buffer<half> d_buffer(machine, batch * m * n, "D");
        GemmArguments g = {.in = DType::f16,
                           .m = m,
                           .n = n,
                           .k = k,
                           .batch = batch,
                           .a = a_buffer.data(),
                           .b = b_buffer.data(),
                           .c = c_buffer.data(),
                           .d = d_buffer.data(),
                           .a_batch_stride = 0,
                           .c_batch_stride = 0,
                           .scale_a = scale_buffer.data(),
                           .scale_b = scale_buffer.data() + 1,
                           .beta = 2,
                           .activation = activation};
        g = with_defaults(g);
        gemm(machine, g);
        bool const sm90 = n == 64 && machine.compute_capability() == 90;
        if (machine.is_simulated()) {
          EXPECT_EQ(machine.last_report()->instruction("wgmma.mma_async").instructions > 0, sm90);
        }
        g.a = a.data(), g.b = b.data(), g.c = c.data(), g.scale_a = scales.data(),
        g.scale_b = &scales[1];
        auto const comparison =
            reference::compare(doubles(d_buffer.download()),
                               reference::gemm(g, reference::some_rows(batch * m, batch * m)),
                               reference::largest_finite(*g.out));
        EXPECT_TRUE(comparison.within())
            << machine.name() << ", " << to_string(g) << ": element " << comparison.worst
            << " is off by " << comparison.max_ratio << " bounds";
      }
}

TEST(Launch, ComputesAttentionWithItsLogSumExp) {
  for (auto const& machine : machines()) {
    constexpr int heads = 2, seq_q = 40, seq_k = 70, dim = 64;
    auto const q = random_halves(heads * seq_q * dim, 1), k = random_halves(heads * seq_k * dim, 2),
               v = random_halves(heads * seq_k * dim, 3);
    Buffer<half> const q_buffer(machine, q, "Q"), k_buffer(machine, k, "K"),
        v_buffer(machine, v, "V");
    Buffer<half> const o_buffer(machine, heads * seq_q * dim, "O");
    Buffer<float> const lse_buffer(machine, heads * seq_q, "lse");
    AttentionArguments a = {.dtype = DType::f16,
                            .q = q_buffer.data(),
                            .k = k_buffer.data(),
                            .v = v_buffer.data(),
                            .o = o_buffer.data(),
                            .lse = lse_buffer.data(),
                            .heads = heads,
                            .seq_q = seq_q,
                            .seq_k = seq_k,
                            .head_dim = dim,
                            // O and Q as (heads, seq, dim)
                            .q_stride = TokenStrides{0, dim, seq_q * dim},
                            .o_stride = TokenStrides{0, dim, seq_q * dim},
                            .causal = true};
    attention(machine, a);
    auto const o = doubles(o_buffer.download()), lse = doubles(lse_buffer.download());
    a.q = q.data(), a.k = k.data(), a.v = v.data();
    auto const expected =
        reference::attention(a, reference::some_rows(heads * seq_q, heads * seq_q));
    auto const of_o = reference::compare(o, expected.o, reference::largest_finite(DType::f16));
    auto const of_lse =
        reference::compare(lse, expected.lse, reference::largest_finite(DType::f32));
    EXPECT_TRUE(of_o.within()) << machine.name() << ": element " << of_o.worst << " off by "
                               << of_o.max_ratio << " bounds";
    EXPECT_TRUE(of_lse.within()) << machine.name() << ": row " << of_lse.worst << " off by "
                                 << of_lse.max_ratio << " bounds";
  }
}

TEST(Launch, RefusesBadArgumentsBeforeAnythingRuns) {
  for (auto const& machine : machines()) {
    EXPECT_THROW(gemm(machine, {.m = 1, .n = 1, .k = 1}), argument_error);
    EXPECT_THROW(attention(machine, {.seq_q = 1, .head_dim = 64}), argument_error);
    EXPECT_FALSE(machine.last_report().has_value());
  }
}

TEST(Launch, RunsFromSeveralThreads) {
  for (auto const& machine : machines()) {
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 4; ++t)
      threads.emplace_back([&machine, t] {
        OwnedStream const stream = machine.create_stream();
        run_gemm(machine,
                 {.in = DType::f16, .out = DType::f32, .m = 20 + t, .n = 30, .k = 16 * (t + 1)},
                 stream, 10 * t);
      });
    for (auto& thread : threads) thread.join();
  }
}

TEST(Launch, ReportsAKernelThatReadsWhatNobodyWrote) {
  Machine const machine = Machine::simulated();
  Buffer<half> const a(machine, 32 * 32, "unwritten A");
  Buffer<half> const b(machine, random_halves(32 * 32, 1), "B");
  Buffer<half> const d(machine, 32 * 32, "D");
  GemmArguments const g = {
      .in = DType::f16, .m = 32, .n = 32, .k = 32, .a = a.data(), .b = b.data(), .d = d.data()};
  EXPECT_THAT(message_of<sim::CheckError>([&] { gemm(machine, g); }), HasSubstr("unwritten A"));
  ASSERT_TRUE(machine.last_report().has_value());
  EXPECT_FALSE(machine.last_report()->ok());
}

// A pointer too short for its arguments is found at the access, by name.
TEST(Launch, ReportsAnAccessBeyondABuffer) {
  Machine const machine = Machine::simulated();
  Buffer<half> const a(machine, random_halves(32 * 32, 1), "short A"),
      b(machine, random_halves(64 * 32, 2), "B");
  Buffer<half> const d(machine, 64 * 64, "D");
  GemmArguments const g = {
      .in = DType::f16, .m = 64, .n = 64, .k = 32, .a = a.data(), .b = b.data(), .d = d.data()};
  EXPECT_THROW(gemm(machine, g), sim::CheckError);
  EXPECT_EQ(machine.last_report()->findings.front().kind, sim::FindingKind::out_of_bounds);
}

TEST(Launch, GivesTheSameBitsForEverySeedAndScheduler) {
  std::vector<std::vector<float>> results;
  auto const a = random_halves(50 * 48, 1), b = random_halves(40 * 48, 2);
  for (auto const completion :
       {sim::Completion::last, sim::Completion::first, sim::Completion::random})
    for (auto const interleaving : {sim::Interleaving::one_warp_ahead,
                                    sim::Interleaving::round_robin, sim::Interleaving::random}) {
      Machine const machine = Machine::simulated(
          Arch::sm90, {.completion = completion, .interleaving = interleaving, .seed = 7});
      Buffer<half> const a_buffer(machine, a, "A"), b_buffer(machine, b, "B");
      Buffer<float> const d(machine, 50 * 40, "D");
      gemm(machine, {.in = DType::f16,
                     .out = DType::f32,
                     .m = 50,
                     .n = 40,
                     .k = 48,
                     .a = a_buffer.data(),
                     .b = b_buffer.data(),
                     .d = d.data()});
      results.push_back(d.download());
      EXPECT_EQ(results.back(), results.front());
    }
}

}  // namespace
}  // namespace tegula
