// The boxes are contiguous along k, and the tensor's map along mn.
// prints: copy: the boxes are contiguous along another mode than the map's axis 0

#include "tegula/numeric/bfloat16.hpp"
#include "tegula/tensor/tma.hpp"

using namespace tegula;

struct Boxes {
  static constexpr TmaBoxes value = tma_boxes(OperandTile{16, 64, 64, 1});
};
TEGULA_DEVICE void run(TensorMap const& map, SharedAddr full,
                       SharedTile<bfloat16, OperandTile{16, 64, 64, 1}>& tile) {
  copy(TmaCopy<Boxes::value>{}, local_tile<64, 64>(tma_tensor<0, 1, 2>(map)(_, _, 0), 0, 1),
       tensor(tile), full);
}
