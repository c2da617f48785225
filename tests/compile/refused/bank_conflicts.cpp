// Eight elements along a row of a column-major tile do not lie together: there is no 16-byte access
// to them.
// prints: refuse("bank_conflicts"
// prints: are not contiguous

#include "tegula/layout/bank_conflicts.hpp"

#include "tegula/layout/algebra.hpp"

using namespace tegula;

constexpr SharedAccess rows = vector_access(layout(shape(32, 8), stride(1, 32)), 16, 16);
static_assert(bank_conflicts(rows, col_major(32, 8)) == 0);
