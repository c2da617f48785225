#pragma once

#include <cstddef>

#include "tegula/arch/bulk_reduce.hpp"

/// What cp.reduce.async.bulk, and its form for tensors, does to memory: PTX ISA,
/// cp.reduce.async.bulk.
namespace tegula::sim {

/// Combines `count` elements of `into` with those of `from`. Sums round to nearest even and keep
/// subnormals. Precondition: can_reduce(op, type).
void reduce(TmaReduce op, DType type, unsigned char* into, unsigned char const* from,
            std::size_t count);

}  // namespace tegula::sim
