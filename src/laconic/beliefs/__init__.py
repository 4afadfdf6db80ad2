"""Beliefs: what was agreed at the last sync, immutable and shared.

A belief says of any point x its mean, its variance and a feature column v(x) such that further points can be
conditioned on (see `laconic.tail`). Variances are in the paper's units, σ² = (posterior variance) / λ.

| symbol | name here |
|---|---|
| K_DD + λI = LLᵀ | `ExactBelief.factor` |
| v(x) = L⁻¹k_D(x), L⁻¹z(x) | `View.features` |
| z(x) = L_S⁻¹k_S(x) | `NystromEmbedding.embed` |
| G = ZᵀZ, b = Zᵀy | `Statistics.gram`, `Statistics.moment` |
"""

from laconic.beliefs.contract import Belief, BeliefBase, View, chunks, variances
from laconic.beliefs.embeddings import BlankEmbedding, Embedding, LinearEmbedding, NystromEmbedding
from laconic.beliefs.exact import SLACK, SMALL_FACTOR, ExactBelief
from laconic.beliefs.finite import FiniteBelief
from laconic.beliefs.hashing import belief_hash
from laconic.beliefs.precision import PRECISIONS, Precision, require_moderate, require_moderate_rewards
from laconic.beliefs.reading import expect_bounded, expect_moderate, expect_shapes, whole
from laconic.beliefs.sums import Statistics

__all__ = [
    "PRECISIONS",
    "SLACK",
    "SMALL_FACTOR",
    "Belief",
    "BeliefBase",
    "BlankEmbedding",
    "Embedding",
    "ExactBelief",
    "FiniteBelief",
    "LinearEmbedding",
    "NystromEmbedding",
    "Precision",
    "Statistics",
    "View",
    "belief_hash",
    "chunks",
    "expect_bounded",
    "expect_moderate",
    "expect_shapes",
    "require_moderate",
    "require_moderate_rewards",
    "variances",
    "whole",
]
