"""DeepGEMM as a peer: a shared library over its kernels, built elsewhere.

The library has one function, which launches the kernel that DeepGEMM's own heuristics choose for a problem, and returns 0, or something
else where it has none for it:

    int deep_gemm_fp8(int grouping, int m, int n, int k, int groups, void* a, float* scale_a, void* b, float* scale_b, void* d,
                      int* table, void* workspace, cudaStream_t stream)

grouping counts as Grouping does (none, contiguous, masked, k). A and B are e4m3, K-major. scale_a has one factor for a row and 128 of K,
(blocks of K, rows to a multiple of 4), of masked groups one such matrix for each; scale_b one for 128 x 128, (groups, blocks of n, blocks of
K), or with groups of k as scale_a. d is bf16; with groups of k f32, to which is added. The table holds for contiguous rows the group of
each (-1: none; groups begin at multiples of 128), for masked ones how many count, for groups of k the K of each; then A and B have each
group's columns by themselves, k is the sum, and the workspace, of WORKSPACE bytes, holds tensor maps while the kernel runs.
"""

import ctypes

import torch

WORKSPACE = 1 << 20


class DeepGemm:
    def __init__(self, library):
        self.library = ctypes.CDLL(library)
        self.workspace = torch.empty(WORKSPACE, device="cuda", dtype=torch.uint8)

    def launch(self, grouping, m, n, k, groups, a, scale_a, b, scale_b, d, table=None, expected_m=0):
        """A function that computes this, on torch's current stream."""
        expected = ctypes.c_int.in_dll(self.library, "deep_gemm_expected_m")
        tensors = (a, scale_a, b, scale_b, d, table, self.workspace)

        def run():
            pointers = [None if x is None else ctypes.c_void_p(x.data_ptr()) for x in tensors]
            stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
            expected.value = expected_m
            failed = self.library.deep_gemm_fp8(grouping, m, n, k, groups, *pointers, stream)
            if failed:
                raise RuntimeError(f"deep_gemm_fp8 returns {failed}")

        return run
