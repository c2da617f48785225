"""Layouts in NumPy, written without tegula: trees of extents and strides as Python tuples."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import numpy.typing as npt

Tree = Any  # an integer, or a tuple of trees


def leaves(tree: Tree) -> list[int]:
    return [tree] if isinstance(tree, int) else [leaf for branch in tree for leaf in leaves(branch)]


def values(shape: Tree, stride: Tree) -> npt.NDArray[np.int64]:
    """All offsets in colexicographic order: the first leaf is fastest."""
    offsets = np.zeros(1, dtype=np.int64)
    for extent, step in zip(leaves(shape), leaves(stride)):
        offsets = (np.arange(extent)[:, None] * step + offsets[None, :]).reshape(-1)
    return offsets


def swizzled(offsets: npt.NDArray[np.int64], bits: int, base: int, shift: int) -> npt.NDArray[np.int64]:
    """Sw<bits,base,shift> of each offset, for a positive shift: bits base+shift and up are XORed into base and up."""
    group = (offsets >> (base + shift)) & ((1 << bits) - 1)
    return offsets ^ (group << base)


def text(tree: Tree) -> str:
    return str(tree) if isinstance(tree, int) else "(" + ",".join(map(text, tree)) + ")"


def random_tree(random: random.Random, leaf: Any, depth: int = 2) -> Tree:
    if depth == 0 or random.random() < 0.4:
        return leaf()
    return tuple(random_tree(random, leaf, depth - 1) for _ in range(random.randint(1, 3)))


def like(tree: Tree, numbers: list[int]) -> Tree:
    """The numbers in the tree's form; takes them from the list."""
    return numbers.pop(0) if isinstance(tree, int) else tuple(like(branch, numbers) for branch in tree)


def random_layout(random: random.Random) -> tuple[Tree, Tree]:
    """A shape with strides; compact ones, in some order of the leaves, as often as any."""
    shape = random_tree(random, lambda: random.choice([1, 2, 2, 3, 4, 4, 8]))
    extents = leaves(shape)
    strides = [0] * len(extents)
    if random.random() < 0.5:
        step = 1
        for i in random.sample(range(len(extents)), len(extents)):
            strides[i], step = step, step * extents[i]
    else:
        strides = [random.choice([0, 1, 2, 3, 4, 8, 16]) for _ in extents]
    return shape, like(shape, strides)
