#pragma once

#include <cstddef>

#include "tegula/arch/tensor_map.hpp"
#include "tegula/numeric/dtype.hpp"

/// What cp.reduce.async.bulk.tensor does to global memory: PTX ISA, cp.reduce.async.bulk.
namespace tegula::sim {

/// Whether the instruction has the operation for elements of the type: add for f16, bf16, f32, f64,
/// s32, u32 and u64; min and max for f16, bf16 and integers of 32 and 64 bits. (Add of s64 is an
/// illegal instruction.)
bool can_reduce(TmaReduce op, DType type);

/// Combines `count` elements of `into` with those of `from`. Sums round to nearest even and keep
/// subnormals. Precondition: can_reduce(op, type).
void reduce(TmaReduce op, DType type, unsigned char* into, unsigned char const* from,
            std::size_t count);

}  // namespace tegula::sim
