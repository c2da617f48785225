// A tile of plain rows is no operand of wgmma, which reads 16-byte pieces or swizzled rows.
// prints: refuse("wgmma_descriptor"
// prints: not a layout wgmma reads

#include "tegula/numeric/bfloat16.hpp"
#include "tegula/tensor/descriptor.hpp"
#include "tegula/tensor/shared_tile.hpp"

using namespace tegula;

static_assert(Descriptors<SharedTile<bfloat16, SwizzledLayout(row_major(64, 64))>>::descriptor
                  .stride_offset > 0);
