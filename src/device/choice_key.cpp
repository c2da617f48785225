#include "choice_key.hpp"

namespace tegula::device {
namespace {

/// Bytes past a multiple of 128, the largest that a kernel may ask for; 128 of a null pointer.
std::int64_t alignment(void const* pointer) {
  return pointer == nullptr
             ? 128
             : static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(pointer) % 128);
}

/// At most eight values of eight bits each.
template <class... Value> std::int64_t packed(Value... values) {
  static_assert(sizeof...(values) <= 8);
  std::uint64_t all = 0;
  ((all = all << 8 | static_cast<std::uint64_t>(values)), ...);
  return static_cast<std::int64_t>(all);
}

}  // namespace

GemmKey key_of(GemmArguments const& arguments, DeviceProperties const& device) {
  GemmArguments const g = with_defaults(arguments);
  return {packed(g.in, *g.in_b, *g.out, g.a_major, g.b_major, g.activation, g.beta != 0),
          packed(g.block_scale.type, alignment(g.block_scale_a), alignment(g.block_scale_b)),
          g.block_scale.block,
          packed(alignment(g.a), alignment(g.b), alignment(g.c), alignment(g.d), alignment(g.bias),
                 alignment(g.scale_a), alignment(g.scale_b)),
          g.m,
          g.n,
          g.k,
          g.batch,
          *g.lda,
          *g.ldb,
          *g.ldc,
          *g.ldd,
          *g.a_batch_stride,
          *g.b_batch_stride,
          *g.c_batch_stride,
          *g.d_batch_stride,
          g.workspace_bytes,
          device.compute_capability,
          device.multiprocessors,
          static_cast<std::int64_t>(device.shared_bytes),
          static_cast<std::int64_t>(device.kernels)};
}

GroupedGemmKey key_of(GroupedGemmArguments const& arguments, DeviceProperties const& device) {
  GroupedGemmArguments const g = with_defaults(arguments);
  return {
      packed(g.in, *g.in_b, *g.out, *g.scales, g.grouping, g.block_scale.type,
             alignment(g.group_begins), alignment(g.group_ends)),
      packed(alignment(g.a), alignment(g.b), alignment(g.c), alignment(g.d), alignment(g.scale_a),
             alignment(g.scale_b), alignment(g.block_scale_a), alignment(g.block_scale_b)),
      g.block_scale.block,
      g.groups,
      g.m,
      g.n,
      g.k,
      *g.lda,
      *g.ldb,
      *g.ldc,
      *g.ldd,
      *g.b_group_stride,
      *g.c_group_stride,
      *g.d_group_stride,
      *g.scale_a_stride,
      *g.scale_b_stride,
      *g.expected_rows,
      device.compute_capability,
      device.multiprocessors,
      static_cast<std::int64_t>(device.shared_bytes),
      static_cast<std::int64_t>(device.kernels)};
}

}  // namespace tegula::device
