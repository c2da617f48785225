#include <cstdio>

#include "tegula/layout/algebra.hpp"
#include "tegula/layout/literal.hpp"
#include "tegula/layout/text.hpp"
#include "tegula/numeric/half.hpp"

int main() {
  using namespace tegula;
  constexpr Layout threads_and_values = "((4,8),(2,2)):((32,1),(16,8))"_layout;
  constexpr Layout where = composition(row_major(16, 8), threads_and_values);
  static_assert(where(coord(5, 2)) == 74);
  std::printf("%s, %g\n", to_string(where).c_str(), static_cast<double>(to_float(to_half(0.5f))));
}
