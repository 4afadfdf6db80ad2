"""Cholesky factors that grow by rows, and the pivoted one that thins a dictionary.

Nothing here inverts a matrix or takes a determinant.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import blas, lapack

from laconic.arrays import Floats, apart
from laconic.errors import KernelError

#: Rows of a block: large enough for level-3 BLAS, small enough that the unfilled part of the last block is cheap.
LARGE_BLOCK = 256
#: For a factor in single precision, which only many columns at a time are solved with.
SINGLE_BLOCK = 512
#: A triangular matrix is inverted this many rows at a time.
INVERTED_ROWS = 96
#: For factors of which there are many, each short.
SMALL_BLOCK = 16
#: Such factors get larger blocks as they grow, up to this.
DOUBLED_UP_TO = 64
DOUBLE: np.dtype[Any] = np.dtype(np.float64)
SINGLE: np.dtype[Any] = np.dtype(np.float32)
#: Rounding may push a pivot of a positive definite matrix this far below zero, relative to its own diagonal entry.
JITTERS = (1e-15, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10, 1e-9)
#: What is added to make up for rounding is at most this part of a ridge, or it would stand in for it.
NEGLIGIBLE = 1e-3


def lower_cholesky(A: Floats, *, scale: Floats | None = None, ridge: float = math.inf) -> Floats:
    """L with LLᵀ = A, allowing for rounding: a pivot lost to it is lifted by at most 1e-9 of its diagonal entry.

    ``scale`` is the diagonal that A was computed from, where cancellation may have left less. Where A holds a
    ``ridge``, a lift that is not small beside it is refused.
    """
    upper, failed = lapack.dpotrf(A.T, lower=0, clean=1)  # column-major, so that L is C-ordered
    return np.ascontiguousarray(upper.T) if not failed else _lifted_cholesky(A, scale, ridge)


def _lifted_cholesky(A: Floats, scale: Floats | None, ridge: float) -> Floats:
    if not np.isfinite(A).all():
        raise KernelError("a kernel matrix overflows; rescale features and rewards to moderate sizes")
    diagonal = np.maximum(np.diagonal(A), 0.0 if scale is None else scale)
    largest = float(diagonal.max())
    diagonal = np.where(diagonal > 0.0, diagonal, largest)  # a row of zeros has no size of its own
    for jitter in JITTERS:
        if jitter * len(A) * largest > NEGLIGIBLE * ridge:
            raise KernelError(
                f"a ridge of {ridge:.3g} is lost in the rounding of a {len(A)} by {len(A)} matrix with entries up to "
                f"{largest:.3g}; try a larger lam, or rescale features"
            )
        upper, failed = lapack.dpotrf((A + np.diag(jitter * len(A) * diagonal)).T, lower=0, clean=1)
        if not failed:
            return np.ascontiguousarray(upper.T)
    raise KernelError(
        "a kernel matrix is not positive definite beyond rounding; use a positive definite kernel or a larger lam"
    )


def ridged(A: Floats, lam: float) -> Floats:
    """A + λI."""
    found = np.array(A, dtype=np.float64)
    found.flat[:: len(A) + 1] += lam
    return found


def reversed_cholesky(A: Floats, *, scale: float = 0.0) -> Floats:
    """A lower triangular C with CᵀC = A: the factor from the last row on; see `lower_cholesky`.

    Of A only what is on and above the diagonal is looked at.
    """
    backwards = lower_cholesky(np.ascontiguousarray(A[::-1, ::-1]), scale=np.full(len(A), scale))
    return np.asarray(backwards.T[::-1, ::-1])


def solve_lower(L: Floats, B: Floats) -> Floats:
    """L⁻¹B for a lower triangular L."""
    solved = np.array(B, dtype=np.float64, order="C")
    solve_lower_in_place(L, solved[:, None] if B.ndim == 1 else solved)
    return solved


def solve_identity(L: Floats) -> Floats:
    """L⁻¹ for a lower triangular L: for many right-hand sides a product with it is twice as fast as a solve.

    Some rows at a time, as products with what is known of L⁻¹ take half as long as what LAPACK does with all of L.
    """
    solved = np.zeros(L.shape)
    for first in range(0, len(L), INVERTED_ROWS):
        rows = slice(first, first + INVERTED_ROWS)
        corner = lapack.dtrtri(L[rows, rows].T, lower=0)[0].T
        solved[rows, rows] = corner
        if first:
            np.matmul(-corner, L[rows, :first] @ solved[:first, :first], out=solved[rows, :first])
    return solved


def lower_gram(L: Floats) -> Floats:
    """LᵀL for a lower triangular L, on and above the diagonal only, in a third of a product's operations."""
    return np.asarray(lapack.dlauum(L.T, lower=0)[0]) if L.size else L.copy()


