"""One belief from another: on a new dictionary, or from saved arrays."""

from __future__ import annotations

from dataclasses import replace

from laconic.arrays import Floats
from laconic.beliefs.base import Belief
from laconic.beliefs.embeddings import NystromEmbedding
from laconic.beliefs.exact import ExactBelief
from laconic.beliefs.finite import FiniteBelief, Statistics
from laconic.errors import InputError


def with_dictionary(belief: Belief, dictionary: Floats) -> FiniteBelief:
    """A Nyström belief without data on a new dictionary, with the kernel and λ of the old belief."""
    if isinstance(belief, FiniteBelief) and isinstance(belief.embedding, NystromEmbedding):
        kernel, dtype = belief.embedding.kernel, belief.embedding.dtype
    elif isinstance(belief, ExactBelief):  # a cold start on exact local models
        kernel, dtype = belief.kernel, belief.factor.dtype.name
    else:
        raise InputError(f"a dictionary needs a belief with a kernel, got {type(belief).__name__}")
    embedding = NystromEmbedding(kernel=kernel, dictionary=dictionary, dtype=dtype)
    return FiniteBelief.empty(embedding=embedding, lam=belief.lam)


def restored(template: Belief, arrays: dict[str, Floats]) -> Belief:
    """The belief of which `arrays` were taken, with the kernel and λ of a belief of the same plan."""
    if "dictionary" in arrays:
        template = with_dictionary(template, arrays["dictionary"])
    if isinstance(template, ExactBelief):
        return template.regrown(arrays)
    if isinstance(template, FiniteBelief):
        prior, count = arrays["totals"]
        statistics = Statistics(gram=arrays["gram"], moment=arrays["moment"], prior=float(prior), count=int(count))
        return replace(template, statistics=statistics)
    raise InputError(f"cannot restore a belief of type {type(template).__name__}")
