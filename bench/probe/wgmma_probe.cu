// Compares the arithmetic of wgmma on a GPU of compute capability 9.0 with the simulated machine's.
//
// Build in the repository root, as one line; nothing is needed but the CUDA toolkit and a C++20
// host compiler:
//   nvcc -O2 -std=c++20 -gencode arch=compute_90a,code=sm_90a
//     -Xcompiler -mavx2,-ffp-contract=off -Iinclude -Ibench/probe
//     -o wgmma_probe bench/probe/wgmma_probe.cu src/sim/arithmetic/*.cpp
// Run:
//   ./wgmma_probe [FOLDER]
// For each instruction, n of 8 and of 64, and each set of operands: 1,048,576 results. Prints how
// many differ, and the first of them with their operands. A FOLDER, which must exist, receives
//   summary.txt     what is printed
//   mismatches.bin  words of 32 bits: instruction, set, n, case, row, column, the GPU's result; at
//                   most 1000 for an instruction, n and set
//   results.bin     words of 32 bits: the GPU's results of the first kKeptWgmmaCases cases with n =
//                   8 of every set of every instruction, [subject][set][case][row][column]
// Exits with 1 if a CUDA call failed or anything differs.

#include <algorithm>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include <wgmma_cases.hpp>

namespace {

using namespace tegula;
using tegula::probe::WgmmaCase;

constexpr int kResults = 1 << 20;
constexpr int kMostMismatches = 1000;
constexpr int kMostShown = 2;

#define CHECK(call)                                                      \
  do {                                                                   \
    cudaError_t const error_ = (call);                                   \
    if (error_ != cudaSuccess) {                                         \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, \
                   cudaGetErrorString(error_));                          \
      std::exit(1);                                                      \
    }                                                                    \
  } while (false)

// ----------------------------------------------------------------------------------------------------
// The instructions, as text. %0... are D's registers; then A's and B's descriptors, scale-d, and
// the two negations.

#define D4 "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
#define D2 "+r"(d[0]), "+r"(d[1])
#define D_4(i) "+r"(d[i]), "+r"(d[i + 1]), "+r"(d[i + 2]), "+r"(d[i + 3])
#define D16 D_4(0), D_4(4), D_4(8), D_4(12)
#define D32 D16, D_4(16), D_4(20), D_4(24), D_4(28)
#define IN "l"(a), "l"(b), "r"(scale_d), "n"(NegateA ? -1 : 1), "n"(NegateB ? -1 : 1)
#define LIST2 "{%0, %1}"
#define LIST4 "{%0, %1, %2, %3}"
#define LIST16 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}"
#define LIST32                                                              \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}"
#define ISSUE(SHAPE, NAME, LIST, OUT, A, B, SCALE, TAIL)                                   \
  asm volatile("{\n.reg .pred accumulate;\nsetp.ne.b32 accumulate, " SCALE                 \
               ", 0;\nwgmma.mma_async.sync.aligned." SHAPE "." NAME " " LIST ", " A ", " B \
               ", accumulate" TAIL ";\n}\n"                                                \
               : OUT                                                                       \
               : IN)
#define ISSUE_32BIT(K, NAME, TAIL8, TAIL64)                            \
  if constexpr (N == 8) {                                              \
    ISSUE("m64n8" K, NAME, LIST4, D4, "%4", "%5", "%6", TAIL8);        \
  } else {                                                             \
    ISSUE("m64n64" K, NAME, LIST32, D32, "%32", "%33", "%34", TAIL64); \
  }
#define ISSUE_16BIT(K, NAME, TAIL8, TAIL64)                            \
  if constexpr (N == 8) {                                              \
    ISSUE("m64n8" K, NAME, LIST2, D2, "%2", "%3", "%4", TAIL8);        \
  } else {                                                             \
    ISSUE("m64n64" K, NAME, LIST16, D16, "%16", "%17", "%18", TAIL64); \
  }
#define FLOAT_16BIT_ELEMENTS(NAME) ISSUE_32BIT("k16", NAME, ", %7, %8, 0, 0", ", %35, %36, 0, 0")
#define FLOAT_OTHERS(K, NAME) ISSUE_32BIT(K, NAME, ", %7, %8", ", %35, %36")
#define INTEGER(NAME) ISSUE_32BIT("k32", NAME, "", "")

