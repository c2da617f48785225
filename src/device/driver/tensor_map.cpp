#include "tensor_map.hpp"

#include <cstddef>
#include <cstdint>

#include "driver_api.hpp"

namespace tegula::device::driver {
namespace {

/// CUtensorMapDataType. Bits of types that it has no name for are moved as unsigned integers, and
/// those of tf32 as f32, since the driver's TFLOAT32 rounds what it loads.
int data_type(DType type) {
  switch (type) {
    case DType::u16:
    case DType::s16:
      return 1;  // UINT16
    case DType::u32:
      return 2;  // UINT32
    case DType::s32:
      return 3;  // INT32
    case DType::u64:
      return 4;  // UINT64
    case DType::s64:
      return 5;  // INT64
    case DType::f16:
      return 6;  // FLOAT16
    case DType::f32:
    case DType::tf32:
      return 7;  // FLOAT32
    case DType::f64:
      return 8;  // FLOAT64
    case DType::bf16:
      return 9;  // BFLOAT16
    case DType::e2m1:
      return 14;  // 16U4_ALIGN16B
    case DType::e2m3:
    case DType::e3m2:
      return 15;  // 16U6_ALIGN16B
    default:
      return 0;  // UINT8
  }
}

}  // namespace

TensorMap encode(TensorMapDescription const& d) {
  static_assert(sizeof(TensorMap) == 128 && alignof(TensorMap) >= 64);
  std::uint64_t extents[5], strides[4];
  std::uint32_t box[5], element_strides[5];
  for (std::size_t axis = 0; axis < 5; ++axis) {
    extents[axis] = static_cast<std::uint64_t>(d.extents[axis]);
    if (axis < 4) strides[axis] = static_cast<std::uint64_t>(d.strides[axis]);
    box[axis] = static_cast<std::uint32_t>(d.box[axis]);
    element_strides[axis] = static_cast<std::uint32_t>(d.element_strides[axis]);
  }
  TensorMap map{};
  constexpr int no_interleave = 0;
  if (d.mode == TmaMode::im2col) {
    check(functions().encode_im2col(&map, data_type(d.dtype), static_cast<std::uint32_t>(d.rank),
                                    const_cast<void*>(d.address), extents, strides,
                                    d.lower_corner.data(), d.upper_corner.data(), box[0], box[1],
                                    element_strides, no_interleave, static_cast<int>(d.swizzle),
                                    static_cast<int>(d.l2_promotion), static_cast<int>(d.fill)),
          "cuTensorMapEncodeIm2col");
    return map;
  }
  check(functions().encode_tiled(&map, data_type(d.dtype), static_cast<std::uint32_t>(d.rank),
                                 const_cast<void*>(d.address), extents, strides, box,
                                 element_strides, no_interleave, static_cast<int>(d.swizzle),
                                 static_cast<int>(d.l2_promotion), static_cast<int>(d.fill)),
        "cuTensorMapEncodeTiled");
  return map;
}

}  // namespace tegula::device::driver
