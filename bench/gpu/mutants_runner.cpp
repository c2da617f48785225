// Runs one mutant of one case on the GPU, and says in a JSON line what came of it.

#include <cuda_runtime.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "../../src/device/cuda/tensor_map.hpp"
#include "gemm_params.hpp"
#include "mutation_cases.hpp"
#include "tegula/device/arguments.hpp"
#include "tegula/device/error.hpp"
#include "tegula/device/reference.hpp"

namespace tegula::mutants {
namespace {

constexpr char kUsage[] =
    "usage: mutants_runner --list | CASE CUBIN EXPECTED [--write] [--launches N] [--seconds S] [--tight]\n"
    "  launches the function `mutant` of CUBIN on the problem of CASE and compares every byte of the output\n"
    "  with the file EXPECTED. --write: compares with float64 instead, and writes EXPECTED. --launches: at\n"
    "  most so many, of two problems in turn, in at most 0.7 s. --seconds: how long a launch may take until it\n"
    "  counts as hung. --tight: no guards around the buffers, so that a tool sees accesses beside them.\n"
    "  Exit code: 0 right, 1 it could not be run, 2 wrong, 3 hung, 4 the launch failed\n";
enum ExitCode : int { kRight, kNotRun, kWrong, kHung, kFailed };

// so that what the launch before left in shared memory is wrong for the next
constexpr int kProblems = 2;
constexpr auto kMostTime = std::chrono::milliseconds(700);
constexpr std::size_t kGuard = 4096;
constexpr int kInputGuard = 0xff;  // around inputs: a NaN of every type; outputs: kPoison

/// A mutant's failure, by CUDA's word.
struct LaunchFailure {
  cudaError_t status;
};

void check(cudaError_t status, char const* call) {
  if (status != cudaSuccess)
    throw device_error(fmt::format("{}: {}.", call, cudaGetErrorString(status)));
}
void check_launch(cudaError_t status) {
  if (status != cudaSuccess) throw LaunchFailure{status};
}

/// A tensor on the device, with guards before and behind unless they are left out.
class Memory {
 public:
  Memory(std::size_t bytes, int around, bool tight) : bytes_(bytes), guard_(tight ? 0 : kGuard) {
    check(cudaMalloc(&whole_, size()), "cudaMalloc");
    check(cudaMemset(whole_, around, size()), "cudaMemset");
  }
  ~Memory() { cudaFree(whole_); }
  Memory(Memory const&) = delete;
  Memory& operator=(Memory const&) = delete;

  void* data() const { return static_cast<char*>(whole_) + guard_; }
  std::size_t bytes() const { return bytes_; }
  void upload(std::vector<std::uint8_t> const& from) const {
    check(cudaMemcpy(data(), from.data(), bytes_, cudaMemcpyHostToDevice), "cudaMemcpy");
  }
  void clear() const { check_launch(cudaMemsetAsync(data(), 0, bytes_)); }
  void poison() const { check_launch(cudaMemsetAsync(whole_, kPoison, size())); }
  /// The tensor's bytes, and whether the guards are as poison() left them.
  std::pair<std::vector<std::uint8_t>, bool> download() const {
    std::vector<std::uint8_t> all(size());
    check_launch(cudaMemcpy(all.data(), whole_, size(), cudaMemcpyDeviceToHost));
    bool intact = true;
    for (std::size_t i = 0; i < guard_; ++i)
      intact = intact && all[i] == kPoison && all[all.size() - 1 - i] == kPoison;
    auto const first = all.begin() + static_cast<std::ptrdiff_t>(guard_);
    return {{first, first + static_cast<std::ptrdiff_t>(bytes_)}, intact};
  }

 private:
  std::size_t size() const { return bytes_ + 2 * guard_; }

