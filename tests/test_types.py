"""What the README and the docs promise of types: mypy accepts it, and refuses what is no kernel."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
KERNELS = """
import numpy as np

from laconic import ApproxDisKernelUCB, DisKernelUCB, Gaussian, LaconicUCB, compare, frontier, grid, run
from laconic.arrays import Floats


def cubic(X: Floats, Y: Floats) -> Floats:
    return np.asarray((1.0 + X @ Y.T) ** 3)


def loose(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    return np.asarray(X @ Y.T)


class Waves:
    def __call__(self, X: Floats, Y: Floats, /) -> Floats:
        return np.asarray(np.cos(X @ Y.T))


def main() -> None:
    results = compare(
        [DisKernelUCB(cubic), ApproxDisKernelUCB(Waves()), LaconicUCB(loose), DisKernelUCB(Gaussian(grid(1, 2)))],
        problem="cosine", clients=2, rounds=2, seeds=1, jobs=2, out="here",
    )
    print(results.tuned("regret"), results.to_pandas(), frontier("cosine", kernel=cubic))
    print(run(DisKernelUCB(lambda X, Y: X @ Y.T), "cosine", clients=2, rounds=2).regret)
"""
NO_KERNEL = """
from laconic import DisKernelUCB

DisKernelUCB(3.0)
"""


def checked(text: str, folder: Path) -> tuple[int, str]:
    """What mypy says of a file with this text, as strict as it is with our own; its cache is that of ``make types``."""
    (folder / "snippet.py").write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), str(folder / "snippet.py")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def readme() -> str:
    """All Python of the README, as one file."""
    return "\n".join(
        re.findall(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(encoding="utf-8"), re.M | re.S)
    )


def test_a_callable_kernel_and_all_that_the_readme_does_pass_mypy(tmp_path: Path) -> None:
    code, said = checked(f"{readme()}\n{KERNELS}", tmp_path)
    assert code == 0, said


def test_a_number_is_no_kernel_to_mypy(tmp_path: Path) -> None:
    code, said = checked(NO_KERNEL, tmp_path)
    assert code == 1
    assert 'incompatible type "float"' in said
