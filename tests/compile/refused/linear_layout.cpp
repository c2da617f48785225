// 1 + 1 carries: the bits of the index are not the bits of the offset.
// prints: refuse("linear_layout"
// prints: so that sums carry

#include "tegula/layout/linear_layout.hpp"

#include "tegula/layout/algebra.hpp"

using namespace tegula;

constexpr LinearLayout refused = linear_layout(layout(shape(2, 2), stride(1, 1)));
