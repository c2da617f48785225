// Takes the arithmetic of a GPU of compute capability 9.0 down in files, and compares it with the
// simulated machine's.
//
// Build in the repository root, as one line; nothing is needed but the CUDA toolkit and a C++20
// host compiler:
//   nvcc -O2 -std=c++20 -gencode arch=compute_90a,code=sm_90a -fmad=false
//     -Xcompiler -mavx2,-ffp-contract=off -Iinclude -Ibench/probe
//     -o arithmetic_probe bench/probe/probe.cu src/sim/arithmetic/*.cpp
// Run:
//   ./arithmetic_probe [--every-float] [FOLDER]
// --every-float compares the functions on all 2^32 arguments: a minute or two on 16 cores. A
// FOLDER, which must exist, receives five files of at most 13 MB each; probe_files.hpp says what is
// in them. Exits with 1 if a CUDA call failed, with 2 if anything differs from the simulated
// machine that should not.

#include <cmath>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <probe_files.hpp>
#include <string>
#include <tegula/arch/math.hpp>
#include <tegula/arch/mma_sync.hpp>
#include <tegula/numeric/dtype.hpp>
#include <tegula/numeric/exp2.hpp>
#include <tegula/sim/arithmetic.hpp>
#include <thread>
#include <vector>

namespace {

using namespace tegula;
using tegula::probe::CaseSet;
using tegula::probe::MmaCase;

#define CHECK(call)                                                      \
  do {                                                                   \
    cudaError_t const error_ = (call);                                   \
    if (error_ != cudaSuccess) {                                         \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, \
                   cudaGetErrorString(error_));                          \
      std::exit(1);                                                      \
    }                                                                    \
  } while (false)

std::string folder;
std::FILE* summary = nullptr;
long failures = 0;

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

void write_file(char const* name, std::vector<std::uint8_t> const& bytes) {
  std::string const path = folder + "/" + name;
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr || std::fwrite(bytes.data(), 1, bytes.size(), file) != bytes.size() ||
      std::fclose(file) != 0) {
    std::fprintf(stderr, "cannot write %s\n", path.c_str());
    std::exit(1);
  }
  say("wrote %s, %zu bytes\n", name, bytes.size());
}

template <class T>
void append(std::vector<std::uint8_t>& bytes, T const* values, std::size_t count) {
  std::uint8_t const* begin = reinterpret_cast<std::uint8_t const*>(values);
  bytes.insert(bytes.end(), begin, begin + count * sizeof(T));
}

template <class T> struct DeviceArray {
  explicit DeviceArray(std::size_t n) : count(n) { CHECK(cudaMalloc(&data, n * sizeof(T))); }
  explicit DeviceArray(std::vector<T> const& values) : DeviceArray(values.size()) {
    CHECK(cudaMemcpy(data, values.data(), count * sizeof(T), cudaMemcpyHostToDevice));
  }
  DeviceArray(DeviceArray const&) = delete;
  DeviceArray& operator=(DeviceArray const&) = delete;
  ~DeviceArray() { cudaFree(data); }
  std::vector<T> download() const {
    std::vector<T> values(count);
    CHECK(cudaMemcpy(values.data(), data, count * sizeof(T), cudaMemcpyDeviceToHost));
    return values;
  }
  std::size_t count;
  T* data = nullptr;
};

void finish_launch() {
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
}

/// body(i) for i in [0, count) on all host threads.
template <class Body> void parallel(std::size_t count, Body body) {
  unsigned const threads =
      std::thread::hardware_concurrency() != 0 ? std::thread::hardware_concurrency() : 1;
  std::vector<std::thread> pool;
  for (unsigned t = 0; t < threads; ++t) {
    pool.emplace_back([=] {
      for (std::size_t i = count * t / threads; i < count * (t + 1) / threads; ++i) body(i);
    });
  }
  for (std::thread& thread : pool) thread.join();
}

// ----------------------------------------------------------------------------------------------------------------
// mma.sync

struct MmaResult {
  std::uint32_t d[32][4];
};

/// Device code may call no function of the host, constexpr or not.
template <int Subject> struct Instruction {
  static constexpr MmaSpec spec = probe::mma_subject(Subject);
};

