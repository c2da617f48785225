#!/usr/bin/env python3
"""Holds the headers to the project's layers: check_includes.py [ROOT]

Imports point one way: layout and numeric stand alone (the standard library and each other's kind only), then atom, sim and arch, tensor,
pipeline, kernel, device. No header up to kernel includes one of CUDA's. Every header says `#pragma once`, opens no namespace to
all comers, and defines no macro but TEGULA_*. The specs of instructions include next to nothing, and nobody but the catalogue
knows names: kernels are to parse neither. A call of refuse() holds operation and reason on its first line, the one that a compiler
prints. Prints one line a fault and exits 1 if there is any.
"""

import pathlib
import re
import sys

RANKS = {"layout": 0, "numeric": 0, "io": 1, "atom": 1, "sim": 2, "arch": 2, "tensor": 3, "pipeline": 5, "kernel": 6, "device": 7}
STAND_ALONE = {"layout": {"layout"}, "numeric": {"numeric"}}
NO_CUDA_UP_TO = RANKS["kernel"]
SPECS = {"tegula/atom/mma_spec.hpp", "tegula/atom/copy_spec.hpp"}
FOR_SPECS = {"cstdint", "tegula/layout/refuse.hpp", "tegula/macros.hpp", "tegula/numeric/dtype.hpp"}
CATALOGUE = {"tegula/atom/catalogue.hpp", "tegula/atom/name.hpp"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
STANDARD_HEADER = re.compile(r"[a-z_0-9]+")
CUDA_HEADER = re.compile(r"cuda|cooperative_groups|cub/|thrust/|mma\.h|device_launch")


def layer_of(path):
    """The layer of a header written as tegula/LAYER/..., or None for those beside the layers (macros.hpp)."""
    parts = path.split("/")
    return parts[1] if len(parts) > 2 else None


def faults_of_include(layer, quote, target):
    if target.startswith("tegula/"):
        other = layer_of(target)
        if other is None:
            return
        if other not in RANKS:
            yield f"includes {target}, whose folder is no layer"
        elif layer in STAND_ALONE and other not in STAND_ALONE[layer]:
            yield f"includes {target}: {layer}/ stands alone"
        elif RANKS[other] > RANKS[layer]:
            yield f"includes {target}: imports point from {other}/ to {layer}/, not back"
        return
    if quote == '"':
        yield f'includes "{target}": headers are named from include/ ("tegula/...")'
    if CUDA_HEADER.match(target) and RANKS[layer] <= NO_CUDA_UP_TO:
        yield f"includes CUDA's {target}"
    elif layer in STAND_ALONE and not STANDARD_HEADER.fullmatch(target):
        yield f"includes <{target}>: {layer}/ needs nothing but the standard library"


def faults_of_header(path, text):
    layer = layer_of(path)
    if "#pragma once" not in text:
        yield "lacks #pragma once"
    for name in re.findall(r"^\s*#\s*define\s+(\w+)", text, re.MULTILINE):
        if not name.startswith("TEGULA_"):
            yield f"defines the macro {name}"
    if re.search(r"^using namespace", text, re.MULTILINE):
        yield "opens a namespace to everyone who includes it"
    for line in re.findall(r'^.*\brefuse\((?:"[^"]*",|\w+,)?$', text, re.MULTILINE):
        yield f"splits a refusal, so that compilers would not print its reason: {line.strip()}"
    if layer is None:
        return
    if layer not in RANKS:
        yield f"lies in {layer}/, which is no layer"
        return
    for quote, target in INCLUDE.findall(text):
        if path in SPECS and target not in FOR_SPECS:
            yield f"includes {target}: the specs of instructions are to cost nothing to parse"
        if path not in CATALOGUE and (target in CATALOGUE or (layer == "atom" and target in {"string", "string_view"})):
            yield f"includes {target}: names of instructions are the catalogue's"
        yield from faults_of_include(layer, quote, target)


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".") / "include"
    headers = sorted(root.rglob("*.hpp"))
    wrong = 0
    for header in headers:
        path = header.relative_to(root).as_posix()
        for fault in faults_of_header(path, header.read_text(encoding="utf-8")):
            print(f"include/{path}: {fault}")
            wrong += 1
    print(f"{len(headers)} headers, {wrong} faults")
    return 1 if wrong or not headers else 0


if __name__ == "__main__":
    sys.exit(main())
