// A(B(i)) is 0, 8, 5, 2: no layout has these values.
// prints: refuse("composition"
// prints: no layout is A(B(i))

#include "tegula/layout/composition.hpp"

template <tegula::Layout L>
struct Tile {};

constexpr tegula::Layout a = layout(tegula::shape(3, 4), tegula::stride(4, 1));
using Refused = Tile<tegula::composition(a, tegula::layout(4, 2))>;
