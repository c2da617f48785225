#!/usr/bin/env python3
"""Builds the layout playground: build_playground.py FOLDER [--test]

FOLDER gets the page of docs/playground and tegula.js, which holds the C++ code as WebAssembly: a static page that can be opened from
the disk. Needs Emscripten; with --test also Node, in which tests/playground is run. Exits 77, which CTest reads as skipped, without.
"""

import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SKIPPED = 77
SOURCES = ["src/playground/playground.cpp", *(f"src/tool/{name}.cpp" for name in ("atom_lookup", "calls", "drawing", "expression"))]
# Header-only here; the compiler has a C library of its own, so /usr/include itself is not for it.
HEADERS = ["fmt", "nlohmann"]
COMPILE = ["em++", "-std=c++20", "-O2", "-fexceptions", "-DFMT_HEADER_ONLY"]
LINK = [
    "-sMODULARIZE=1",
    "-sEXPORT_NAME=TegulaModule",
    "-sSINGLE_FILE=1",
    "-sENVIRONMENT=web,node",
    "-sEXPORTED_FUNCTIONS=_tegula_playground",
    "-sEXPORTED_RUNTIME_METHODS=cwrap",
    "-sALLOW_MEMORY_GROWTH=1",
    "-sINITIAL_MEMORY=33554432",
    "-sTOTAL_STACK=4194304",
]


def header_folder(folder):
    """A folder with the packages' headers alone."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in HEADERS:
        found = [path / name for path in (ROOT / ".deps/include", pathlib.Path("/usr/include"), pathlib.Path("/usr/local/include")) if (path / name).is_dir()]
        if not found:
            sys.exit(f"build_playground: the headers of {name} were not found in /usr/include, /usr/local/include or .deps/include")
        link = folder / name
        if not link.exists():
            link.symlink_to(found[0])
    return folder


def compile_one(source, folder, headers):
    target = folder / (pathlib.Path(source).stem + ".o")
    command = [*COMPILE, f"-I{headers}", f"-I{ROOT / 'include'}", f"-I{ROOT / 'src/tool'}", "-c", str(ROOT / source), "-o", str(target)]
    subprocess.run(command, check=True)
    return target


def main():
    folder = pathlib.Path(sys.argv[1]).resolve()
    tested = "--test" in sys.argv[2:]
    for program in ["em++", "node"] if tested else ["em++"]:
        if shutil.which(program) is None:
            print(f"build_playground: {program} was not found: install emscripten and nodejs")
            sys.exit(SKIPPED)
    objects = folder / "objects"
    headers = header_folder(objects / "headers")
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("JOBS", os.cpu_count() or 1))) as pool:
        compiled = list(pool.map(lambda source: compile_one(source, objects, headers), SOURCES))
    # Debian's Emscripten wants its Node modules also of a Node that is not Debian's.
    environment = {"NODE_PATH": "/usr/share/nodejs", **os.environ}
    subprocess.run([*COMPILE, *map(str, compiled), *LINK, "-o", str(folder / "tegula.js")], check=True, env=environment)
    for page in (ROOT / "docs/playground").iterdir():
        shutil.copy(page, folder)
    print(f"{folder / 'index.html'}: {(folder / 'tegula.js').stat().st_size / 1e6:.1f} MB of code", flush=True)
    if tested:
        subprocess.run(["node", str(ROOT / "tests/playground/answers_test.js"), str(folder)], check=True)


if __name__ == "__main__":
    main()
