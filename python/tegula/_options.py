"""What the kernels take by name, for type checkers and for those who ask inspect."""

from __future__ import annotations

from typing import Any, TypedDict

from .machine import Machine


class PreparedGemmOptions(TypedDict, total=False):
    """What prepare_gemm takes by name: arrays are where a and b are."""

    c: Any
    bias: Any
    alpha: float
    beta: float | None
    activation: str
    scale_a: Any
    scale_b: Any
    dtype: str | None
    dtype_b: str | None
    out_dtype: str | None
    out: Any
    machine: Machine | None


class GemmOptions(PreparedGemmOptions, total=False):
    """What gemm takes by name."""

    block_scale: str | None
    block_scale_a: Any
    block_scale_b: Any
    stream: int | None


class _AttentionOptions(TypedDict, total=False):

    causal: bool
    scale: float | None
    window: tuple[int | None, int | None]
    softcap: float
    sink: Any
    q_descale: Any
    k_descale: Any
    v_descale: Any
    cu_seqlens_q: Any
    cu_seqlens_k: Any
    max_seqlen_q: int | None
    max_seqlen_k: int | None
    seqused_k: Any
    page_table: Any
    k_new: Any
    v_new: Any
    cu_seqlens_new: Any
    max_seqlen_new: int | None
    splits: int | None
    precise: bool | None
    dtype: str | None
    out_dtype: str | None
    out: Any
    machine: Machine | None


class PreparedAttentionOptions(_AttentionOptions, total=False):
    """What prepare_attention takes by name."""

    return_lse: bool


class AttentionOptions(_AttentionOptions, total=False):
    """What attention takes by name, but return_lse and report, which its result depends on."""

    stream: int | None
