# SPDX-License-Identifier: Apache-2.0
"""What callers hand over as a matrix, taken apart into the three arrays of compressed sparse rows."""
from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any, List, Optional, Tuple

import numpy

from . import _abi
from ._arrays import SIZES, View, dtype_name, library_of

VALUE_TYPES = {"float64": _abi.Type.F64, "float32": _abi.Type.F32, "float16": _abi.Type.F16, "bfloat16": _abi.Type.BF16}
INDEX_TYPES = ("int32", "int64")
EXACT = 2**53  # float64 holds every integer up to this one
ACCEPTED = (
    "a SciPy or CuPy sparse matrix, a sparse CSR tensor of PyTorch, or (data, indices, indptr) with shape="
)


@dataclass(frozen=True)
class Matrix:
    """Three arrays of one memory, and the shape. The arrays are the caller's; nothing is copied."""

    shape: Tuple[int, int]
    data: Any  # None: all entries are 1
    indices: Any
    indptr: Any
    converted: bool  # from another format: the order of the values is not the caller's


def take_shape(shape: Any) -> Tuple[int, int]:
    try:
        rows, cols = (int(extent) for extent in shape)
    except (TypeError, ValueError):
        raise ValueError(f"shape is {shape!r}; a matrix has (rows, columns)") from None
    return rows, cols


def take_matrix(thing: Any, shape: Any = None) -> Matrix:
    """Recognises what ACCEPTED lists. TypeError for everything else."""
    if isinstance(thing, tuple) and len(thing) == 3:
        if shape is None:
            raise TypeError("a matrix given as (data, indices, indptr) needs shape=(rows, columns)")
        return Matrix(take_shape(shape), *thing, converted=False)
    if shape is not None:
        raise TypeError("shape= belongs to a matrix given as (data, indices, indptr)")
    if hasattr(thing, "crow_indices") and "sparse_csr" in str(getattr(thing, "layout", "")):
        values, columns, rows = thing.values().detach(), thing.col_indices(), thing.crow_indices()
        return Matrix(take_shape(thing.shape), values, columns, rows, False)
    if getattr(thing, "format", None) == "csr" and hasattr(thing, "indptr"):
        return Matrix(take_shape(thing.shape), thing.data, thing.indices, thing.indptr, False)
    if hasattr(thing, "tocsr"):
        csr = thing.tocsr()
        return Matrix(take_shape(csr.shape), csr.data, csr.indices, csr.indptr, True)
    raise TypeError(f"a {type(thing).__name__} is no sparse matrix: give {ACCEPTED}")


def on_host(array: Any) -> bool:
    if library_of(array).on_host:
        return True
    return getattr(array, "is_cuda", None) is False  # a PyTorch tensor in host memory


def host_view(array: Any) -> View:
    """NumPy's or PyTorch's memory on the host, made contiguous where it is not."""
    if not isinstance(array, numpy.ndarray):
        dense = array.contiguous()
        return View(dense.data_ptr(), str(dense.dtype).rpartition(".")[2], tuple(dense.shape), True, False, None, None,
                    dense)
    dense = numpy.ascontiguousarray(array)
    name = dense.dtype.name if dense.dtype.isnative else f"{dense.dtype.name} in foreign byte order"
    return View(dense.ctypes.data, name, dense.shape, True, False, None, None, dense)


def as_floats(values: Any, stream: Optional[int]) -> Any:
    """Booleans and integers as float64, which is what SciPy multiplies them as with a vector of float64; anything else
    as it is. ValueError when float64 may not hold them exactly."""
    library = library_of(values)
    name = dtype_name(values.dtype) if library.converts else ""
    if not name.startswith(("bool", "int", "uint")):
        return values
    if name.endswith("int64") and 0 not in values.shape and (values.max() > EXACT or values.min() < -EXACT):
        raise ValueError(f"the values are {name}, some beyond 2**53, which float64 does not hold exactly: convert them "
                         "first, with .astype(numpy.float64) for example")
    return library.as_float64(values, stream)


