// A lies along m, and the instruction reads it along k.
// prints: partition_a: the tile is contiguous along another axis than the MMA's a_major says

#include "tegula/tensor/tensor_memory.hpp"

using namespace tegula;

struct Spec {
  static constexpr MmaSpec atom = tensor_memory_mma(DType::bf16, DType::bf16, DType::f32, 128, 64);
};
TEGULA_DEVICE void run(SharedTile<bfloat16, OperandTile{16, 128, 64, 0}>& tile) {
  TensorMemoryMma<Spec::atom>{}.partition_a(tensor(tile));
}
