"""Beliefs on finitely many coordinates, Nyström or linear."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import ClassVar

import numpy as np

from laconic.arrays import Floats
from laconic.beliefs.contract import BeliefBase, View, column_squares, weighted
from laconic.beliefs.embeddings import Embedding, NystromEmbedding
from laconic.beliefs.precision import PRECISIONS, Precision
from laconic.beliefs.reading import expect_bounded, expect_shapes, expect_usable, length
from laconic.beliefs.sums import DOUBLE, SINGLE, Statistics, Sums, expect_sums
from laconic.canonical import known_parts
from laconic.errors import InputError, RemoteProtocolError
from laconic.kernels import Kernel, largest
from laconic.linalg import lower_cholesky, ridged, solve_lower, solve_lower_in_place


@dataclass(frozen=True, eq=False)
class FiniteBelief(BeliefBase):
    """Ridge regression on finitely many coordinates, Nyström or linear.

    With G + λI = LLᵀ and v(x) = L⁻¹z(x): μ = v·L⁻¹b, σ² = (k(x,x) − ‖z‖²)/λ + ‖v‖².

    Args:
        embedding: Map z of points to coordinates.
        lam: Ridge λ, above 0. Raising it trusts each observation less.
        statistics: Sums over the points learnt, in these coordinates.
    """

    bookkeeping: ClassVar[frozenset[str]] = frozenset({"totals"})

    embedding: Embedding
    lam: float
    statistics: Sums

    @classmethod
    def nystrom(cls, *, kernel: Kernel, dictionary: Floats, lam: float, dtype: str = "float64") -> FiniteBelief:
        """The belief before any data on a dictionary.

        Args:
            kernel: Kernel k of points.
            dictionary: Points S, (r, d), of full rank under the kernel; r may be 0.
            lam: Ridge λ, above 0.
            dtype: Precision of the coordinates, float64 or float32.
        """
        return cls.empty(embedding=NystromEmbedding(kernel=kernel, dictionary=dictionary, dtype=dtype), lam=lam)

    @classmethod
    def empty(cls, *, embedding: Embedding, lam: float) -> FiniteBelief:
        """The belief before any data.

        Args:
            embedding: Map z of points to coordinates.
            lam: Ridge λ, above 0.
        """
        return cls(embedding=embedding, lam=lam, statistics=Statistics.zeros(embedding.size))

    @property
    def dim(self) -> int:
        return self.embedding.dim

    @property
    def precision(self) -> Precision:
        return PRECISIONS[self.dtype]

    @property
    def dtype(self) -> str:
        """The precision of the coordinates."""
        return str(getattr(self.embedding, "dtype", "float64"))

    @property
    def parameters(self) -> dict[str, object]:
        own = known_parts(self.embedding, name="embedding")
        return {"belief": type(self.embedding).__name__, "dim": self.dim, **own, "lam": self.lam}

    @property
    def rank(self) -> int | None:
        return self.embedding.size

    @property
    def width(self) -> int:
        return self.embedding.size

    @property
    def dictionary_size(self) -> int | None:
        return self.embedding.size if isinstance(self.embedding, NystromEmbedding) else None

    @property
    def observations(self) -> int:
        """How many rewards the belief has learnt from."""
        return self.statistics.count

    @cached_property
    def factor(self) -> Floats:
        """L, lower triangular with LLᵀ = G + λI."""
        return lower_cholesky(ridged(self.statistics.gram, self.lam), ridge=self.lam)

    @cached_property
    def weights(self) -> Floats:
        """L⁻¹b."""
        return solve_lower(self.factor, self.statistics.moment)

    @cached_property
    def information(self) -> float:
        """ln det(I + G/λ) + (Σ k(x,x) − tr G)/λ, an upper bound of ln det(I + K/λ); exact for linear beliefs."""
        expressed = 2.0 * np.log(np.diagonal(self.factor)).sum() - self.embedding.size * np.log(self.lam)
        missed = max(self.statistics.prior - float(np.trace(self.statistics.gram)), 0.0) / self.lam
        return float(expressed) + missed

    def prior(self, X: Floats) -> Floats:
        return self.embedding.prior(X)

    def view(self, X: Floats) -> View:
        V = self.embedding.embed(X)
        residual = self.embedding.residual(self.embedding.prior(X), V) / self.lam
        solve_lower_in_place(self.factor, V)
        return View(points=X, features=V, mean=weighted(self.weights, V), signal=column_squares(V), residual=residual)

    def covariance(self, a: View, b: View) -> Floats:
        return a.features.T @ b.features

    def arrays(self) -> dict[str, Floats]:
        sums = self.statistics
        totals = np.array([sums.prior, sums.count, sums.squares], float)
        learnt = {"gram": sums.gram, "moment": sums.moment, "totals": totals}
        if isinstance(self.embedding, NystromEmbedding):
            learnt["dictionary"] = self.embedding.dictionary
        return learnt

    def from_arrays(self, arrays: dict[str, Floats]) -> FiniteBelief:
        rank = length(arrays, "moment")
        shapes: dict[str, tuple[int, ...]] = {"gram": (rank, rank), "moment": (rank,), "totals": (3,)}
        if isinstance(self.embedding, NystromEmbedding):
            shapes["dictionary"] = (rank, self.dim)
        elif rank != self.embedding.size:
            raise RemoteProtocolError(f"for another plan: {rank} coordinates instead of {self.embedding.size}")
        expect_shapes(arrays, shapes)
        belief = self._on(arrays["dictionary"]) if "dictionary" in arrays else self
        sums = Statistics.of_totals(arrays["gram"], arrays["moment"], arrays["totals"])
        belief._expect(sums)
        belief = belief.with_statistics(sums)
        if not belief.is_sound():
            raise RemoteProtocolError("a belief that overflows; rescale features and rewards to moderate sizes")
        return belief

    def _on(self, dictionary: Floats) -> FiniteBelief:
        """The belief on a dictionary that came from elsewhere."""
        expect_bounded({"dictionary": dictionary})
        belief = self.on_dictionary(dictionary)
        try:
            with np.errstate(all="ignore"):
                usable = np.isfinite(belief.embedding.embed(dictionary)).all()
        except InputError as error:
            raise RemoteProtocolError(f"for another plan, or damaged: {error}") from None
        if not usable:
            raise RemoteProtocolError(f"a dictionary of {len(dictionary)} points on which the kernel overflows")
        return belief

    def check_points(self, X: Floats) -> None:
        if isinstance(self.embedding, NystromEmbedding):
            expect_usable(self, self.embedding.kernel, X, dtype=self.dtype)
        else:
            super().check_points(X)

    def dictionary_kernel(self) -> Kernel:
        if not isinstance(self.embedding, NystromEmbedding):
            raise InputError(f"a dictionary needs a belief with a kernel, got one on {type(self.embedding).__name__}")
        return self.embedding.kernel

    def on_dictionary(self, points: Floats) -> FiniteBelief:
        return FiniteBelief.nystrom(kernel=self.dictionary_kernel(), dictionary=points, lam=self.lam, dtype=self.dtype)

    @property
    def coordinates(self) -> Embedding:
        return self.embedding

    def check_statistics(self, sums: Statistics) -> None:
        nystrom = isinstance(self.embedding, NystromEmbedding)
        self._expect(sums, most=largest(self.dictionary_kernel()) if nystrom else inf)

    def _expect(self, sums: Statistics, *, most: float = inf) -> None:
        """Refuse what cannot be sums; those of a belief may be over weighted points, of no known largest k(x, x)."""
        margins = SINGLE if self.dtype == "float32" else DOUBLE
        scale = self.embedding.scale if isinstance(self.embedding, NystromEmbedding) else 0.0
        expect_sums(sums, size=self.embedding.size, lam=self.lam, scale=scale, margins=margins, most=most)

    def with_statistics(self, sums: Statistics, *, added: bool = False) -> FiniteBelief:
        return replace(self, statistics=sums + self.statistics if added else sums)

    def knowing(self, *, factor: Floats, information: float | None = None) -> FiniteBelief:
        """The belief with what somebody has found out about it already.

        Args:
            factor: L, lower triangular with LLᵀ = G + λI.
            information: What `information` would compute; None: it is computed when it is asked for.
        """
        known = replace(self)
        vars(known)["factor"] = factor
        if information is not None:
            vars(known)["information"] = information
        return known

    def lighten(self, *, embedding: bool) -> None:
        """Let go of factors, which are made again should they be asked for.

        Args:
            embedding: True: those of the embedding too.
        """
        vars(self).pop("factor", None)
        if embedding and isinstance(self.embedding, NystromEmbedding):
            self.embedding.lighten()
