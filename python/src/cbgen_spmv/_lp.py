# SPDX-License-Identifier: Apache-2.0
"""Linear programs: primal-dual hybrid gradient around the products with a matrix and its transpose."""
from __future__ import annotations

import ctypes
import threading
from contextlib import ExitStack
from ctypes import byref
from typing import Any, List, NamedTuple, Optional, Tuple

import numpy

from . import _abi
from ._arrays import common_stream, library_of, stream_handle
from ._library import LIBRARY, check
from ._matrix import Views, view_matrix
from ._operator import PROGRAM_LOSS, Operator, compile


class LinearResult(NamedTuple):
    """What linear_program found.

    x, y: the solution and the multipliers of rows, arrays like `cost`.
    status: 0 it is solved; 1 the iterations were used up; 2 it has no solution: y proves it, multipliers that are worth
        1 against all bounds though they cost nothing, or a lower bound is above its upper one; 3 its value falls
        without end, if it has any solution: x proves it, a direction of cost -1 that no bound ends; 4 something is not
        a number.
    iterations: how many there were.
    primal_residual, dual_residual: Euclidean norms of what rows lack to their bounds, and of reduced costs that no
        bound takes. fun, dual_fun: the values of x and of y.
    """
    x: Any
    y: Any
    status: int
    iterations: int
    primal_residual: float
    dual_residual: float
    fun: float
    dual_fun: float


STATUS = {_abi.Reason.CONVERGED: 0, _abi.Reason.ITERATIONS: 1, _abi.Reason.BREAKDOWN: 2, _abi.Reason.NOT_A_NUMBER: 4,
          _abi.Reason.PRIMAL_INFEASIBLE: 2, _abi.Reason.DUAL_INFEASIBLE: 3}


def linear_program(A: Any, cost: Any, *, scale: bool = True, **how: Any) -> LinearResult:
    """Minimises cost @ x where row_lower <= A @ x <= row_upper and lower <= x <= upper, on the GPU.

    A, scale: as of LinearSolver, whose `solve` the rest is for: row_lower=None, row_upper=None, lower=None, upper=None,
        x0=None, y0=None, rtol=1e-6, atol=1e-6, maxiter=None, certificate_tolerance=None, stream=None.
    """
    with LinearSolver(A, scale=scale) as solver:
        return solver.solve(cost, **how)


