#pragma once

/// The CUDA driver, found at run time: nothing here is linked to it, and no header of the CUDA
/// toolkit is needed. Types and numbers are those of the driver's binary interface (cuda.h), which
/// does not change within a function's version.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tegula::device::driver {

using Result = int;  ///< CUresult; 0 is success
using Device = int;
using Address = unsigned long long;  ///< CUdeviceptr
using Context = struct ContextObject*;
using Module = struct ModuleObject*;
using Function = struct FunctionObject*;
using StreamHandle = struct StreamObject*;
using EventHandle = struct EventObject*;

/// CUdevice_attribute
inline constexpr int kMultiprocessors = 16, kComputeCapabilityMajor = 75,
                     kComputeCapabilityMinor = 76, kSharedBytesOptIn = 97;
/// CUfunction_attribute
inline constexpr int kMaxDynamicSharedBytes = 8;
/// CUstreamCaptureMode, CUstreamCaptureStatus
inline constexpr int kCaptureRelaxed = 2, kNotCapturing = 0;
/// CUstream_flags
inline constexpr unsigned kNonBlocking = 1;
/// CUlaunchAttributeID
inline constexpr int kCooperative = 2, kClusterDimension = 4, kProgrammaticSerialization = 6;

/// CUlaunchAttribute: `value` is a union of 64 bytes.
struct LaunchAttribute {
  int id = 0, padding = 0;
  std::array<unsigned, 16> value = {};
};

/// CUlaunchConfig
struct LaunchConfig {
  unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
  StreamHandle stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};

/// Every function of the driver that is used: what it is called here, its symbol, its parameters.
#define TEGULA_DRIVER_FUNCTIONS(function)                                                          \
  function(init, "cuInit", unsigned) function(error_name, "cuGetErrorName", Result, char const**)  \
      function(error_string, "cuGetErrorString", Result, char const**) function(                   \
          device_count, "cuDeviceGetCount",                                                        \
          int*) function(device_get, "cuDeviceGet", Device*,                                       \
                         int) function(device_name, "cuDeviceGetName", char*, int, Device)         \
          function(device_attribute, "cuDeviceGetAttribute", int*, int, Device) function(          \
              primary_context, "cuDevicePrimaryCtxRetain", Context*,                               \
              Device) function(context_get, "cuCtxGetCurrent",                                     \
                               Context*) function(context_push, "cuCtxPushCurrent_v2", Context)    \
              function(context_pop, "cuCtxPopCurrent_v2", Context*) function(                      \
                  module_load, "cuModuleLoadData", Module*,                                        \
                  void const*) function(module_function, "cuModuleGetFunction", Function*, Module, \
                                        char const*) function(module_global,                       \
                                                              "cuModuleGetGlobal_v2", Address*,    \
                                                              std::size_t*, Module, char const*)   \
                  function(function_set, "cuFuncSetAttribute", Function, int, int) function(       \
                      launch, "cuLaunchKernelEx", LaunchConfig const*, Function, void**,           \
                      void**) function(allocate, "cuMemAlloc_v2", Address*, std::size_t)           \
                      function(release, "cuMemFree_v2", Address) function(                         \
                          upload, "cuMemcpyHtoD_v2", Address, void const*, std::size_t)            \
                          function(download, "cuMemcpyDtoH_v2", void*, Address,                    \
                                   std::size_t) function(fill, "cuMemsetD8_v2", Address,           \
                                                         unsigned char, std::size_t)               \
                              function(fill_async, "cuMemsetD8Async", Address, unsigned char,      \
                                       std::size_t,                                                \
                                       StreamHandle) function(stream_create, "cuStreamCreate",     \
                                                              StreamHandle*, unsigned)             \
                                  function(                                                        \
                                      stream_destroy, "cuStreamDestroy_v2",                        \
                                      StreamHandle) function(stream_synchronize,                   \
                                                             "cuStreamSynchronize", StreamHandle)  \
                                      function(                                                    \
                                          stream_capturing, "cuStreamIsCapturing", StreamHandle,   \
                                          int*) function(stream_id, "cuStreamGetId", StreamHandle, \
                                                         unsigned long long*)                      \
                                          function(exchange_capture_mode,                          \
                                                   "cuThreadExchangeStreamCaptureMode",            \
                                                   int*) function(event_create, "cuEventCreate",   \
                                                                  EventHandle*, unsigned)          \
                                              function(event_destroy, "cuEventDestroy_v2",         \
                                                       EventHandle) function(event_record,         \
                                                                             "cuEventRecord",      \
                                                                             EventHandle,          \
                                                                             StreamHandle)         \
                                                  function(event_synchronize,                      \
                                                           "cuEventSynchronize", EventHandle)      \
                                                      function(event_milliseconds,                 \
                                                               "cuEventElapsedTime", float*,       \
                                                               EventHandle, EventHandle)           \
                                                          function(encode_tiled,                   \
                                                                   "cuTensorMapEncodeTiled",       \
                                                                   void*, int, std::uint32_t,      \
                                                                   void*, std::uint64_t const*,    \
                                                                   std::uint64_t const*,           \
                                                                   std::uint32_t const*,           \
                                                                   std::uint32_t const*, int, int, \
                                                                   int, int)                       \
                                                              function(                            \
                                                                  encode_im2col,                   \
                                                                  "cuTensorMapEncodeIm2col",       \
                                                                  void*, int, std::uint32_t,       \
                                                                  void*, std::uint64_t const*,     \
                                                                  std::uint64_t const*,            \
                                                                  int const*, int const*,          \
                                                                  std::uint32_t, std::uint32_t,    \
                                                                  std::uint32_t const*, int, int,  \
                                                                  int, int)

/// The driver's functions; null where there is no driver.
struct Functions {
#define TEGULA_DRIVER_MEMBER(name, symbol, ...) Result (*name)(__VA_ARGS__) = nullptr;
  TEGULA_DRIVER_FUNCTIONS(TEGULA_DRIVER_MEMBER)
#undef TEGULA_DRIVER_MEMBER
};

/// The driver of this process, which is loaded and initialised once. Throws device_error, with the
/// reason, where there is none that can be used.
Functions const& functions();

/// Throws device_error where a call failed.
void check(Result result, std::string_view call);

/// Makes a context the calling thread's current one, and takes it off again at the end.
class CurrentContext {
 public:
  explicit CurrentContext(Context context);
  ~CurrentContext();
  CurrentContext(CurrentContext const&) = delete;
  CurrentContext& operator=(CurrentContext const&) = delete;

 private:
  bool pushed_ = false;
};

}  // namespace tegula::device::driver
