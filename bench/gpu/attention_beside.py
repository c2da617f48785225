#!/usr/bin/env python3
"""tegula's attention beside its peers in one process:
attention_beside.py BUILD [--type bf16|e4m3] [--config N] [--fa3 LIBRARY] [--record FILE] [--rounds N] [--random N --seed S]

Forward, bf16 or e4m3, at the shapes of FlashAttention's papers (16384 tokens, heads * head_dim =
2048; from 16384 keys on one sequence), head dims 64, 128 and 256, without a mask and causal; or,
with --random, problems like those of models, drawn by the seed: batch, heads and heads of keys, 64
to 32768 queries and keys, odd ones included. The peers are PyTorch's cuDNN and FlashAttention-2
back ends and, where LIBRARY is given, FlashAttention-3: a shared library with fa3_fwd(head_dim, q,
k, v, o, lse, batch, heads, kv_heads, seq_q, seq_k, causal, counter, stream) over its kernels, built
elsewhere. With --type e4m3 the peers are tegula's own bf16 and, where LIBRARY has it,
FlashAttention-3 by fa3_fwd_e4m3, which takes q_descale, k_descale and v_descale, pointers to one
factor each, after lse; --config N, with --head-dims, times a configuration that is not chosen. Each
result is first held against a peer's, after its output was poisoned. Launches alternate, each timed
by events after the L2 cache was flushed; medians are shown, and the ratio to the fastest peer.
"""

import argparse
import ctypes
import math
import random
import statistics

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from measurement import EntryPoints, append, stamp
from timing import Timer

TOKENS = 16384
WIDTH = 2048
# of queries, and of keys, in models
HEADS = [(32, 32), (32, 8), (64, 8), (16, 16), (40, 8), (28, 4), (12, 12), (24, 2), (8, 1)]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", help="the folder of a CUDA build")
    parser.add_argument("--fa3", help="a shared library of FlashAttention-3's kernels")
    parser.add_argument("--type", choices=["bf16", "e4m3"], default="bf16", help="of Q, K and V (default bf16)")
    parser.add_argument("--config", type=int, default=-1, help="with e4m3: a configuration of attention_sm90 instead of the chosen one")
    parser.add_argument("--record", help="append JSON lines to this file")
    parser.add_argument("--rounds", type=int, default=11, help="timed launches of each (default 11)")
    parser.add_argument("--head-dims", type=int, nargs="*", default=[64, 128, 256])
    parser.add_argument("--random", type=int, metavar="N", help="so many random problems instead of the list")
    parser.add_argument("--seed", type=int, default=0, help="of the random problems (default 0)")
    return parser.parse_args()


