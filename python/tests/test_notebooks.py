"""The notebooks of examples/notebooks, executed: what they print is what they say.

    python3 test_notebooks.py       writes them anew, with what they print now
"""

from __future__ import annotations

import pathlib
from typing import Any

import pytest

HERE = pathlib.Path(__file__).resolve().parent
# Beside the tests where these run outside of a checkout.
FOLDER = next(folder for folder in (HERE / "notebooks", HERE.parent.parent / "examples/notebooks") if folder.is_dir())
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
# Of what a cell shows: the text, and drawings where they are small.
FORMS = ("text/plain", "image/svg+xml")
MOST_BYTES = 20_000


def text_of(lines: Any) -> str:
    return "".join(lines) if isinstance(lines, list) else str(lines)


def kept(output: dict[str, Any]) -> dict[str, Any]:
    """An output without what a file need not have."""
    if "data" in output:
        data = {form: output["data"][form] for form in FORMS if form in output["data"]}
        if len(text_of(data.get("image/svg+xml", ""))) > MOST_BYTES:
            del data["image/svg+xml"]
        return {**output, "data": data}
    return output


def said(notebook: Any) -> list[str]:
    """What each cell printed and showed, without drawings."""
    return [
        "".join(text_of(output.get("text", output.get("data", {}).get("text/plain", ""))) for output in cell.get("outputs", []))
        for cell in notebook.cells
    ]


def executed(path: pathlib.Path) -> tuple[Any, Any]:
    """A notebook as it is, and as it is when it is executed here."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    written, run = (nbformat.read(path, as_version=4) for _ in range(2))
    nbclient.NotebookClient(run, timeout=120, record_timing=False).execute()
    for cell in run.cells:
        if "outputs" in cell:
            cell["outputs"] = [nbformat.from_dict(kept(output)) for output in cell["outputs"]]
    run["metadata"] = written["metadata"]
    return written, run


@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
@pytest.mark.usefixtures("compiler")
def test_a_notebook_stays_true(path: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    written, run = executed(path)
    assert said(run) == said(written), f"{path.name} prints something else now: where that is right, write it anew by python3 {__file__}"


def main() -> None:
    nbformat: Any = pytest.importorskip("nbformat")
    for path in NOTEBOOKS:
        nbformat.write(executed(path)[1], path)
        print(path)


if __name__ == "__main__":
    main()
