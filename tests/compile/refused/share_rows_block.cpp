// A row of 256 vectors is more than 128 threads take at once.
// prints: refuse("TiledCopy"
// prints: a row's block has more vectors than threads: .block narrows it

#include "tegula/tensor/tiled_copy.hpp"

using namespace tegula;

using Copy = TiledCopy<share_rows({.threads = 128, .m = 8, .n = 1024, .vector = 4}), float>;
static_assert(Copy::vector == 4);