def listed(head_dims):
    for head_dim in head_dims:
        for causal in (False, True):
            for exponent in range(9, 16):
                seq = 1 << exponent
                heads = WIDTH // head_dim
                yield max(1, TOKENS // seq), heads, heads, seq, seq, head_dim, causal


def drawn(count, seed, head_dims):
    generator = random.Random(seed)
    for _ in range(count):
        heads, kv_heads = generator.choice(HEADS)
        seq = round(math.exp(generator.uniform(math.log(64), math.log(32768))))
        if generator.random() < 0.5:
            seq = max(64, seq // 64 * 64)
        most = max(1, (1 << 17) // seq)  # tokens in all
        yield generator.randint(1, min(most, 32)), heads, kv_heads, seq, seq, generator.choice(head_dims), generator.random() < 0.5


class Problem:
    """Of bf16."""

    def __init__(self, entry, fa3, batch, heads, kv_heads, seq_q, seq_k, head_dim, causal):
        def tensor(seq, count):
            return torch.randn(batch, seq, count, head_dim, device="cuda", dtype=torch.bfloat16)

        self.q, self.k, self.v = tensor(seq_q, heads), tensor(seq_k, kv_heads), tensor(seq_k, kv_heads)
        self.out = torch.full_like(self.q, float("nan"))
        self.entry, self.fa3, self.causal = entry, fa3, causal
        self.sizes = (batch, heads, kv_heads, seq_q, seq_k, head_dim)
        # With a mask: pairs of a query and a key that it sees, for as many of one as of the other.
        self.flops = 4 * batch * heads * seq_q * seq_k * head_dim * (0.5 if causal else 1)

    def ours(self):
        self.entry("tegula_bench_attention", self.q, self.k, self.v, self.out, *self.sizes, int(self.causal))

    def pytorch(self, backend):
        def launch():
            with sdpa_kernel(backend):
                return torch.nn.functional.scaled_dot_product_attention(
                    *(x.transpose(1, 2) for x in (self.q, self.k, self.v)), is_causal=self.causal, enable_gqa=self.q.shape[2] != self.k.shape[2]
                )

        return launch

    def flash_attention_3(self):
        batch, heads, kv_heads, seq_q, seq_k, head_dim = self.sizes
        out, lse = torch.empty_like(self.q), torch.empty(batch, heads, seq_q, device="cuda")
        counter = torch.zeros(64, dtype=torch.int32, device="cuda")

        def launch():
            pointers = [ctypes.c_void_p(x.data_ptr()) for x in (self.q, self.k, self.v, out, lse)]
            stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
            failed = self.fa3.fa3_fwd(
                head_dim, *pointers, batch, heads, kv_heads, seq_q, seq_k, int(self.causal), ctypes.c_void_p(counter.data_ptr()), stream
            )
            if failed:
                raise RuntimeError(f"fa3_fwd returns {failed}")
            return out.transpose(1, 2)

        return launch

    def candidates(self):
        candidates = {
            "cuDNN": self.pytorch(SDPBackend.CUDNN_ATTENTION),
            "FlashAttention-2": self.pytorch(SDPBackend.FLASH_ATTENTION),
        }
        if self.fa3 is not None:
            candidates["FlashAttention-3"] = self.flash_attention_3()
        return candidates

    def peers(self):
        """Those that compute the problem, by name."""
        found = {}
        for name, launch in self.candidates().items():
            try:
                launch()
                torch.cuda.synchronize()
                found[name] = launch
            except RuntimeError:
                pass
        return found


class Fp8Problem(Problem):
    """Of e4m3: values of about 1, with a factor for each operand, as a model's quantised tensors have."""

    FACTORS = (0.5, 0.25, 2.0)

    def __init__(self, entry, fa3, *sizes, config):
        super().__init__(entry, fa3, *sizes)
        self.config = config
        self.factors = [torch.tensor([factor], device="cuda") for factor in self.FACTORS]
        self.narrow = [(x.float() / f).clamp(-448, 448).to(torch.float8_e4m3fn) for x, f in zip((self.q, self.k, self.v), self.FACTORS)]
        # bf16 holds what e4m3 does: the peers compute the same problem.
        self.q, self.k, self.v = ((x.float() * f).to(torch.bfloat16) for x, f in zip(self.narrow, self.FACTORS))

    def ours(self):
        self.entry("tegula_bench_attention_e4m3", *self.narrow, *self.factors, self.out, *self.sizes, int(self.causal), self.config)

    def ours_in_bf16(self):
        out = torch.empty_like(self.q)

        def launch():
            self.entry("tegula_bench_attention", self.q, self.k, self.v, out, *self.sizes, int(self.causal))
            return out.transpose(1, 2)

        return launch

    def flash_attention_3(self):
        batch, heads, kv_heads, seq_q, seq_k, head_dim = self.sizes
        out, lse = torch.empty_like(self.q), torch.empty(batch, heads, seq_q, device="cuda")
        counter = torch.zeros(64, dtype=torch.int32, device="cuda")

        def launch():
            pointers = [ctypes.c_void_p(x.data_ptr()) for x in (*self.narrow, out, lse, *self.factors)]
            stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
            failed = self.fa3.fa3_fwd_e4m3(
                head_dim, *pointers, batch, heads, kv_heads, seq_q, seq_k, int(self.causal), ctypes.c_void_p(counter.data_ptr()), stream
            )
            if failed:
                raise RuntimeError(f"fa3_fwd_e4m3 returns {failed}")
            return out.transpose(1, 2)

        return launch

    def candidates(self):
        candidates = {"bf16": self.ours_in_bf16()}
        if self.fa3 is not None and hasattr(self.fa3, "fa3_fwd_e4m3"):
            candidates["FlashAttention-3"] = self.flash_attention_3()
        return candidates


def error_of(problem, expected, e4m3):
    """How far the result is from a peer's, and how far it may be: of e4m3 as the root of the mean square, in units of the result's."""
    difference = problem.out.float() - expected
    if not e4m3:
        return difference.abs().max().item(), 0.05
    # P is rounded to 4 bits: errors of at most 6 %, and about 2 % in the mean; the sums' 13 bits add to that where there are many keys.
    return (difference.square().mean() / expected.square().mean()).sqrt().item(), 0.1


def main():
    options = arguments()
    e4m3 = options.type == "e4m3"
    torch.manual_seed(options.seed)
    entry = EntryPoints(options.build)
    fa3 = ctypes.CDLL(options.fa3) if options.fa3 else None
    timer, run, records, ratios = Timer(), stamp("./run gpu bench"), [], {}
    problems = drawn(options.random, options.seed, options.head_dims) if options.random else listed(options.head_dims)
    for sizes in problems:
        problem = Fp8Problem(entry, fa3, *sizes, config=options.config) if e4m3 else Problem(entry, fa3, *sizes)
        batch, heads, kv_heads, seq_q, _, head_dim, causal = sizes
        group = f"D {head_dim}{', causal' if causal else ''}"
        case = f"{group}, S {seq_q}" + (f", {batch} x {heads}/{kv_heads} heads" if options.random else "")
        peers = problem.peers()
        problem.ours()
        expected = next(iter(peers.values()))().transpose(1, 2).float()
        error, most = error_of(problem, expected, e4m3)
        del expected
        if not error < most:
            raise SystemExit(f"attention, {case}: differs from {next(iter(peers))} by {error}")
        seconds = timer.medians([problem.ours, *peers.values()], options.rounds, warm_ups=2)
        ours, *theirs = (problem.flops / s / 1e12 for s in seconds)
        by_peer = dict(zip(peers, theirs))
        best = max(by_peer, key=by_peer.get)
        ratios.setdefault("random" if options.random else group, []).append(ours / by_peer[best])
        shown = "  ".join(f"{name} {value:4.0f}" for name, value in by_peer.items())
        print(f"{case:40} {ours:5.0f} TFLOP/s  {shown}  ratio {ours / by_peer[best]:.3f}", flush=True)
        records.append(
            run
            | {"benchmark": "attention_sm90" + (" e4m3" if e4m3 else "") + (" random" if options.random else ""), "case": case, "value": ours, "unit": "TFLOP/s"}
            | {"peer": best, "peer_value": by_peer[best], "peers": by_peer}
        )
    for group, values in ratios.items():
        print(f"{group}: geometric mean of the ratios {math.exp(statistics.fmean(map(math.log, values))):.3f}, least {min(values):.3f}")
    if options.record:
        append(options.record, records)


if __name__ == "__main__":
    main()
