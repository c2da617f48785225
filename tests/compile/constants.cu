// Values that a kernel has as constants: nvcc makes them so, too.
#include "tegula/layout/literal.hpp"
#include "tegula/pipeline/row_blocks.hpp"
#include "tegula/pipeline/tile_partition.hpp"
#include "tegula/pipeline/tile_scheduler.hpp"
#include "tegula/tensor/tiled_copy.hpp"
#include "tegula/tensor/tiled_mma.hpp"

using namespace tegula;

constexpr TileScheduler kDefault;
constexpr TileScheduler kOrder = {
    .tiles_m = 4, .tiles_n = 6, .raster = Raster::along_n, .group = 3};
static_assert(kOrder.tile(1) == TileCoordinate{.m = 1, .n = 0});
static_assert(kOrder.tile(18) == TileCoordinate{.m = 3, .n = 0});
constexpr TilePartition kTiling = kOrder;
static_assert(kTiling.tile(18, 128, 0) == Tile{.m = 3, .column = 0});
constexpr TilePartition kFitted =
    fit_tiles({.tiles_m = 32, .tiles_n = 8, .group = 4}, 8 * 256, {.wide = 256, .narrow = 240}, 66);
constexpr RowBlockOrder kBlocks = {
    .blocks = 5, .heads = 3, .batches = 2, .group = 4, .last_first = true};
static_assert(kBlocks.block(0) == RowBlock{.block = 4});
constexpr TiledCopySpec kCopy = make_tiled_copy("(8,32):(32,1)"_layout, shape(1, 4), 64, 128);
constexpr TiledMmaSpec kMma{warp_mma(DType::bf16, DType::f32, 16), 64, 64, 2, 2};

static_assert(kDefault.tiles() == 1 && kFitted.fitted());
static_assert(kCopy.m == 64 && kMma.m == 64);
