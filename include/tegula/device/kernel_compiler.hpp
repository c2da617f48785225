#pragma once

/// Kernels that are compiled on the machine that asks for them, by NVRTC, and kept on disk. Nothing
/// here needs a GPU.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "tegula/device/family.hpp"

namespace tegula {

/// A kernel as machine code.
struct CompiledKernel {
  std::string name;   ///< "gemm_sm90 bf16->f32 A:k B:k ..."
  std::string arch;   ///< "sm_90a"
  std::string entry;  ///< the __global__ function's name
  std::string cubin;
  std::string path;         ///< of its file in the cache; empty where nothing is kept
  bool from_cache = false;  ///< it had been compiled before
  double seconds = 0;       ///< to compile it, or to find it in the cache
  int registers = 0;        ///< of a thread; 0 where it came from the cache
  int spilled_bytes = 0;    ///< stored and loaded by a thread for want of registers; likewise
  std::string not_kept;     ///< why it could not be written to the cache; empty where it was
};

/// The architecture whose code a device runs: "sm_90a" for 90; from 90 on with what is specific to
/// it.
std::string arch_of(int compute_capability);

/// A configuration of a family, from the cache, or compiled and kept there. Throws argument_error
/// for a number that there is not, and device_error where NVRTC is missing or refuses.
CompiledKernel compile(FamilyId family, int configuration, std::string_view arch);

/// A kernel of the user's own: the struct `type`, which `source` defines. `include` are folders
/// that its own includes are looked for in. Throws as above; the sentence has NVRTC's first error.
CompiledKernel compile_source(std::string const& source, std::string const& type,
                              std::string_view arch, std::vector<std::string> const& include = {});

/// A kernel in the cache.
struct CachedKernel {
  std::string name, arch;
  std::string compiler;  ///< "NVRTC 13.0"
  std::string path;
  std::size_t bytes = 0;  ///< of machine code
};
std::vector<CachedKernel> cached_kernels();
/// Where kernels are kept; empty where the environment names no place.
std::string kernel_cache_folder();
/// "NVRTC 13.0 (libnvrtc.so.13)". Throws device_error, with what to install, where there is none.
std::string kernel_compiler();

}  // namespace tegula
