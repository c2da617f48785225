"""cublasLt's matmul through ctypes: every heuristic's algorithm timed, the fastest kept.

    lt = CublasLt()
    peer = lt.best(a, b, d, timer)            # bf16 or f16: a (m, k), b (n, k), d (m, n), rows contiguous
    peer = lt.best(a, b, d, timer, scale_a=s, scale_b=t)   # fp8 e4m3: float32 tensors of one element on the GPU
    peer()                                    # d = a b^T on torch's current stream
    peer.description, peer.candidates         # the algorithm's numbers, how many were timed

Constants and structures are those of cublasLt.h and library_types.h of CUDA 12 and 13, which agree in all that is used here. A call that
fails raises CublasLtError with the call's name and the status's.
"""

import ctypes
import glob
import os
import sys

import torch

CUDA_R_32F = 0
CUDA_R_16F = 2
CUDA_R_16BF = 14
CUDA_R_8F_E4M3 = 28
CUBLAS_COMPUTE_32F = 68
CUBLAS_OP_N = 0
CUBLAS_OP_T = 1
DESC_TRANSA = 3
DESC_TRANSB = 4
DESC_A_SCALE_POINTER = 17
DESC_B_SCALE_POINTER = 18
DESC_FAST_ACCUM = 25
PREF_MAX_WORKSPACE_BYTES = 1
ALGO_CONFIG = {  # what describes an algorithm: the attribute and its type
    "id": (0, ctypes.c_int32),
    "tile": (1, ctypes.c_uint32),
    "split_k": (2, ctypes.c_int32),
    "cta_swizzling": (4, ctypes.c_uint32),
    "custom": (5, ctypes.c_uint32),
    "stages": (6, ctypes.c_uint32),
    "cluster": (8, ctypes.c_uint16),
}
STATUS = {
    0: "CUBLAS_STATUS_SUCCESS",
    1: "CUBLAS_STATUS_NOT_INITIALIZED",
    3: "CUBLAS_STATUS_ALLOC_FAILED",
    7: "CUBLAS_STATUS_INVALID_VALUE",
    8: "CUBLAS_STATUS_ARCH_MISMATCH",
    11: "CUBLAS_STATUS_MAPPING_ERROR",
    13: "CUBLAS_STATUS_EXECUTION_FAILED",
    14: "CUBLAS_STATUS_INTERNAL_ERROR",
    15: "CUBLAS_STATUS_NOT_SUPPORTED",
    16: "CUBLAS_STATUS_LICENSE_ERROR",
}
TYPES = {torch.bfloat16: CUDA_R_16BF, torch.float16: CUDA_R_16F, torch.float32: CUDA_R_32F, torch.float8_e4m3fn: CUDA_R_8F_E4M3}
FINALISTS = 4  # algorithms that are timed again, after one launch of each
FINALIST_ROUNDS = 5


class CublasLtError(RuntimeError):
    pass


class Algo(ctypes.Structure):  # cublasLtMatmulAlgo_t
    _fields_ = [("data", ctypes.c_uint64 * 8)]


class HeuristicResult(ctypes.Structure):  # cublasLtMatmulHeuristicResult_t
    _fields_ = [
        ("algo", Algo),
        ("workspace_size", ctypes.c_size_t),
        ("state", ctypes.c_int),
        ("waves_count", ctypes.c_float),
        ("reserved", ctypes.c_int * 4),
    ]


POINTER, INT, SIZE = ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t
OUT = ctypes.POINTER(ctypes.c_void_p)
SIGNATURES = {
    "cublasLtCreate": [OUT],
    "cublasLtDestroy": [POINTER],
    "cublasLtMatrixLayoutCreate": [OUT, INT, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int64],
    "cublasLtMatrixLayoutDestroy": [POINTER],
    "cublasLtMatmulDescCreate": [OUT, INT, INT],
    "cublasLtMatmulDescDestroy": [POINTER],
    "cublasLtMatmulDescSetAttribute": [POINTER, INT, POINTER, SIZE],
    "cublasLtMatmulPreferenceCreate": [OUT],
    "cublasLtMatmulPreferenceDestroy": [POINTER],
    "cublasLtMatmulPreferenceSetAttribute": [POINTER, INT, POINTER, SIZE],
    "cublasLtMatmulAlgoGetHeuristic": [POINTER] * 7 + [INT, ctypes.POINTER(HeuristicResult), ctypes.POINTER(INT)],
    "cublasLtMatmulAlgoConfigGetAttribute": [POINTER, INT, POINTER, SIZE, ctypes.POINTER(SIZE)],
    # handle, operation, alpha, A, its layout, B, its layout, beta, C, its layout, D, its layout,
    # algorithm, workspace, its size, stream
    "cublasLtMatmul": [POINTER] * 14 + [SIZE, POINTER],
}


