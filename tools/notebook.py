"""Notebooks: run their cells in a kernel, keep what they show, and write them as pages of the site.

``python -m tools.notebook docs/tutorial.ipynb`` runs a notebook and keeps the new outputs in it. MkDocs loads this
file as a hook: every notebook in docs/ becomes a page, with the outputs and the figures that are kept in it. That
takes no Jupyter.
"""

from __future__ import annotations

import base64
import json
import re
import sys
from pathlib import Path
from typing import Any

PNG, HTML, TEXT = "image/png", "text/html", "text/plain"


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
    """Run all cells in a kernel of their own, as Jupyter does; what each of them shows, as a notebook keeps it."""
    import nbformat
    from nbclient import NotebookClient

    book = nbformat.reads(json.dumps(notebook), as_version=4)
    NotebookClient(book, timeout=None).execute()
    return [[_kept(output) for output in cell.outputs] for cell in book.cells if cell.cell_type == "code"]


def _kept(output: Any) -> dict[str, Any]:
    """An output with its text in lines, and without the number of the try in which it was made."""
    if output.output_type == "stream":
        return {"output_type": "stream", "name": output.name, "text": _lines(output.text)}
    data = {kind: text if kind == PNG else _lines(text) for kind, text in output.data.items()}
    return {"output_type": "display_data", "data": data, "metadata": {}}


def is_bar(output: dict[str, Any]) -> bool:
    """Whether an output is the bar of a comparison, which is of no use once that is done."""
    return "".join(output.get("data", {}).get(HTML, "")).startswith("<progress")


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
            cell["outputs"] = [each for each in outputs if not is_bar(each)]
        write(path, notebook)


if __name__ == "__main__":
    main(sys.argv[1:])