template <int Subject>
__global__ void run_mma(MmaCase const* cases, MmaResult* results, int count) {
  int const warp = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x) / 32;
  int const lane = static_cast<int>(threadIdx.x) % 32;
  if (warp >= count) return;
  using Registers = MmaRegisters<Instruction<Subject>::spec>;
  constexpr int kA = sizeof(typename Registers::A) / 4;
  constexpr int kB = sizeof(typename Registers::B) / 4;
  constexpr int kC = sizeof(typename Registers::C) / 4;
  typename Registers::A a;
  typename Registers::B b;
  typename Registers::C c, d;
  for (int i = 0; i < kA; ++i) a[i] = cases[warp].a[lane][i];
  for (int i = 0; i < kB; ++i) b[i] = cases[warp].b[lane][i];
  for (int i = 0; i < kC; ++i) {
    c[i] = __builtin_bit_cast(typename Registers::Accumulator, cases[warp].c[lane][i]);
  }
  mma_sync<Instruction<Subject>::spec>(d, a, b, c);
  for (int i = 0; i < kC; ++i) {
    results[warp].d[lane][i] = __builtin_bit_cast(std::uint32_t, d[i]);
  }
}

template <int... I>
void launch_mma(int subject, MmaCase const* cases, MmaResult* results, int count,
                std::integer_sequence<int, I...>) {
  int const blocks = (count + 3) / 4;
  ((subject == I ? run_mma<I><<<blocks, 128>>>(cases, results, count) : void()), ...);
  finish_launch();
}

void probe_mma() {
  constexpr int kCases = 8192;  // of 128 results each
  std::vector<std::uint8_t> kept;
  say("\nmma.sync: results that differ from the simulated sm_90, of %d each\n%-36s", kCases * 128,
      "");
  for (char const* name : probe::kCaseSetNames) say(" %12s", name);
  say("\n");
  for (int i = 0; i < probe::kMmaSubjectCount; ++i) {
    MmaSpec const op = probe::mma_subject(i);
    bool const integer = op.d == DType::s32;
    say("op %2d k%-2d %-26s", i, op.k, integer ? "integer" : op.d == DType::f16 ? "f16" : "f32");
    std::string first;
    for (int s = 0; s < probe::kCaseSets; ++s) {
      CaseSet const set = static_cast<CaseSet>(s);
      std::vector<MmaCase> cases(kCases);
      parallel(kCases,
               [&](std::size_t n) { cases[n] = probe::mma_case(i, set, static_cast<int>(n)); });
      DeviceArray<MmaCase> const on_device(cases);
      DeviceArray<MmaResult> const results(kCases);
      CHECK(cudaMemset(results.data, 0, kCases * sizeof(MmaResult)));
      launch_mma(i, on_device.data, results.data, kCases,
                 std::make_integer_sequence<int, probe::kMmaSubjectCount>{});
      std::vector<MmaResult> const gpu = results.download();

      std::vector<int> wrong(kCases);
      parallel(kCases, [&](std::size_t n) {
        MmaResult sim{};
        sim::mma_sync_warp(op, sim::Generation::sm90, cases[n].a, cases[n].b, cases[n].c, sim.d);
        for (int lane = 0; lane < 32; ++lane) {
          for (int r = 0; r < 4; ++r) {
            if (op.d == DType::f16) {
              wrong[n] += (sim.d[lane][r] & 0xffffu) != (gpu[n].d[lane][r] & 0xffffu);
              wrong[n] += (sim.d[lane][r] >> 16) != (gpu[n].d[lane][r] >> 16);
            } else {
              wrong[n] += sim.d[lane][r] != gpu[n].d[lane][r];
            }
          }
        }
      });
      long total = 0;
      for (int n = 0; n < kCases; ++n) {
        if (wrong[n] != 0 && total == 0) {
          first += std::string(" ") + probe::kCaseSetNames[s] + "#" + std::to_string(n);
        }
        total += wrong[n];
      }
      failures += total != 0;
      say(" %12ld", total);
      append(kept, gpu.data(), probe::kept_cases(i, set));
    }
    say("%s%s\n", first.empty() ? "" : "  first:", first.c_str());
  }
  if (!folder.empty()) write_file("mma.bin", kept);
}