def library_candidates():
    """The library that torch has loaded goes by its plain name; else beside torch, else in the CUDA toolkit."""
    names = ["libcublasLt.so.13", "libcublasLt.so.12"]
    beside_torch = [path for folder in sys.path for path in glob.glob(os.path.join(folder, "nvidia", "*", "lib", "libcublasLt.so.1[23]"))]
    toolkit = [path for name in names for path in glob.glob(f"/usr/local/cuda*/lib*/{name}")]
    return names + beside_torch + toolkit


def load_library():
    refused = []
    for name in library_candidates():
        try:
            library = ctypes.CDLL(name)
        except OSError as error:
            refused.append(str(error))
            continue
        for function, arguments in SIGNATURES.items():
            getattr(library, function).argtypes = arguments
            getattr(library, function).restype = INT
        library.cublasLtGetVersion.argtypes = []
        library.cublasLtGetVersion.restype = SIZE
        return library
    raise CublasLtError("no libcublasLt.so.13 or .12 was found: " + "; ".join(refused))


class CublasLt:
    """A handle of cublasLt and its workspace."""

    def __init__(self, workspace_bytes=64 << 20):
        self.library = load_library()
        self.version = self.library.cublasLtGetVersion()
        self.handle = self.create("cublasLtCreate")
        self.workspace_bytes = workspace_bytes
        self.workspace = torch.empty(workspace_bytes, dtype=torch.uint8, device="cuda")

    def check(self, function, *values):
        status = getattr(self.library, function)(*values)
        if status != 0:
            raise CublasLtError(f"{function}: {STATUS.get(status, 'status')} ({status})")

    def create(self, function, *values):
        created = ctypes.c_void_p()
        self.check(function, ctypes.byref(created), *values)
        return created

    def set(self, function, descriptor, attribute, value):
        self.check(function, descriptor, attribute, ctypes.byref(value), ctypes.sizeof(value))

    def matmul(self, a, b, d, scale_a=None, scale_b=None, fast_accumulation=True):
        """The problem d = scale_a scale_b a b^T, its heuristics not yet asked for."""
        return Matmul(self, a, b, d, scale_a, scale_b, fast_accumulation)

    def best(self, a, b, d, timer, requested=64, is_right=lambda: True, **scales):
        """The fastest of the algorithms that the heuristics propose and whose d is_right(): each is launched twice, the second timed, and
        the FINALISTS fastest again, alternating. Returns the Matmul, which launches it when called; raises where none works."""
        problem = self.matmul(a, b, d, **scales)
        proposed = problem.heuristics(requested)
        timed = []
        for result in proposed:
            problem.algorithm = result
            d.fill_(float("nan"))
            try:
                problem()  # the first launch may load code
                if is_right():
                    timed.append((timer.launch_seconds(problem), result))
            except CublasLtError:
                continue
        if not timed:
            raise CublasLtError(f"none of the {len(proposed)} algorithms proposed for {problem} computes it")
        timed.sort(key=lambda entry: entry[0])
        finalists = [result for _, result in timed[:FINALISTS]]
        medians = timer.medians([lambda result=result: problem.launch(result) for result in finalists], FINALIST_ROUNDS, warm_ups=0)
        problem.seconds, problem.algorithm = min(zip(medians, finalists), key=lambda entry: entry[0])
        problem.candidates = len(proposed)
        problem.description = self.describe(problem.algorithm)
        return problem

    def describe(self, result):
        values = {"workspace": result.workspace_size}
        for name, (attribute, kind) in ALGO_CONFIG.items():
            value, written = kind(), SIZE()
            self.check(
                "cublasLtMatmulAlgoConfigGetAttribute",
                ctypes.byref(result.algo),
                attribute,
                ctypes.byref(value),
                ctypes.sizeof(value),
                ctypes.byref(written),
            )
            values[name] = value.value
        return " ".join(f"{name} {value}" for name, value in values.items())


