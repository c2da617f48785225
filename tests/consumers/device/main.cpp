#include <cstdio>
#include <vector>

#include "tegula/device/buffer.hpp"
#include "tegula/device/launch.hpp"
#include "tegula/device/machine.hpp"
#include "tegula/numeric/half.hpp"

int main() {
  using namespace tegula;
  constexpr int n = 64;
  Machine const machine = Machine::simulated(Arch::sm90);
  std::vector<half> const ones(n * n, to_half(1));
  Buffer<half> const a(machine, ones, "A"), b(machine, ones, "B");
  Buffer<half> const d(machine, n * n, "D");
  gemm(machine, {.in = DType::f16,
                 .out = DType::f16,
                 .b_major = Major::k,
                 .m = n,
                 .n = n,
                 .k = n,
                 .a = a.data(),
                 .b = b.data(),
                 .d = d.data()});
  for (half const value : d.download()) {
    if (to_float(value) != n) {
      std::printf("D holds %g instead of %d\n", static_cast<double>(to_float(value)), n);
      return 1;
    }
  }
  std::puts("D = A B");
}
