# SPDX-License-Identifier: Apache-2.0
"""Many small systems whose matrices have their nonzeros in the same places, in one launch."""
from __future__ import annotations

import ctypes
from contextlib import ExitStack
from ctypes import byref
from typing import Any, Optional, Tuple

import numpy

from . import _abi
from ._context import Context
from ._driver import Device, open_device
from ._library import LIBRARY, check
from ._matrix import take_matrix, view_matrix
from ._operator import context_for
from ._solve import info_of


def solve_batch(A: Any, values: Any, b: Any, x0: Any = None, *, method: str = "cg", rtol: float = 1e-5, atol: float = 0.0,
                maxiter: Optional[int] = None, M: Any = None, device: Optional[int] = None,
                context: Optional[Context] = None) -> Tuple[Any, Any]:
    """Solves A_s x_s = b_s for all systems s at once, each by one thread block, and gives (x, info).

    A: a square matrix in CSR on the host (scipy.sparse), whose pattern is that of all systems; its values are not read.
    values: shape (systems, A.nnz), system s's in the order of A.data, float64 or float32: NumPy.
    b: shape (systems, rows), of the same dtype. x0: the first guesses, likewise; None: zeros.
    method: "cg" or "bicgstab". rtol, atol, maxiter: as of solve.
    M: None; "jacobi": residuals are divided by the diagonals of the matrices; or an array like b that they are divided by.
    device, context: as of compile.

    x is a new array like b; info, an array of integers, says of each system what solve's says of one.
    """
    pattern = A.tocsr() if getattr(A, "format", "csr") != "csr" else A
    numbers = numpy.ascontiguousarray(values)
    if numbers.dtype not in (numpy.float64, numpy.float32):
        raise TypeError(f"values are {numbers.dtype}; they are float64 or float32")
    if numbers.ndim != 2 or numbers.shape[1] != pattern.nnz:
        raise ValueError(f"values have shape {numbers.shape}; a pattern of {pattern.nnz} nonzeros takes (systems, "
                         f"{pattern.nnz})")
    if maxiter is not None and maxiter < 1:
        raise ValueError(f"maxiter is {maxiter}; it is at least 1")
    systems, rows = numbers.shape[0], pattern.shape[0]
    x = numpy.zeros((systems, rows), numbers.dtype) if x0 is None else of_systems("x0", x0, systems, rows, numbers.dtype)
    right = of_systems("b", b, systems, rows, numbers.dtype)
    divisors = None
    if isinstance(M, str) and M == "jacobi":
        divisors = diagonals(pattern, numbers)
    elif isinstance(M, str):
        raise ValueError(f"M={M!r}; it is None, 'jacobi' or an array")
    elif M is not None:
        divisors = of_systems("M", M, systems, rows, numbers.dtype)
    views = view_matrix(take_matrix(pattern, None), None)
    used = context_for(context, device, None, {"type": "f32" if numbers.dtype == numpy.float32 else None})
    gpu = open_device(used.choose_device(device))
    options = _abi.BatchOptions(struct_size=ctypes.sizeof(_abi.BatchOptions), systems=systems, relative_tolerance=rtol,
                                absolute_tolerance=atol, max_iterations=maxiter or 0)
    with ExitStack() as stack:
        places = [room(gpu, stack, array) for array in (numbers, right, x)]
        if divisors is not None:
            options.diagonals = room(gpu, stack, divisors)
        batch, outcomes = ctypes.c_void_p(), (_abi.Outcome * systems)()
        csr = views.csr("batch")
        with used._lock:
            used.check(LIBRARY.cbgen_batch_create(used.handle(), byref(csr), method.encode(), byref(options),
                                                  byref(batch)))
        stack.callback(LIBRARY.cbgen_batch_free, batch)
        for status in (LIBRARY.cbgen_solve_batch(batch, *places, 0), LIBRARY.cbgen_batch_outcomes(batch, outcomes)):
            if status:
                check(status, LIBRARY.cbgen_batch_message, batch)
        with gpu:
            gpu.download(x.ctypes.data, places[2], x.nbytes)
    return x, numpy.array([info_of(outcome) for outcome in outcomes], dtype=numpy.int64)


def of_systems(role: str, array: Any, systems: int, rows: int, dtype: Any) -> Any:
    """A copy, one system behind the other."""
    taken = numpy.array(array, order="C")
    if taken.shape != (systems, rows):
        raise ValueError(f"{role} has shape {taken.shape}; {systems} systems of {rows} rows take ({systems}, {rows})")
    if taken.dtype != dtype:
        raise TypeError(f"{role} is {taken.dtype}, values are {dtype}")
    return taken


def diagonals(pattern: Any, numbers: Any) -> Any:
    """Those of all systems; 0 where there is no entry, those of duplicates summed."""
    rows = numpy.repeat(numpy.arange(pattern.shape[0]), numpy.diff(pattern.indptr))
    own = numpy.flatnonzero(rows == pattern.indices)
    found = numpy.zeros((numbers.shape[0], pattern.shape[0]), numbers.dtype)
    numpy.add.at(found, (slice(None), rows[own]), numbers[:, own])
    return found


def room(gpu: Device, stack: ExitStack, array: Any) -> int:
    """Memory on the GPU with the array's contents, which goes with the stack."""
    with gpu:
        address = gpu.alloc(array.nbytes)
        stack.callback(gpu.give_back, address)
        gpu.upload(address, array.ctypes.data, array.nbytes)
    return address