template <int Subject, int N, bool NegateA, bool NegateB>
__device__ void issue(std::uint32_t* d, std::uint64_t a, std::uint64_t b, int scale_d) {
  static_assert(probe::kWgmmaSubjectCount == 20);
  if constexpr (Subject == 0) {
    FLOAT_16BIT_ELEMENTS("f32.bf16.bf16")
  } else if constexpr (Subject == 1) {
    FLOAT_16BIT_ELEMENTS("f32.f16.f16")
  } else if constexpr (Subject == 2) {
    FLOAT_OTHERS("k8", "f32.tf32.tf32")
  } else if constexpr (Subject == 3) {
    FLOAT_OTHERS("k32", "f32.e4m3.e4m3")
  } else if constexpr (Subject == 4) {
    FLOAT_OTHERS("k32", "f32.e4m3.e5m2")
  } else if constexpr (Subject == 5) {
    FLOAT_OTHERS("k32", "f32.e5m2.e4m3")
  } else if constexpr (Subject == 6) {
    FLOAT_OTHERS("k32", "f32.e5m2.e5m2")
  } else if constexpr (Subject == 7) {
    ISSUE_16BIT("k16", "f16.f16.f16", ", %5, %6, 0, 0", ", %19, %20, 0, 0")
  } else if constexpr (Subject == 8) {
    ISSUE_16BIT("k32", "f16.e4m3.e4m3", ", %5, %6", ", %19, %20")
  } else if constexpr (Subject == 9) {
    ISSUE_16BIT("k32", "f16.e4m3.e5m2", ", %5, %6", ", %19, %20")
  } else if constexpr (Subject == 10) {
    ISSUE_16BIT("k32", "f16.e5m2.e4m3", ", %5, %6", ", %19, %20")
  } else if constexpr (Subject == 11) {
    ISSUE_16BIT("k32", "f16.e5m2.e5m2", ", %5, %6", ", %19, %20")
  } else if constexpr (Subject == 12) {
    INTEGER("s32.s8.s8")
  } else if constexpr (Subject == 13) {
    INTEGER("s32.s8.u8")
  } else if constexpr (Subject == 14) {
    INTEGER("s32.u8.s8")
  } else if constexpr (Subject == 15) {
    INTEGER("s32.u8.u8")
  } else if constexpr (Subject == 16) {
    INTEGER("s32.s8.s8.satfinite")
  } else if constexpr (Subject == 17) {
    INTEGER("s32.s8.u8.satfinite")
  } else if constexpr (Subject == 18) {
    INTEGER("s32.u8.s8.satfinite")
  } else {
    INTEGER("s32.u8.u8.satfinite")
  }
}

/// Operands of one instruction on the device.
template <int N> struct Operands {
  std::uint8_t a[kWgmmaM][sim::kWgmmaRowBytes];
  std::uint8_t b[N][sim::kWgmmaRowBytes];
  std::uint32_t d[kWgmmaM][N];  // C, then D
  std::uint32_t negations;      // bit 0: of A, bit 1: of B
  std::uint32_t scale_d;
  std::uint32_t filler[2];  // to 16 bytes
};

/// A descriptor without swizzle, K-major: blocks of 8 rows of 16 bytes, two of them along K side
/// by side.
__device__ std::uint64_t descriptor(void const* tile) {
  std::uint64_t const address = __cvta_generic_to_shared(tile);
  constexpr std::uint64_t kAlongK = 128, kAlongRows = 256;  // bytes from block to block
  return ((address & 0x3ffffu) >> 4) | (kAlongK >> 4 << 16) | (kAlongRows >> 4 << 32);
}