  std::size_t bytes_, guard_;
  void* whole_ = nullptr;
};

/// A launch of a case, and the problems that it is given in turn.
struct Launch {
  std::vector<std::unique_ptr<Memory>> inputs, outputs;
  std::vector<std::unique_ptr<Memory>> zeros;              ///< before each launch
  std::vector<std::vector<std::uint8_t>> host[kProblems];  // what the inputs hold in each problem
  Dim3 grid, cluster{1, 1, 1};
  int threads = 0;
  std::size_t shared_bytes = 0;
  std::vector<std::byte> params;
};

template <class Kernel> void set_kernel(Launch& launch, typename Kernel::Params const& params) {
  launch.grid = Kernel::grid(params);
  if constexpr (requires { Kernel::cluster; }) launch.cluster = Kernel::cluster;
  launch.threads = Kernel::threads;
  launch.shared_bytes = sizeof(typename Kernel::SharedStorage);
  launch.params.resize(sizeof params);
  std::memcpy(launch.params.data(), &params, sizeof params);
}

/// An input of `count` elements; returns its device address.
void const* add_input(Launch& launch, DType type, std::int64_t count, bool tight) {
  auto const number = launch.inputs.size();
  for (std::size_t problem = 0; problem < kProblems; ++problem)
    launch.host[problem].push_back(random_elements(type, count, 1 + 16 * problem + number, normal));
  launch.inputs.push_back(
      std::make_unique<Memory>(launch.host[0].back().size(), kInputGuard, tight));
  return launch.inputs.back()->data();
}

void* add_output(Launch& launch, std::size_t bytes, bool tight) {
  launch.outputs.push_back(std::make_unique<Memory>(bytes, kPoison, tight));
  return launch.outputs.back()->data();
}

// --- GEMM ----------------------------------------------------------------------------------------

template <int I> GemmArguments set_up_gemm(Launch& launch, bool tight) {
  Case const& c = kCases[I];
  GemmArguments g = gemm_arguments(c, /*line_bytes=*/128);
  auto const elements = [](std::int64_t row, std::int64_t rows, std::int64_t ld) {
    return ld * (rows - 1) + row;  // ends with the last element
  };
  auto const operand = [&](DType type, Major major, std::int64_t mn, std::int64_t ld) {
    bool const k_major = major == Major::k;
    return add_input(launch, type, elements(k_major ? g.k : mn, (k_major ? mn : g.k) * g.batch, ld),
                     tight);
  };
  g.a = operand(g.in, g.a_major, g.m, *g.lda);
  g.b = operand(*g.in_b, g.b_major, g.n, *g.ldb);
  std::int64_t const of_d = elements(g.n, g.m * g.batch, *g.ldd);
  if (c.adds) {
    g.c = add_input(launch, *g.out, of_d, tight);
    g.bias = add_input(launch, *g.out, g.n, tight);
  }
  g.d = add_output(launch, static_cast<std::size_t>(of_d * bits(*g.out) / 8), tight);
  if constexpr (kCases[I].family == Family::gemm_sm90) {
    TilePartition const tiling = equal_tiles(c.sm90, g, Raster::along_n, 1, c.parts);
    GemmSm90Parts parts = {.tile = TileParts(c.parts)};
    if (c.parts > 1)
      parts.partial = partial_sums(c.sm90, tiling, [&](std::int64_t bytes) {
        launch.zeros.push_back(std::make_unique<Memory>(static_cast<std::size_t>(bytes), 0, tight));
        return launch.zeros.back()->data();
      });
    GemmSm90Params params = independent_params(
        c.sm90, g, {.clusters = clusters_of(c.sm90, tiling, c.clusters), .tiling = tiling},
        device::encode_by_driver, parts);
    if (g.c == nullptr) params.epilogue.c = params.epilogue.d;  // what a mutant may load
    set_kernel<KernelOf<I>>(launch, params);
  } else {
    set_kernel<KernelOf<I>>(launch, lower(g));
  }
  return g;
}

/// How far D is from float64, in units of its bound.
double error_of(GemmArguments g, Launch const& launch, int problem,
                std::vector<std::vector<std::uint8_t>> const& outputs) {
  auto const& host = launch.host[problem];
  g.a = host[0].data(), g.b = host[1].data();
  if (g.c != nullptr) g.c = host[2].data(), g.bias = host[3].data();
  auto const exact = reference::gemm(g, reference::some_rows(g.batch * g.m, g.batch * g.m));
  std::vector<double> d;
  for (std::int64_t batch = 0; batch < g.batch; ++batch) {
    for (std::int64_t i = 0; i < g.m; ++i) {
      for (std::int64_t j = 0; j < g.n; ++j)
        d.push_back(reference::element(outputs[0].data(), *g.out,
                                       batch * *g.d_batch_stride + i * *g.ldd + j));
    }
  }
  return reference::compare(d, exact, reference::largest_finite(*g.out)).max_ratio;
}

// --- attention -----------------------------------------------------------------------------------

template <int I> AttentionArguments set_up_attention(Launch& launch, bool tight) {
  Case const& c = kCases[I];
  AttentionArguments a = with_defaults(AttentionArguments{.dtype = c.attention.dtype,
                                                          .batch = c.batch,
                                                          .heads = c.heads,
                                                          .kv_heads = c.kv_heads,
                                                          .seq_q = c.m,
                                                          .seq_k = c.n,
                                                          .head_dim = c.attention.head_dim,
                                                          .causal = c.attention.causal,
                                                          .exponential = c.attention.exponential});
  a.q = add_input(launch, a.dtype, a.q_stride->batch * a.batch, tight);
  a.k = add_input(launch, a.dtype, a.k_stride->batch * a.batch, tight);
  a.v = add_input(launch, a.dtype, a.v_stride->batch * a.batch, tight);
  a.o = add_output(launch, static_cast<std::size_t>(a.o_stride->batch * a.batch * 2), tight);
  auto const rows = static_cast<std::size_t>(a.batch * a.heads * a.seq_q);
  a.lse = static_cast<float*>(add_output(launch, sizeof(float) * rows, tight));
  set_kernel<KernelOf<I>>(launch, lower(a));
  return a;
}

/// How far O and the log-sum-exp are from float64, in units of their bounds.
double error_of(AttentionArguments a, Launch const& launch, int problem,
                std::vector<std::vector<std::uint8_t>> const& outputs) {
  auto const& host = launch.host[problem];
  a.q = host[0].data(), a.k = host[1].data(), a.v = host[2].data();
  std::int64_t const rows = a.batch * a.heads * a.seq_q;
  auto const exact = reference::attention(a, reference::some_rows(rows, rows));
  std::vector<double> o, lse;
  for (std::int64_t batch = 0; batch < a.batch; ++batch) {
    for (std::int64_t head = 0; head < a.heads; ++head) {
      for (std::int64_t i = 0; i < a.seq_q; ++i) {
        std::int64_t const row =
            batch * a.o_stride->batch + head * a.o_stride->head + i * a.o_stride->seq;
        for (std::int64_t d = 0; d < a.head_dim; ++d)
          o.push_back(reference::element(outputs[0].data(), a.dtype, row + d));
      }
    }
  }
  for (std::int64_t i = 0; i < rows; ++i)
    lse.push_back(reference::element(outputs[1].data(), DType::f32, i));
  return std::max(
      reference::compare(o, exact.o, reference::largest_finite(a.dtype)).max_ratio,
      reference::compare(lse, exact.lse, reference::largest_finite(DType::f32)).max_ratio);
}

// --- running -------------------------------------------------------------------------------------

struct Options {
  std::string name, cubin, expected;
  bool write = false, tight = false;
  int launches = 1;
  double seconds = 2;
};

/// Ends the process when the launch at hand has taken too long: a kernel that hangs ends with
/// its process.
class Watchdog {
 public:
  explicit Watchdog(double seconds) : limit_(seconds) {
    std::thread([this] {
      for (;;) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        int const launch = launch_;
        if (launch < 0 || Clock::now() - began_.load() < limit_) continue;
        std::string const line =
            fmt::format("{{\"result\": \"hang\", \"launches\": {}}}\n", launch + 1);
        static_cast<void>(!write(STDOUT_FILENO, line.data(), line.size()));
        _exit(kHung);
      }
    }).detach();
  }
  void launch(int number) {
    began_ = Clock::now();
    launch_ = number;
  }
  void rest() { launch_ = -1; }

