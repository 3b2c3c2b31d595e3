# SPDX-License-Identifier: Apache-2.0
"""Systems of equations: a method and an operator's product as one kernel."""
from __future__ import annotations

import ctypes
from contextlib import ExitStack
from ctypes import byref
from typing import Any, Callable, Optional, Tuple

import numpy

from . import _abi
from ._arrays import common_stream, dtype_name, is_complex, library_of, stream_handle
from ._library import LIBRARY, check
from ._matrix import view_matrix
from ._operator import Operator, compile

METHODS = ("cg", "cg-mixed", "bicgstab", "minres", "gmres", "chebyshev", "jacobi")


def solve(A: Any, b: Any, x0: Any = None, *, method: str = "cg", rtol: float = 1e-5, atol: float = 0.0,
          maxiter: Optional[int] = None, M: Any = None, callback: Optional[Callable[[Any], Any]] = None,
          callback_type: str = "pr_norm", restart: Optional[int] = None, weight: float = 0.0, lowest: float = 0.0, highest: float = 0.0,
          stream: Any = None) -> Tuple[Any, int]:
    """Solves A x = b on the GPU in one kernel, or a few, and gives (x, info), with SciPy's names and meanings.

    A: a cbgen.Operator, or a matrix, which is compiled first (of a real one and complex b, for complex numbers).
        Square, vectors of float64, float32, complex128 or complex64.
    b: shape (rows,) or (rows, 1), of the operator's dtype: NumPy, CuPy, PyTorch … x is a new array like it.
    x0: the first guess, an array like b, which stays as it is; None: zeros.
    method: "cg" or "chebyshev" (A symmetric, of complex numbers Hermitian, and positive definite), "cg-mixed" ("cg" of
        an operator that was compiled with split=True, most of whose products read half of the values' bytes), "minres"
        (A symmetric or Hermitian), "bicgstab", "gmres", or "jacobi" (sweeps; A's diagonal dominates).
    rtol, atol: it is solved when norm(b - A x) <= max(rtol * norm(b), atol), by the method's recurrence.
    maxiter: the most iterations; None: 10 times the rows. Of "gmres" as in SciPy rounds of `restart` iterations.
    M: None; "jacobi": residuals are divided by A's diagonal (of an operator that keeps its matrix, in CSR); or an array
        like b that they are divided by. Of "cg", "cg-mixed" and "bicgstab" also ("block-jacobi", n): they are multiplied by the
        inverses of the n x n blocks along A's diagonal, n from 2 to 16; a cbgen.Operator that they are multiplied by,
        as SciPy's M; or a function M(r, z, stream) that puts z = M r on the CUDA stream (a number), r and z being
        vectors on the GPU by __cuda_array_interface__. It is called once, while the stream is captured, and what it
        captures is replayed; if that fails, for each iteration.
    callback: with callback_type="pr_norm" called with norm(r) / norm(b) before the first iteration and after each, as
        SciPy's gmres does with that type; but once all is done: one kernel does all iterations. With callback_type="x"
        called after each iteration (of "gmres" after each round), while the solution runs, with the x that it has come
        to, a new array like b: the host drives the iterations then, which costs time, and an exception ends them.
    restart: of "gmres", 1 to 64; None: 20. weight: of "jacobi"; 0: 2/3. lowest, highest: of "chebyshev", bounds of the
        eigenvalues of A, or of A divided by its diagonal with M="jacobi"; 0: found.
    stream: as of Operator.multiply. The call waits for the solution.

    info: 0 when it is solved; the number of iterations when there were not enough; -1 after a breakdown (for "cg", A is
    not positive definite), -2 when something is not a number.
    """
    if method not in METHODS:
        raise ValueError(f"method={method!r}; it is one of {', '.join(METHODS)}")
    options = options_of(rtol, atol, maxiter)
    options.restart = 20 if restart is None else restart
    options.weight, options.lowest, options.highest = weight, lowest, highest
    if method == "gmres" and maxiter is not None:
        options.max_iterations = min(maxiter * max(options.restart, 1), 2**31 - 1)
    if callback_type not in ("pr_norm", "x"):
        raise ValueError(f"callback_type={callback_type!r}; it is 'pr_norm' or 'x'")
    follows = callback if callback_type == "x" else None
    x, outcome = run(A, b, x0, method, options, M, stream, None if follows else callback, follows)
    return x, info_of(outcome)


