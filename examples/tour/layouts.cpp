// The README's tour of layouts. Everything here is decided while it compiles; running it does
// nothing more.

#include "tegula/layout/algebra.hpp"
#include "tegula/layout/bank_conflicts.hpp"
#include "tegula/layout/literal.hpp"
#include "tegula/layout/swizzle.hpp"

using namespace tegula;

constexpr Layout tv = "((4,8),(2,2)):((32,1),(16,8))"_layout;  // (thread, value) -> (m, n), 16x8
constexpr Layout memory = row_major(16, 8);
constexpr Layout where = composition(memory, tv);  // (thread, value) -> memory
static_assert(where(coord(5, 2)) == 74);

template <Layout L> struct Fragment {
  float values[L[1].size()];  // what one thread holds
};
static_assert(sizeof(Fragment<tv>) == 16);

int main() {}
