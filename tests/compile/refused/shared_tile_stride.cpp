// Rows that lie one before the other, before the tile's begin.
// prints: refuse("SharedTile"
// prints: a stride is negative: elements would lie before the tile

#include "tegula/layout/literal.hpp"
#include "tegula/tensor/shared_tile.hpp"

using namespace tegula;

SharedTile<float, "(8,16):(-16,1)"_layout> tile;
