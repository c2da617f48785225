#pragma once

/// The layout algebra: every operation on layouts. Semantics, names and result forms are CuTe's
/// (CUTLASS, "CuTe layout algebra", and include/cute/layout.hpp); each operation's docstring states
/// its law and exactly what it refuses.
#include "tegula/layout/coalesce.hpp"
#include "tegula/layout/complement.hpp"
#include "tegula/layout/composition.hpp"
#include "tegula/layout/divide.hpp"
#include "tegula/layout/layout.hpp"
#include "tegula/layout/literal.hpp"
#include "tegula/layout/modes.hpp"
#include "tegula/layout/offset.hpp"
#include "tegula/layout/product.hpp"
#include "tegula/layout/recast.hpp"
#include "tegula/layout/tiler.hpp"
