// An integer is no float format.
// prints: from_float: T is float, half, bfloat16, tfloat32, or a float of 8, 6 or 4 bits

#include "tegula/numeric/dtype.hpp"

std::int8_t value = tegula::from_float<std::int8_t>(1.0f);
