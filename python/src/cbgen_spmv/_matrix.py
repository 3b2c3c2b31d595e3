# SPDX-License-Identifier: Apache-2.0
"""What callers hand over as a matrix, taken apart into the three arrays of its format."""
from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any, List, Optional, Tuple

import numpy

from . import _abi
from ._arrays import SIZES, View, dtype_name, library_of

VALUE_TYPES = {"float64": _abi.Type.F64, "float32": _abi.Type.F32, "float16": _abi.Type.F16, "bfloat16": _abi.Type.BF16,
               "complex64": _abi.Type.C64, "complex128": _abi.Type.C128}
INDEX_TYPES = ("int32", "int64")
EXACT = 2**53  # float64 holds every integer up to this one
ACCEPTED = (
    "a SciPy or CuPy sparse matrix, a sparse CSR tensor of PyTorch, or (data, indices, indptr) with shape="
)


MOST_BLOCK = 64  # rows and columns of a block of BSR that the library takes


@dataclass(frozen=True)
class Matrix:
    """Three arrays of one memory, and the shape. The arrays are the caller's; nothing is copied."""

    shape: Tuple[int, int]
    data: Any  # None: all entries are 1
    indices: Any
    indptr: Any  # of COO the rows
    converted: bool  # from another format: the order of the values is not the caller's
    format: _abi.Format = _abi.Format.CSR
    block: Tuple[int, int] = (0, 0)  # of BSR


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
    found = take_sparse(thing)
    if found is not None:
        return found
    if hasattr(thing, "tocsr"):
        csr = thing.tocsr()
        return Matrix(take_shape(csr.shape), csr.data, csr.indices, csr.indptr, True)
    raise TypeError(f"a {type(thing).__name__} is no sparse matrix: give {ACCEPTED}")


def take_sparse(thing: Any) -> Optional[Matrix]:
    """A matrix of SciPy or CuPy in one of the library's formats; None: it is something else."""
    name = getattr(thing, "format", None)
    if name == "coo" and len(thing.shape) == 2 and hasattr(thing, "row"):
        return Matrix(take_shape(thing.shape), thing.data, thing.col, thing.row, False, _abi.Format.COO)
    if name not in ("csr", "csc", "bsr") or not hasattr(thing, "indptr"):
        return None
    shape, form = take_shape(thing.shape), _abi.Format[name.upper()]
    if form != _abi.Format.BSR:
        return Matrix(shape, thing.data, thing.indices, thing.indptr, False, form)
    block = take_shape(thing.data.shape[1:])
    if not 0 < min(block) <= max(block) <= MOST_BLOCK:
        return None
    return Matrix(shape, thing.data.reshape(-1), thing.indices, thing.indptr, False, form, block)


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

    def given(self, name: str) -> Tuple[str, Any]:
        """The end of the names of the library's functions that take the matrix, and the struct that they take, which is
        valid as long as this object lives."""
        if self.matrix.format == _abi.Format.CSR:
            return "", self.csr(name)
        block_rows, block_cols = self.matrix.block
        given = _abi.Matrix(struct_size=ctypes.sizeof(_abi.Matrix), format=self.matrix.format, nnz=self.entries,
                            memory=self.memory, block_rows=block_rows, block_cols=block_cols)
        given.rows, given.cols = self.matrix.shape
        given.pointers, given.pointer_bits = self.indptr.pointer, 8 * SIZES[self.indptr.dtype]
        given.indices, given.index_bits = self.indices.pointer, 8 * SIZES[self.indices.dtype]
        given.value_type = VALUE_TYPES[self.data.dtype] if self.data else _abi.Type.F64
        given.values = self.data.pointer if self.data else None
        given.stream, given.name = self.stream, name.encode()
        return "_matrix", given

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


# What the two index arrays hold.
INDEX_ROLES = {_abi.Format.CSR: ("column indices", "row pointers"), _abi.Format.CSC: ("row indices", "column pointers"),
               _abi.Format.COO: ("columns", "rows"), _abi.Format.BSR: ("block columns", "pointers of block rows")}


def check_lengths(matrix: Matrix, data: Optional[View], indices: View, indptr: View, host: bool) -> None:
    """ValueError. Arrays of CSR and CSC on the host may be longer than the pointers say: see entries_of."""
    (rows, columns), area = matrix.shape, max(matrix.block[0] * matrix.block[1], 1)
    if matrix.format == _abi.Format.COO:
        if indptr.shape != indices.shape or (data and data.shape != indices.shape):
            raise ValueError(f"{indptr.shape[0]} rows and {indices.shape[0]} columns; there is one of each for a value")
        return
    lines = {_abi.Format.CSC: columns, _abi.Format.BSR: rows // max(matrix.block[0], 1)}.get(matrix.format, rows)
    if indptr.shape[0] != lines + 1:
        along = INDEX_ROLES[matrix.format][1]
        what = "columns" if matrix.format == _abi.Format.CSC else "rows"
        raise ValueError(f"{indptr.shape[0]} {along} for {lines} {what}; there is one more than {what}")
    if data and data.shape[0] != area * indices.shape[0] and not host:
        raise ValueError(f"{data.shape[0]} values for {indices.shape[0]} {INDEX_ROLES[matrix.format][0]}")


def view_matrix(matrix: Matrix, stream: Optional[int] = None) -> Views:
    """Looks at the arrays: types, lengths, where they lie. Contents are the library's to check."""
    arrays = [array for array in (matrix.data, matrix.indices, matrix.indptr) if array is not None]
    places = [on_host(array) for array in arrays]
    if any(places) != all(places):
        raise ValueError("some arrays of the matrix are in host memory and some on the GPU")
    data = None if matrix.data is None else take_array(as_floats(matrix.data, stream), "values", tuple(VALUE_TYPES), stream)
    across, along = INDEX_ROLES[matrix.format]
    indices = take_array(matrix.indices, across, INDEX_TYPES, stream)
    indptr = take_array(matrix.indptr, along, INDEX_TYPES, stream)
    check_lengths(matrix, data, indices, indptr, places[0])
    views = [view for view in (data, indices, indptr) if view]
    return Views(matrix, data, indices, indptr, _abi.Memory.HOST if places[0] else _abi.Memory.DEVICE,
                 single([view.device for view in views], "GPUs"),
                 (single([view.stream for view in views], "streams") if stream is None else stream) or 0,
                 entries_of(matrix, data, indices) if places[0] else indices.shape[0])


def entries_of(matrix: Matrix, data: Optional[View], indices: View) -> int:
    """SciPy's arrays may be longer than what the pointers use of them."""
    if matrix.format == _abi.Format.COO:
        return indices.shape[0]
    entries, area = int(matrix.indptr[-1]), max(matrix.block[0] * matrix.block[1], 1)
    least = min([indices.shape[0]] + ([data.shape[0] // area] if data else []))
    if not 0 <= entries <= least:
        raise ValueError(f"the {INDEX_ROLES[matrix.format][1]} end with {entries}, but there are only {least} entries")
    return entries