// -----------------------------------------------------------------------------------------------------
// approximate functions

enum class Function : int { kEx2, kRcp, kRsqrt, kLg2, kTanh, kExp2Polynomial };
constexpr char const* kFunctionNames[] = {"ex2.approx.ftz", "rcp.approx.ftz", "rsqrt.approx.ftz",
                                          "lg2.approx.ftz", "tanh.approx",    "exp2_polynomial"};
constexpr int kFunctions = 6;

template <Function F> __device__ float evaluate(float x) {
  if constexpr (F == Function::kEx2) return ex2_approx_ftz(x);
  if constexpr (F == Function::kRcp) return rcp_approx_ftz(x);
  if constexpr (F == Function::kRsqrt) return rsqrt_approx_ftz(x);
  if constexpr (F == Function::kLg2) return lg2_approx_ftz(x);
  if constexpr (F == Function::kTanh) return tanh_approx(x);
  return exp2_polynomial(x);
}

template <Function F>
__global__ void run_function(std::uint32_t const* arguments, std::uint32_t* results,
                             std::size_t count) {
  std::size_t const i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) results[i] = __float_as_uint(evaluate<F>(__uint_as_float(arguments[i])));
}

std::vector<std::uint32_t> on_gpu(Function f, std::vector<std::uint32_t> const& arguments) {
  DeviceArray<std::uint32_t> const in(arguments);
  DeviceArray<std::uint32_t> const out(arguments.size());
  unsigned const blocks = static_cast<unsigned>((arguments.size() + 255) / 256);
  std::size_t const n = arguments.size();
  switch (f) {
    case Function::kEx2:
      run_function<Function::kEx2><<<blocks, 256>>>(in.data, out.data, n);
      break;
    case Function::kRcp:
      run_function<Function::kRcp><<<blocks, 256>>>(in.data, out.data, n);
      break;
    case Function::kRsqrt:
      run_function<Function::kRsqrt><<<blocks, 256>>>(in.data, out.data, n);
      break;
    case Function::kLg2:
      run_function<Function::kLg2><<<blocks, 256>>>(in.data, out.data, n);
      break;
    case Function::kTanh:
      run_function<Function::kTanh><<<blocks, 256>>>(in.data, out.data, n);
      break;
    case Function::kExp2Polynomial:
      run_function<Function::kExp2Polynomial><<<blocks, 256>>>(in.data, out.data, n);
      break;
  }
  finish_launch();
  return out.download();
}

float on_machine(Function f, float x) {
  switch (f) {
    case Function::kEx2:
      return sim::ex2_approx_ftz(x);
    case Function::kRcp:
      return sim::rcp_approx_ftz(x);
    case Function::kRsqrt:
      return sim::rsqrt_approx_ftz(x);
    case Function::kLg2:
      return sim::lg2_approx_ftz(x);
    case Function::kTanh:
      return sim::tanh_approx(x);
    case Function::kExp2Polynomial:
      return exp2_polynomial(x);
  }
  return 0;
}

std::uint32_t bits_of(float x) { return __builtin_bit_cast(std::uint32_t, x); }
float float_of(std::uint32_t x) { return __builtin_bit_cast(float, x); }

/// The first result, then each step to the next in 4 bits (two to a byte, low first); steps outside
/// -8..7 are counted.
void append_steps(std::vector<std::uint8_t>& bytes, std::vector<std::uint32_t> const& results,
                  char const* name) {
  append(bytes, results.data(), 1);
  long clipped = 0;
  std::vector<std::uint8_t> packed(results.size() / 2);
  for (std::size_t i = 1; i < results.size(); ++i) {
    std::int32_t const step = static_cast<std::int32_t>(results[i] - results[i - 1]);
    clipped += step < -8 || step > 7;
    packed[i / 2] |= static_cast<std::uint8_t>((step & 15) << (4 * (i % 2)));
  }
  append(bytes, packed.data(), packed.size());
  say("%s: steps of more than 4 bits: %ld\n", name, clipped);
}

/// Counts where the simulated machine differs from the GPU, over as many add() as wanted; prints at
/// the end. A difference is a failure. All NaNs are equal.
class Comparison {
 public:
  Comparison(Function function, char const* what) : function_(function), what_(what) {}
  Comparison(Comparison const&) = delete;
  Comparison& operator=(Comparison const&) = delete;

