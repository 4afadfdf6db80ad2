"""When two runs are the same."""

from __future__ import annotations

import numpy as np

from laconic.runtimes.trace import Run
from laconic.testing.wording import Subject, same, shown


def require_same_run(subject: Subject, other: Run, reference: Run, how: str) -> None:
    """Two runs with the same choices, syncs and counts."""
    different = np.flatnonzero(other.choices != reference.choices)
    if len(different):
        step = int(different[0])
        chosen, expected = other.choices[step], reference.choices[step]
        subject.claim(False, f"the choice of step {step + 1} is arm {chosen}, not {expected}, {how}")
    for name in ("sync_steps", "dictionary_sizes", "scalars_at_sync", "regrets"):
        a, b = getattr(other, name), getattr(reference, name)
        subject.claim(same(a, b), f"{name} is {shown(a)}, not {shown(b)}, {how}")
    for key in ("messages", "scalars", "bytes"):
        a, b = getattr(other, key), getattr(reference, key)
        subject.claim(a == b, f"{a} {key} are counted, not {b}, {how}")
    a, b = (run.ledger.by("epoch", "phase", "direction", "client") for run in (other, reference))
    subject.claim(a == b, f"the ledger's entries differ {how}")
