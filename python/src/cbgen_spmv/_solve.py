# SPDX-License-Identifier: Apache-2.0
"""Systems of equations: a method and an operator's product as one kernel."""
from __future__ import annotations

import ctypes
from contextlib import ExitStack
from ctypes import byref
from typing import Any, Optional, Tuple

import numpy

from . import _abi
from ._arrays import library_of, stream_handle
from ._library import LIBRARY, check
from ._matrix import view_matrix
from ._operator import Operator, common_stream, compile

METHODS = ("cg", "bicgstab")


def solve(A: Any, b: Any, x0: Any = None, *, method: str = "cg", rtol: float = 1e-5, atol: float = 0.0,
          maxiter: Optional[int] = None, M: Any = None, stream: Any = None) -> Tuple[Any, int]:
    """Solves A x = b on the GPU in one kernel and gives (x, info), with SciPy's names and meanings.

    A: a cbgen.Operator, or a matrix, which is compiled first. Square, vectors of float64 or float32.
    b: shape (rows,) or (rows, 1), of the operator's dtype: NumPy, CuPy, PyTorch … x is a new array like it.
    x0: the first guess, an array like b, which stays as it is; None: zeros.
    method: "cg" (A symmetric and positive definite) or "bicgstab".
    rtol, atol: it is solved when norm(b - A x) <= max(rtol * norm(b), atol), by the method's recurrence.
    maxiter: the most iterations; None: 10 times the rows.
    M: None; "jacobi": residuals are divided by A's diagonal (of an operator that keeps its matrix, in CSR); or an array
        like b that they are divided by.
    stream: as of Operator.multiply. The call waits for the solution.

    info: 0 when it is solved; the number of iterations when there were not enough; -1 after a breakdown (for "cg", A is
    not positive definite), -2 when something is not a number.
    """
    operator = A if isinstance(A, Operator) else compile(A)
    if method not in METHODS:
        raise ValueError(f"method={method!r}; it is 'cg' or 'bicgstab'")
    if operator.shape[0] != operator.shape[1]:
        raise ValueError(f"solvers take square matrices, not {operator.shape[0]} x {operator.shape[1]}")
    if maxiter is not None and maxiter < 1:
        raise ValueError(f"maxiter is {maxiter}; it is at least 1")
    with ExitStack() as stack:
        work = Work(operator, stack)
        options = _abi.SolverOptions(struct_size=ctypes.sizeof(_abi.SolverOptions), relative_tolerance=rtol,
                                     absolute_tolerance=atol, max_iterations=maxiter or 0)
        if rtol == 0 and atol == 0:
            options.absolute_tolerance = numpy.finfo(numpy.float64).tiny ** 0.5
        on_host = library_of(b).on_host
        if on_host and stream is not None:
            raise TypeError("NumPy vectors take no stream=: the call waits for the result")
        x, b_there, x_there, at = work.host(b, x0) if on_host else work.device(b, x0, stream)
        options.diagonal = work.diagonal(M)
        outcome = work.run(method, options, b_there, x_there, at)
        if on_host:
            work.fetch(x, x_there)
    return x, {_abi.Reason.CONVERGED: 0, _abi.Reason.BREAKDOWN: -1, _abi.Reason.NOT_A_NUMBER: -2}.get(
        _abi.Reason(outcome.reason), outcome.iterations)


class Work:
    """What one solution needs on the GPU; given back when the stack ends."""

    def __init__(self, operator: Operator, stack: ExitStack) -> None:
        self.operator, self.stack = operator, stack
        self.gpu, self.bytes = operator._handles.device, operator.shape[0] * operator._size

    def room(self, source: Any) -> int:
        """Memory on the GPU with a NumPy array's contents."""
        with self.gpu:
            address = self.gpu.alloc(self.bytes)
            self.stack.callback(self.gpu.give_back, address)
            self.gpu.upload(address, source.ctypes.data, self.bytes)
        return address

    def host(self, b: Any, x0: Any) -> Tuple[Any, int, int, int]:
        rows = self.operator.shape[0]
        right = self.operator._host_array("b", b, rows)
        x = numpy.zeros(right.shape, self.operator.dtype)
        if x0 is not None:
            x[...] = self.operator._host_array("x0", x0, rows).reshape(x.shape)
        return x, self.room(right), self.room(x), 0

    def vector(self, role: str, array: Any, chosen: Optional[int]) -> Any:
        """A view of a vector on the GPU that fits, or why it does not."""
        library, rows = library_of(array), self.operator.shape[0]
        if library.on_host:
            raise TypeError(f"b is on a GPU, {role} is a NumPy array: both are on the GPU, or both are NumPy arrays")
        view = library.view(array, chosen)
        if not self.operator._fits(view, rows):
            self.operator._explain(role, view, rows, library)
        return view

    def device(self, b: Any, x0: Any, stream: Any) -> Tuple[Any, int, int, int]:
        chosen = None if stream is None else stream_handle(stream)
        right = self.vector("b", b, chosen)
        if x0 is not None:
            self.vector("x0", x0, chosen)
            x = x0.copy() if hasattr(x0, "copy") else x0.clone()
        else:
            x = library_of(b).empty(b, right.shape, self.operator._type, chosen, False)
        view = self.vector("x0", x, chosen)
        if x0 is None:
            with self.gpu:
                self.gpu.upload(view.pointer, numpy.zeros(self.bytes, numpy.uint8).ctypes.data, self.bytes)
        if chosen is None:
            chosen = right.stream if right.stream == view.stream else common_stream(right, view)
        return x, right.pointer, view.pointer, chosen or 0

    def diagonal(self, preconditioner: Any) -> Optional[int]:
        """The address of what residuals are divided by."""
        if preconditioner is None:
            return None
        rows = self.operator.shape[0]
        if not isinstance(preconditioner, str):
            if library_of(preconditioner).on_host:
                return self.room(self.operator._host_array("M", preconditioner, rows))
            return self.vector("M", preconditioner, None).pointer  # type: ignore[no-any-return]
        if preconditioner != "jacobi":
            raise ValueError(f"M={preconditioner!r}; it is None, 'jacobi' or an array")
        origin = self.operator._origin
        if origin.matrix is None or origin.matrix.format != _abi.Format.CSR or origin.renewed:
            raise ValueError("M='jacobi' needs an operator that keeps its matrix, in CSR, with the values that it was "
                             "compiled with: give the diagonal as an array")
        there = self.room(numpy.zeros(self.bytes, numpy.uint8))
        csr = view_matrix(origin.matrix).csr(origin.name)
        with origin.context._lock:
            origin.context.check(LIBRARY.cbgen_diagonal(origin.context.handle(), byref(csr), there))
        return there

    def run(self, method: str, options: _abi.SolverOptions, b: int, x: int, stream: int) -> _abi.Outcome:
        solver, outcome = ctypes.c_void_p(), _abi.Outcome()
        handles = self.operator._handles
        handles.check(LIBRARY.cbgen_solver_create(handles.first, method.encode(), byref(options), byref(solver)))
        self.stack.callback(LIBRARY.cbgen_solver_free, solver)
        for status in (LIBRARY.cbgen_solve(solver, b, x, stream),
                       LIBRARY.cbgen_solver_outcome(solver, byref(outcome))):
            if status:
                check(status, LIBRARY.cbgen_solver_message, solver)
        return outcome

    def fetch(self, x: Any, there: int) -> None:
        with self.gpu:
            self.gpu.download(x.ctypes.data, there, self.bytes)