/// One warpgroup a block, one case a block; a block whose case has other negations does nothing.
template <int Subject, int N, bool NegateA, bool NegateB> __global__ void run(Operands<N>* cases) {
  __shared__ alignas(128) uint4 a[kWgmmaM * 2];
  __shared__ alignas(128) uint4 b[N * 2];
  Operands<N>& x = cases[blockIdx.x];
  if (x.negations != (NegateA ? 1u : 0u) + (NegateB ? 2u : 0u)) return;
  int const thread = static_cast<int>(threadIdx.x);
  auto const copy = [&](uint4* to, std::uint8_t const(*from)[sim::kWgmmaRowBytes], int rows) {
    for (int i = thread; i < rows * 2; i += 128) {
      int const row = i / 2, half = i % 2;
      to[row / 8 * 16 + half * 8 + row % 8] =
          *reinterpret_cast<uint4 const*>(&from[row][half * 16]);
    }
  };
  copy(a, x.a, kWgmmaM);
  copy(b, x.b, N);
  constexpr bool kHalf = probe::kWgmmaSubjects[Subject].d == DType::f16;
  constexpr int kRegisters = kHalf ? N / 4 : N / 2;
  std::uint32_t d[kRegisters];
  int const lane = thread % 32;
  int const row = thread / 32 * 16 + lane / 4;
  int const column = lane % 4 * 2;
#pragma unroll
  for (int i = 0; i < kRegisters; ++i) {
    if constexpr (kHalf) {
      std::uint32_t const* from = &x.d[row + i % 2 * 8][column + i / 2 * 8];
      d[i] = from[0] | (from[1] << 16);
    } else {
      d[i] = x.d[row + i / 2 % 2 * 8][column + i / 4 * 8 + i % 2];
    }
  }
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncthreads();
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  issue<Subject, N, NegateA, NegateB>(d, descriptor(a), descriptor(b), static_cast<int>(x.scale_d));
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
  for (int i = 0; i < kRegisters; ++i) asm volatile("" : "+r"(d[i])::"memory");
#pragma unroll
  for (int i = 0; i < kRegisters; ++i) {
    if constexpr (kHalf) {
      std::uint32_t* to = &x.d[row + i % 2 * 8][column + i / 2 * 8];
      to[0] = d[i] & 0xffffu;
      to[1] = d[i] >> 16;
    } else {
      x.d[row + i / 2 % 2 * 8][column + i / 4 * 8 + i % 2] = d[i];
    }
  }
}

template <int Subject, int N> void launch(Operands<N>* cases, int count) {
  unsigned const blocks = static_cast<unsigned>(count);
  run<Subject, N, false, false><<<blocks, 128>>>(cases);
  if constexpr (probe::kWgmmaSubjects[Subject].d != DType::s32) {
    run<Subject, N, true, false><<<blocks, 128>>>(cases);
    run<Subject, N, false, true><<<blocks, 128>>>(cases);
    run<Subject, N, true, true><<<blocks, 128>>>(cases);
  }
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
}

// ----------------------------------------------------------------------------------------------------

std::FILE* summary = nullptr;
std::FILE* mismatches = nullptr;
std::FILE* results = nullptr;
long all_compared = 0, all_different = 0;

/// To the terminal, and to summary.txt if there is a folder.
void say(char const* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  char line[1024];
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  std::fputs(line, stdout);
  if (summary != nullptr) std::fputs(line, summary);
}

std::FILE* open_file(std::string const& path) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) {
    std::fprintf(stderr, "cannot write %s\n", path.c_str());
    std::exit(1);
  }
  return file;
}

/// body(i) for i in [0, count) on all host threads.
template <class Body> void parallel(int count, Body body) {
  int const threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  std::vector<std::thread> pool;
  for (int t = 0; t < threads; ++t) {
    pool.emplace_back([=] {
      for (int i = t; i < count; i += threads) body(i);
    });
  }
  for (std::thread& thread : pool) thread.join();
}

void show(WgmmaCase const& x, int row, int column, std::uint32_t gpu, std::uint32_t machine) {
  say("    (%d, %d): gpu %08x, machine %08x; c %08x%s%s%s\n      a ", row, column, gpu, machine,
      x.c[static_cast<std::size_t>(row * x.op.n + column)], x.scale_d ? "" : ", scale_d 0",
      x.op.negate_a ? ", a negated" : "", x.op.negate_b ? ", b negated" : "");
  int const bytes = element_bits(x.op) / 8;
  auto const elements = [&](std::uint8_t const* from) {
    for (int i = 0; i < x.op.k; ++i) {
      std::uint32_t code = 0;
      std::memcpy(&code, from + i * bytes, static_cast<std::size_t>(bytes));
      say(" %0*x", bytes * 2, code);
    }
  };
  elements(x.a[row]);
  say("\n      b ");
  elements(&x.b[static_cast<std::size_t>(column) * sim::kWgmmaRowBytes]);
  say("\n");
}