def power(A: Any, x0: Any, *, rtol: float = 1e-8, atol: float = 0.0, maxiter: Optional[int] = None,
          stream: Any = None) -> Tuple[float, Any, int]:
    """The eigenvalue of A of the largest size, its vector of length 1, and info as of solve: (value, x, info).

    x0: where the power iteration begins, which should have a part in that direction, an array as b of solve.
    rtol, atol: it is found when norm(A x - value x) <= max(rtol * abs(value), atol).
    """
    x, outcome = run(A, x0, x0, "power", options_of(rtol, atol, maxiter), None, stream, None)
    return outcome.value, x, info_of(outcome)


def pagerank(A: Any, jumps: Any, x0: Any = None, *, damping: float = 0.85, tol: float = 1e-6,
             maxiter: Optional[int] = None, M: Any = None, stream: Any = None) -> Tuple[Any, int]:
    """Ranks of pages, whose sum is 1, and info as of solve: (x, info).

    A: entry (i, j) is the share of page j's rank that goes to page i: columns have the sum 1, or 0 of pages without
        links. Or any weights, with the columns' sums as M (an array as b of solve).
    jumps: where one goes that follows no link, an array as b of solve, not below 0; its sum does not matter.
    x0: the first guess; None: the jumps.
    damping: how often a link is followed.
    tol: it ends when an iteration changes ranks by no more than this, all together.
    """
    if isinstance(M, str):
        raise ValueError(f"M={M!r}; it is None or the sums of columns, an array")
    options = options_of(tol, 0.0, maxiter)
    options.damping = damping
    x, outcome = run(A, jumps, jumps if x0 is None else x0, "pagerank", options, M, stream, None)
    return x, info_of(outcome)


def options_of(rtol: float, atol: float, maxiter: Optional[int]) -> _abi.SolverOptions:
    if maxiter is not None and maxiter < 1:
        raise ValueError(f"maxiter is {maxiter}; it is at least 1")
    options = _abi.SolverOptions(struct_size=ctypes.sizeof(_abi.SolverOptions), relative_tolerance=rtol,
                                 absolute_tolerance=atol, max_iterations=maxiter or 0)
    if rtol == 0 and atol == 0:
        options.absolute_tolerance = numpy.finfo(numpy.float64).tiny ** 0.5
    return options


def info_of(outcome: _abi.Outcome) -> int:
    """As SciPy's solvers have it."""
    told = {_abi.Reason.CONVERGED: 0, _abi.Reason.BREAKDOWN: -1, _abi.Reason.NOT_A_NUMBER: -2}
    return told.get(_abi.Reason(outcome.reason), int(outcome.iterations))


def operator_for(A: Any, b: Any, method: str) -> Operator:
    """Of complex numbers where the matrix or b is."""
    if not is_complex(b) or is_complex(A):
        return compile(A, split=method == "cg-mixed", solver=method)
    narrow = dtype_name(b.dtype) == "complex64" and dtype_name(A.dtype) != "float64"
    return compile(A, type="c64" if narrow else "c128", solver=method)