  void add(std::vector<std::uint32_t> const& arguments) {
    add(arguments, on_gpu(function_, arguments));
  }

  void add(std::vector<std::uint32_t> const& arguments, std::vector<std::uint32_t> const& gpu) {
    std::vector<std::uint32_t> machine(arguments.size());
    parallel(arguments.size(), [&](std::size_t i) {
      machine[i] = bits_of(on_machine(function_, float_of(arguments[i])));
    });
    total_ += arguments.size();
    if (machine == gpu) return;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (machine[i] == gpu[i] ||
          (std::isnan(float_of(machine[i])) && std::isnan(float_of(gpu[i]))))
        continue;
      ++different_;
      std::int64_t distance = static_cast<std::int64_t>(machine[i]) - gpu[i];
      if (distance < 0) distance = -distance;
      if (distance <= greatest_) continue;
      greatest_ = distance;
      argument_ = arguments[i];
      gpu_ = gpu[i];
      machine_ = machine[i];
    }
  }

  ~Comparison() {
    say("%-16s %-28s %10zu arguments, %9ld differ", kFunctionNames[static_cast<int>(function_)],
        what_, total_, different_);
    if (different_ != 0) {
      say(", by at most %lld ulp (%08x: gpu %08x, machine %08x)", static_cast<long long>(greatest_),
          argument_, gpu_, machine_);
    }
    say("\n");
    failures += different_ != 0;
  }

 private:
  Function function_;
  char const* what_;
  std::size_t total_ = 0;
  long different_ = 0;
  std::int64_t greatest_ = 0;
  std::uint32_t argument_ = 0, gpu_ = 0, machine_ = 0;
};

void say_broken(DeviceArray<unsigned long long> const& counts,
                DeviceArray<std::uint32_t> const& examples,
                std::initializer_list<char const*> names) {
  std::vector<unsigned long long> const broken = counts.download();
  std::vector<std::uint32_t> const example = examples.download();
  int slot = 0;
  for (char const* name : names) {
    say("  %-52s broken %12llu", name, broken[slot]);
    if (broken[slot] != 0) {
      ++failures;
      say("  e.g. %08x: gpu %08x, expected %08x", example[slot * 3], example[slot * 3 + 1],
          example[slot * 3 + 2]);
    }
    say("\n");
    ++slot;
  }
}

/// The functions over their reduced ranges, from which every other result follows.
struct ReducedRanges {
  std::vector<std::uint32_t> ex2_arguments = probe::ex2_arguments();
  std::vector<std::uint32_t> binade = probe::consecutive(bits_of(1.0f), std::size_t{1} << 23);
  std::vector<std::uint32_t> two_binades = probe::consecutive(bits_of(1.0f), std::size_t{1} << 24);
  std::vector<std::uint32_t> ex2 = on_gpu(Function::kEx2, ex2_arguments);
  std::vector<std::uint32_t> rcp = on_gpu(Function::kRcp, binade);
  std::vector<std::uint32_t> rsqrt = on_gpu(Function::kRsqrt, two_binades);
  std::vector<std::uint32_t> lg2 = on_gpu(Function::kLg2, binade);
};

void write_functions(ReducedRanges const& reduced) {
  auto const append_random = [](std::vector<std::uint8_t>& bytes, Function f, std::uint64_t seed,
                                int least, int exponents, bool negative) {
    std::vector<std::uint32_t> const results =
        on_gpu(f, probe::random_floats(seed, std::size_t{1} << 18, least, exponents, negative));
    append(bytes, results.data(), results.size());
  };
  std::vector<std::uint8_t> first;
  append_steps(first, reduced.ex2, "ex2");
  append_steps(first, reduced.rcp, "rcp");
  append_random(first, Function::kEx2, 1, -30, 30, true);
  append_random(first, Function::kTanh, 2, -20, 25, false);
  write_file("ex2_rcp_tanh.bin", first);

  std::vector<std::uint8_t> second;
  append_steps(second, reduced.rsqrt, "rsqrt");
  write_file("rsqrt.bin", second);

  // The first sixteenth of the binade raw, then steps of a byte, then arguments of any
  // exponent raw.
  std::vector<std::uint8_t> third;
  std::size_t const raw = std::size_t{1} << 19;
  append(third, reduced.lg2.data(), raw);
  long clipped = 0;
  for (std::size_t i = raw; i < reduced.lg2.size(); ++i) {
    std::int32_t const step = static_cast<std::int32_t>(reduced.lg2[i] - reduced.lg2[i - 1]);
    clipped += step < -128 || step > 127;
    third.push_back(static_cast<std::uint8_t>(step));
  }
  say("lg2: steps of more than 8 bits: %ld\n", clipped);
  append_random(third, Function::kLg2, 3, -126, 254, false);
  write_file("lg2.bin", third);
}