template <int Subject, int N> void compare(int set) {
  constexpr int kCases = kResults / (kWgmmaM * N);
  std::vector<WgmmaCase> cases(kCases);
  std::vector<Operands<N>> operands(kCases);
  parallel(kCases, [&](int i) {
    WgmmaCase& x = cases[static_cast<std::size_t>(i)];
    x = probe::wgmma_case(Subject, set, N, i);
    Operands<N>& to = operands[static_cast<std::size_t>(i)];
    std::memcpy(to.a, x.a, sizeof to.a);
    std::memcpy(to.b, x.b.data(), sizeof to.b);
    std::memcpy(to.d, x.c.data(), sizeof to.d);
    to.negations = (x.op.negate_a ? 1u : 0u) + (x.op.negate_b ? 2u : 0u);
    to.scale_d = x.scale_d ? 1 : 0;
  });
  Operands<N>* on_device = nullptr;
  std::size_t const bytes = operands.size() * sizeof(Operands<N>);
  CHECK(cudaMalloc(&on_device, bytes));
  CHECK(cudaMemcpy(on_device, operands.data(), bytes, cudaMemcpyHostToDevice));
  launch<Subject, N>(on_device, kCases);
  CHECK(cudaMemcpy(operands.data(), on_device, bytes, cudaMemcpyDeviceToHost));
  CHECK(cudaFree(on_device));

  std::vector<std::vector<std::uint32_t>> machine(kCases);
  parallel(kCases, [&](int i) {
    machine[static_cast<std::size_t>(i)] = cases[static_cast<std::size_t>(i)].simulated();
  });
  long different = 0;
  for (int i = 0; i < kCases; ++i) {
    std::uint32_t const* gpu = &operands[static_cast<std::size_t>(i)].d[0][0];
    std::uint32_t const* expected = machine[static_cast<std::size_t>(i)].data();
    if (N == probe::kKeptWgmmaN && i < probe::kKeptWgmmaCases && results != nullptr)
      std::fwrite(gpu, 4, kWgmmaM * N, results);
    if (std::memcmp(gpu, expected, sizeof(std::uint32_t) * kWgmmaM * N) == 0) continue;
    for (int element = 0; element < kWgmmaM * N; ++element) {
      if (gpu[element] == expected[element]) continue;
      int const row = element / N, column = element % N;
      if (different == 0) {
        say("  %s, n %d, %s: the first differences, case %d\n", probe::kWgmmaSubjects[Subject].name,
            N, probe::wgmma_set_name(set), i);
      }
      if (different < kMostShown)
        show(cases[static_cast<std::size_t>(i)], row, column, gpu[element], expected[element]);
      if (different < kMostMismatches && mismatches != nullptr) {
        std::uint32_t const record[7] = {static_cast<std::uint32_t>(Subject),
                                         static_cast<std::uint32_t>(set),
                                         static_cast<std::uint32_t>(N),
                                         static_cast<std::uint32_t>(i),
                                         static_cast<std::uint32_t>(row),
                                         static_cast<std::uint32_t>(column),
                                         gpu[element]};
        std::fwrite(record, sizeof record, 1, mismatches);
      }
      ++different;
    }
  }
  all_compared += kResults;
  all_different += different;
  say("%-20s n %-3d %-13s %8d results %8ld differ\n", probe::kWgmmaSubjects[Subject].name, N,
      probe::wgmma_set_name(set), kResults, different);
}

template <int Subject> void compare_subject() {
  for (int set = 0; set < probe::kWgmmaSets; ++set) compare<Subject, 8>(set);
  for (int set = 0; set < probe::kWgmmaSets; ++set) compare<Subject, 64>(set);
}

template <int... Subjects> void compare_all(std::integer_sequence<int, Subjects...>) {
  (compare_subject<Subjects>(), ...);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 2 || (argc == 2 && argv[1][0] == '-')) {
    std::fprintf(stderr, "usage: %s [FOLDER]\n", argv[0]);
    return 1;
  }
  if (argc == 2) {
    std::string const folder = argv[1];
    summary = open_file(folder + "/summary.txt");
    mismatches = open_file(folder + "/mismatches.bin");
    results = open_file(folder + "/results.bin");
  }
  cudaDeviceProp properties;
  CHECK(cudaGetDeviceProperties(&properties, 0));
  say("%s, compute capability %d.%d\n", properties.name, properties.major, properties.minor);
  if (properties.major != 9 || properties.minor != 0) {
    std::fprintf(stderr, "needs compute capability 9.0\n");
    return 1;
  }
  compare_all(std::make_integer_sequence<int, probe::kWgmmaSubjectCount>{});
  say("\n%ld results compared, %ld differ\n", all_compared, all_different);
  for (std::FILE* file : {summary, mismatches, results}) {
    if (file != nullptr && std::fclose(file) != 0) {
      std::fprintf(stderr, "cannot write to the folder\n");
      return 1;
    }
  }
  return all_different == 0 ? 0 : 1;
}
