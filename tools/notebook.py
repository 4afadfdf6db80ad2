"""Notebooks without Jupyter: run their cells, keep what they show, and write them as pages of the site.

``python -m tools.notebook docs/tutorial.ipynb`` runs a notebook and keeps the new outputs in it. MkDocs loads this
file as a hook: every notebook in docs/ becomes a page, with the outputs and the figures that are kept in it.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import re
import sys
from pathlib import Path
from typing import Any

PNG, TEXT = "image/png", "text/plain"


def read(path: Path) -> dict[str, Any]:
    """The notebook in a file."""
    notebook: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return notebook


def write(path: Path, notebook: dict[str, Any]) -> None:
    """Write a notebook as Jupyter does."""
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def code_cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    """The cells that hold code."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def run(notebook: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """Run all cells in one namespace; what each of them shows, as a notebook keeps it."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    return [_shown("".join(cell["source"]), namespace) for cell in code_cells(notebook)]


def _shown(source: str, namespace: dict[str, Any]) -> list[dict[str, Any]]:
    """What one cell prints, and what its last expression gives."""
    body = ast.parse(source).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(ast.Module(body, type_ignores=[]), "cell", "exec"), namespace)
        value = None
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), namespace)
    stream = [{"output_type": "stream", "name": "stdout", "text": _lines(printed.getvalue())}]
    return [*(stream if printed.getvalue() else []), *([] if value is None else [_displayed(value)])]


def _displayed(value: Any) -> dict[str, Any]:
    from matplotlib.figure import Figure

    data: dict[str, Any] = {TEXT: _lines(repr(value))}
    if isinstance(value, Figure):
        file = io.BytesIO()
        value.savefig(file, format="png", dpi=72, metadata={"Software": None})
        data = {PNG: base64.b64encode(file.getvalue()).decode(), TEXT: ["<Figure>"]}
    return {"output_type": "display_data", "data": data, "metadata": {}}


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def text_of(outputs: list[dict[str, Any]]) -> str:
    """What outputs say in words."""
    texts = ("".join(each["text"] if "text" in each else each["data"][TEXT]) for each in outputs)
    return "\n".join(text.rstrip() for text in texts)


def figures_of(outputs: list[dict[str, Any]]) -> list[bytes]:
    """The figures among outputs, as PNG."""
    return [base64.b64decode("".join(each["data"][PNG])) for each in outputs if PNG in each.get("data", ())]


def as_page(notebook: dict[str, Any], *, name: str) -> tuple[str, dict[str, bytes]]:
    """The notebook as Markdown, and its figures by file name."""
    parts: list[str] = []
    figures: dict[str, bytes] = {}
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] != "code":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        words = [each for each in cell["outputs"] if PNG not in each.get("data", ())]
        if words:
            parts.append(f"```text\n{text_of(words)}\n```")
        for figure in figures_of(cell["outputs"]):
            file = f"{name}-{len(figures) + 1}.png"
            figures[file] = figure
            parts.append(f"![{cell['metadata'].get('alt', '')}]({file})")
    return "\n\n".join(parts) + "\n", figures


# Hooks of MkDocs


def on_files(files: Any, config: Any) -> Any:
    """Add a page, and its figures, for every notebook."""
    from mkdocs.structure.files import File

    for path in sorted(Path(config.docs_dir).glob("*.ipynb")):
        text, figures = as_page(read(path), name=path.stem)
        for name, content in {f"{path.stem}.md": text, **figures}.items():
            files.append(File.generated(config, name, content=content))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Let links to notebooks, which stand so for whoever reads the files, lead to their pages."""
    return re.sub(r"\]\(([\w-]+)\.ipynb\)", r"](\1.md)", markdown)


def main(paths: list[str]) -> None:
    """Run notebooks and keep what they show."""
    for path in map(Path, paths):
        notebook = read(path)
        for cell, outputs in zip(code_cells(notebook), run(notebook), strict=True):
            cell["outputs"] = outputs
        write(path, notebook)


if __name__ == "__main__":
    main(sys.argv[1:])
