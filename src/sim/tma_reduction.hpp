#pragma once

#include <cstddef>

#include "tegula/arch/tensor_map.hpp"
#include "tegula/numeric/dtype.hpp"

/// What cp.reduce.async.bulk.tensor does to global memory: PTX ISA, cp.reduce.async.bulk.
namespace tegula::sim {

/// Whether the instruction has the operation for elements of the type: add for f16, bf16, f32, f64 and
/// integers of 32 and 64 bits; min and max for those but f32 and f64.
bool can_reduce(TmaReduce op, DType type);

/// Combines `count` elements of `into` with those of `from`. f16 and bf16 round to nearest even; f32 does so
/// and flushes subnormal operands and results to zero. Precondition: can_reduce(op, type).
void reduce(TmaReduce op, DType type, unsigned char* into, unsigned char const* from, std::size_t count);

}  // namespace tegula::sim