 private:
  using Clock = std::chrono::steady_clock;

  std::chrono::duration<double> limit_;
  std::atomic<Clock::time_point> began_ = Clock::now();
  std::atomic<int> launch_ = -1;
};

using Outputs = std::vector<std::vector<std::uint8_t>>;

/// One launch; the bytes of its outputs, and whether their guards are intact.
std::pair<Outputs, bool> run_once(Launch const& launch, cudaKernel_t kernel, int problem) {
  for (std::size_t i = 0; i < launch.inputs.size(); ++i)
    launch.inputs[i]->upload(launch.host[problem][i]);
  for (auto const& zero : launch.zeros) zero->clear();
  for (auto const& output : launch.outputs) output->poison();
  auto const extents = [](Dim3 const& d) {
    return dim3(static_cast<unsigned>(d.x), static_cast<unsigned>(d.y), static_cast<unsigned>(d.z));
  };
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  dim3 const in_cluster = extents(launch.cluster);
  cluster.val.clusterDim = {in_cluster.x, in_cluster.y, in_cluster.z};
  cudaLaunchConfig_t const config{
      .gridDim = extents(launch.grid),
      .blockDim = extents({launch.threads, 1, 1}),
      .dynamicSmemBytes = launch.shared_bytes,
      .attrs = &cluster,
      .numAttrs = launch.cluster.x * launch.cluster.y * launch.cluster.z > 1 ? 1u : 0u};
  void* arguments[] = {const_cast<std::byte*>(launch.params.data())};
  check_launch(cudaLaunchKernelExC(&config, reinterpret_cast<void const*>(kernel), arguments));
  check_launch(cudaDeviceSynchronize());
  std::pair<Outputs, bool> result{{}, true};
  for (auto const& output : launch.outputs) {
    auto [bytes, intact] = output->download();
    result.first.push_back(std::move(bytes));
    result.second = result.second && intact;
  }
  return result;
}

void write_expected(std::string const& path, std::vector<Outputs> const& of_problems) {
  std::ofstream file(path, std::ios::binary);
  for (Outputs const& outputs : of_problems) {
    for (auto const& bytes : outputs)
      file.write(reinterpret_cast<char const*>(bytes.data()),
                 static_cast<std::streamsize>(bytes.size()));
  }
  if (!file.flush()) throw device_error(fmt::format("cannot write {}.", path));
}

std::vector<Outputs> read_expected(std::string const& path, Launch const& launch) {
  std::ifstream file(path, std::ios::binary);
  std::vector<Outputs> of_problems(kProblems);
  for (Outputs& outputs : of_problems) {
    for (auto const& output : launch.outputs) {
      outputs.emplace_back(output->bytes());
      file.read(reinterpret_cast<char*>(outputs.back().data()),
                static_cast<std::streamsize>(outputs.back().size()));
    }
  }
  if (!file)
    throw device_error(fmt::format("{} is absent or too short: write it first (--write).", path));
  return of_problems;
}

std::size_t different_bytes(Outputs const& a, Outputs const& b) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t at = 0; at < a[i].size(); ++at) count += a[i][at] != b[i][at];
  }
  return count;
}

