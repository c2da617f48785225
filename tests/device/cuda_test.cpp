// What only a GPU has: capture in a CUDA graph, streams of the caller's own, several threads on
// one device.

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "tegula/device/buffer.hpp"
#include "tegula/device/launch.hpp"

namespace tegula {
namespace {

std::vector<half> ramp(std::int64_t count) {
  std::vector<half> values(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i)
    values[static_cast<std::size_t>(i)] = to_half(static_cast<float>(i * 37 % 101 - 50) / 64);
  return values;
}

class CudaTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << "there is no GPU";
  }
};

/// Two GEMMs, by gemm_sm90 and gemm_sm80, and an attention on buffers of their own. The second GEMM
/// reads what the first writes, and the first starts by programmatic dependent launch.
struct Work {
  static constexpr std::int64_t size = 200, heads = 2, seq = 100, dim = 64;
  explicit Work(Machine const& machine)
      : machine(machine),
        a(machine, ramp(size * size), "A"),
        d(machine, size * size, "D"),
        e(machine, size * size, "E"),
        q(machine, ramp(heads * seq * dim), "Q"),
        o(machine, heads * seq * dim, "O") {}

  void launch(Stream stream) {
    gemm(machine,
         {.in = DType::f16,
          .m = size,
          .n = size,
          .k = size,
          .a = a.data(),
          .b = a.data(),
          .d = d.data()},
         stream);
    gemm(machine,
         {.in = DType::f16,
          .m = size,
          .n = size,
          .k = size - 1,
          .a = d.data(),
          .b = a.data(),
          .d = e.data()},
         stream);
    attention(machine,
              {.dtype = DType::f16,
               .q = q.data(),
               .k = q.data(),
               .v = q.data(),
               .o = o.data(),
               .heads = heads,
               .seq_q = seq,
               .head_dim = dim},
              stream);
  }
  std::vector<std::uint16_t> results() const {
    std::vector<std::uint16_t> bits;
    for (auto const* buffer : {&d, &e, &o})
      for (half const v : buffer->download()) bits.push_back(v.bits);
    return bits;
  }

  Machine machine;
  Buffer<half> a, d, e, q, o;
};

TEST_F(CudaTest, LaunchesCanBeCapturedInAGraph) {
  Machine const machine = Machine::cuda();
  Work eager(machine), captured(machine);
  eager.launch({});
  machine.synchronize();

  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  captured.d.fill(0xff);
  captured.e.fill(0xff);
  captured.o.fill(0xff);
  // Global mode refuses every call that allocates or synchronises, by any thread.
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  captured.launch({stream});
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  std::size_t nodes = 0;
  ASSERT_EQ(cudaGraphGetNodes(graph, nullptr, &nodes), cudaSuccess);
  EXPECT_EQ(nodes, 3u);
  cudaGraphExec_t executable = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
  EXPECT_NE(captured.results(), eager.results()) << "nothing may run during the capture";
  ASSERT_EQ(cudaGraphLaunch(executable, stream), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(captured.results(), eager.results());
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
}

// Every launch waits for the one before it, though it may start before that has ended: a chain of
// GEMMs, each of which reads the last one's result, gives the same bits as with a pause after each.
TEST_F(CudaTest, DependentLaunchesSeeWhatTheOneBeforeWrote) {
  Machine const machine = Machine::cuda();
  if (machine.compute_capability() != 90) GTEST_SKIP() << "gemm_sm90 needs an sm_90";
  constexpr std::int64_t size = 512;
  std::vector<half> identity(size * size);
  for (std::int64_t i = 0; i < size; ++i)
    identity[static_cast<std::size_t>(i * (size + 1))] = to_half(0.5f);
  auto const chain = [&](bool pause) {
    Buffer<half> const half_identity(machine, identity, "I/2"),
        start(machine, ramp(size * size), "start");
    Buffer<half> const x(machine, size * size, "x"), y(machine, size * size, "y");
    void* from = start.data();
    for (int i = 0; i < 40; ++i) {
      void* const to = i % 2 == 0 ? x.data() : y.data();
      gemm(machine, {.in = DType::f16,
                     .m = size,
                     .n = size,
                     .k = size,
                     .a = from,
                     .b = half_identity.data(),
                     .d = to,
                     .alpha = 2});
      if (pause) machine.synchronize();
      from = to;
    }
    machine.synchronize();
    std::vector<std::uint16_t> bits;
    for (half const v : y.download()) bits.push_back(v.bits);
    return bits;
  };
  auto const expected = chain(true);
  std::vector<std::uint16_t> start;
  for (half const v : ramp(size * size)) start.push_back(v.bits);
  EXPECT_EQ(expected, start) << "each step is the identity";
  for (int i = 0; i < 5; ++i) EXPECT_EQ(chain(false), expected);
}

TEST_F(CudaTest, ThreadsWithStreamsOfTheirOwnDoNotDisturbEachOther) {
  Machine const machine = Machine::cuda();
  Work expected(machine);
  expected.launch({});
  machine.synchronize();
  std::vector<std::vector<std::uint16_t>> results(8);
  std::vector<std::thread> threads;
  for (auto& result : results)
    threads.emplace_back([&] {
      OwnedStream const stream = machine.create_stream();
      Work work(machine);
      for (int i = 0; i < 10; ++i) work.launch(stream);
      machine.synchronize(stream);
      result = work.results();
    });
  for (auto& thread : threads) thread.join();
  for (auto const& result : results) EXPECT_EQ(result, expected.results());
}

TEST_F(CudaTest, TheCallersCurrentDeviceIsLeftAlone) {
  int before = -1, after = -1;
  ASSERT_EQ(cudaGetDevice(&before), cudaSuccess);
  Machine const machine = Machine::cuda(cuda_device_count() - 1);
  Work(machine).launch({});
  machine.synchronize();
  ASSERT_EQ(cudaGetDevice(&after), cudaSuccess);
  EXPECT_EQ(after, before);
}

TEST_F(CudaTest, AllocationsThatDoNotFitAreRefusedWithASentence) {
  Machine const machine = Machine::cuda();
  try {
    Buffer<half> const buffer(machine, std::int64_t{1} << 50, "enormous");
    FAIL() << "there cannot be 2 PiB";
  } catch (device_error const& error) {
    EXPECT_NE(std::string(error.what()).find("bytes for enormous) failed: out of memory"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace tegula
