// The back end on the CUDA driver, on a driver without a GPU (fake_driver): what it asks of one.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "fake_driver/fake_driver.hpp"
#include "scratch.hpp"
#include "tegula/device/buffer.hpp"
#include "tegula/device/kernel_compiler.hpp"
#include "tegula/device/launch.hpp"
#include "tegula/device/machine.hpp"
#include "tegula/device/prepared_launch.hpp"
#include "tegula/device/user_kernel.hpp"
#include "with_kernel_compiler.hpp"

namespace tegula {
namespace {

using tegula::testing::FakeLaunch;
using tegula::testing::message_of;
using tegula::testing::take_fake_launches;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class DriverBackend : public testing::WithKernelCompiler {
 protected:
  void SetUp() override {
    WithKernelCompiler::SetUp();
    take_fake_launches();
  }
};

GemmArguments gemm_of(Buffer<bfloat16>& a, Buffer<bfloat16>& b, Buffer<bfloat16>& d, int m, int n,
                      int k) {
  return {.in = DType::bf16, .m = m, .n = n, .k = k, .a = a.data(), .b = b.data(), .d = d.data()};
}

TEST_F(DriverBackend, IsAMachine) {
  EXPECT_EQ(cuda_device_count(), 2);
  Machine const machine = Machine::cuda(1);
  EXPECT_EQ(machine.name(), "Fake GPU (sm_90)");
  EXPECT_EQ(machine.compute_capability(), 90);
  EXPECT_EQ(machine.multiprocessors(), 132);
  EXPECT_FALSE(machine.is_simulated());
  EXPECT_THAT(message_of<device_error>([] { Machine::cuda(2); }), HasSubstr("no GPU number 2"));
  Buffer<int> numbers(machine, 5, "numbers");
  numbers.upload(std::vector<int>{1, 2, 3, 4, 5});
  EXPECT_THAT(numbers.download(), ElementsAre(1, 2, 3, 4, 5));
  OwnedStream const stream = machine.create_stream();
  Event begin = machine.create_event(), end = machine.create_event();
  begin.record(stream), end.record(stream);
  EXPECT_EQ(milliseconds(begin, end), 1.5f);
  EXPECT_EQ(testing::calls_without_context(), 0);
}

// The fake driver has one form for every kernel: 64 threads, 16 bytes of parameters, clusters of 2.
TEST_F(DriverBackend, LaunchesKernelsOfTheUsers) {
  UserKernel const kernel(Machine::cuda(), {.text = R"(
#include "tegula/arch/special_registers.hpp"
struct Doubling {
  struct Params { float* x; float* y; };
  struct SharedStorage {};
  static constexpr int threads = 64;
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage&) const {
    p.y[tegula::thread_idx()] = 2 * p.x[tegula::thread_idx()];
  }
};
)",
                                            .type = "Doubling",
                                            .file = "doubling.cpp"});
  EXPECT_EQ(kernel.threads(), 64);
  EXPECT_EQ(kernel.shared_bytes(), 1024u);
  EXPECT_EQ(kernel.params_bytes(), 16u);
  std::vector<char> const params(64, 'p');
  EXPECT_FALSE(kernel({4, 3, 2}, params.data()));
  std::vector<FakeLaunch> const launches = take_fake_launches();
  ASSERT_EQ(launches.size(), 1u);
  EXPECT_EQ(launches[0].entry, "kernel");
  EXPECT_THAT(launches[0].grid, ElementsAre(4, 3, 2));
  EXPECT_THAT(launches[0].block, ElementsAre(64, 1, 1));
  EXPECT_THAT(launches[0].cluster, ElementsAre(2, 1, 1));
  EXPECT_EQ(testing::calls_without_context(), 0);
}

TEST_F(DriverBackend, LaunchesWhatIsChosen) {
  Machine const machine = Machine::cuda();
  Buffer<bfloat16> a(machine, 512 * 256, "A"), b(machine, 512 * 256, "B"),
      d(machine, 512 * 512, "D");
  GemmArguments const arguments = gemm_of(a, b, d, 512, 512, 256);
  GemmChoice const choice = choose_gemm(arguments, machine.properties());
  KernelResources const needs = resources(choice.kernel, choice.configuration);
  GemmSm90Config const& config = configuration(gemm_sm90, choice.configuration);
  OwnedStream const stream = machine.create_stream();
  int const modules = testing::fake_modules();
  gemm(machine, arguments, stream);
  gemm(machine, arguments, stream);
  EXPECT_EQ(testing::fake_modules(), modules + 1);  // compiled and loaded once
  std::vector<FakeLaunch> const launches = take_fake_launches();
  ASSERT_EQ(launches.size(), 2u);
  for (FakeLaunch const& launch : launches) {
    EXPECT_THAT(launch.entry, HasSubstr(to_string(choice.kernel)));
    EXPECT_EQ(launch.block[0], static_cast<unsigned>(needs.threads));
    EXPECT_EQ(launch.shared_bytes, needs.shared_bytes);
    EXPECT_EQ(launch.stream, static_cast<Stream>(stream).native);
    EXPECT_EQ(launch.grid[0] % launch.cluster[0], 0u);
    void* first = nullptr;  // the map of A, which begins with its address here
    std::memcpy(&first, launch.params.data(), sizeof first);
    EXPECT_EQ(first, config.transposed ? b.data() : a.data());
  }
  EXPECT_EQ(launches[0].cluster[0] * launches[0].cluster[1],
            static_cast<unsigned>(cluster_size(config)));
  EXPECT_EQ(testing::calls_without_context(), 0);
}

