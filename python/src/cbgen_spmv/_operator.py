# SPDX-License-Identifier: Apache-2.0
"""Operators: matrices that were compiled, and what they do."""
from __future__ import annotations

import ctypes
import json
import os
import threading
import weakref
from contextlib import nullcontext
from ctypes import byref
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, BinaryIO, Dict, List, Optional, Tuple, Union

import numpy

from . import _abi
from ._algebra import Linear, complex_product
from ._arrays import COMPLEX, SIZES, Library, Number, View, common_stream, library_of, same_stream, stream_handle
from ._compiled import CALLS
from ._context import Context, shared_context
from ._driver import open_device
from ._files import put as put_file
from ._handles import TYPE_NAMES, Handles
from ._html import describe, plan_facts, spy, time_text
from ._library import LIBRARY, recipe_of, text_of
from ._matrix import VALUE_TYPES, Matrix, Views, as_floats, on_host, take_array, take_matrix, view_matrix

if TYPE_CHECKING or CALLS is None:
    from ._plain import Products
else:
    Products = CALLS.Products
    CALLS.set_stream_handle(stream_handle)

VALUES = {each.name.lower(): each for each in _abi.Values}
SYMMETRIC = {None: _abi.Symmetry.SYMMETRY_OPTION, True: _abi.Symmetry.SYMMETRIC, "skew": _abi.Symmetry.SKEW_SYMMETRIC,
             "hermitian": _abi.Symmetry.HERMITIAN, False: _abi.Symmetry.UNSYMMETRIC}
SPECIALISE = {each.name.lower(): each for each in _abi.Specialise}
REORDER = {each.name.lower(): each for each in _abi.Reorder}
PROGRAM_LOSS = 600  # nanoseconds, of what is compiled for linear programs, as in `cbgen lp`
Path = Union[str, "os.PathLike[str]"]


@dataclass(frozen=True)
class Info:
    """What compiling gave and took. Seconds are wall clock; those of a stage that did not run are 0."""

    rows: int
    cols: int
    nnz: int
    """Nonzeros of the operator, duplicates counted once."""
    matrix_type: str
    """"float64", "float32", "float16", "bfloat16", "complex64" or "complex128": of the stored values."""
    vector_type: str
    sum_type: str
    values: str
    """"stored", "mutable" or "fixed"."""
    launches: int
    """Kernels per product."""
    has_scratch: int
    """1: each stream needs a handle of its own, which this package makes."""
    registers: int
    spilled_bytes: int
    stored_bytes: int
    """What a product reads beside x and y."""
    device_bytes: int
    """Allocated on the GPU."""
    bytes_per_nonzero: float
    predicted_seconds: float
    """Of one product, by the cost model."""
    measured_seconds: float
    """By tuning or `Operator.measure`; 0: not measured."""
    csr_seconds: float
    """Predicted for cuSPARSE's CSR product."""
    break_even: float
    """Products after which set-up is repaid against that; infinite when never."""
    cache: str
    """"off", "miss" or "hit"."""
    hash_seconds: float
    lookup_seconds: float
    analysis_seconds: float
    pack_seconds: float
    generate_seconds: float
    compile_seconds: float
    tune_seconds: float
    store_seconds: float
    load_seconds: float
    upload_seconds: float
    total_seconds: float
    entries: int
    """Of the matrix as it was given, duplicates included: what `update_values` takes."""
    tier: str
    """"family" (a kernel for all matrices of one structure) or "specialised"."""
    peak_bytes: int
    """Of device memory that were allocated at one time while it was made."""
    vectors: int
    """That one pass over the matrix takes. `predicted_seconds` is the time of all of them."""
    split: bool
    """Values are stored in two parts, of which `multiply_heads` reads the first."""


def info_from(found: _abi.Info) -> Info:
    plain: Dict[str, Any] = {each.name: getattr(found, each.name) for each in fields(Info)}
    for name in ("matrix_type", "vector_type", "sum_type"):
        plain[name] = TYPE_NAMES[plain[name]]
    plain["split"] = bool(plain["split"])
    plain["values"] = _abi.Values(plain["values"]).name.lower()
    plain["tier"] = _abi.Tier(plain["tier"]).name.lower()
    plain["cache"] = _abi.CacheResult(plain["cache"]).name.lower()
    return Info(**plain)


TRANSPOSED, CONJUGATED = 1, 2  # forms of the matrix that operators multiply with


