#!/usr/bin/env python3
"""Learns by what factor gemm_sm90's predicted times are off, from launches that were timed:

    fit_gemm_times.py FEATURES [--times FILE...] [--trees N] [--leaves N] [--rate X] [--folds N] [--write]

FEATURES is the program bench/gemm_time_features of a build. The times are those that `gemm_beside_cublas.py --weigh WORTH --weighed FILE`
appends, JSON lines, as they are or compressed by xz (default: bench/results/gemm_sm90_times.jsonl.xz). Says first how the choice does
without and with the correction, by cross-validation over --folds sets of problems (0: not), none of which has a problem whose M another
has: what the choice takes longer than the fastest that was timed, the ratio to the peer (of problems whose peer was timed: "peer_us"), the
prediction's error, and the choice's rank.
--write then grows the trees from all times and writes src/device/families/gemm_sm90_trees.hpp. Needs numpy and lightgbm.

Problems with "before_176" were timed before decision 176: their launches wrote zeros into rows that no load brings, or had TMA write them.
While the trees grow they know how many rows; the trees that are written know that there are none.
"""

import argparse
import json
import lzma
import pathlib
import subprocess
import zlib

import lightgbm
import numpy

ROOT = pathlib.Path(__file__).resolve().parent.parent
TREES = ROOT / "src/device/families/gemm_sm90_trees.hpp"
FEATURES = 32
ROWS_OF_ZEROS = 3  # more features while the trees grow, of problems with "before_176": 1, rows that the kernel wrote, rows that TMA wrote
LEAF_UNIT = 1e-5  # of a logarithm
FASTEST_FIRST = 8  # the weight of a launch falls by this power of its time over the fastest's: the choice is among the fastest
PRESENT = 2  # times the weight of launches from before decision 176
COLUMNS = 100


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("features", help="the program gemm_time_features")
    parser.add_argument("--times", nargs="*", type=pathlib.Path, default=[ROOT / "bench/results/gemm_sm90_times.jsonl.xz"])
    parser.add_argument("--trees", type=int, default=200)
    parser.add_argument("--leaves", type=int, default=128, help="of a tree, at most 128")
    parser.add_argument("--rate", type=float, default=0.15, help="at which a tree learns")
    parser.add_argument("--folds", type=int, default=8)
    parser.add_argument("--write", action="store_true", help="write the trees of all times")
    options = parser.parse_args()
    if not 2 <= options.leaves <= 128:  # a child is numbered by 8 bits
        parser.error(f"--leaves is {options.leaves}; it must be from 2 to 128")
    return options


def read(path):
    data = path.read_bytes()
    return [json.loads(line) for line in (lzma.decompress(data) if path.suffix == ".xz" else data).splitlines()]