void compare_specials() {
  std::vector<std::uint32_t> const specials = {
      0x00000000u, 0x80000000u, 0x00000001u, 0x80000001u, 0x007fffffu, 0x807fffffu,
      0x00800000u, 0x80800000u, 0x3f800000u, 0xbf800000u, 0x3f7fffffu, 0x7f7fffffu,
      0xff7fffffu, 0x7f800000u, 0xff800000u, 0x7fc00000u, 0xffc00000u, 0x43000000u,
      0x42ffffffu, 0xc2fc0000u, 0xc2fc0001u, 0xc2fbffffu, 0xc3150000u, 0x7e800001u};
  say("\nspecial arguments: gpu/machine\n  argument");
  for (char const* name : kFunctionNames) say(" %17s", name);
  say("\n");
  std::vector<std::uint32_t> results[kFunctions];
  for (int f = 0; f < kFunctions; ++f) results[f] = on_gpu(static_cast<Function>(f), specials);
  for (std::size_t i = 0; i < specials.size(); ++i) {
    say("  %08x", specials[i]);
    for (int f = 0; f < kFunctions; ++f) {
      say(" %08x/%08x", results[f][i],
          bits_of(on_machine(static_cast<Function>(f), float_of(specials[i]))));
    }
    say("\n");
  }
}

void probe_functions(bool every_float) {
  ReducedRanges const reduced;
  if (!folder.empty()) write_functions(reduced);

  say("\nfunctions: gpu against the simulated machine\n");
  Comparison(Function::kEx2, "[0, 1), all").add(reduced.ex2_arguments, reduced.ex2);
  Comparison(Function::kRcp, "[1, 2), all").add(reduced.binade, reduced.rcp);
  Comparison(Function::kRsqrt, "[1, 4), all").add(reduced.two_binades, reduced.rsqrt);
  Comparison(Function::kLg2, "[1, 2), all").add(reduced.binade, reduced.lg2);
  for (int i = 0; i < kFunctions; ++i) {
    Function const f = static_cast<Function>(i);
    if (every_float) {
      Comparison comparison(f, "every float");
      constexpr std::size_t kChunk = std::size_t{1} << 26;
      for (std::size_t first = 0; first < std::size_t{1} << 32; first += kChunk) {
        comparison.add(probe::consecutive(static_cast<std::uint32_t>(first), kChunk));
      }
    } else {
      Comparison(f, "2^-30 <= |x| < 2^8, random")
          .add(probe::random_floats(4, std::size_t{1} << 22, -30, 38,
                                    f != Function::kRsqrt && f != Function::kLg2));
      Comparison(f, "any exponent, random")
          .add(probe::random_floats(5, std::size_t{1} << 22, -126, 254, true));
    }
  }
  compare_specials();
}

// ---------------------------------------------------------------------------------------------------------------
// conversions