def run(A: Any, b: Any, x0: Any, method: str, options: _abi.SolverOptions, M: Any, stream: Any,
        callback: Optional[Callable[[float], Any]],
        follows: Optional[Callable[[Any], Any]] = None) -> Tuple[Any, _abi.Outcome]:
    """A new array like b, and how it ended. `callback` gets residuals behind it, `follows` each x on the way."""
    operator = A if isinstance(A, Operator) else operator_for(A, b, method)
    if operator.shape[0] != operator.shape[1]:
        raise ValueError(f"solvers take square matrices, not {operator.shape[0]} x {operator.shape[1]}")
    with ExitStack() as stack:
        work = Work(operator, stack)
        on_host = library_of(b).on_host
        if on_host and stream is not None:
            raise TypeError("NumPy vectors take no stream=: the call waits for the result")
        x, b_there, x_there, at = work.host(b, x0) if on_host else work.device(b, x0, stream)
        if isinstance(M, Operator) or callable(M):
            options.precondition = work.precondition(M)
        elif isinstance(M, tuple):
            options.blocks, options.block_size = work.blocks(M)
        else:
            options.diagonal = work.diagonal(M)
        history = work.history(options) if callback else None
        if follows:
            options.progress = work.progress(follows, x, options.restart if method == "gmres" else 1)
        outcome = work.run(method, options, b_there, x_there, at)
        if on_host:
            work.fetch(x, x_there)
        residuals = work.residuals(history, outcome.iterations + 1, b_there) if history else ()
    if callback:
        for residual in residuals:
            callback(float(residual))
    return x, outcome


class Vector:
    """A vector on the GPU for a preconditioner."""

    def __init__(self, address: int, like: Operator, stream: int) -> None:
        self.__cuda_array_interface__ = {"shape": (like.shape[0],), "typestr": like.dtype.str, "data": (address, False),
                                         "strides": None, "version": 3, "stream": stream or 1}


