// The same template arguments as in the refused files, with operands that the operations admit.
// compiles

#include "tegula/layout/composition.hpp"

template <tegula::Layout L>
struct Tile {};

constexpr tegula::Layout a = layout(tegula::shape(4, 4), tegula::stride(4, 1));
using Admitted = Tile<tegula::composition(a, tegula::layout(4, 2))>;
