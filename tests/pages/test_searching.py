"""Pages of the documentation that are opened from a folder can search: a frame works where a worker may not."""

from __future__ import annotations

from pathlib import Path

from tests.pages.browsing import browsed, needs_browser

SHIM = Path(__file__).parents[2] / "docs" / "javascripts" / "iframe-worker.js"
PAGE = """<!doctype html><meta charset="utf-8"><script src="iframe-worker.js"></script><body>
<script>
const said = document.body.dataset;
const worker = new Worker("worker.js");
worker.addEventListener("message", ({ data }) => {
  said.answers = (said.answers ?? "") + data.answer + " ";
  if (data.answer === 9) worker.terminate();
  said.frames = document.querySelectorAll("iframe").length;
});
worker.postMessage({ asked: 2 });  // before the worker has been loaded
worker.postMessage({ asked: 3 });
</script>"""
WORKER = 'addEventListener("message", ({ data }) => postMessage({ answer: data.asked ** 2 }));'


@needs_browser
def test_a_frame_answers_as_a_worker_would_in_order_and_ends_when_told(tmp_path: Path) -> None:
    for name, text in {"page.html": PAGE, "worker.js": WORKER, SHIM.name: SHIM.read_text(encoding="utf-8")}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    page, console = browsed(tmp_path / "page.html", folder=tmp_path)
    assert 'data-answers="4 9 "' in page, console
    assert 'data-frames="0"' in page
    assert "CONSOLE" not in console