def rows_of_zeros(problem, configuration):
    if not problem.get("before_176"):
        return 0, 0, 0
    block_m, block_n, _, cluster_m, cluster_n, split_k, _, _, _, _, transposed, parts = map(int, configuration.split())
    m, n, k = problem["m"], problem["n"], problem["k"] * (2 if problem["type"] == "bf16" else 1)
    steps = -(-k // 128 // (split_k * parts))
    by_kernel = by_tma = 0
    for extent, tile, peers in ((n if transposed else m, block_m, cluster_n), (m if transposed else n, block_n, cluster_m)):
        rest = (extent - 1) % tile + 1
        unloaded = tile + -rest // peers * peers
        if unloaded == 0 or unloaded * steps < (480 if rest == extent else 1500):
            by_tma = max(by_tma, tile - rest)
        else:
            by_kernel = max(by_kernel, unloaded)
    return 1, by_kernel, by_tma


class Times:
    """All launches of all problems: arrays by launch, and the problem of each."""

    def __init__(self, problems, program):
        self.problems = problems
        self.of = numpy.repeat(numpy.arange(len(problems)), [len(p["us"]) for p in problems])
        self.us = numpy.concatenate([p["us"] for p in problems])
        lines = [
            f"{p['multiprocessors']} {p['clock_ghz']} {p['memory_tb_per_s']} {p['l2_mb']} {p['type']} {p['m']} {p['n']} {p['k']} {c}"
            for p in problems
            for c in p["configurations"]
        ]
        output = subprocess.run([program], input="\n".join(lines).encode(), stdout=subprocess.PIPE, check=True).stdout
        rows = numpy.frombuffer(output, numpy.float32).reshape(len(lines), 1 + FEATURES)
        zeros = numpy.array([rows_of_zeros(p, c) for p in problems for c in p["configurations"]], numpy.float32)
        self.predicted, self.features = rows[:, 0].astype(float), numpy.hstack([rows[:, 1:], zeros])
        fastest = numpy.minimum.reduceat(self.us, numpy.searchsorted(self.of, numpy.arange(len(problems))))
        self.weights = (fastest[self.of] / self.us) ** FASTEST_FIRST
        self.weights *= numpy.array([1 if p.get("before_176") else PRESENT for p in problems])[self.of]
        self.fold = numpy.array([zlib.crc32(str(p["m"]).encode()) for p in problems])

    def grow(self, chosen, options):
        model = lightgbm.LGBMRegressor(
            n_estimators=options.trees,
            num_leaves=options.leaves,
            learning_rate=options.rate,
            min_child_samples=30,
            subsample=0.8,
            subsample_freq=1,
            colsample_bytree=0.5,
            random_state=0,
            n_jobs=-1,
            verbose=-1,
        )
        residual = numpy.log(self.us / self.predicted)
        return model.fit(self.features[chosen], residual[chosen], sample_weight=self.weights[chosen])

    def report(self, name, predicted):
        """How the choice by `predicted` does."""
        for kind in sorted({p["type"] for p in self.problems}):
            lost, ratios, best, errors, ranks = [], [], [], [], []
            for number, problem in enumerate(self.problems):
                if problem["type"] == kind:
                    launches = numpy.flatnonzero(self.of == number)
                    us, chosen = self.us[launches], numpy.argmin(predicted[launches])
                    mine = us[chosen]
                    errors.append(abs(predicted[launches][chosen] / mine - 1))
                    ranks.append(1 + numpy.sum(us < mine))
                    lost.append(mine / us.min() - 1)
                    if "peer_us" in problem:
                        ratios.append(problem["peer_us"] / mine)
                        best.append(problem["peer_us"] / us.min())
            told = ""
            if ratios:
                mean, of_best = (numpy.exp(numpy.mean(numpy.log(r))) for r in (ratios, best))
                told = f" ratio to the peer {mean:.4f}, least {min(ratios):.3f}, {sum(r < 0.93 for r in ratios)} under 0.93; of the fastest {of_best:.4f};"
            print(
                f"{name:10} {kind}: {len(lost)} problems, lost {100 * numpy.mean(lost):.2f} % in the mean;{told}"
                f" median error of the prediction {100 * numpy.median(errors):.1f} %, rank {numpy.median(ranks):.0f}"
            )


def without_zeros(node):
    """The tree where the features beyond FEATURES are zero."""
    while node.get("split_feature", 0) >= FEATURES:
        node = node["left_child" if node["threshold"] >= 0 else "right_child"]
    if "split_index" in node:
        node |= {side: without_zeros(node[side]) for side in ("left_child", "right_child")}
    return node


def trees_of(model):
    """For each tree its splits, (feature, below, above, threshold), and its leaves. Children are numbered: the splits, then the leaves."""
    trees = []
    for tree in model.booster_.dump_model()["tree_info"]:
        splits, leaves, root = [], [], without_zeros(tree["tree_structure"])
        nodes = [root] if "split_index" in root else []
        for node in nodes:  # breadth first
            nodes += [node[side] for side in ("left_child", "right_child") if "split_index" in node[side]]
        number = {id(node): index for index, node in enumerate(nodes)}

        def child(node, number=number, leaves=leaves, nodes=nodes):
            if id(node) in number:
                return number[id(node)]
            leaves.append(round(node["leaf_value"] / LEAF_UNIT))
            return len(nodes) + len(leaves) - 1

        for node in nodes:
            splits.append((node["split_feature"], child(node["left_child"]), child(node["right_child"]), node["threshold"]))
        if not nodes:
            child(root)
        trees.append((splits, leaves))
    return trees


def wrapped(items):
    lines, line = [], "   "
    for item in items:
        if len(line) + len(item) + 2 > COLUMNS:
            lines.append(line)
            line = "   "
        line += f" {item},"
    return "\n".join([*lines, line])


def literal(number):
    text = f"{numpy.float32(number):.8g}"
    return text + ("F" if "." in text or "e" in text else ".0F")


def header(trees):
    # A threshold of the nearest float decides as the double does: features are floats, and a threshold lies between two of them.
    splits = [f"{{{f}, {below}, {above}, {literal(t)}}}" for s, _ in trees for f, below, above, t in s]
    return f"""#pragma once

// Grown by scripts/fit_gemm_times.py, which writes this file.

// clang-format off

#include <cstdint>

namespace tegula::device::trees {{

/// Of a tree: goes on at `below` where the feature is at most the threshold, else at `above`. These
/// count the tree's splits, then its leaves.
struct Split {{
  std::uint8_t feature, below, above;
  float threshold;
}};

inline constexpr double kLeafUnit = {LEAF_UNIT};  ///< of a leaf, of a logarithm

inline constexpr std::uint8_t kSplitsOfTree[] = {{
{wrapped(str(len(s)) for s, _ in trees)}
}};

inline constexpr Split kSplits[] = {{
{wrapped(splits)}
}};

inline constexpr std::int16_t kLeaves[] = {{
{wrapped(str(leaf) for _, leaves in trees for leaf in leaves)}
}};

}}  // namespace tegula::device::trees
"""


def main():
    options = arguments()
    times = Times([problem for path in options.times for problem in read(path)], options.features)
    print(f"{len(times.problems)} problems, {len(times.us)} launches")
    times.report("model", times.predicted)
    if options.folds > 0:
        predicted = times.predicted.copy()
        fold = (times.fold % options.folds)[times.of]
        for number in range(options.folds):
            held = fold == number
            if held.any():
                predicted[held] *= numpy.exp(times.grow(~held, options).predict(times.features[held]))
        times.report("corrected", predicted)
    if options.write:
        TREES.write_text(header(trees_of(times.grow(numpy.ones(len(times.us), bool), options))), encoding="utf-8")


if __name__ == "__main__":
    main()
