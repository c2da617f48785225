// The tensors of a launch of a grouped GEMM, read off its parameters.

#include "families/grouped_gemm_tensors.hpp"

#include <algorithm>

#include "problem.hpp"
#include "tegula/sim/tensor_map.hpp"

namespace tegula::device {

bool describable(GroupTiles const& tiles, GroupedGemmOutput const& out) {
  return std::min({tiles.rows, tiles.depth, tiles.groups, out.n}) >= 1;
}

void describe_group_operand(std::vector<GlobalTensor>& tensors, Names const& names,
                            TensorMap const& map, bool k_first, Grouping grouping) {
  auto const x = sim::decode(map);
  if (!x || x->rank != 3) return;
  std::size_t const row = k_first ? 1 : 0, column = 1 - row;
  auto const stride = [&](std::size_t axis) -> std::int64_t {
    return axis == 0 ? 1 : x->strides[axis - 1] / bytes_of(x->dtype);
  };
  tensors.push_back(Matrices{x->dtype, x->address, x->extents[row], x->extents[column], stride(row),
                             stride(column), x->extents[2], stride(2)}
                        .as(names, grouping == Grouping::none ? Coverage::read : Coverage::any));
}

void describe_group_output(std::vector<GlobalTensor>& tensors, DType type, GroupTiles const& t,
                           GroupedGemmOutput const& out) {
  bool const by_k = t.grouping == Grouping::k, whole = by_k || t.grouping == Grouping::none;
  std::int64_t const rows =
      t.grouping == Grouping::masked ? std::int64_t{t.rows} * t.groups : t.rows;
  auto const add = [&](Names const& names, void const* address, std::int64_t ld,
                       std::int64_t group_stride, Coverage coverage) {
    tensors.push_back(
        Matrices{type, address, rows, out.n, ld, 1, by_k ? t.groups : 1, group_stride}.as(
            names, whole ? coverage : Coverage::any));
  };
  add(kD, out.d, out.ldd, out.d_group_stride, Coverage::written);
  if (out.c != nullptr) add(kC, out.c, out.ldc, out.c_group_stride, Coverage::read);
}

}  // namespace tegula::device
