// The driver's types and numbers as src/device/driver declares them, held to the toolkit's header.

#include <cuda.h>

#include <cstddef>
#include <type_traits>

#include "driver_api.hpp"

namespace tegula::device::driver {

static_assert(sizeof(LaunchAttribute) == sizeof(CUlaunchAttribute) &&
              offsetof(LaunchAttribute, value) == offsetof(CUlaunchAttribute, value));
static_assert(sizeof(LaunchConfig) == sizeof(CUlaunchConfig) &&
              offsetof(LaunchConfig, grid_x) == offsetof(CUlaunchConfig, gridDimX) &&
              offsetof(LaunchConfig, block_x) == offsetof(CUlaunchConfig, blockDimX) &&
              offsetof(LaunchConfig, shared_bytes) == offsetof(CUlaunchConfig, sharedMemBytes) &&
              offsetof(LaunchConfig, stream) == offsetof(CUlaunchConfig, hStream) &&
              offsetof(LaunchConfig, attributes) == offsetof(CUlaunchConfig, attrs) &&
              offsetof(LaunchConfig, attribute_count) == offsetof(CUlaunchConfig, numAttrs));
static_assert(std::is_same_v<Address, CUdeviceptr> && std::is_same_v<Device, CUdevice> &&
              sizeof(Result) == sizeof(CUresult) && CUDA_SUCCESS == 0);

static_assert(kMultiprocessors == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT &&
              kComputeCapabilityMajor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR &&
              kComputeCapabilityMinor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR &&
              kSharedBytesOptIn == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
static_assert(kMaxDynamicSharedBytes == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
static_assert(kCaptureRelaxed == CU_STREAM_CAPTURE_MODE_RELAXED &&
              kNotCapturing == CU_STREAM_CAPTURE_STATUS_NONE &&
              kNonBlocking == CU_STREAM_NON_BLOCKING);
static_assert(kCooperative == CU_LAUNCH_ATTRIBUTE_COOPERATIVE &&
              kClusterDimension == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION &&
              kProgrammaticSerialization == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);

}  // namespace tegula::device::driver