class LinearSolver:
    """Linear programs with one matrix. Its kernels and scales are made once, at the first solution; later ones, and those
    of other threads and streams at the same time, have vectors of their own and nothing to make.

    A: a cbgen.Operator, whose transpose is compiled when first asked for, or a matrix, which is compiled first with
        program_loss=600. Vectors of float64 or float32. Of an operator of specialise="now" that keeps its matrix, in CSR
        and host memory, iterations have the matrix in the GPU's shared memory, if there is room for it.
    scale: rows and columns are scaled first (cbgen_lp_scales), which most programs need; of an operator that keeps its
        matrix, in CSR. New values of the operator keep the scales that there are.
    """

    def __init__(self, A: Any, *, scale: bool = True) -> None:
        self.operator = A if isinstance(A, Operator) else compile(A, program_loss=PROGRAM_LOSS)
        self._stack, self._lock, self._scale = ExitStack(), threading.Lock(), scale
        self._scales: Tuple[Optional[int], Optional[int]] = (None, None)
        self._first: Optional[ctypes.c_void_p] = None
        self._closed = False

    def __enter__(self) -> LinearSolver:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Gives the GPU's memory back. May be called again; no solution may be running."""
        with self._lock:
            self._closed, self._first = True, None
            self._stack.close()

    def solve(self, cost: Any, *, row_lower: Any = None, row_upper: Any = None, lower: Any = None, upper: Any = None,
              x0: Any = None, y0: Any = None, rtol: float = 1e-6, atol: float = 1e-6, maxiter: Optional[int] = None,
              certificate_tolerance: Optional[float] = None, stream: Any = None) -> LinearResult:
        """Minimises cost @ x where row_lower <= A @ x <= row_upper and lower <= x <= upper.

        cost: shape (cols,) or (cols, 1), of the operator's dtype: NumPy, CuPy, PyTorch … The other vectors are of the
            same kind; of NumPy also one number for all entries.
        row_lower, row_upper: bounds of the rows; None: there are none. Equal ones make an equation.
        lower, upper: bounds of x; None: 0, and none. All may be infinite.
        x0, y0: the first guess of x and of the rows' multipliers, which stay as they are; None: zeros.
        rtol, atol: it is solved when residuals are at most atol + rtol times the size of what they are measured
            against, and the values of x and y are as near to each other.
        maxiter: the most iterations; None: 100000. Of two products each.
        certificate_tolerance: what a certificate that there is no solution may lack against what it is worth; None:
            1e-8, or 1e-3 with sums of float32; 0: none is looked for.
        stream: as of Operator.multiply. The call waits for the solution.
        """
        if maxiter is not None and maxiter < 1:
            raise ValueError(f"maxiter is {maxiter}; it is at least 1")
        if certificate_tolerance is not None and certificate_tolerance < 0:
            raise ValueError(f"certificate_tolerance is {certificate_tolerance}; it is not below 0")
        options = _abi.LpOptions(struct_size=ctypes.sizeof(_abi.LpOptions), relative_tolerance=rtol,
                                 absolute_tolerance=atol, max_iterations=maxiter or 0)
        if certificate_tolerance is not None:
            options.certificate_tolerance = certificate_tolerance or -1.0
        if rtol == 0 and atol == 0:
            options.absolute_tolerance = numpy.finfo(numpy.float64).tiny ** 0.5
        with ExitStack() as stack:
            work = Work(self.operator, cost, stream, stack)
            rows, cols = self.operator.shape
            problem = _abi.LpProblem(ctypes.sizeof(_abi.LpProblem), work.given("cost", cost, cols),
                                     work.given("lower", lower, cols), work.given("upper", upper, cols),
                                     work.given("row_lower", row_lower, rows), work.given("row_upper", row_upper, rows))
            x, x_there = work.found("x0", x0, cols)
            y, y_there = work.found("y0", y0, rows)
            result = work.run(self._solver(options, stack), problem, x_there, y_there)
            work.fetch(x, x_there)
            work.fetch(y, y_there)
        return LinearResult(x, y, STATUS[_abi.Reason(result.reason)], result.iterations, result.primal_residual,
                            result.dual_residual, result.primal_value, result.dual_value)

    def _solver(self, options: _abi.LpOptions, stack: ExitStack) -> ctypes.c_void_p:
        """A handle for one solution: the first one stays, and the others are its clones."""
        lp, handles = ctypes.c_void_p(), self.operator._handles
        with self._lock:
            if self._closed:
                raise ValueError("the solver is closed")
            if self._scale and self._scales[0] is None:
                self._scales = scales_of(self.operator, self._stack)
            options.row_scales, options.column_scales = self._scales
            if self._first is None:
                views = matrix_of(self.operator)
                csr = views and views.csr("matrix")
                options.matrix = ctypes.pointer(csr) if csr else None
                handles.check(LIBRARY.cbgen_lp_create(handles.first, self.operator.T._handles.first, byref(options),
                                                      byref(lp)))
                self._stack.callback(LIBRARY.cbgen_lp_free, lp)
                self._first = lp
                return lp
            status = LIBRARY.cbgen_lp_clone(self._first, byref(options), byref(lp))
            if status:
                check(status, LIBRARY.cbgen_lp_message, self._first)
        stack.callback(LIBRARY.cbgen_lp_free, lp)
        return lp


def room(gpu: Any, nbytes: int, stack: ExitStack) -> int:
    """Memory on the GPU, given back when the stack ends."""
    with gpu:
        address = gpu.alloc(nbytes)
        stack.callback(gpu.give_back, address)
    return int(address)


def matrix_of(operator: Operator) -> Optional[Views]:
    """What iterations may have in shared memory; it is compiled for, as the operator's own kernels are where that is asked
    for. None: nothing."""
    origin = operator._origin
    if (origin.matrix is None or origin.matrix.format != _abi.Format.CSR or origin.renewed or operator._transposed or
            origin.specialise != _abi.Specialise.NOW):
        return None
    views = view_matrix(origin.matrix)
    return views if views.device is None else None