/// The unmutated kernel: right by float64, and what the mutants are held to.
template <class Arguments>
int write_baseline(Options const& o, Launch const& launch, cudaKernel_t kernel, Watchdog& watchdog,
                   Arguments const& arguments) {
  std::vector<Outputs> of_problems;
  double worst = 0;
  bool all_intact = true;
  for (int problem = 0; problem < kProblems; ++problem) {
    watchdog.launch(problem);
    auto [outputs, intact] = run_once(launch, kernel, problem);
    watchdog.rest();
    worst = std::max(worst, error_of(arguments, launch, problem, outputs));
    all_intact = all_intact && intact;
    of_problems.push_back(std::move(outputs));
  }
  write_expected(o.expected, of_problems);
  bool const right = worst <= 1 && all_intact;
  fmt::print(
      "{{\"result\": \"{}\", \"launches\": {}, \"error\": \"{:.3f} times the bound from float64{}\"}}\n",
      right ? "right" : "wrong", kProblems, worst,
      all_intact ? "" : ", bytes beside the output written");
  return right ? kRight : kWrong;
}

int compare_launches(Options const& o, Launch const& launch, cudaKernel_t kernel,
                     Watchdog& watchdog) {
  auto const expected = read_expected(o.expected, launch);
  int launches = 0, wrong = 0;
  std::string first;
  auto const began = std::chrono::steady_clock::now();
  while (launches < o.launches &&
         (launches < kProblems || std::chrono::steady_clock::now() - began < kMostTime)) {
    watchdog.launch(launches);
    int const problem = launches % kProblems;
    auto const [outputs, intact] = run_once(launch, kernel, problem);
    watchdog.rest();
    std::size_t const different =
        different_bytes(outputs, expected[static_cast<std::size_t>(problem)]);
    if (wrong == 0 && (different > 0 || !intact))
      first = fmt::format("launch {}: {} bytes differ{}", launches, different,
                          intact ? "" : ", bytes beside the output written");
    wrong += different > 0 || !intact;
    ++launches;
  }
  fmt::print("{{\"result\": \"{}\", \"launches\": {}, \"wrong\": {}, \"error\": \"{}\"}}\n",
             wrong > 0 ? "wrong" : "right", launches, wrong, first);
  return wrong > 0 ? kWrong : kRight;
}