class Matmul:
    """One problem with its descriptors; a call launches `algorithm` on torch's current stream.

    cublasLt's matrices are column-major: d (m, n) by rows is its D (n, m), and D = B^T A with B (k, n) and A (k, m), the form that fp8 asks
    for (its first operand transposed, its second not)."""

    def __init__(self, lt, a, b, d, scale_a, scale_b, fast_accumulation):
        m, k = a.shape
        n = b.shape[0]
        if b.shape[1] != k or tuple(d.shape) != (m, n):
            raise CublasLtError(f"a {tuple(a.shape)}, b {tuple(b.shape)} and d {tuple(d.shape)} are not (m, k), (n, k) and (m, n)")
        for name, tensor in (("a", a), ("b", b), ("d", d)):
            if tensor.stride(1) != 1 or tensor.dtype not in TYPES:
                raise CublasLtError(f"{name} has strides {tensor.stride()} and type {tensor.dtype}: rows must be contiguous, types {list(TYPES)}")
        if a.dtype != b.dtype:
            raise CublasLtError(f"a is {a.dtype} and b {b.dtype}: they must be of one type")
        self.lt, self.a, self.b, self.d = lt, a, b, d
        self.scales = (scale_a, scale_b)  # kept alive: the descriptor holds their addresses
        self.one, self.zero = ctypes.c_float(1), ctypes.c_float(0)
        self.algorithm, self.seconds, self.candidates, self.description = None, None, 0, ""
        self.operation = lt.create("cublasLtMatmulDescCreate", CUBLAS_COMPUTE_32F, CUDA_R_32F)
        self.set(DESC_TRANSA, ctypes.c_int32(CUBLAS_OP_T))
        self.set(DESC_TRANSB, ctypes.c_int32(CUBLAS_OP_N))
        if a.dtype == torch.float8_e4m3fn:
            # The descriptor's A is our b.
            for attribute, scale in ((DESC_A_SCALE_POINTER, scale_b), (DESC_B_SCALE_POINTER, scale_a)):
                if scale is not None:
                    self.set(attribute, ctypes.c_void_p(scale.data_ptr()))
            self.set(DESC_FAST_ACCUM, ctypes.c_int8(int(fast_accumulation)))
        self.layout_b = lt.create("cublasLtMatrixLayoutCreate", TYPES[b.dtype], k, n, b.stride(0))
        self.layout_a = lt.create("cublasLtMatrixLayoutCreate", TYPES[a.dtype], k, m, a.stride(0))
        self.layout_d = lt.create("cublasLtMatrixLayoutCreate", TYPES[d.dtype], n, m, d.stride(0))

    def __str__(self):
        (m, k), n = self.a.shape, self.b.shape[0]
        return f"{m} x {n} x {k} {self.a.dtype}"

    def __del__(self):
        for name, destroy in (
            ("operation", "cublasLtMatmulDescDestroy"),
            ("layout_a", "cublasLtMatrixLayoutDestroy"),
            ("layout_b", "cublasLtMatrixLayoutDestroy"),
            ("layout_d", "cublasLtMatrixLayoutDestroy"),
        ):
            if hasattr(self, name):
                getattr(self.lt.library, destroy)(getattr(self, name))

    def set(self, attribute, value):
        self.lt.set("cublasLtMatmulDescSetAttribute", self.operation, attribute, value)

    def heuristics(self, requested):
        """At most `requested` results that claim to work, likely fastest first."""
        lt = self.lt
        preference = lt.create("cublasLtMatmulPreferenceCreate")
        try:
            workspace = ctypes.c_uint64(lt.workspace_bytes)
            lt.set("cublasLtMatmulPreferenceSetAttribute", preference, PREF_MAX_WORKSPACE_BYTES, workspace)
            results, returned = (HeuristicResult * requested)(), INT()
            layouts = (self.layout_b, self.layout_a, self.layout_d, self.layout_d)
            lt.check(
                "cublasLtMatmulAlgoGetHeuristic",
                lt.handle,
                self.operation,
                *layouts,
                preference,
                requested,
                results,
                ctypes.byref(returned),
            )
        finally:
            lt.check("cublasLtMatmulPreferenceDestroy", preference)
        return [result for result in results[: returned.value] if result.state == 0]

    def launch(self, result):
        lt, d = self.lt, self.d.data_ptr()
        lt.check(
            "cublasLtMatmul",
            lt.handle,
            self.operation,
            ctypes.byref(self.one),
            self.b.data_ptr(),
            self.layout_b,
            self.a.data_ptr(),
            self.layout_a,
            ctypes.byref(self.zero),
            d,
            self.layout_d,
            d,
            self.layout_d,
            ctypes.byref(result.algo),
            lt.workspace.data_ptr(),
            lt.workspace_bytes,
            torch.cuda.current_stream().cuda_stream,
        )

    def __call__(self):
        self.launch(self.algorithm)
