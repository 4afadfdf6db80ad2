"""Embeddings: points as finitely many coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from laconic.arrays import Floats, set_apart
from laconic.beliefs.contract import column_squares
from laconic.kernels import Kernel
from laconic.linalg import lower_cholesky, solve_lower_in_place


class Embedding(Protocol):
    """A map of points to finitely many coordinates."""

    @property
    def dim(self) -> int:
        """The number of features of a point."""
        ...

    @property
    def size(self) -> int:
        """The number of coordinates."""
        ...

    def embed(self, X: Floats) -> Floats:
        """The coordinates of the rows of X, a column each, in a new array that its reader may change.

        Args:
            X: Points, (m, d), finite; the result is (r, m).
        """
        ...

    def prior(self, X: Floats) -> Floats:
        """k(x, x) of the rows of X, at least ‖z(x)‖².

        Args:
            X: Points, (m, d), finite; the result is (m,).
        """
        ...

    def residual(self, prior: Floats, Z: Floats) -> Floats:
        """The part of k(x, x) that the coordinates do not express, at least 0.

        Args:
            prior: What `prior` gave for some points, (m,).
            Z: What `embed` gave for them, (r, m); the result is (m,).
        """
        ...


@dataclass(frozen=True, eq=False)
class NystromEmbedding:
    """z(x) = L_S⁻¹k_S(x) with L_S the Cholesky root of K_SS for a dictionary S of full rank.

    Args:
        kernel: Kernel k of points.
        dictionary: Points S, (r, d), of full rank under the kernel, as `laconic.leverage.full_rank` thins them.
        dtype: Precision of the coordinates, float64 or float32. float32 is quicker and less exact.
    """

    kernel: Kernel
    dictionary: Floats
    dtype: str = "float64"

    @property
    def dim(self) -> int:
        return int(self.dictionary.shape[1])

    @property
    def size(self) -> int:
        return len(self.dictionary)

    @cached_property
    def root(self) -> Floats:
        """L_S, lower triangular with L_S L_Sᵀ = K_SS."""
        return set_apart(lower_cholesky(self.kernel(self.dictionary, self.dictionary)))

    @cached_property
    def scale(self) -> float:
        """The largest k(x, x) of the dictionary, to which the rounding of coordinates is relative."""
        return float(np.max(self.kernel.diag(self.dictionary), initial=0.0))

    def lighten(self) -> None:
        """Let go of L_S, which is made again should it be asked for."""
        vars(self).pop("root", None)

    def embed(self, X: Floats) -> Floats:
        if len(self.dictionary) == 0:  # before the first sync, at every observation
            return np.empty((0, len(X)), dtype=self.dtype)
        Z = self.kernel(self.dictionary, X).astype(self.dtype, copy=False)
        solve_lower_in_place(self.root, Z)
        return Z

    def prior(self, X: Floats) -> Floats:
        return np.asarray(self.kernel.diag(X))

    def residual(self, prior: Floats, Z: Floats) -> Floats:
        return np.asarray(np.maximum(prior - column_squares(Z), 0.0))


@dataclass(frozen=True)
class LinearEmbedding:
    """z(x) = x."""

    dim: int

    @property
    def size(self) -> int:
        return self.dim

    def embed(self, X: Floats) -> Floats:
        return np.array(X.T, order="C")

    def prior(self, X: Floats) -> Floats:
        return np.asarray(np.einsum("ij,ij->i", X, X))

    def residual(self, prior: Floats, Z: Floats) -> Floats:
        return np.zeros(Z.shape[1])


@dataclass(frozen=True)
class BlankEmbedding:
    """No coordinates and no variance: every arm ties with every other."""

    dim: int

    @property
    def size(self) -> int:
        return 0

    def embed(self, X: Floats) -> Floats:
        return np.empty((0, len(X)))

    def prior(self, X: Floats) -> Floats:
        return np.zeros(len(X))

    def residual(self, prior: Floats, Z: Floats) -> Floats:
        return np.zeros(Z.shape[1])
