// Stands in for src/device/cuda/ in a build without it.

#include "backend.hpp"
#include "tegula/device/error.hpp"

namespace tegula::device {

std::shared_ptr<Backend> make_cuda_backend(int) {
  throw device_error(
      "this build has no CUDA back end; configure with TEGULA_CUDA=ON (preset cuda), or run on the simulated machine.");
}
int cuda_device_count() { return 0; }
char const* cuda_architectures() { return ""; }

}  // namespace tegula::device
