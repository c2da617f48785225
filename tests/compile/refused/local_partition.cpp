// 24 rows of threads share a tile of 64 rows.
// prints: refuse("local_partition"
// prints: the threads' extent must divide the tensor's

#include "tegula/numeric/bfloat16.hpp"
#include "tegula/tensor/partition.hpp"
#include "tegula/tensor/shared.hpp"

using namespace tegula;

TEGULA_DEVICE auto run(SharedTile<bfloat16, OperandTile{16, 64, 64, 1}>& tile) {
  return local_partition<"(24,4):(4,1)"_layout>(tensor(tile), 0);
}