def reversed_outer(L: Floats) -> Floats:
    """LLᵀ for a lower triangular L, rows and columns from the last on, on and above the diagonal only.

    Backwards L is upper triangular, so that this too takes a third of a product's operations.
    """
    backwards = np.array(L[::-1, ::-1], order="F")
    return np.asarray(lapack.dlauum(backwards, lower=0, overwrite_c=1)[0]) if L.size else backwards


def add_gram(C: Floats, A: Floats) -> Floats:
    """C + AAᵀ on and above the diagonal, where C lies if it is in columns."""
    if A.size == 0:
        return C
    transposed = A.flags.c_contiguous
    return np.asarray(blas.dsyrk(1.0, A.T if transposed else A, beta=1.0, c=C, trans=int(transposed), overwrite_c=1))


def solve_lower_in_place(L: Floats, B: Floats, *, transposed: bool = False) -> None:
    """Turn B into L⁻¹B where it lies, or into L⁻ᵀB.

    A C-ordered B is, transposed, what BLAS calls column-major: XLᵀ = Bᵀ is solved there without a copy. One column
    by itself is solved as a vector, four times as fast.
    """
    if B.size == 0:
        return
    if B.shape[1] == 1:
        trsv = blas.strsv if B.dtype == np.float32 else blas.dtrsv
        B[:, 0] = trsv(L.T, B[:, 0], lower=0, trans=0 if transposed else 1, overwrite_x=1)
        return
    trsm = blas.strsm if B.dtype == np.float32 else blas.dtrsm
    solved = trsm(1.0, L.T, B.T, side=1, lower=0, trans_a=1 if transposed else 0, overwrite_b=1)
    if not np.may_share_memory(solved, B):
        B[:] = solved.T


def solve_transposed(L: Floats, B: Floats) -> Floats:
    """L⁻ᵀB for a lower triangular L."""
    return np.asarray(blas.dtrsm(1.0, L.T, B, side=0, lower=0)) if B.size else B.copy()


def lower_product(L: Floats, B: Floats) -> Floats:
    """LB for a lower triangular L, by the BLAS library that also solves; one column by itself as a vector."""
    if B.shape[1] == 1 and L.size:
        left, transposed = (L.T, 1) if L.flags.c_contiguous else (L, 0)
        return np.asarray(blas.dtrmv(left, B[:, 0], lower=1 - transposed, trans=transposed))[:, None]
    if not L.flags.c_contiguous:  # in columns, as `paired` has it
        return np.asarray(blas.dtrmm(1.0, L, B, side=0, lower=1))
    if B.flags.c_contiguous:  # column-major, as BLAS has it, this is BᵀLᵀ
        return np.asarray(blas.dtrmm(1.0, L.T, B.T, side=1, lower=0).T)
    return np.asarray(blas.dtrmm(1.0, L.T, B, side=0, lower=0, trans_a=1))


def paired(A: Floats, B: Floats) -> tuple[Floats, Floats]:
    """Two lower triangular matrices in the memory of one, A in rows and B in columns.

    Solves and products look at nothing above a diagonal, where each has what is left of the other.
    """
    size, lower = len(A), np.tri(len(A), dtype=np.bool_)
    both = apart(size + 1, size)
    rows, columns = both[1:], both[:size].T
    np.copyto(rows, A, where=lower)
    np.copyto(columns, B, where=lower)
    return rows, columns


