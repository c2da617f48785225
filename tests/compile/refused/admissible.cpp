// Template arguments like those of the refused files, with operands that the operations admit.
// compiles

#include "tegula/arch/cache_hint.hpp"
#include "tegula/atom/copy_atom.hpp"
#include "tegula/atom/mma_atom.hpp"
#include "tegula/atom/mma_spec.hpp"
#include "tegula/atom/tiled_copy.hpp"
#include "tegula/atom/tiled_mma.hpp"
#include "tegula/kernel/attention_config.hpp"
#include "tegula/kernel/gemm_config.hpp"
#include "tegula/layout/algebra.hpp"
#include "tegula/layout/linear_layout.hpp"
#include "tegula/layout/swizzle.hpp"

using namespace tegula;

template <auto Value> struct Tile {};

using Composition = Tile<composition(layout(shape(4, 4), stride(4, 1)), layout(4, 2))>;
using Divide = Tile<logical_divide(layout(24), layout(shape(2, 2), stride(2, 4)))>;
using Swizzled = Tile<Swizzle(3, 0, 3)>;
using SwizzledTile = Tile<SwizzledLayout(Swizzle(3, 4, 3), row_major(8, 64))>;
using Linear = Tile<linear_layout(row_major(8, 64))>;
using Extents = Tile<shape(4, shape(2, 3))>;
using Tilers = Tile<Tiler(shape(4, 8))>;
using Mma = Tile<MmaAtom{}>;
using Copy = Tile<CopyAtom{}>;
using Instruction = Tile<MmaSpec{}>;
using CopyInstruction = Tile<CopySpec{}>;
using Tiling = Tile<MmaTiling{}>;
using TilingOfCopies = Tile<CopyTiling{}>;
using Attention = Tile<AttentionConfig{}>;
using Gemm = Tile<GemmConfig{}>;
using Policy = Tile<L2Policy(L2Hint::evict_last, 8)>;
using Hint = Tile<CacheHint{.l2 = L2Hint::evict_first}>;