@dataclass
class Origin:
    """What an operator, its transpose and their conjugates share: where they came from. `operators`: by TRANSPOSED and
    CONJUGATED, or their sum."""

    matrix: Optional[Matrix]
    context: Context
    name: str
    expected_products: int
    values: _abi.Values
    lock: Any
    operators: Dict[int, "weakref.ref[Operator]"]
    renewed: bool = False
    specialise: _abi.Specialise = _abi.Specialise.AUTO
    vectors: int = 0
    reorder: _abi.Reorder = _abi.Reorder.NONE
    symmetric: _abi.Symmetry = _abi.Symmetry.SYMMETRY_OPTION
    split: bool = False
    solver: Optional[bytes] = None

    def operator(self, form: int) -> Optional[Operator]:
        found = self.operators.get(form)
        return found() if found else None

    def living(self) -> List[Operator]:
        found = [self.operator(form) for form in self.operators]
        return [operator for operator in found if operator is not None and not operator.closed]

    def compile(self, form: int, views: Views) -> Operator:
        request = _abi.Request(ctypes.sizeof(_abi.Request), self.expected_products, self.values, form & TRANSPOSED,
                               self.specialise, None, self.vectors, self.reorder, self.symmetric, split=self.split,
                               conjugate=form // CONJUGATED, solver=self.solver)
        device = open_device(self.context.choose_device(views.device))
        (suffix, given), handle = views.given(self.name), ctypes.c_void_p()
        function = getattr(LIBRARY, "cbgen_compile" + suffix)
        with self.context._lock:
            self.context.check(function(self.context.handle(), byref(given), byref(request), byref(handle)))
        made = Operator._of(Handles(handle, device), self, form)
        self.operators[form] = weakref.ref(made)
        return made

    def other(self, form: int) -> Operator:
        """The operator of that form, compiled when it does not exist."""
        with self.lock:
            found = self.operator(form)
            if found is not None and not found.closed:
                return found
            if self.matrix is None:
                raise ValueError("the transpose cannot be compiled: the operator was loaded or copied, or compiled with "
                                 "keep_matrix=False; compile the matrix with transpose=True")
            if self.renewed:
                raise ValueError("the transpose cannot be compiled after update_values, from a matrix that has the old "
                                 "values: ask for A.T once before the first update")
            return self.compile(form, view_matrix(self.matrix))


class Operator(Products, Linear):
    """A matrix on a GPU with the kernel that multiplies it: made by `cbgen.compile` or `cbgen.load`.

        y = A @ x                                       x and y: CuPy, PyTorch, NumPy arrays …
        A.multiply(x, out=y, alpha=2.0, beta=1.0)       y = 2 A x + y, nothing allocated: fit for a CUDA graph

    Products go to the current stream of the array's library and return at once. With NumPy vectors they are copied to
    the GPU and back, and the call waits. It has what `scipy.sparse.linalg` and `cupyx.scipy.sparse.linalg` ask of an
    operator, and their arithmetic (2 * A, A + B, A @ B …: see Combination). Any thread may multiply. Memory goes with
    the last reference, or with `close` or the end of `with`.
    """

    _handles: Handles
    _origin: Origin
    _form: int
    _transposed: bool
    _other: Optional[Operator]  # the transpose
    _adjoint: Optional[Operator]
    _entries: int
    _finalizer: Any
    _rows: int
    _cols: int
    _type: str
    _size: int  # of an element of x and y
    _device: int
    _vectors: int  # that one pass over the matrix takes

    def __init__(self) -> None:
        raise TypeError("operators are made by cbgen.compile and cbgen.load")

    @classmethod
    def _of(cls, handles: Handles, origin: Origin, form: int) -> Operator:
        self = cls.__new__(cls)
        self._finalizer = weakref.finalize(self, handles.free)
        self._handles, self._origin, self._form, self._transposed = handles, origin, form, bool(form & TRANSPOSED)
        self._other = self._adjoint = None
        info = handles.info()
        self._rows, self._cols, self._type = int(info.rows), int(info.cols), TYPE_NAMES[info.vector_type]
        self._entries = int(info.entries)
        self._size, self._device = SIZES[self._type], handles.device.ordinal
        self._vectors = int(info.vectors)
        self._bind(handles.call, handles.address if handles.has_scratch else None, handles.check)
        return self

    # ---- what it is

    @property
    def shape(self) -> Tuple[int, int]:
        return self._rows, self._cols

    @property
    def nnz(self) -> int:
        return int(self._handles.info().nnz)

    @property
    def device(self) -> int:
        """The number of the GPU."""
        return self._device

    @property
    def info(self) -> Info:
        """Sizes, predicted and measured times, what the cache gave, how long each stage took."""
        return info_from(self._handles.info())

    @property
    def source(self) -> str:
        """The CUDA text of the kernel."""
        return text_of(LIBRARY.cbgen_operator_source, self._handles.first)

    @property
    def plan(self) -> str:
        """The plan in one line, as it stands in the head of `source`."""
        return text_of(LIBRARY.cbgen_operator_plan, self._handles.first)

    @property
    def plan_json(self) -> Any:
        """The plan with everything in it, parsed."""
        return json.loads(text_of(LIBRARY.cbgen_operator_plan_json, self._handles.first))

    @property
    def key(self) -> str:
        """The kernel's key in the cache: 16 hexadecimal digits, which stand in the names that profilers show."""
        return text_of(LIBRARY.cbgen_operator_key, self._handles.first)

    def __repr__(self) -> str:
        if self.closed:
            return "<cbgen.Operator, closed>"
        recipe = recipe_of(LIBRARY.cbgen_operator_plan_json(self._handles.first))
        return (f"<cbgen.Operator {self._rows} x {self._cols}, {self.nnz} nonzeros, {self._type}, recipe {recipe}, "
                f"GPU {self._device}>")

    def _repr_html_(self) -> Optional[str]:
        """For notebooks: a drawing of the matrix, where it is kept in host memory, and of the plan."""
        if self.closed:
            return None
        plan, info = self.plan_json, self.info
        facts = plan_facts(plan)
        if info.measured_seconds:
            facts["measured"] = time_text(info.measured_seconds)
        facts.update({"set-up": time_text(info.total_seconds), "cache": info.cache, "GPU": str(self._device)})
        return describe("cbgen.Operator", plan, facts, spy(self._origin.matrix, self._transposed))

    # ---- products

    # what Products cannot do the short way comes to these

    def _multiply(self, x: Any, out: Any = None, *, alpha: Number = 1.0, beta: Number = 0.0, stream: Any = None) -> Any:
        return self._multiply_values(x, out, alpha, beta, stream, False)

    def multiply_heads(self, x: Any, out: Any = None, *, alpha: Number = 1.0, beta: Number = 0.0,
                       stream: Any = None) -> Any:
        """As `multiply`, with each value rounded to a float: it reads half of the bytes of the values. For operators that
        were compiled with split=True. Vectors and sums are float64, as in `multiply`."""
        return self._multiply_values(x, out, alpha, beta, stream, True)

    def _multiply_values(self, x: Any, out: Any, alpha: Number, beta: Number, stream: Any, heads: bool) -> Any:
        if beta != 0 and out is None:
            raise ValueError("beta needs out=: the vector that is scaled by it")
        if self._takes_parts(x):
            return self._multiply_complex(x, out, alpha, beta, stream)
        if library_of(x).on_host:
            return self._multiply_host(x, out, alpha, beta, stream, heads)
        return self._multiply_device(x, out, alpha, beta, stream, heads)

    _multiply.__qualname__ = "Operator.multiply"  # for messages about arguments

    def _multiply_device(self, x: Any, out: Any, alpha: Number, beta: Number, stream: Any, heads: bool) -> Any:
        library = library_of(x)
        chosen = None if stream is None else stream_handle(stream)
        x_view = library.view(x, chosen)
        if not self._fits(x_view, self._cols):
            self._explain("x", x_view, self._cols, library)
        if out is None:
            out = library.empty(x, (self._rows,) + x_view.shape[1:], self._type, chosen, False)
        out_library = library_of(out)
        if out_library.on_host:
            raise TypeError("x is on a GPU, out is a NumPy array: both are on the GPU, or both are NumPy arrays")
        out_view = out_library.view(out, chosen)
        if not self._fits(out_view, self._rows):
            self._explain("out", out_view, self._rows, out_library)
        if out_view.readonly:
            raise ValueError("out is read-only")
        source, target = x_view.pointer, out_view.pointer
        if source < target + self._rows * self._size and target < source + self._cols * self._size:
            raise ValueError("x and out overlap: give out= memory of its own")
        if chosen is None:
            chosen = x_view.stream if x_view.stream == out_view.stream else common_stream((x_view, out_view), "x and out")
        self._handles.multiply(chosen or 0, alpha, source, beta, target, heads)
        return out

    def _multiply_complex(self, x: Any, out: Any, alpha: Number, beta: Number, stream: Any) -> Any:
        """An entry's two parts follow each other: for `out` on a GPU that takes a kernel of several vectors."""
        if tuple(x.shape) != (self._cols,) and tuple(x.shape) != (self._cols, 1):
            raise ValueError(f"x has shape {tuple(x.shape)}; a matrix of {self._rows} x {self._cols} takes "
                             f"({self._cols},) or ({self._cols}, 1) there")
        if out is not None and tuple(out.shape) != (self._rows,) + tuple(x.shape[1:]):
            raise ValueError(f"out has shape {tuple(out.shape)}; A x has {(self._rows,) + tuple(x.shape[1:])}")
        if out is not None and self._vectors == 1 and not library_of(out).on_host:
            raise ValueError("out= for complex vectors on a GPU takes an operator that was compiled with vectors=2 or more")
        return complex_product(self, x, out, alpha=alpha, beta=beta, stream=stream)

    def _fits(self, view: View, length: int) -> bool:
        return (view.dtype == self._type and (view.shape == (length,) or view.shape == (length, 1)) and view.dense
                and (view.device is None or view.device == self._device)
                and (not view.pointer % self._size or not length))

    def _explain(self, role: str, view: View, length: int, library: Library) -> None:
        """Why a vector does not fit, and what to do."""
        if view.dtype != self._type:
            raise TypeError(f"{role} is {view.dtype}, the operator multiplies {self._type}: convert it, or compile "
                            "the matrix with another type=")
        if view.shape != (length,) and view.shape != (length, 1):
            raise ValueError(f"{role} has shape {view.shape}; a matrix of {self._rows} x {self._cols} takes "
                             f"({length},) or ({length}, 1) there")
        if not view.dense:
            raise ValueError(f"{role} is not contiguous: give {library.advice}")
        if view.device is not None and view.device != self._device:
            raise ValueError(f"{role} is on GPU {view.device}, the operator on GPU {self._device}")
        raise ValueError(f"{role} is not aligned to its elements: give {library.advice}")

    def _multiply_host(self, x: Any, out: Any, alpha: Number, beta: Number, stream: Any, heads: bool) -> Any:
        if stream is not None:
            raise TypeError("NumPy vectors take no stream=: the call waits for the result")
        source = self._host_array("x", x, self._cols)
        if out is None:
            out = numpy.empty((self._rows,) + source.shape[1:], self.dtype)
        if not isinstance(out, numpy.ndarray):
            raise TypeError("x is a NumPy array, out is on a GPU: both are on the GPU, or both are NumPy arrays")
        if out.dtype != self.dtype or self._host_array("out", out, self._rows) is not out:
            raise ValueError(f"out is not contiguous, or not {self._type}")
        if not out.flags.writeable:
            raise ValueError("out is read-only")
        vectors = self._handles.host(self._cols * self._size, self._rows * self._size)
        vectors.multiply(self._handles, alpha, source, beta, out, heads)
        return out

    def _host_array(self, role: str, array: Any, length: int) -> Any:
        """The array, or a contiguous copy in the operator's type where that loses nothing."""
        if not numpy.can_cast(array.dtype, self.dtype, "safe"):
            raise TypeError(f"{role} is {array.dtype}, the operator multiplies {self._type}: convert it with .astype, "
                            "or compile the matrix with another type=")
        if array.shape != (length,) and array.shape != (length, 1):
            raise ValueError(f"{role} has shape {array.shape}; a matrix of {self._rows} x {self._cols} takes "
                             f"({length},) or ({length}, 1) there")
        if type(array) is numpy.ndarray and array.dtype == self.dtype and array.flags.c_contiguous:
            return array
        return numpy.ascontiguousarray(numpy.asarray(array), self.dtype)

    # ---- several vectors

    def matmat(self, x: Any, out: Any = None, *, alpha: Number = 1.0, beta: Number = 0.0, stream: Any = None) -> Any:
        """alpha A X + beta out, for a 2-D X: also A @ X. Without `out` a new array.

        With an operator that was compiled for several vectors (vectors=) one pass over the matrix multiplies as many of
        them. X may lie by rows, which is fastest, or by columns, and `out` likewise; without such a kernel the columns
        are multiplied one after the other."""
        if len(x.shape) != 2 or x.shape[0] != self._cols:
            raise ValueError(f"X has shape {tuple(x.shape)}; a matrix of {self._rows} x {self._cols} takes "
                             f"({self._cols}, columns)")
        if self._takes_parts(x):
            return complex_product(self, x, out, alpha=alpha, beta=beta, stream=stream)
        if beta != 0 and out is None:
            raise ValueError("beta needs out=: the array that is scaled by it")
        shape = (self._rows, x.shape[1])
        if out is not None and tuple(out.shape) != shape:
            raise ValueError(f"out has shape {tuple(out.shape)}; A X has {shape}")
        if self._vectors == 1 or not x.shape[1]:
            return self._by_column(x, out, alpha, beta, stream)
        if library_of(x).on_host:
            return self._matmat_host(x, out, alpha, beta, stream)
        return self._matmat_device(x, out, alpha, beta, stream)

    def _by_column(self, x: Any, out: Any, alpha: Number, beta: Number, stream: Any) -> Any:
        if out is None:
            return Linear.matmat(self, x) if (alpha, stream) == (1.0, None) else self._by_column(
                x, self._empty_like(x, stream), alpha, beta, stream)
        library = library_of(x)
        for column in range(x.shape[1]):
            if library.on_host:
                result = numpy.ascontiguousarray(out[:, column])
                out[:, column] = self.multiply(x[:, column], result, alpha=alpha, beta=beta, stream=stream)
            else:
                self.multiply(library.contiguous(x[:, column]), out[:, column], alpha=alpha, beta=beta, stream=stream)
        return out

    def _empty_like(self, x: Any, stream: Any) -> Any:
        """A result whose columns are dense."""
        library, shape = library_of(x), (self._rows, x.shape[1])
        if library.on_host:
            return numpy.empty(shape, self.dtype, order="F")
        return library.empty(x, shape, self._type, None if stream is None else stream_handle(stream), True)

    def _matmat_device(self, x: Any, out: Any, alpha: Number, beta: Number, stream: Any) -> Any:
        library = library_of(x)
        chosen = None if stream is None else stream_handle(stream)
        order, x_view = self._dense_view("X", x if out is not None else self._dense_copy(x, library, chosen), chosen)
        by_column = order == _abi.Order.BY_COLUMN
        if out is None:
            out = library.empty(x, (self._rows, x.shape[1]), self._type, chosen, by_column)
        if library_of(out).on_host:
            raise TypeError("X is on a GPU, out is a NumPy array: both are on the GPU, or both are NumPy arrays")
        out_order, out_view = self._dense_view("out", out, chosen)
        if out_order != order and x.shape[1] != 1:
            raise ValueError("X lies by rows and out by columns, or the other way round: both lie alike")
        if out_view.readonly:
            raise ValueError("out is read-only")
        if chosen is None:
            chosen = x_view.stream if x_view.stream == out_view.stream else common_stream((x_view, out_view), "x and out")
        self._handles.multiply_many(chosen or 0, x.shape[1], order, alpha, x_view.pointer, beta, out_view.pointer)
        return out

    def _dense_copy(self, x: Any, library: Library, chosen: Optional[int]) -> Any:
        """X, or a copy of it by rows where its entries lie neither by rows nor by columns."""
        if library.view(x, chosen).dense or library.view(x.T, chosen).dense:
            return x
        return library.contiguous(x)

    def _dense_view(self, role: str, array: Any, chosen: Optional[int]) -> Tuple[_abi.Order, View]:
        """How a 2-D array lies, and its memory."""
        library = library_of(array)
        order, view = _abi.Order.BY_ROW, library.view(array, chosen)
        if not view.dense:
            order, view = _abi.Order.BY_COLUMN, library.view(array.T, chosen)
        if view.dtype != self._type:
            raise TypeError(f"{role} is {view.dtype}, the operator multiplies {self._type}: convert it, or compile "
                            "the matrix with another type=")
        if not view.dense:
            raise ValueError(f"{role} is contiguous neither by rows nor by columns: give {library.advice}")
        if view.device is not None and view.device != self._device:
            raise ValueError(f"{role} is on GPU {view.device}, the operator on GPU {self._device}")
        return order, view

    def _matmat_host(self, x: Any, out: Any, alpha: Number, beta: Number, stream: Any) -> Any:
        if stream is not None:
            raise TypeError("NumPy arrays take no stream=: the call waits for the result")
        if not numpy.can_cast(x.dtype, self.dtype, "safe"):
            raise TypeError(f"X is {x.dtype}, the operator multiplies {self._type}: convert it with .astype, or compile "
                            "the matrix with another type=")
        if out is None:
            out = numpy.empty((self._rows, x.shape[1]), self.dtype)
        if not isinstance(out, numpy.ndarray):
            raise TypeError("X is a NumPy array, out is on a GPU: both are on the GPU, or both are NumPy arrays")
        if out.dtype != self.dtype or not (out.flags.c_contiguous or out.flags.f_contiguous):
            raise ValueError(f"out is contiguous neither by rows nor by columns, or not {self._type}")
        if not out.flags.writeable:
            raise ValueError("out is read-only")
        order = _abi.Order.BY_ROW if out.flags.c_contiguous else _abi.Order.BY_COLUMN
        source = numpy.asarray(x, self.dtype, order="C" if order == _abi.Order.BY_ROW else "F")
        self._handles.multiply_many_host(order, alpha, source, beta, out)
        return out

    def prepare(self, stream: Any) -> None:
        """Sets up what products on a stream need, so that the first of them can be captured in a CUDA graph. Only an
        operator with scratch (`info.has_scratch`) needs this; a product before the capture does the same."""
        self._handles.for_stream(stream_handle(stream))

    # ---- the interface of linear operators

    def _matvec(self, x: Any) -> Any:
        library = library_of(x)
        if self._takes_parts(x):
            return self._multiply(x)
        return self._multiply(x if library.on_host else library.contiguous(x))

    @property
    def T(self) -> Operator:
        """The operator of the transposed matrix, with a plan of its own: compiled when first asked for, from the arrays
        of the matrix, which must not have changed until then."""
        self._handles.first  # a closed operator has none
        other = self._other
        if other is None or other.closed:
            other = self._origin.other(self._form ^ TRANSPOSED)
            if other._other is not self:  # one of the two holds the other; a circle would keep both
                self._other = other
        return other

    @property
    def H(self) -> Operator:
        """The operator of the conjugate transpose, likewise: of a real matrix, the transpose."""
        if self._type not in COMPLEX:
            return self.T
        self._handles.first
        other = self._adjoint
        if other is None or other.closed:
            other = self._origin.other(self._form ^ (TRANSPOSED | CONJUGATED))
            if other._adjoint is not self:
                self._adjoint = other
        return other

    # ---- values

    def update_values(self, values: Any, *, stream: Any = None) -> None:
        """New values for the same pattern, in the order of the arrays that were compiled, duplicates included. Those of
        BSR may have the shape of its blocks.

        For operators compiled with values="mutable". `values`: a NumPy, CuPy, PyTorch … array of one of the value
        types, in host memory also of booleans or integers. From a GPU the renewal goes to the stream (as with
        `multiply`) and may be captured in a CUDA graph; later products there see the new values. From NumPy without
        `stream`, the call waits for the GPU before and after, so that no product anywhere sees half of them. The
        transpose, where it was asked for, is renewed too.
        """
        update, waits, view = self._new_values(values, stream)
        with self._origin.lock, self._handles.device.idle() if waits else nullcontext():
            for operator in self._both():
                operator._handles.check(LIBRARY.cbgen_update_values(operator._handles.first, byref(update)))
            self._origin.renewed = True
        del view  # what the values lie in

    def _new_values(self, values: Any, stream: Any) -> Tuple[_abi.Update, bool, View]:
        """What the library takes; whether the GPU is waited for before and after; and what must live until then."""
        chosen = None if stream is None else stream_handle(stream)
        host = on_host(values)
        if len(values.shape) == 3:
            values = values.reshape(-1)  # blocks of BSR, as they are given to compile
        view = take_array(as_floats(values, chosen) if host else values, "values", tuple(VALUE_TYPES), chosen)
        if view.shape[0] != self._entries:
            raise ValueError(f"{view.shape[0]} values for a matrix that was compiled with {self._entries}")
        if view.device is not None and view.device != self._device:
            raise ValueError(f"the values are on GPU {view.device}, the operator on GPU {self._device}")
        update = _abi.Update(ctypes.sizeof(_abi.Update), view.pointer, VALUE_TYPES[view.dtype],
                             _abi.Memory.HOST if host else _abi.Memory.DEVICE,
                             same_stream(view.stream or 0) if chosen is None else chosen)
        return update, host and chosen is None, view

    def copy(self, values: Any = None, *, stream: Any = None) -> Operator:
        """Another matrix of the same pattern: an operator of its own, with these values (as `update_values` takes them)
        or, None, this one's. It shares kernel and indices with this one: nothing is looked up, planned or compiled. For
        operators compiled with values="mutable". The transpose is copied too, where it was asked for; it cannot be
        later."""
        used = self._origin
        origin = Origin(None, used.context, used.name, used.expected_products, used.values, threading.RLock(), {},
                        specialise=used.specialise, vectors=used.vectors, reorder=used.reorder,
                        split=used.split)
        with used.lock:
            copies = [each._copy_to(origin) for each in self._both()]
        if values is not None:
            copies[0].update_values(values, stream=stream)
        for copy in copies[1:]:  # who holds them
            if copy._form ^ copies[0]._form == TRANSPOSED:
                copies[0]._other = copy
            if copy._form ^ copies[0]._form == TRANSPOSED | CONJUGATED:
                copies[0]._adjoint = copy
        return copies[0]

    def _copy_to(self, origin: Origin) -> Operator:
        handle = ctypes.c_void_p()
        self._handles.check(LIBRARY.cbgen_operator_copy(self._handles.first, None, byref(handle)))
        made = Operator._of(Handles(handle, self._handles.device), origin, self._form)
        origin.operators[self._form] = weakref.ref(made)
        return made

    def _both(self) -> List[Operator]:
        """This one, and its transpose, adjoint and conjugate, as far as they were asked for."""
        return [self] + [other for other in self._origin.living() if other is not self]

    def check_symmetry(self, *, stream: Any = None) -> None:
        """Waits for the stream (None: the default stream); raises cbgen.WrongError when the values that were compiled, or
        renewed since the last call, break the promise of symmetry. The operator is compiled with a context whose option
        "check-symmetry" is "on"."""
        chosen = 0 if stream is None else stream_handle(stream)
        self._handles.check(LIBRARY.cbgen_operator_check(self._handles.first, chosen))

    def specialise(self) -> None:
        """Compiles the kernel that is made for this one matrix, where the operator multiplies with its family's
        (`info.tier`), and multiplies with it from then on: the same bits, a little faster. The transpose, where it was
        asked for, is specialised too. cbgen.MissingError: there is no NVRTC."""
        for operator in self._both():
            operator._handles.check(LIBRARY.cbgen_operator_specialise(operator._handles.first))

    def permutation(self) -> Tuple[numpy.ndarray[Any, Any], numpy.ndarray[Any, Any]]:
        """The order of vectors: `rows` and `columns`, so that y[i] is what row rows[i] of the matrix gives, and x[j]
        what its column columns[j] takes: A @ x[columns] is (matrix @ x)[rows]. 0, 1, 2, … unless `reorder` asked for
        another order and that pays."""
        rows, columns = (numpy.empty(count, numpy.int32) for count in self.shape)
        places = ctypes.POINTER(ctypes.c_int32)
        self._handles.check(LIBRARY.cbgen_operator_permutation(self._handles.first, rows.ctypes.data_as(places),
                                                               columns.ctypes.data_as(places)))
        return rows, columns

    def measure(self) -> float:
        """Times products with vectors of the library's own; gives the median in seconds and keeps it in `info`."""
        seconds = ctypes.c_double()
        self._handles.check(LIBRARY.cbgen_operator_measure(self._handles.first, byref(seconds)))
        return seconds.value

    # ---- keeping it

    def __bytes__(self) -> bytes:
        """The operator as one block of bytes: kernel, arrays and values. `cbgen.load` takes it."""
        length = ctypes.c_size_t()
        first = self._handles.first
        self._handles.check(LIBRARY.cbgen_operator_save(first, None, 0, byref(length)))
        buffer = ctypes.create_string_buffer(length.value)
        self._handles.check(LIBRARY.cbgen_operator_save(first, buffer, length.value, byref(length)))
        return buffer.raw[: length.value]

    def save(self, target: Union[Path, BinaryIO]) -> None:
        """Writes what `bytes(A)` gives to a file that is open for writing, or to a path, where it appears whole or not
        at all."""
        content = bytes(self)
        if not isinstance(target, (str, os.PathLike)):
            target.write(content)
            return
        put_file(target, content)

    def __reduce__(self) -> Tuple[Any, Tuple[Any, ...]]:
        return load, (bytes(self),)

    @property
    def closed(self) -> bool:
        """Whether `close` was called, or `with` ended."""
        return not self._finalizer.alive

    def close(self) -> None:
        """Gives the GPU's memory back now, after the products that still run."""
        self._finalizer()

    def __enter__(self) -> Operator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def context_for(context: Optional[Context], device: Optional[int], near: Optional[int],
                options: Dict[str, Any]) -> Context:
    """The context given, else the shared one with these options. `near`: the GPU that a matrix lies on."""
    if context is None:
        return shared_context(near if device is None else device, options)
    given = [name for name, value in options.items() if value is not None] + ["device"] * (device is not None)
    if given:
        raise TypeError(f"'{given[0]}' is a matter of the context when one is given: Context({given[0]}=…)")
    return context


def compile(matrix: Any, *, expected_products: int = 0, values: str = "stored", transpose: bool = False,
            type: Optional[str] = None, semiring: Optional[str] = None, device: Optional[int] = None,
            tune: Optional[str] = None, cache: Union[None, str, "os.PathLike[str]"] = None, context: Optional[Context] = None,
            name: str = "matrix", shape: Optional[Tuple[int, int]] = None, stream: Any = None,
            keep_matrix: bool = True, specialise: str = "auto", vectors: int = 1, reorder: str = "none",
            symmetric: Union[None, bool, str] = None, split: bool = False, conjugate: bool = False,
            program_loss: Optional[int] = None, solver: Optional[str] = None) -> Operator:
    """Looks at a sparse matrix, writes a CUDA kernel for it, compiles it, and gives the operator that multiplies.

    matrix: a SciPy or CuPy sparse matrix (CSR, CSC, COO and BSR; other formats are converted), a sparse CSR tensor of
        PyTorch, or a tuple (data, indices, indptr) of CSR with shape=(rows, columns); data None: all entries are 1.
        Host or GPU memory; values float64, float32, float16, bfloat16, complex128 or complex64, booleans and integers
        as float64; indices int32 or int64. Any order, and duplicates, which are summed.
    expected_products: bounds the effort: set-up that so many products cannot repay is left out. 0: many.
    values: "stored"; "mutable" (update_values works; half a byte to 5 more bytes per value); "fixed" (they never change, and
        what they have in common may become part of the kernel).
    transpose: multiply with the transposed matrix.
    conjugate: multiply with conjugated values; with `transpose` the conjugate transpose. Complex matrices have .H, too.
    type: "f64", "f32", "c128", "c64" (complex values and vectors), or mixed ones such as "f32-f64": values stored as
        the first, vectors of the second. None: by the matrix.
    semiring: "plus-times" (the ordinary product), "min-plus", "max-times" or "or-and": what products add and multiply
        with. All but the first take alpha 1, and beta 0 or 1.
    device: number of the GPU; None: where the matrix lies, else the current one of this thread, else 0.
    tune: "model", "measure" (compiles and times the best few candidates) or "off".
    cache: directory of kept kernels; "" for none.
    context: a cbgen.Context instead of device, type, semiring, tune, cache and program_loss, with more options.
    name: stands in the lines of the log.
    stream: on which a matrix on the GPU is ready; None: the current one of its library.
    keep_matrix: the operator refers to the matrix, so that .T and .rmatvec can be compiled later.
    specialise: "auto" (it begins with a kernel that serves all matrices of one structure, where that is not repaid by
        expected_products), "now" (the kernel for this one matrix at once) or "never".
    vectors: how many vectors `A @ X` and `A.matmat` shall take in one pass over the matrix, up to 32.
    reorder: "symmetric" (x and y in one order, of a square matrix) or "unsymmetric": vectors are in the order that
        `A.permutation()` tells, in which products find what they need of x nearer together; "none": as the matrix has
        rows and columns.
    symmetric: True: the matrix is its transpose bit by bit, and stays so when values are renewed, so that half of it is
        stored where that is faster; its lower triangle counts. "skew": the same with the other sign; "hermitian": with
        conjugated values. False: nothing is looked for. None: fixed values are looked at.
        `Context({"check-symmetry": "on"})` and `check_symmetry` find values that break the promise.
    split: store each value, a float64, as a float32, its head, and what that lacks of it: nothing is lost, and
        `multiply_heads` reads heads alone. Values are 0 or of a size from 2^-126 to 3.4e38.
    program_loss: by so many nanoseconds a product may be slower, for an operator that solvers or linear programs are
        made of, if their vectors find a better place beside it. None: what
        `solver` asks for, else 0; `linear_program` and LinearSolver have 500 for matrices that they compile.
    solver: the method of `cbgen.solve` that the operator is for, as "cg": its recipe is chosen for solutions rather than products,
        and with tune="measure" these are timed.

    TypeError, ValueError: what was handed over does not fit. cbgen.Error: see its subclasses.
    """
    if values not in VALUES:
        raise ValueError(f"values={values!r}; it is 'stored', 'mutable' or 'fixed'")
    if specialise not in SPECIALISE:
        raise ValueError(f"specialise={specialise!r}; it is 'auto', 'now' or 'never'")
    if reorder not in REORDER:
        raise ValueError(f"reorder={reorder!r}; it is 'none', 'symmetric' or 'unsymmetric'")
    if vectors < 1:
        raise ValueError(f"vectors={vectors!r}; it is 1 or more")
    if not any(symmetric is known or (isinstance(known, str) and symmetric == known) for known in SYMMETRIC):
        raise ValueError(f"symmetric={symmetric!r}; it is None, True, False, 'skew' or 'hermitian'")
    taken = take_matrix(matrix, shape)
    if taken.converted and values == "mutable":
        raise ValueError("the order of the values is that of CSR arrays, and this matrix is in another format: convert "
                         "it first, with matrix.tocsr()")
    views = view_matrix(taken, None if stream is None else stream_handle(stream))
    used = context_for(context, device, views.device, {"type": type, "semiring": semiring, "tune": tune,
                                                   "cache": cache, "program_loss": program_loss})
    origin = Origin(taken if keep_matrix else None, used, name, expected_products, VALUES[values], threading.RLock(),
                    {}, specialise=SPECIALISE[specialise], vectors=min(int(vectors), 1 << 20),
                    reorder=REORDER[reorder], symmetric=SYMMETRIC[symmetric], split=bool(split),
                    solver=None if solver is None else solver.encode())
    return origin.compile(TRANSPOSED * bool(transpose) + CONJUGATED * bool(conjugate), views)


def load(source: Union[Path, bytes, BinaryIO], *, device: Optional[int] = None, context: Optional[Context] = None,
         cache: Union[None, str, "os.PathLike[str]"] = None) -> Operator:
    """The operator that `save` wrote: from a path, an open file, or the bytes themselves."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        content = bytes(source)
    elif isinstance(source, (str, os.PathLike)):
        with open(source, "rb") as file:
            content = file.read()
    else:
        content = source.read()
    used = context_for(context, device, None, {"cache": cache})
    chosen, handle = open_device(used.choose_device(device)), ctypes.c_void_p()
    with used._lock:
        used.check(LIBRARY.cbgen_operator_load(used.handle(), content, len(content), byref(handle)))
    handles = Handles(handle, chosen)
    kind = _abi.Values(handles.info().values)
    origin = Origin(None, used, "matrix", 0, kind, threading.RLock(), {})
    made = Operator._of(handles, origin, 0)
    origin.operators[0] = weakref.ref(made)
    return made
