#pragma once

#include <gtest/gtest.h>

#include <functional>

#include "tegula/device/launch.hpp"
#include "tegula/device/reference.hpp"
#include "tegula/device/selection.hpp"
#include "test_machine.hpp"

namespace tegula {

/// A GEMM problem; each leading dimension is `padding` larger than need be, and A starts `offset` elements
/// into its buffer.
struct GemmProblem {
  DType in = DType::bf16, out = DType::bf16;
  Major a_major = Major::k, b_major = Major::k;
  int m = 1, n = 1, k = 1;
  int padding = 0, offset = 0;
  float alpha = 1, beta = 0;
  bool bias = false;
  std::uint64_t seed = 1;
  std::function<float(std::mt19937_64&)> a = normal, b = normal, c = normal;
};

struct GemmResult {
  std::vector<std::uint8_t> d;
  std::vector<std::uint8_t> a, b, c, bias;
  GemmArguments host;  ///< the arguments with pointers to the vectors here
};

inline GemmResult run(Machine const& machine, GemmProblem const& p) {
  GemmResult r;
  GemmArguments g{.in = p.in,
                  .out = p.out,
                  .a_major = p.a_major,
                  .b_major = p.b_major,
                  .m = p.m,
                  .n = p.n,
                  .k = p.k,
                  .lda = (p.a_major == Major::k ? p.k : p.m) + p.padding,
                  .ldb = (p.b_major == Major::k ? p.k : p.n) + p.padding,
                  .ldc = p.n + p.padding,
                  .ldd = p.n + p.padding,
                  .alpha = p.alpha,
                  .beta = p.beta};
  r.a = random_elements(p.in, g.lda * (p.a_major == Major::k ? p.m : p.k) + p.offset, 4 * p.seed, p.a);
  r.b = random_elements(p.in, g.ldb * (p.b_major == Major::k ? p.n : p.k), 4 * p.seed + 1, p.b);
  r.c = random_elements(p.out, g.ldc * p.m, 4 * p.seed + 2, p.c);
  r.bias = random_elements(p.out, p.n, 4 * p.seed + 3, p.c);
  Buffer<std::uint8_t> const a(machine, r.a, "a"), b(machine, r.b, "b"), c(machine, r.c, "c"),
      bias(machine, r.bias, "bias");
  auto const d = poisoned(machine, static_cast<std::int64_t>(r.c.size()), "d");
  auto const arguments = [&](std::uint8_t const* at_a, std::uint8_t const* at_b, std::uint8_t const* at_c,
                             std::uint8_t const* at_bias) {
    g.a = at_a + p.offset * (bits(p.in) / 8);
    g.b = at_b;
    g.c = p.beta != 0 ? at_c : nullptr;
    g.bias = p.bias ? at_bias : nullptr;
    g.d = d.data();
    return g;
  };
  gemm(machine, arguments(a.data(), b.data(), c.data(), bias.data()));
  machine.synchronize();
  r.d = d.download();
  r.host = arguments(r.a.data(), r.b.data(), r.c.data(), r.bias.data());
  return r;
}

/// Runs a problem and holds every element of D against float64, and every byte around D against the poison.
inline GemmResult expect_correct(Machine const& machine, GemmProblem const& p) {
  GemmResult r = run(machine, p);
  auto const exact = reference::gemm(r.host, reference::some_rows(p.m, p.m));
  std::size_t const width = static_cast<std::size_t>(bits(p.out) / 8);
  std::vector<double> d;
  std::vector<bool> belongs(r.d.size());
  for (int i = 0; i < p.m; ++i) {
    for (int j = 0; j < p.n; ++j) {
      std::int64_t const at = i * r.host.ldd + j;
      d.push_back(reference::element(r.d.data(), p.out, at));
      for (std::size_t byte = 0; byte < width; ++byte)
        belongs[static_cast<std::size_t>(at) * width + byte] = true;
    }
  }
  auto const of_d = reference::compare(d, exact, reference::largest_finite(p.out));
  EXPECT_TRUE(of_d.within()) << p.m << "x" << p.n << "x" << p.k << ": element (" << of_d.worst / p.n << ", "
                             << of_d.worst % p.n << ") is " << of_d.worst_result << ", not "
                             << exact.value[static_cast<std::size_t>(of_d.worst)] << ": " << of_d.max_ratio
                             << " times the bound";
  for (std::size_t i = 0; i < r.d.size(); ++i) {
    if (!belongs[i] && r.d[i] != kPoison) {
      ADD_FAILURE() << p.m << "x" << p.n << "x" << p.k << ": byte " << i
                    << " between the rows of D was written";
      break;
    }
  }
  return r;
}

}  // namespace tegula
