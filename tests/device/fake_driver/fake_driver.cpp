#include "fake_driver.hpp"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "driver_api.hpp"

namespace {

using namespace tegula::device::driver;
using tegula::testing::FakeLaunch;

constexpr int kOk = 0, kInvalid = 1, kNoContext = 201;
constexpr int kDevices = 2;

std::mutex mutex;
std::vector<FakeLaunch> launches;
std::map<Function, std::pair<std::string, int>> entries;  ///< entry, shared bytes allowed
int modules = 0, next_failure = 0, without_context = 0;
bool capturing = false;
thread_local std::vector<Context> contexts;

/// A call that needs a current context.
int in_context() {
  if (!contexts.empty()) return kOk;
  std::scoped_lock const lock(mutex);
  ++without_context;
  return kNoContext;
}

}  // namespace

namespace tegula::testing {
std::vector<FakeLaunch> take_fake_launches() {
  std::scoped_lock const lock(mutex);
  return std::exchange(launches, {});
}
int fake_modules() { return modules; }
void fail_next_launch(int result) { next_failure = result; }
void set_fake_capture(bool on) { capturing = on; }
int calls_without_context() { return without_context; }
}  // namespace tegula::testing

extern "C" {

int cuInit(unsigned) { return kOk; }
/// NVRTC asks for it where there is a driver.
int cuGetExportTable(void const** table, void const*) {
  *table = nullptr;
  return kInvalid;
}
int cuGetErrorName(int result, char const** text) {
  *text = result == 719 ? "CUDA_ERROR_LAUNCH_FAILED" : "CUDA_ERROR_FAKE";
  return kOk;
}
int cuGetErrorString(int, char const** text) {
  *text = "a failure that was asked for";
  return kOk;
}
int cuDeviceGetCount(int* count) {
  *count = kDevices;
  return kOk;
}
int cuDeviceGet(int* device, int number) {
  *device = number;
  return number < kDevices ? kOk : kInvalid;
}
int cuDeviceGetName(char* name, int size, int) {
  std::strncpy(name, "Fake GPU", static_cast<std::size_t>(size));
  return kOk;
}
int cuDeviceGetAttribute(int* value, int attribute, int) {
  std::map<int, int> const values = {{kMultiprocessors, 132},
                                     {kComputeCapabilityMajor, 9},
                                     {kComputeCapabilityMinor, 0},
                                     {kSharedBytesOptIn, 232448}};
  auto const found = values.find(attribute);
  if (found == values.end()) return kInvalid;
  *value = found->second;
  return kOk;
}
int cuDevicePrimaryCtxRetain(Context* context, int device) {
  static char objects[kDevices];
  *context = reinterpret_cast<Context>(&objects[device]);
  return kOk;
}
int cuCtxGetCurrent(Context* context) {
  *context = contexts.empty() ? nullptr : contexts.back();
  return kOk;
}
int cuCtxPushCurrent_v2(Context context) {
  contexts.push_back(context);
  return kOk;
}
int cuCtxPopCurrent_v2(Context* context) {
  *context = contexts.back();
  contexts.pop_back();
  return kOk;
}
int cuModuleLoadData(Module* module, void const* image) {
  if (std::memcmp(image, "\177ELF", 4) != 0) return kInvalid;
  std::scoped_lock const lock(mutex);
  *module = reinterpret_cast<Module>(static_cast<std::intptr_t>(++modules));
  return in_context();
}
int cuModuleGetFunction(Function* function, Module, char const* name) {
  *function = reinterpret_cast<Function>(new char(0));
  std::scoped_lock const lock(mutex);
  entries[*function] = {name, 48 << 10};
  return kOk;
}
int cuModuleGetGlobal_v2(Address* address, std::size_t* bytes, Module, char const* name) {
  if (std::strcmp(name, "tegula_kernel_form") != 0) return kInvalid;
  static int const form[8] = {64, 1024, 16, 2, 1, 1, 0, 0};
  *address = reinterpret_cast<Address>(&form);
  *bytes = sizeof form;
  return in_context();
}
int cuFuncSetAttribute(Function function, int attribute, int value) {
  if (attribute != kMaxDynamicSharedBytes) return kInvalid;
  std::scoped_lock const lock(mutex);
  entries[function].second = value;
  return kOk;
}
int cuLaunchKernelEx(LaunchConfig const* config, Function function, void** arguments, void**) {
  if (int const result = in_context(); result != kOk) return result;
  if (int const result = std::exchange(next_failure, 0); result != kOk) return result;
  std::scoped_lock const lock(mutex);
  auto const& [entry, allowed] = entries.at(function);
  if (config->shared_bytes > static_cast<unsigned>(allowed)) return kInvalid;
  char const* const params = static_cast<char const*>(arguments[0]);
  FakeLaunch launch{entry,
                    {config->grid_x, config->grid_y, config->grid_z},
                    {config->block_x, config->block_y, config->block_z},
                    {1, 1, 1},
                    config->shared_bytes,
                    config->stream,
                    false,
                    false,
                    {params, params + 64}};
  for (unsigned i = 0; i < config->attribute_count; ++i) {
    LaunchAttribute const& attribute = config->attributes[i];
    if (attribute.id == kClusterDimension)
      launch.cluster = {attribute.value[0], attribute.value[1], attribute.value[2]};
    if (attribute.id == kProgrammaticSerialization) launch.programmatic = attribute.value[0] == 1;
    if (attribute.id == kCooperative) launch.cooperative = attribute.value[0] == 1;
  }
  launches.push_back(std::move(launch));
  return kOk;
}
int cuMemAlloc_v2(Address* address, std::size_t bytes) {
  *address = reinterpret_cast<Address>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
  return in_context();
}
int cuMemFree_v2(Address address) {
  std::free(reinterpret_cast<void*>(address));
  return in_context();
}
int cuMemcpyHtoD_v2(Address to, void const* from, std::size_t bytes) {
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return in_context();
}
int cuMemcpyDtoH_v2(void* to, Address from, std::size_t bytes) {
  std::memcpy(to, reinterpret_cast<void*>(from), bytes);
  return in_context();
}
int cuMemsetD8_v2(Address to, unsigned char byte, std::size_t bytes) {
  std::memset(reinterpret_cast<void*>(to), byte, bytes);
  return in_context();
}
int cuMemsetD8Async(Address to, unsigned char byte, std::size_t bytes, StreamHandle) {
  return cuMemsetD8_v2(to, byte, bytes);
}
int cuStreamCreate(StreamHandle* stream, unsigned) {
  *stream = reinterpret_cast<StreamHandle>(new char(0));
  return in_context();
}
int cuStreamDestroy_v2(StreamHandle stream) {
  delete reinterpret_cast<char*>(stream);
  return kOk;
}
int cuStreamSynchronize(StreamHandle) { return in_context(); }
int cuStreamIsCapturing(StreamHandle, int* status) {
  *status = capturing ? 1 : kNotCapturing;
  return in_context();
}
int cuStreamGetId(StreamHandle stream, unsigned long long* id) {
  *id = reinterpret_cast<unsigned long long>(stream);
  return in_context();
}
int cuThreadExchangeStreamCaptureMode(int*) { return kOk; }
int cuEventCreate(EventHandle* event, unsigned) {
  *event = reinterpret_cast<EventHandle>(new char(0));
  return in_context();
}
int cuEventDestroy_v2(EventHandle event) {
  delete reinterpret_cast<char*>(event);
  return kOk;
}
int cuEventRecord(EventHandle, StreamHandle) { return in_context(); }
int cuEventSynchronize(EventHandle) { return in_context(); }
int cuEventElapsedTime(float* milliseconds, EventHandle, EventHandle) {
  *milliseconds = 1.5f;
  return in_context();
}
int cuTensorMapEncodeTiled(void* map, int, std::uint32_t rank, void* address, std::uint64_t const*,
                           std::uint64_t const*, std::uint32_t const*, std::uint32_t const*, int,
                           int, int, int) {
  std::memset(map, 0, 128);
  std::memcpy(map, &address, sizeof address);
  return rank >= 1 && rank <= 5 ? in_context() : kInvalid;
}
int cuTensorMapEncodeIm2col(void* map, int, std::uint32_t rank, void* address, std::uint64_t const*,
                            std::uint64_t const*, int const*, int const*, std::uint32_t,
                            std::uint32_t, std::uint32_t const*, int, int, int, int) {
  std::memset(map, 0, 128);
  std::memcpy(map, &address, sizeof address);
  return rank >= 3 && rank <= 5 ? in_context() : kInvalid;
}

}  // extern "C"