class Work:
    """What one solution needs on the GPU; given back when the stack ends."""

    def __init__(self, operator: Operator, stack: ExitStack) -> None:
        self.operator, self.stack = operator, stack
        self.raised: Optional[BaseException] = None  # by the caller's preconditioner
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
            chosen = right.stream if right.stream == view.stream else common_stream((right, view), "x and out")
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
            raise ValueError(f"M={preconditioner!r}; it is None, 'jacobi', ('block-jacobi', n) or an array")
        return self.of_matrix("jacobi", 1, lambda *call: LIBRARY.cbgen_diagonal(*call))

    def blocks(self, preconditioner: Tuple[Any, ...]) -> Tuple[int, int]:
        """The address of the inverses of blocks, and the rows of each."""
        if len(preconditioner) != 2 or preconditioner[0] != "block-jacobi":
            raise ValueError(f"M={preconditioner!r}; a tuple is ('block-jacobi', n)")
        size = int(preconditioner[1])
        if not 2 <= size <= 16:
            raise ValueError(f"blocks of {size} rows: there are those of 2 to 16")
        return self.of_matrix("block-jacobi", size, lambda context, csr, there: LIBRARY.cbgen_block_diagonal(
            context, csr, size, there)), size

    def precondition(self, preconditioner: Any) -> Any:
        """What the solver calls, which lives as long as the work."""
        if isinstance(preconditioner, Operator):
            if preconditioner.shape != self.operator.shape or preconditioner.dtype != self.operator.dtype:
                raise ValueError(f"M is {preconditioner.shape} of {preconditioner.dtype}, A {self.operator.shape} of "
                                 f"{self.operator.dtype}")

        def work(_: Any, r: int, z: int, on: Optional[int]) -> None:
            stream = on or 0
            if isinstance(preconditioner, Operator):
                preconditioner._handles.multiply(stream, 1.0, r, 0.0, z)
            else:
                preconditioner(Vector(r, self.operator, stream), Vector(z, self.operator, stream), stream)

        return self.called(_abi.PRECONDITION, work)

    def progress(self, callback: Callable[[Any], Any], like: Any, step: int) -> Any:
        """What the solver calls after each iteration, which lives as long as the work."""
        seen = [0]

        def work(_: Any, iterations: int, __: float, there: int) -> None:
            if iterations // step > seen[0]:
                seen[0] = iterations // step
                callback(self.copied(like, there))

        return self.called(_abi.PROGRESS, work)

    def called(self, kind: Any, work: Callable[..., None]) -> Any:
        """A function of C that does the work, and lives as long as this."""
        def call(*arguments: Any) -> int:
            try:
                work(*arguments)
            except BaseException as error:  # C cannot raise it: run does
                self.raised = error
                return 1
            return 0

        called = kind(call)
        self.stack.callback(lambda: called)
        return called

    def copied(self, like: Any, there: int) -> Any:
        """A new array with what lies there."""
        content = numpy.empty(self.operator.shape[0], self.operator.dtype)
        with self.gpu:
            self.gpu.download(content.ctypes.data, there, self.bytes)
        content = content.reshape(tuple(like.shape))
        library = library_of(like)
        if library.on_host:
            return content
        new = library.empty(like, content.shape, self.operator._type, None, False)
        with self.gpu:
            self.gpu.upload(library.view(new, None).pointer, content.ctypes.data, self.bytes)
        return new

    def of_matrix(self, name: str, vectors: int, call: Callable[..., int]) -> int:
        """Memory of as many vectors with what the call makes of the operator's matrix."""
        origin = self.operator._origin
        if origin.matrix is None or origin.matrix.format != _abi.Format.CSR or origin.renewed:
            raise ValueError(f"M={name!r} needs an operator that keeps its matrix, in CSR, with the values that it was "
                             "compiled with: give the diagonal as an array")
        with self.gpu:
            there = self.gpu.alloc(vectors * self.bytes)
            self.stack.callback(self.gpu.give_back, there)
        csr = view_matrix(origin.matrix).csr(origin.name)
        with origin.context._lock:
            origin.context.check(call(origin.context.handle(), byref(csr), there))
        return int(there)

    def run(self, method: str, options: _abi.SolverOptions, b: int, x: int, stream: int) -> _abi.Outcome:
        solver, outcome = ctypes.c_void_p(), _abi.Outcome()
        handles = self.operator._handles
        handles.check(LIBRARY.cbgen_solver_create(handles.first, method.encode(), byref(options), byref(solver)))
        self.stack.callback(LIBRARY.cbgen_solver_free, solver)
        self.raised = None  # what a capture forbids, is done without one
        for status in (LIBRARY.cbgen_solve(solver, b, x, stream),
                       LIBRARY.cbgen_solver_outcome(solver, byref(outcome))):
            if self.raised and (status or outcome.reason == _abi.Reason.STOPPED):
                raise self.raised
            if status:
                check(status, LIBRARY.cbgen_solver_message, solver)
        return outcome

    def history(self, options: _abi.SolverOptions) -> int:
        """Room for all residuals, which the options receive."""
        if not options.max_iterations:
            options.max_iterations = min(10 * self.operator.shape[0], 2**31 - 2)
        with self.gpu:
            there = self.gpu.alloc(8 * (options.max_iterations + 1))
            self.stack.callback(self.gpu.give_back, there)
        options.history = ctypes.cast(there, ctypes.POINTER(ctypes.c_double))
        return int(there)

    def residuals(self, history: int, count: int, b: int) -> Any:
        """What the history has, as parts of b's norm."""
        squares, right = numpy.empty(count), numpy.empty(self.operator.shape[0], self.operator.dtype)
        with self.gpu:
            self.gpu.download(squares.ctypes.data, history, 8 * count)
            self.gpu.download(right.ctypes.data, b, self.bytes)
        wide = numpy.complex128 if is_complex(right) else numpy.float64
        return numpy.sqrt(squares) / (numpy.linalg.norm(right.astype(wide)) or 1.0)

    def fetch(self, x: Any, there: int) -> None:
        with self.gpu:
            self.gpu.download(x.ctypes.data, there, self.bytes)
