// What the layout algebra costs a compile: twenty-one layouts, divides and compositions as template
// arguments of seven kernels' device code. Compare with empty_kernel.cu in the same run.
#include "tegula/layout/algebra.hpp"

using namespace tegula;

// One kernel's layouts: the accumulator's (thread, value) layout in a tile, the tile in shared
// memory, and its division into atoms.
struct KernelLayouts {
  Layout accumulator;  // (thread, value) -> offset in the tile
  Layout tile;         // (m, n) -> offset
  Layout atoms;        // ((16, 8), (rest_m, rest_n)) -> offset
};

constexpr KernelLayouts kernel_layouts(int index) {
  int const rows = 32 << index % 3;
  int const columns = 32 + 8 * index;
  Layout const tile = index % 2 == 0 ? row_major(rows, columns) : col_major(rows, columns);
  Layout const atoms = zipped_divide(tile, make_tile(16, 8));
  Layout const accumulator = composition(atoms[0], "((4,8),(2,2)):((32,1),(16,8))"_layout);
  return {accumulator, tile, atoms};
}

template <int Index> inline constexpr KernelLayouts layouts_of = kernel_layouts(Index);

template <Layout Accumulator, Layout Tile, Layout Atoms> __device__ void scatter(float* out) {
  int const thread = static_cast<int>(threadIdx.x);
  for (int value = 0; value < 4; ++value) {
    out[offset_of<Accumulator>(thread, value) + offset_of<Atoms>(0, static_cast<int>(blockIdx.x))] =
        static_cast<float>(value);
  }
  out[offset_of<Tile>(thread, 0)] += 1.0f;
}

template <int Index> __global__ void kernel(float* out) {
  scatter<layouts_of<Index>.accumulator, layouts_of<Index>.tile, layouts_of<Index>.atoms>(out);
}

template __global__ void kernel<0>(float*);
template __global__ void kernel<1>(float*);
template __global__ void kernel<2>(float*);
template __global__ void kernel<3>(float*);
template __global__ void kernel<4>(float*);
template __global__ void kernel<5>(float*);
template __global__ void kernel<6>(float*);