def scales_of(operator: Operator, stack: ExitStack) -> Tuple[int, int]:
    origin = operator._origin
    if (origin.matrix is None or origin.matrix.format != _abi.Format.CSR or origin.renewed or operator._transposed):
        raise ValueError("scale=True needs an operator that keeps its matrix, in CSR, with the values that it was "
                         "compiled with, and is not a transpose: give a matrix, or scale=False")
    gpu = operator._handles.device
    rows, cols = (room(gpu, length * operator._size, stack) for length in operator.shape)
    csr = view_matrix(origin.matrix).csr(origin.name)
    with origin.context._lock:
        origin.context.check(LIBRARY.cbgen_lp_scales(origin.context.handle(), byref(csr), rows, cols))
    return rows, cols


class Work:
    """What one solution needs on the GPU; given back when the stack ends."""

    def __init__(self, operator: Operator, like: Any, stream: Any, stack: ExitStack) -> None:
        self.operator, self.stack, self.like = operator, stack, like
        self.gpu, self.on_host = operator._handles.device, library_of(like).on_host
        if self.on_host and stream is not None:
            raise TypeError("NumPy vectors take no stream=: the call waits for the result")
        self.chosen = None if stream is None else stream_handle(stream)
        self.views: List[Any] = []

    def upload(self, array: Any) -> int:
        address = room(self.gpu, array.nbytes, self.stack)
        with self.gpu:
            self.gpu.upload(address, array.ctypes.data, array.nbytes)
        return address

    def host(self, role: str, array: Any, length: int) -> Any:
        if isinstance(array, (int, float, numpy.number)):
            array = numpy.full(length, array, self.operator.dtype)
        if not library_of(array).on_host:
            raise TypeError(f"cost is a NumPy array, {role} is on a GPU: all are on the GPU, or all are NumPy arrays")
        return self.operator._host_array(role, array, length)

    def view(self, role: str, array: Any, length: int) -> Any:
        library = library_of(array)
        if library.on_host:
            raise TypeError(f"cost is on a GPU, {role} is a NumPy array: all are on the GPU, or all are NumPy arrays")
        view = library.view(array, self.chosen)
        if not self.operator._fits(view, length):
            self.operator._explain(role, view, length, library)
        self.views.append(view)
        return view

    def given(self, role: str, array: Any, length: int) -> Optional[int]:
        """The address of a vector, which the solver only reads."""
        if array is None:
            return None
        if self.on_host:
            return self.upload(self.host(role, array, length))
        return int(self.view(role, array, length).pointer)

    def found(self, role: str, first: Any, length: int) -> Tuple[Any, int]:
        """A new array with the first guess, and its address."""
        if self.on_host:
            new = numpy.zeros(length, self.operator.dtype)
            if first is not None:
                new[...] = self.host(role, first, length).reshape(length)
            return new, self.upload(new)
        if first is not None:
            self.view(role, first, length)
            new = first.copy() if hasattr(first, "copy") else first.clone()
            return new, int(self.view(role, new, length).pointer)
        new = library_of(self.like).empty(self.like, (length,), self.operator._type, self.chosen, False)
        view, zeros = self.view(role, new, length), numpy.zeros(length, self.operator.dtype)
        with self.gpu:
            self.gpu.upload(view.pointer, zeros.ctypes.data, zeros.nbytes)
        return new, int(view.pointer)

    def run(self, lp: ctypes.c_void_p, problem: _abi.LpProblem, x: int, y: int) -> _abi.LpResult:
        result = _abi.LpResult()
        stream = self.chosen
        if stream is None:
            stream = common_stream(self.views, "the vectors") if self.views else 0
        for status in (LIBRARY.cbgen_lp_solve(lp, byref(problem), x, y, stream),
                       LIBRARY.cbgen_lp_outcome(lp, byref(result))):
            if status:
                check(status, LIBRARY.cbgen_lp_message, lp)
        return result

    def fetch(self, array: Any, there: int) -> None:
        if self.on_host:
            with self.gpu:
                self.gpu.download(array.ctypes.data, there, array.nbytes)