def product_with_lower(B: Floats, L: Floats) -> Floats:
    """BL for a lower triangular L, quickest where B is C-ordered."""
    return np.asarray(blas.dtrmm(1.0, L.T, B.T, side=0, lower=0).T)


def subtract_product(C: Floats, A: Floats, B: Floats) -> None:
    """C −= AB where C lies, by the BLAS library that also solves (see `laconic.runtimes.threads`).

    One column by itself is multiplied as a vector, three to four times as fast.
    """
    if C.size == 0 or len(B) == 0:
        return
    if C.shape[1] == 1 and len(C) > 1:
        _subtract_vector(C[:, 0], A, B[:, 0])
        return
    gemm = blas.sgemm if C.dtype == np.float32 else blas.dgemm
    # Column-major, as BLAS has it, this is Cᵀ −= BᵀAᵀ; a transposed A is passed as it lies.
    right, transposed = (A, 1) if A.flags.f_contiguous else (A.T, 0)
    done = gemm(-1.0, B.T, right, beta=1.0, c=C.T, trans_b=transposed, overwrite_c=1)
    if not np.may_share_memory(done, C):
        C[:] = done.T


def _subtract_vector(c: Floats, A: Floats, b: Floats) -> None:
    """c −= Ab where c lies."""
    gemv = blas.sgemv if c.dtype == np.float32 else blas.dgemv
    left, transposed = (A, 0) if A.flags.f_contiguous else (A.T, 1)
    done = gemv(-1.0, left, b, beta=1.0, y=c, trans=transposed, overwrite_y=1)
    if not np.may_share_memory(done, c):
        c[:] = done


def subtract_gram(C: Floats, A: Floats) -> None:
    """C −= AAᵀ where C lies, on and below the diagonal only, which is half a product."""
    if A.size == 0:
        return
    # Column-major, as BLAS has it, a C-ordered A is Aᵀ, and what is below the diagonal of C lies above that of Cᵀ.
    done = blas.dsyrk(-1.0, A.T, beta=1.0, c=C.T, trans=1, lower=0, overwrite_c=1)
    if not np.may_share_memory(done, C):
        C[:] = done.T


class _Block:
    """Some rows of a lower triangular factor: a panel left of the diagonal and the diagonal part.

    Rows are only ever appended, so factors of different sizes share one block; ``filled`` says who may append.
    """

    __slots__ = ("diagonal", "filled", "panel", "start", "trace")

    def __init__(self, start: int, rows: int, dtype: np.dtype[Any]) -> None:
        self.start = start
        self.filled = 0
        self.trace = 0.0  # of a full block
        self.panel: Floats = np.empty((rows, start), dtype=dtype)
        self.diagonal: Floats = np.zeros((rows, rows), dtype=dtype)

    @classmethod
    def whole(cls, L: Floats) -> _Block:
        """The first block of a factor, full, without a copy."""
        block = cls.__new__(cls)
        block.start, block.filled, block.panel, block.diagonal = 0, len(L), np.empty((len(L), 0), L.dtype), L
        block.trace = float(L.trace())
        return block

    @property
    def capacity(self) -> int:
        """How many rows there is room for."""
        return len(self.panel)

    def copy(self, rows: int) -> _Block:
        """A block of its own with the first ``rows`` rows."""
        twin = _Block(self.start, len(self.panel), self.panel.dtype)
        twin.panel[:rows] = self.panel[:rows]
        twin.diagonal[:rows] = self.diagonal[:rows]
        twin.filled, twin.trace = rows, self.trace
        return twin

    def rows(self, first: int, last: int) -> Floats:
        """Rows ``first`` … ``last`` of this block, each up to the diagonal entry of the last one."""
        return np.concatenate([self.panel[first:last], self.diagonal[first:last, :last]], axis=1)

    def append(self, rows: Floats) -> None:
        """Take over rows of the factor, each given up to and including its diagonal entry."""
        first, last = self.filled, self.filled + len(rows)
        self.panel[first:last] = rows[:, : self.start]
        self.diagonal[first:last, :last] = rows[:, self.start :]
        self.filled = last
        if last == self.capacity:
            self.trace = float(self.diagonal.trace())

    def solve(self, V: Floats, *, first: int, last: int) -> None:
        """Forward substitution of this block's rows ``first`` … ``last`` on V, in place; V is solved above them."""
        part = V[self.start + first : self.start + last]
        if self.start:
            subtract_product(part, self.panel[first:last], V[: self.start])
        if first:
            subtract_product(part, self.diagonal[first:last, :first], V[self.start : self.start + first])
        solve_lower_in_place(self.diagonal[first:last, first:last], part)

    def solve_transposed(self, V: Floats, *, rows: int) -> None:
        """Backward substitution of this block's first ``rows`` rows on V, in place; V is solved below them."""
        part = V[self.start : self.start + rows]
        solve_lower_in_place(self.diagonal[:rows, :rows], part, transposed=True)
        subtract_product(V[: self.start], self.panel[:rows].T, part)


