# The CUDA language and how kernels are compiled. Without TEGULA_CUDA nothing here asks for
# a toolkit.

set(TEGULA_CUDA_ARCHITECTURES 90a CACHE STRING "GPU architectures that kernels are compiled for")

if(TEGULA_CUDA)
  find_program(TEGULA_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda /opt/cuda PATH_SUFFIXES bin)
  if(NOT TEGULA_NVCC)
    message(FATAL_ERROR "TEGULA_CUDA is ON and no nvcc was found: put it on PATH or set CUDA_HOME")
  endif()
  set(CMAKE_CUDA_COMPILER ${TEGULA_NVCC})
  set(CMAKE_CUDA_ARCHITECTURES ${TEGULA_CUDA_ARCHITECTURES})
  set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
  enable_language(CUDA)
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25.1 does not know nvcc's flag for C++20
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  endif()
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  set(CMAKE_CUDA_EXTENSIONS OFF)
  set(CMAKE_CUDA_FLAGS_RELEASE "-O3")
  set(CMAKE_CUDA_FLAGS_DEBUG "-O3")
  find_package(CUDAToolkit REQUIRED)
endif()

# Contraction is off here as on the host. The launcher notes beside each object what the kernels in
# it use (registers, spills, stack, instructions), how long the compile took and how much memory:
# scripts/kernel_report.py reads it.
function(tegula_cuda_options target)
  if(NOT TEGULA_CUDA)
    return()
  endif()
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CUDA>:-fmad=false -lineinfo -Xcompiler=-Wall,-ffp-contract=off
                               $<$<BOOL:${TEGULA_WARNINGS_AS_ERRORS}>:-Werror=all-warnings>>)
  set_target_properties(${target} PROPERTIES
    CUDA_COMPILER_LAUNCHER "${Python3_EXECUTABLE};${PROJECT_SOURCE_DIR}/scripts/nvcc_report.py")
endfunction()
