#include "tensor_map.hpp"

#include <cuda.h>
#include <cuda_runtime.h>
#include <fmt/format.h>

#include <string>

#include "tegula/device/error.hpp"

namespace tegula::device {

namespace {

/// The first version of the CUDA driver API that has tensor maps, 12.0.
constexpr unsigned kVersion = 12000;

/// A function of the driver, asked of the runtime: nothing here is linked to libcuda.
template <class Function> Function driver_function(char const* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult answer{};
  cudaError_t const status =
      cudaGetDriverEntryPointByVersion(name, &found, kVersion, cudaEnableDefault, &answer);
  if (status != cudaSuccess || answer != cudaDriverEntryPointSuccess || found == nullptr) {
    static_cast<void>(cudaGetLastError());
    throw device_error(fmt::format(
        "the CUDA driver has no {} of version {}: cudaGetDriverEntryPointByVersion gave {}, query result {}.",
        name, kVersion, cudaGetErrorName(status), static_cast<int>(answer)));
  }
  return reinterpret_cast<Function>(found);
}

std::string name_of(CUresult result) {
  char const* name = nullptr;
  if (driver_function<decltype(&cuGetErrorName)>("cuGetErrorName")(result, &name) != CUDA_SUCCESS)
    return fmt::format("CUresult {}", static_cast<int>(result));
  return name;
}

/// The driver's name for the type. Bits of types that it has no name for are moved as unsigned
/// integers, and those of tf32 as f32, since the driver's TFLOAT32 rounds what it loads.
CUtensorMapDataType data_type(DType type) {
  switch (type) {
    case DType::f64:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT64;
    case DType::f32:
    case DType::tf32:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    case DType::f16:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    case DType::bf16:
      return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    case DType::s64:
      return CU_TENSOR_MAP_DATA_TYPE_INT64;
    case DType::u64:
      return CU_TENSOR_MAP_DATA_TYPE_UINT64;
    case DType::s32:
      return CU_TENSOR_MAP_DATA_TYPE_INT32;
    case DType::u32:
      return CU_TENSOR_MAP_DATA_TYPE_UINT32;
    case DType::s16:
    case DType::u16:
      return CU_TENSOR_MAP_DATA_TYPE_UINT16;
    case DType::e2m1:
      return static_cast<CUtensorMapDataType>(14);  // 16U4_ALIGN16B, of CUDA 12.8
    case DType::e2m3:
    case DType::e3m2:
      return static_cast<CUtensorMapDataType>(15);  // 16U6_ALIGN16B
    default:
      return CU_TENSOR_MAP_DATA_TYPE_UINT8;
  }
}

}  // namespace

TensorMap encode_by_driver(TensorMapDescription const& d) {
  static_assert(sizeof(CUtensorMap) == sizeof(TensorMap) && alignof(TensorMap) >= 64);
  cuuint64_t extents[5], strides[4];
  cuuint32_t box[5], element_strides[5];
  for (std::size_t axis = 0; axis < 5; ++axis) {
    extents[axis] = static_cast<cuuint64_t>(d.extents[axis]);
    if (axis < 4) strides[axis] = static_cast<cuuint64_t>(d.strides[axis]);
    box[axis] = static_cast<cuuint32_t>(d.box[axis]);
    element_strides[axis] = static_cast<cuuint32_t>(d.element_strides[axis]);
  }
  TensorMap map{};
  if (d.mode == TmaMode::im2col) {
    static auto const encode_image =
        driver_function<decltype(&cuTensorMapEncodeIm2col)>("cuTensorMapEncodeIm2col");
    CUresult const result = encode_image(
        reinterpret_cast<CUtensorMap*>(&map), data_type(d.dtype), static_cast<cuuint32_t>(d.rank),
        const_cast<void*>(d.address), extents, strides, d.lower_corner.data(),
        d.upper_corner.data(), box[0], box[1], element_strides, CU_TENSOR_MAP_INTERLEAVE_NONE,
        static_cast<CUtensorMapSwizzle>(d.swizzle),
        static_cast<CUtensorMapL2promotion>(d.l2_promotion),
        static_cast<CUtensorMapFloatOOBfill>(d.fill));
    if (result != CUDA_SUCCESS)
      throw device_error(fmt::format("cuTensorMapEncodeIm2col returned {}.", name_of(result)));
    return map;
  }
  static auto const encode =
      driver_function<decltype(&cuTensorMapEncodeTiled)>("cuTensorMapEncodeTiled");
  CUresult const result = encode(
      reinterpret_cast<CUtensorMap*>(&map), data_type(d.dtype), static_cast<cuuint32_t>(d.rank),
      const_cast<void*>(d.address), extents, strides, box, element_strides,
      CU_TENSOR_MAP_INTERLEAVE_NONE, static_cast<CUtensorMapSwizzle>(d.swizzle),
      static_cast<CUtensorMapL2promotion>(d.l2_promotion),
      static_cast<CUtensorMapFloatOOBfill>(d.fill));
  if (result != CUDA_SUCCESS)
    throw device_error(fmt::format("cuTensorMapEncodeTiled returned {}.", name_of(result)));
  return map;
}

}  // namespace tegula::device