def take_array(array: Any, role: str, types: Any, stream: Optional[int]) -> View:
    """One of the three arrays, on the host or on a GPU. `types`: the names of what it may hold."""
    view = host_view(array) if on_host(array) else library_of(array).view(array, stream)
    if view.dtype not in types:
        hint = ": convert them first, with .astype(numpy.float64) for example" if role == "values" else ""
        raise TypeError(f"the {role} are {view.dtype}; supported are {', '.join(types)}{hint}")
    if len(view.shape) != 1 or not view.dense:
        raise ValueError(f"the {role} have shape {view.shape}; they are a contiguous array of one dimension")
    return view


@dataclass(frozen=True)
class Views:
    """The arrays of a matrix as the library takes them."""

    matrix: Matrix
    data: Optional[View]
    indices: View
    indptr: View
    memory: _abi.Memory
    device: Optional[int]
    stream: int
    entries: int

    def csr(self, name: str) -> _abi.Csr:
        """The struct; valid as long as this object lives."""
        csr = _abi.Csr(struct_size=ctypes.sizeof(_abi.Csr), nnz=self.entries, index_base=0, memory=self.memory)
        csr.rows, csr.cols = self.matrix.shape
        csr.row_ptr, csr.row_ptr_bits = self.indptr.pointer, 8 * SIZES[self.indptr.dtype]
        csr.col_idx, csr.col_idx_bits = self.indices.pointer, 8 * SIZES[self.indices.dtype]
        csr.value_type = VALUE_TYPES[self.data.dtype] if self.data else _abi.Type.F64
        csr.values = self.data.pointer if self.data else None
        csr.stream, csr.name = self.stream, name.encode()
        return csr


def single(found: List[Any], what: str) -> Any:
    """The one value that arrays agree on, None when they have none."""
    known = {value for value in found if value is not None}
    if len(known) > 1:
        raise ValueError(f"the arrays of the matrix are on different {what}: {sorted(known)}")
    return known.pop() if known else None


def view_matrix(matrix: Matrix, stream: Optional[int] = None) -> Views:
    """Looks at the arrays: types, lengths, where they lie. Contents are the library's to check."""
    arrays = [array for array in (matrix.data, matrix.indices, matrix.indptr) if array is not None]
    places = [on_host(array) for array in arrays]
    if any(places) != all(places):
        raise ValueError("some arrays of the matrix are in host memory and some on the GPU")
    data = None if matrix.data is None else take_array(as_floats(matrix.data, stream), "values", tuple(VALUE_TYPES), stream)
    indices = take_array(matrix.indices, "column indices", INDEX_TYPES, stream)
    indptr = take_array(matrix.indptr, "row pointers", INDEX_TYPES, stream)
    if indptr.shape[0] != matrix.shape[0] + 1:
        raise ValueError(f"{indptr.shape[0]} row pointers for {matrix.shape[0]} rows; there is one more than rows")
    if data and data.shape != indices.shape and not places[0]:
        raise ValueError(f"{data.shape[0]} values for {indices.shape[0]} column indices")
    views = [view for view in (data, indices, indptr) if view]
    return Views(matrix, data, indices, indptr, _abi.Memory.HOST if places[0] else _abi.Memory.DEVICE,
                 single([view.device for view in views], "GPUs"),
                 (single([view.stream for view in views], "streams") if stream is None else stream) or 0,
                 entries_of(matrix, data, indices) if places[0] else indices.shape[0])


def entries_of(matrix: Matrix, data: Optional[View], indices: View) -> int:
    """SciPy's arrays may be longer than what the row pointers use of them."""
    entries = int(matrix.indptr[-1])
    least = min(view.shape[0] for view in (data, indices) if view)
    if not 0 <= entries <= least:
        raise ValueError(f"the row pointers end with {entries}, but there are only {least} entries")
    return entries