template <int I> int run_case(Options const& o) {
  Launch launch;
  auto const arguments = [&] {
    if constexpr (kCases[I].family == Family::attention_sm80) {
      return set_up_attention<I>(launch, o.tight);
    } else {
      return set_up_gemm<I>(launch, o.tight);
    }
  }();
  cudaLibrary_t library;
  check(
      cudaLibraryLoadFromFile(&library, o.cubin.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0),
      "cudaLibraryLoadFromFile");
  cudaKernel_t kernel;
  check(cudaLibraryGetKernel(&kernel, library, "mutant"), "cudaLibraryGetKernel");
  check(cudaFuncSetAttribute(reinterpret_cast<void const*>(kernel),
                             cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(launch.shared_bytes)),
        "cudaFuncSetAttribute");
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  static Watchdog watchdog(o.seconds);
  try {
    return o.write ? write_baseline(o, launch, kernel, watchdog, arguments)
                   : compare_launches(o, launch, kernel, watchdog);
  } catch (LaunchFailure const& failure) {
    fmt::print("{{\"result\": \"failed\", \"error\": \"{}: {}\"}}\n",
               cudaGetErrorName(failure.status), cudaGetErrorString(failure.status));
    return kFailed;
  }
}

template <int... I> int run(Options const& o, std::integer_sequence<int, I...>) {
  int code = kNotRun;
  bool const found = ((kCases[I].name == o.name && (code = run_case<I>(o), true)) || ...);
  if (!found) throw device_error(fmt::format("there is no case {}.", o.name));
  return code;
}

Options parse(int argc, char** argv) {
  Options o;
  std::vector<std::string> places;
  for (int i = 1; i < argc; ++i) {
    std::string const word = argv[i];
    auto const value = [&]() -> std::string {
      if (++i == argc) throw device_error(fmt::format("{} needs a value.", word));
      return argv[i];
    };
    if (word == "--write") {
      o.write = true;
    } else if (word == "--tight") {
      o.tight = true;
    } else if (word == "--launches") {
      o.launches = std::stoi(value());
    } else if (word == "--seconds") {
      o.seconds = std::stod(value());
    } else {
      places.push_back(word);
    }
  }
  if (places.size() != 3) throw device_error(kUsage);
  o.name = places[0], o.cubin = places[1], o.expected = places[2];
  return o;
}

}  // namespace
}  // namespace tegula::mutants

int main(int argc, char** argv) {
  using namespace tegula::mutants;
  try {
    if (argc == 2 && std::string_view(argv[1]) == "--list") {
      for (Case const& c : kCases) std::printf("%s\n", c.name);
      return kRight;
    }
    return run(parse(argc, argv),
               std::make_integer_sequence<int, static_cast<int>(kCases.size())>{});
  } catch (std::exception const& e) {
    std::fprintf(stderr, "mutants_runner: %s\n", e.what());
    return kNotRun;
  }
}
