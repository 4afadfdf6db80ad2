"""BLAS and LAPACK as bare as Python lets one call them: the arithmetic of a run without the run."""

from __future__ import annotations

import ctypes
from typing import Any, Literal

import numpy as np
from scipy.linalg import cython_blas, lapack

from laconic.arrays import Floats


def _routine(name: Literal["dtrsm"], *arguments: Any) -> Any:
    """A Fortran routine by its address; SciPy's own wrapper copies a view of a larger matrix at every call."""
    python = ctypes.pythonapi
    python.PyCapsule_GetName.restype = ctypes.c_char_p
    python.PyCapsule_GetName.argtypes = [ctypes.py_object]
    python.PyCapsule_GetPointer.restype = ctypes.c_void_p
    python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    capsule = cython_blas.__pyx_capi__[name]
    address = python.PyCapsule_GetPointer(capsule, python.PyCapsule_GetName(capsule))
    return ctypes.CFUNCTYPE(None, *arguments)(address)


_INT, _DOUBLE, _CHAR = ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_double), ctypes.c_char_p
_dtrsm = _routine("dtrsm", _CHAR, _CHAR, _CHAR, _CHAR, _INT, _INT, _DOUBLE, _DOUBLE, _INT, _DOUBLE, _INT)


def solve(L: Floats, V: Floats) -> None:
    """V becomes L⁻¹V in place, by one dtrsm; both C-ordered, L perhaps a corner of a larger matrix."""
    rows, columns = V.shape
    if rows == 0 or columns == 0:
        return
    _dtrsm(
        b"R",
        b"U",
        b"N",
        b"N",
        ctypes.byref(ctypes.c_int(columns)),
        ctypes.byref(ctypes.c_int(rows)),
        ctypes.byref(ctypes.c_double(1.0)),
        L.ctypes.data_as(_DOUBLE),
        ctypes.byref(ctypes.c_int(L.strides[0] // 8)),
        V.ctypes.data_as(_DOUBLE),
        ctypes.byref(ctypes.c_int(V.strides[0] // 8)),
    )


def factor(A: Floats) -> None:
    """A becomes its Cholesky factor, by one dpotrf."""
    if len(A):
        lapack.dpotrf(A.T, lower=0, clean=0, overwrite_a=1)


def factor_with_pivots(A: Floats) -> None:
    """A becomes its pivoted Cholesky factor, by one dpstrf."""
    if len(A):
        lapack.dpstrf(A.T, lower=0, overwrite_a=1)


def gaussian(X: Floats, Y: Floats, out: Floats) -> None:
    """A Gaussian kernel on one or more pairs of sets: exp of one product, as points carry their norms along."""
    np.matmul(X, np.swapaxes(Y, -1, -2), out=out)
    np.exp(out, out=out)
