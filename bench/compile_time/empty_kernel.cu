// The baseline of the compile-time measurements: what nvcc takes for nothing.
__global__ void empty_kernel() {}