/// Every binary32 through the library's conversions and through cvt.
__global__ void check_conversions(unsigned long long* broken, std::uint32_t* example) {
  std::uint32_t const bits = blockIdx.x * blockDim.x + threadIdx.x;
  float const x = __uint_as_float(bits);
  auto const note = [&](int slot, std::uint32_t hardware, std::uint32_t library) {
    if (hardware == library) return;
    if (atomicAdd(&broken[slot], 1ULL) == 0) {
      example[slot * 3] = bits;
      example[slot * 3 + 1] = hardware;
      example[slot * 3 + 2] = library;
    }
  };
  std::uint16_t h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
  note(0, h, to_half(x).bits);
  asm("cvt.rz.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
  note(1, h, to_half<Rounding::kTowardZero>(x).bits);
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(x));
  note(2, h, to_bfloat16(x).bits);
  asm("cvt.rz.bf16.f32 %0, %1;" : "=h"(h) : "f"(x));
  note(3, h, to_bfloat16<Rounding::kTowardZero>(x).bits);
  std::uint32_t w;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(w) : "f"(x));
  note(4, w, to_tfloat32<Rounding::kNearestAway>(x).bits);
  asm("cvt.rn.tf32.f32 %0, %1;" : "=r"(w) : "f"(x));
  note(5, w, to_tfloat32<Rounding::kNearestEven>(x).bits);
  asm("cvt.rz.tf32.f32 %0, %1;" : "=r"(w) : "f"(x));
  note(6, w, to_tfloat32<Rounding::kTowardZero>(x).bits);
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(h) : "f"(0.0f), "f"(x));
  note(7, h, to_float_e4m3(x).bits);
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(h) : "f"(0.0f), "f"(x));
  note(8, h, to_float_e5m2(x).bits);
  if (bits < 65536) {
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(static_cast<std::uint16_t>(bits)));
    note(9, __float_as_uint(f), __float_as_uint(to_float(half{static_cast<std::uint16_t>(bits)})));
    asm("cvt.f32.bf16 %0, %1;" : "=f"(f) : "h"(static_cast<std::uint16_t>(bits)));
    note(10, __float_as_uint(f),
         __float_as_uint(to_float(bfloat16{static_cast<std::uint16_t>(bits)})));
  }
  if (bits < 256) {
    std::uint16_t const byte = static_cast<std::uint16_t>(bits);
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(w) : "h"(byte));
    note(11, w & 0xffffu, to_half(to_float(float_e4m3{static_cast<std::uint8_t>(byte)})).bits);
    asm("cvt.rn.f16x2.e5m2x2 %0, %1;" : "=r"(w) : "h"(byte));
    note(12, w & 0xffffu, to_half(to_float(float_e5m2{static_cast<std::uint8_t>(byte)})).bits);
  }
}

void probe_conversions() {
  DeviceArray<unsigned long long> const counts(13);
  DeviceArray<std::uint32_t> const examples(39);
  CHECK(cudaMemset(counts.data, 0, 13 * 8));
  check_conversions<<<1u << 24, 256>>>(counts.data, examples.data);
  finish_launch();
  say("\nconversions, every argument: gpu against the library\n");
  say_broken(counts, examples,
             {"cvt.rn.f16.f32", "cvt.rz.f16.f32", "cvt.rn.bf16.f32", "cvt.rz.bf16.f32",
              "cvt.rna.tf32.f32", "cvt.rn.tf32.f32", "cvt.rz.tf32.f32",
              "cvt.rn.satfinite.e4m3x2.f32", "cvt.rn.satfinite.e5m2x2.f32", "cvt.f32.f16",
              "cvt.f32.bf16", "cvt.rn.f16x2.e4m3x2", "cvt.rn.f16x2.e5m2x2"});
}

}  // namespace

int main(int argc, char** argv) {
  bool every_float = false;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--every-float") == 0) {
      every_float = true;
    } else if (argv[i][0] != '-' && folder.empty()) {
      folder = argv[i];
    } else {
      std::fprintf(stderr, "usage: %s [--every-float] [FOLDER]\n", argv[0]);
      return 1;
    }
  }
  if (!folder.empty()) {
    summary = std::fopen((folder + "/summary.txt").c_str(), "w");
    if (summary == nullptr) {
      std::fprintf(stderr, "cannot write to %s\n", folder.c_str());
      return 1;
    }
  }
  cudaDeviceProp properties;
  CHECK(cudaGetDeviceProperties(&properties, 0));
  say("%s, compute capability %d.%d\n", properties.name, properties.major, properties.minor);
  if (properties.major != 9 || properties.minor != 0) {
    std::fprintf(stderr, "needs compute capability 9.0\n");
    return 1;
  }
  probe_conversions();
  probe_mma();
  probe_functions(every_float);
  say("\n%ld comparisons that should be exact are not\n", failures);
  if (summary != nullptr) std::fclose(summary);
  return failures == 0 ? 0 : 2;
}