// Whatever this build has: each is compiled when it is first used.
TEST_F(DriverBackend, IsGivenAnyConfiguration) {
  Machine const machine = Machine::cuda();
  EXPECT_EQ(machine.properties().kernels, Kernels::all);
  Buffer<bfloat16> a(machine, 512 * 256, "A"), d(machine, 512 * 512, "D");
  GemmArguments const arguments = gemm_of(a, a, d, 512, 512, 256);
  auto const all = configurations(gemm_sm90, Kernels::all);
  int const last = static_cast<int>(all.size()) - 1;
  EXPECT_EQ(plan_gemm(arguments, machine.properties()).candidates.size(),
            configurations(gemm_sm80, Kernels::all).size() + all.size() +
                configurations(gemm_sm100, Kernels::all).size() +
                configurations(scaled_gemm_sm100, Kernels::all).size());
  GemmConstraints const wanted = {.kernel = gemm_sm90, .configuration = last};
  GemmArguments of_last = arguments;
  of_last.in = all.back().a, of_last.in_b = all.back().b, of_last.out = all.back().out;
  if (all.back().activates) of_last.activation = Activation::relu;
  GemmChoice const choice = choose_gemm(of_last, machine.properties(), wanted);
  EXPECT_EQ(choice.configuration, last);
  gemm(machine, of_last, choice);
  std::vector<FakeLaunch> const launches = take_fake_launches();
  ASSERT_EQ(launches.size(), 1u);
  EXPECT_EQ(launches[0].shared_bytes, resources(gemm_sm90, last).shared_bytes);
  EXPECT_EQ(cached_kernels().size(), 1u);
  EXPECT_EQ(cached_kernels()[0].name, to_string(all.back()));
}

TEST_F(DriverBackend, APreparedLaunchIsTheSameLaunch) {
  Machine const machine = Machine::cuda();
  Buffer<bfloat16> q(machine, 2 * 128 * 4 * 64, "Q"), o(machine, 2 * 128 * 4 * 64, "O");
  AttentionArguments const arguments = {.dtype = DType::bf16,
                                        .q = q.data(),
                                        .k = q.data(),
                                        .v = q.data(),
                                        .o = o.data(),
                                        .batch = 2,
                                        .heads = 4,
                                        .seq_q = 128,
                                        .seq_k = 128,
                                        .head_dim = 64,
                                        .causal = true};
  PreparedLaunch const launch(machine, arguments);
  attention(machine, arguments);
  launch();
  launch();
  std::vector<FakeLaunch> const launches = take_fake_launches();
  ASSERT_EQ(launches.size(), 3u);
  for (FakeLaunch const& each : launches) {
    EXPECT_EQ(each.entry, launches[0].entry);
    EXPECT_EQ(each.grid, launches[0].grid);
    EXPECT_EQ(each.shared_bytes, launches[0].shared_bytes);
  }
  AttentionArguments wrong = arguments;
  wrong.head_dim = 7;
  EXPECT_THAT(message_of<argument_error>([&] { PreparedLaunch(machine, wrong); }),
              HasSubstr("head_dim is 7"));
}

TEST_F(DriverBackend, SaysWhatFailed) {
  Machine const machine = Machine::cuda();
  Buffer<bfloat16> a(machine, 64 * 64, "A"), d(machine, 64 * 64, "D");
  testing::fail_next_launch(719);
  EXPECT_THAT(message_of<device_error>([&] { gemm(machine, gemm_of(a, a, d, 64, 64, 64)); }),
              AllOf(HasSubstr("cuLaunchKernelEx (grid "), HasSubstr("a failure that was asked for"),
                    HasSubstr("CUDA_ERROR_LAUNCH_FAILED")));
  gemm(machine, gemm_of(a, a, d, 64, 64, 64));
  EXPECT_EQ(take_fake_launches().size(), 1u);
}

TEST_F(DriverBackend, ThreadsCompileAKernelOnce) {
  Machine const machine = Machine::cuda();
  Buffer<bfloat16> a(machine, 128 * 128, "A"), d(machine, 128 * 128, "D");
  int const modules = testing::fake_modules();
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i)
      threads.emplace_back([&] { gemm(machine, gemm_of(a, a, d, 128, 128, 128)); });
  }
  EXPECT_EQ(take_fake_launches().size(), 8u);
  EXPECT_EQ(testing::fake_modules(), modules + 1);
  EXPECT_EQ(testing::calls_without_context(), 0);
}

}  // namespace
}  // namespace tegula
