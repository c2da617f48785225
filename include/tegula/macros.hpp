#pragma once

/// The few macros a compiler forces. TEGULA_DEVICE marks code that belongs to a kernel,
/// TEGULA_HOST_DEVICE code that is also called by the host. Compiled by nvcc (TEGULA_GPU = 1) they
/// are CUDA's function qualifiers; compiled by any other compiler (TEGULA_GPU = 0) the same code
/// runs on the simulated machine.
#if defined(__CUDACC__)
#define TEGULA_GPU 1
#define TEGULA_DEVICE __device__ __forceinline__
#define TEGULA_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define TEGULA_GPU 0
#define TEGULA_DEVICE inline
#define TEGULA_HOST_DEVICE inline
#endif