@dataclass(frozen=True, eq=False)
class GrowingFactor:
    """A lower Cholesky factor that grows by rows; an older, smaller one stays valid and shares the memory."""

    size: int = 0
    blocks: tuple[_Block, ...] = ()
    block_rows: int = LARGE_BLOCK
    dtype: np.dtype[Any] = DOUBLE

    @classmethod
    def of(cls, L: Floats, *, dtype: np.dtype[Any] = DOUBLE) -> GrowingFactor:
        """The factor that is L, of at most `LARGE_BLOCK` rows."""
        if len(L) >= SMALL_BLOCK and L.dtype == dtype:
            block = _Block.whole(L)
        else:
            block = _Block(0, max(len(L), SMALL_BLOCK), dtype)
            block.append(L)
        return cls(size=len(L), blocks=(block,), dtype=dtype)

    def solve(self, B: Floats, *, done: int = 0) -> Floats:
        """L⁻¹B in place of B, of whose rows the first ``done`` are solved already; B may have the first rows only."""
        for block in self.blocks:  # as `_between` has them, without a list: small factors are solved most often
            first, last = max(done - block.start, 0), min(block.capacity, len(B) - block.start)
            if first < last:
                block.solve(B, first=first, last=last)
        return B

    def solve_transposed(self, B: Floats) -> Floats:
        """L⁻ᵀB in place of B."""
        for block, _, rows in reversed(self._between(0, self.size)):
            block.solve_transposed(B, rows=rows)
        return B

    def _between(self, first: int, last: int) -> list[tuple[_Block, int, int]]:
        """The blocks that hold rows ``first`` … ``last``, and which of their own rows these are."""
        parts: list[tuple[_Block, int, int]] = []
        for block in reversed(self.blocks if first < last else ()):  # most ask for the last rows
            if block.start < last:
                parts.append((block, max(first - block.start, 0), min(last - block.start, block.capacity)))
            if block.start <= first:
                break
        return parts[::-1]

    def in_single(self, older: GrowingFactor | None = None) -> GrowingFactor:
        """The factor in single precision; ``older`` is that of its first rows, where it is at hand."""
        first_block = _Block(0, SINGLE_BLOCK, SINGLE)  # as long as the others, so that all begin at round numbers
        blank = GrowingFactor(blocks=(first_block,), block_rows=SINGLE_BLOCK, dtype=SINGLE)
        single = blank if older is None else older
        for block, first, last in self._between(single.size, self.size):
            single = single.appended(block.rows(first, last))
        return single

    def matrix(self, *, first: int = 0) -> Floats:
        """L as one array, or its rows from ``first`` on."""
        L = np.zeros((self.size - first, self.size), dtype=self.dtype)
        for block, start, stop in self._between(first, self.size):
            at = block.start - first
            L[at + start : at + stop, : block.start + stop] = block.rows(start, stop)
        return L

    def corner(self, first: int) -> Floats:
        """Its rows and columns from ``first`` on: the factor of what the rows before leave unexplained."""
        L = np.zeros((self.size - first, self.size - first), dtype=self.dtype)
        for block, start, stop in self._between(first, self.size):
            at = block.start - first  # below 0 where a block has earlier rows too
            rows, left = slice(at + start, at + stop), max(at, 0)
            L[rows, :left] = block.panel[start:stop, block.start - left :]
            L[rows, left : at + stop] = block.diagonal[start:stop, left - at : stop]
        return L

    def extended(self, solved: Floats, corner: Floats, *, ridge: float = math.inf) -> tuple[GrowingFactor, Floats]:
        """The factor of [[A, C], [Cᵀ, E]] from that of A, with solved = L⁻¹C and corner = E; and its new rows."""
        left, scale = np.ascontiguousarray(solved.T), np.diagonal(corner)
        corner = corner.copy()
        if left.dtype == DOUBLE:
            subtract_gram(corner, left)
        else:
            subtract_product(corner, left, solved)
        corner = lower_cholesky(corner, scale=scale, ridge=ridge)
        rows = np.concatenate([left, corner], axis=1)
        return self.appended(rows), rows

    def appended(self, rows: Floats) -> GrowingFactor:
        """The factor with these rows at the end, each given up to and beyond its diagonal entry."""
        blocks, size = list(self.blocks), self.size
        while len(rows):
            if not blocks:
                # A large first block fits the first rows, as many factors never grow.
                blocks.append(_Block(0, min(max(len(rows), SMALL_BLOCK), self.block_rows), self.dtype))
            elif size == blocks[-1].start + blocks[-1].capacity:
                # Small blocks double: their sizes depend on where they begin and on nothing else, so that a factor
                # solves to the same bits in whatever steps it grew.
                blocks.append(_Block(size, max(self.block_rows, min(size, DOUBLED_UP_TO)), self.dtype))
            block = blocks[-1]
            used = size - block.start
            if block.filled != used:  # somebody else appended here already
                block = blocks[-1] = block.copy(used)
            take = min(block.capacity - used, len(rows))
            block.append(rows[:take, : size + take])
            rows, size = rows[take:], size + take
        return replace(self, size=size, blocks=tuple(blocks))

    def trace(self) -> float:
        """The sum of the diagonal entries of L."""
        if not self.blocks:
            return 0.0
        *full, last = self.blocks
        rows = self.size - last.start
        # rows that a longer factor added to the last block are none of this one's
        own = np.add.reduce(last.diagonal[:rows, :rows].diagonal())
        return float(own) + sum([block.trace for block in full])

    def diagonal(self) -> Floats:
        """The diagonal entries of L."""
        parts = [np.diagonal(block.diagonal)[: self.size - block.start] for block in self.blocks]
        return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0), *parts])


def pivoted_cholesky(row: Callable[[int], Floats], diagonal: Floats, *, tolerance: float | Floats) -> list[int]:
    """The pivots of a Cholesky factorisation that takes the largest residual first, the first of equal ones.

    ``row(j)`` gives row j of the matrix; one whose residual does not exceed ``tolerance``, a number or one for each,
    is dropped.
    """
    residual = diagonal.astype(np.float64, copy=True)
    least = np.broadcast_to(tolerance, residual.shape)
    columns = np.empty((min(64, len(residual)), len(residual)))
    pivots: list[int] = []
    while len(pivots) < len(residual):
        pivot = int(residual.argmax())
        if residual[pivot] == -np.inf:
            break
        if not residual[pivot] > least[pivot]:
            residual[pivot] = -np.inf  # for good, as residuals only fall
            continue
        rank = len(pivots)
        if rank == len(columns):
            columns = np.concatenate([columns, np.empty_like(columns)])[: len(residual)]
        column = row(pivot) - columns[:rank, pivot] @ columns[:rank]
        column /= np.sqrt(residual[pivot])
        columns[rank] = column
        residual -= column * column
        residual[pivot] = -np.inf  # taken
        pivots.append(pivot)
    return pivots
