# SPDX-License-Identifier: Apache-2.0
"""Many small systems of equations at once, whose matrices have their nonzeros in the same places."""
from __future__ import annotations

import ctypes
import os
import weakref
from contextlib import ExitStack
from ctypes import byref
from typing import Any, List, Optional, Tuple, Union

import numpy

from . import _abi
from ._arrays import SIZES, View, common_stream, library_of, stream_handle
from ._context import shared_context
from ._driver import open_device
from ._library import LIBRARY, check
from ._matrix import take_matrix, view_matrix
from ._solve import info_of

TYPES = {"f64": "float64", "f32": "float32"}


class Batch:
    """Solves `systems` systems A x = b in one launch, each by one thread block:

        batch = cbgen.Batch(pattern, systems=1000, method="cg")
        x, info = batch.solve(values, b)         # values: (1000, nonzeros), b and x: (1000, rows)

    pattern: a sparse matrix in CSR, or (data, indices, indptr) with shape=(rows, rows), for where its nonzeros are. Of
        its values the type counts: float32 makes a batch of float32, all else one of float64.
    method: "cg" (all matrices symmetric and positive definite) or "bicgstab".
    rtol, atol, maxiter: of each system by itself, as of cbgen.solve.
    M: None, or an array of shape (systems, rows) by which residuals are divided (Jacobi's preconditioner): the
        diagonals of the matrices. On the GPU it is read at each solution, and may change in between; NumPy's is copied.
    type: "f64" or "f32"; None: by the pattern.
    device, cache: as of cbgen.compile. Compiling the kernel takes NVRTC, unless the cache has it.
    """

    def __init__(self, pattern: Any, systems: int, *, method: str = "cg", rtol: float = 1e-8, atol: float = 0.0,
                 maxiter: Optional[int] = None, M: Any = None, type: Optional[str] = None,
                 shape: Optional[Tuple[int, int]] = None, device: Optional[int] = None,
                 cache: Union[None, str, "os.PathLike[str]"] = None) -> None:
        matrix = take_matrix(pattern, shape)
        if matrix.format != _abi.Format.CSR or matrix.converted:
            raise ValueError("the pattern of a batch is in CSR, whose order the values have: give pattern.tocsr()")
        if maxiter is not None and maxiter < 1:
            raise ValueError(f"maxiter is {maxiter}; it is at least 1")
        views = view_matrix(matrix)
        chosen = type or ("f32" if views.data and views.data.dtype == "float32" else "f64")
        if chosen not in TYPES:
            raise ValueError(f"type={type!r}; a batch is of 'f64' or 'f32'")
        self._type, self._systems = TYPES[chosen], int(systems)
        self._rows, self._entries = matrix.shape[0], views.entries
        context = shared_context(views.device if device is None else device, {"type": chosen, "cache": cache})
        self._gpu = open_device(context.choose_device(views.device))
        self._handle, stack = ctypes.c_void_p(), ExitStack()
        self._finalizer = weakref.finalize(self, free, stack, os.getpid())
        options = _abi.BatchOptions(ctypes.sizeof(_abi.BatchOptions), self._systems, rtol, atol, maxiter or 0)
        if M is not None:
            self._diagonals = self._place("M", M, self._rows, None, stack)
            options.diagonals = self._diagonals.pointer
        csr = views.csr("batch")
        with context._lock:
            context.check(LIBRARY.cbgen_batch_create(context.handle(), byref(csr), method.encode(), byref(options),
                                                     byref(self._handle)))
        stack.callback(LIBRARY.cbgen_batch_free, self._handle)
        stack.callback(self._gpu.wait_to_free)

    def solve(self, values: Any, b: Any, x0: Any = None, *, stream: Any = None) -> Tuple[Any, Any]:
        """(x, info): x a new array like b, and for each system what cbgen.solve says of it, as an array of NumPy.

        values: the matrices' values, each in the order of the pattern's arrays: shape (systems, nonzeros).
        b: shape (systems, rows). x0: the first guesses, likewise; None: zeros.
        All are NumPy arrays, or arrays on the GPU of the batch's type, contiguous by rows. The call waits for the
        solutions. One thread at a time.
        """
        if not self._finalizer.alive:
            raise ValueError("the batch is closed")
        chosen = None if stream is None else stream_handle(stream)
        with ExitStack() as stack:
            found = [self._place("values", values, self._entries, chosen, stack),
                     self._place("b", b, self._rows, chosen, stack)]
            given = [values] if x0 is None else [values, x0]
            if any(library_of(each).on_host != library_of(b).on_host for each in given):
                raise TypeError("some arrays are on a GPU, some are NumPy arrays: all are on the GPU, or none")
            x = self._first_guess(b, x0, chosen)
            found.append(self._place("x0", x, self._rows, chosen, stack))
            outcomes = self._run(found, common_stream(found, "the arrays") if chosen is None else chosen)
            if library_of(b).on_host:
                with self._gpu:
                    self._gpu.download(x.ctypes.data, found[2].pointer, x.nbytes)
        return x, numpy.array([info_of(each) for each in outcomes])

    def _run(self, found: List[View], stream: int) -> Any:
        outcomes = (_abi.Outcome * self._systems)()
        pointers = (each.pointer for each in found)
        for status in (LIBRARY.cbgen_solve_batch(self._handle, *pointers, stream),
                       LIBRARY.cbgen_batch_outcomes(self._handle, outcomes)):
            if status:
                check(status, LIBRARY.cbgen_batch_message, self._handle)
        return outcomes

    def _first_guess(self, b: Any, x0: Any, chosen: Optional[int]) -> Any:
        """A new array like b."""
        shape = (self._systems, self._rows)
        if library_of(b).on_host:
            x = numpy.zeros(shape, self._type)
            if x0 is not None:
                x[...] = x0
            return x
        if x0 is not None:
            return x0.copy() if hasattr(x0, "copy") else x0.clone()
        x = library_of(b).empty(b, shape, self._type, chosen, False)
        zeros = numpy.zeros(shape, self._type)
        with self._gpu:
            self._gpu.upload(library_of(x).view(x, chosen).pointer, zeros.ctypes.data, zeros.nbytes)
        return x

    def _place(self, role: str, array: Any, length: int, chosen: Optional[int], stack: ExitStack) -> View:
        """Where it lies on the GPU; a copy there of NumPy's, until the stack ends."""
        library, shape = library_of(array), (self._systems, length)
        if library.on_host:
            if not numpy.can_cast(array.dtype, self._type, "safe"):
                raise TypeError(f"{role} is {array.dtype}, the batch is of {self._type}: convert it with .astype")
            array = numpy.ascontiguousarray(array, self._type)
        elif library.view(array, chosen).dtype != self._type:
            raise TypeError(f"{role} is {library.view(array, chosen).dtype}, the batch is of {self._type}: convert it")
        if tuple(array.shape) != shape:
            raise ValueError(f"{role} has shape {tuple(array.shape)}; {self._systems} systems take {shape} there")
        if not library.on_host:
            return self._there(role, library.view(array, chosen), library.advice)
        with self._gpu:
            address = self._gpu.alloc(array.nbytes)
            stack.callback(self._gpu.give_back, address)
            self._gpu.upload(address, array.ctypes.data, array.nbytes)
        return View(address, self._type, shape, True, False, self._gpu.ordinal, None, None)

    def _there(self, role: str, view: View, advice: str) -> View:
        if view.device is not None and view.device != self._gpu.ordinal:
            raise ValueError(f"{role} is on GPU {view.device}, the batch on GPU {self._gpu.ordinal}")
        if not view.dense or view.pointer % SIZES[self._type]:
            raise ValueError(f"{role} is not contiguous, or not aligned to its elements: give {advice}")
        return view

    @property
    def closed(self) -> bool:
        """Whether `close` was called, or `with` ended."""
        return not self._finalizer.alive

    def close(self) -> None:
        """Gives the GPU's memory back now."""
        self._finalizer()

    def __enter__(self) -> Batch:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<cbgen.Batch of {self._systems} systems, {self._rows} x {self._rows}, {self._type}>"


def free(stack: ExitStack, pid: int) -> None:
    """In a forked child what lies on the GPU is the parent's."""
    if os.getpid() == pid:
        stack.close()
