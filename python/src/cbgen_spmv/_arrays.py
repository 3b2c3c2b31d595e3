# SPDX-License-Identifier: Apache-2.0
"""Arrays of other libraries: where their memory is, on which stream they work, and how to make another like them.

`library_of(array)` gives the row of the table below that knows an array. CuPy and PyTorch are asked directly (their
attributes cost less than building an interface dictionary per product); everything else is read through
__cuda_array_interface__, else DLPack. No library is imported here that the caller's array does not come from.
"""
from __future__ import annotations

import sys
from contextlib import nullcontext
from importlib import import_module
from typing import Any, ContextManager, Dict, List, NamedTuple, Optional, Sequence, Tuple, Type, Union

import numpy

from . import _dlpack
from ._compiled import CALLS
from ._driver import open_driver

SIZES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "complex128": 16, "complex64": 8, "int64": 8, "int32": 4}
COMPLEX = {"complex128": "float64", "complex64": "float32"}  # and of what their parts are
VECTOR_TYPES = ("float64", "float32", "float16", "complex128", "complex64")  # that NumPy has
Shape = Tuple[int, ...]
Number = Union[float, complex]  # alpha and beta
# (kind, {name: dtype}, function of a GPU's number, function of shape and dtype, DLPack's functions): `learn`
ShortWay = Tuple[str, Dict[str, Any], Any, Any, Any]


class View(NamedTuple):
    """An array's memory on a GPU."""

    pointer: int
    dtype: str
    shape: Shape
    dense: bool  # elements follow each other, the last index fastest
    readonly: bool
    device: Optional[int]  # None: unknown
    stream: Optional[int]  # on which its library works; None: any will do
    keep: object  # to be held while the pointer is used


_names: Dict[Any, str] = {}


def dtype_name(dtype: Any) -> str:
    """"float64" for numpy.float64, torch.float64 and their like."""
    name = _names.get(dtype)
    if name is None:
        name = str(dtype).rpartition(".")[2] if type(dtype).__module__ == "torch" else numpy.dtype(dtype).name
        _names[dtype] = name
    return name


def numpy_dtype(name: str) -> numpy.dtype[Any]:
    """NumPy's own for a name; bfloat16 is one of ml_dtypes, where that is installed."""
    if name != "bfloat16":
        return numpy.dtype(name)
    try:
        found: numpy.dtype[Any] = numpy.dtype(import_module("ml_dtypes").bfloat16)
    except ImportError:
        raise TypeError("NumPy has no bfloat16 of its own: install ml_dtypes, or give vectors of PyTorch") from None
    return found


def is_complex(array: Any) -> bool:
    return hasattr(array, "dtype") and dtype_name(array.dtype) in COMPLEX


def is_dense(shape: Shape, strides: Optional[Tuple[int, ...]], unit: int) -> bool:
    """Whether strides (in the same units as `unit`, the last index's) are those of a row-major array."""
    if strides is None or 0 in shape:
        return True
    for extent, stride in zip(reversed(shape), reversed(strides)):
        if extent != 1 and stride != unit:
            return False
        unit *= extent
    return True


def stream_handle(stream: Any) -> int:
    """The CUstream of what callers give as `stream=`: a number, or an object of CuPy, PyTorch, Numba or cuda.core."""
    if isinstance(stream, int):
        handle = stream
    elif hasattr(stream, "__cuda_stream__"):
        given = stream.__cuda_stream__
        handle = (given() if callable(given) else given)[1]
    else:
        for name in ("ptr", "cuda_stream", "handle"):  # CuPy, PyTorch, Numba
            found = getattr(stream, name, None)
            if found is not None:
                break
        else:
            raise TypeError(f"stream= is {type(stream).__name__}; it takes a CUDA stream handle (an int) or a stream of "
                            "CuPy, PyTorch, Numba or cuda.core")
        found = getattr(found, "value", found)  # Numba wraps its handle in ctypes
        handle = int(found or 0)
    return same_stream(int(handle))


def same_stream(stream: int) -> int:
    """The default stream has two names, 0 and cudaStreamLegacy."""
    return 0 if stream == 1 else stream


def common_stream(views: Sequence[View], named: str) -> int:
    """The stream that the libraries of all these arrays work on; `named`: what messages call them."""
    streams = {same_stream(view.stream) for view in views if view.stream is not None}
    if len(streams) > 1:
        raise ValueError(f"{named} belong to libraries whose current streams differ: give stream=, on which "
                         f"{'both' if len(views) == 2 else 'all'} are ready")
    return streams.pop() if streams else 0


class ForeignStream:
    """A stream handle for libraries that take __cuda_stream__."""

    def __init__(self, handle: int) -> None:
        self.handle = handle

    def __cuda_stream__(self) -> Tuple[int, int]:
        return (0, self.handle)


class Library:
    """A row of the table: what products need to know of an array library. This one serves arrays of libraries that
    we do not know by name."""

    name = "this library"
    on_host = False
    converts = False  # whether as_float64 works
    advice = "a contiguous copy of it"

    def view(self, array: Any, stream: Optional[int]) -> View:
        interface = getattr(array, "__cuda_array_interface__", None)
        if interface is not None:
            return self._interface_view(array, interface)
        return self._dlpack_view(array, stream)

    def _interface_view(self, array: Any, interface: Dict[str, Any]) -> View:
        if interface.get("mask") is not None:
            raise TypeError("masked arrays are not supported")
        pointer, readonly = interface["data"]
        dtype = numpy.dtype(interface["typestr"])
        shape = tuple(interface["shape"])
        dense = is_dense(shape, interface.get("strides"), dtype.itemsize)
        stream = interface.get("stream")
        name = dtype.name if dtype.isnative else f"{dtype.name} in foreign byte order"
        return View(pointer, name, shape, dense, bool(readonly), open_driver().device_of(pointer),
                    None if stream is None else same_stream(stream), array)

    def _dlpack_view(self, array: Any, stream: Optional[int]) -> View:
        found = _dlpack.describe(array, stream or 0)
        if found.device_type not in (_dlpack.CUDA, _dlpack.CUDA_MANAGED):
            raise TypeError(f"a {type(array).__name__} whose memory is not on a CUDA GPU: {HOST_ADVICE}")
        return View(found.pointer, found.dtype, found.shape, is_dense(found.shape, found.strides, 1), found.readonly,
                    found.device, stream or 0, found.capsule)

    def empty(self, like: Any, shape: Shape, dtype: str, stream: Optional[int], columns: bool) -> Any:
        """An array beside `like`, allocated for use on `stream` (None: its library's current one). `columns`: the
        columns of a 2-D one are dense."""
        raise TypeError(f"results for a {type(like).__name__} cannot be allocated here: give out=")

    def contiguous(self, array: Any) -> Any:
        """The array itself or a contiguous copy, where the library can make one."""
        return array

    def as_float64(self, array: Any, stream: Optional[int]) -> Any:
        """A copy in float64, made on `stream` (None: the library's current one)."""
        raise NotImplementedError

    def as_real(self, array: Any) -> Any:
        """The memory of a contiguous complex array as real numbers: as many rows, real and imaginary parts in turn."""
        raise TypeError(f"complex vectors of {self.name} are not taken: give real and imaginary parts")

    def as_complex(self, array: Any, shape: Shape) -> Any:
        """The other way round."""
        raise NotImplementedError

    def short_way(self, kind: Type[Any]) -> Optional[ShortWay]:
        """How the compiled part reads arrays of just this class; None: it does not."""
        if not hasattr(kind, "__cuda_array_interface__"):
            return None
        return "interface", {name: numpy.dtype(name).str for name in VECTOR_TYPES}, None, None, None


HOST_ADVICE = "move it to the GPU, or give a NumPy array (which is copied there and back at each product)"


class CuPy(Library):
    name = "CuPy"
    converts = True
    advice = "cupy.ascontiguousarray of it"

    def view(self, array: Any, stream: Optional[int]) -> View:
        device = array.device.id
        if stream is None:
            stream = same_stream(sys.modules["cupy"].cuda.get_current_stream(device).ptr)
        return View(array.data.ptr, dtype_name(array.dtype), array.shape, array.flags.c_contiguous, False, device,
                    stream, array)

    def empty(self, like: Any, shape: Shape, dtype: str, stream: Optional[int], columns: bool) -> Any:
        cupy = sys.modules["cupy"]
        with like.device, self._on(stream):
            return cupy.empty(shape, dtype=dtype, order="F" if columns else "C")

    def _on(self, stream: Optional[int]) -> ContextManager[Any]:
        """Memory of a pool belongs to a stream: that of a result to the stream that writes it."""
        cuda = sys.modules["cupy"].cuda
        if stream is None or same_stream(cuda.get_current_stream().ptr) == stream:
            return nullcontext()
        if hasattr(cuda.Stream, "from_external"):
            found: ContextManager[Any] = cuda.Stream.from_external(ForeignStream(stream))
            return found
        older: ContextManager[Any] = cuda.ExternalStream(stream)
        return older

    def contiguous(self, array: Any) -> Any:
        return sys.modules["cupy"].ascontiguousarray(array)

    def short_way(self, kind: Type[Any]) -> Optional[ShortWay]:
        cupy = sys.modules["cupy"]
        if kind is not cupy.ndarray:
            return None
        dtypes = {name: numpy.dtype(name) for name in VECTOR_TYPES}
        return "cupy", dtypes, cupy.cuda.get_current_stream, cupy.empty, None

    def as_float64(self, array: Any, stream: Optional[int]) -> Any:
        with array.device, self._on(stream):
            return array.astype("float64")

    def as_real(self, array: Any) -> Any:
        return array.view(COMPLEX[dtype_name(array.dtype)]).reshape(array.shape[0], -1)

    def as_complex(self, array: Any, shape: Shape) -> Any:
        return array.view("complex128" if dtype_name(array.dtype) == "float64" else "complex64").reshape(shape)


class Torch(Library):
    name = "PyTorch"
    converts = True
    advice = "x.contiguous()"

    def view(self, array: Any, stream: Optional[int]) -> View:
        torch = sys.modules["torch"]
        if not array.is_cuda:
            raise TypeError(f"a PyTorch tensor on '{array.device}': move it with .cuda(), or give .numpy() of it (which "
                            "is copied to the GPU and back at each product)")
        if array.layout is not torch.strided:  # sparse ones
            raise TypeError(f"a PyTorch tensor of layout {array.layout}: vectors are dense")
        if array.requires_grad and torch.is_grad_enabled():
            raise TypeError("a PyTorch tensor that requires gradients: these products are not differentiated; use "
                            "cbgen_spmv.torch.Matrix, which are, or .detach(), or torch.no_grad()")
        device = array.device.index
        if stream is None:
            stream = same_stream(torch.cuda.current_stream(device).cuda_stream)
        return View(array.data_ptr(), dtype_name(array.dtype), tuple(array.shape), array.is_contiguous(), False, device,
                    stream, array)

    def empty(self, like: Any, shape: Shape, dtype: str, stream: Optional[int], columns: bool) -> Any:
        torch = sys.modules["torch"]
        kind = getattr(torch, dtype)
        with self._on(like, stream):
            if columns:
                return torch.empty(shape[::-1], dtype=kind, device=like.device).T
            return torch.empty(shape, dtype=kind, device=like.device)

    def _on(self, like: Any, stream: Optional[int]) -> ContextManager[Any]:
        cuda = sys.modules["torch"].cuda
        if stream is None or same_stream(cuda.current_stream(like.device).cuda_stream) == stream:
            return nullcontext()
        found: ContextManager[Any] = cuda.stream(cuda.ExternalStream(stream, device=like.device))
        return found

    def contiguous(self, array: Any) -> Any:
        return array.contiguous() if array.layout is sys.modules["torch"].strided else array  # `view` refuses sparse ones

    def short_way(self, kind: Type[Any]) -> Optional[ShortWay]:
        torch = sys.modules["torch"]
        if kind is not torch.Tensor:
            return None
        dtypes = {name: getattr(torch, name) for name in VECTOR_TYPES + ("bfloat16",)}
        raw = getattr(getattr(torch, "_C", None), "_cuda_getCurrentRawStream", None)
        slow = lambda device: torch.cuda.current_stream(device).cuda_stream
        return "torch", dtypes, raw or slow, None, getattr(kind, "__dlpack_c_exchange_api__", None)

    def as_float64(self, array: Any, stream: Optional[int]) -> Any:
        with self._on(array, stream) if array.is_cuda else nullcontext():
            return array.to(sys.modules["torch"].float64)

    def as_real(self, array: Any) -> Any:
        return sys.modules["torch"].view_as_real(array).reshape(array.shape[0], -1)

    def as_complex(self, array: Any, shape: Shape) -> Any:
        return sys.modules["torch"].view_as_complex(array.reshape(shape + (2,)))


class Numba(Library):
    name = "Numba"

    def empty(self, like: Any, shape: Shape, dtype: str, stream: Optional[int], columns: bool) -> Any:
        return import_module("numba.cuda").device_array(shape, dtype=dtype, order="F" if columns else "C")


class NumPy(Library):
    """Vectors in host memory: `_handles.py` carries them to the GPU and back."""

    name = "NumPy"
    converts = True
    on_host = True

    def contiguous(self, array: Any) -> Any:
        return numpy.ascontiguousarray(array)

    def as_float64(self, array: Any, stream: Optional[int]) -> Any:
        return array.astype("float64")

    def as_real(self, array: Any) -> Any:
        return array.view(COMPLEX[dtype_name(array.dtype)]).reshape(array.shape[0], -1)

    def as_complex(self, array: Any, shape: Shape) -> Any:
        return array.view("complex128" if dtype_name(array.dtype) == "float64" else "complex64").reshape(shape)

    def short_way(self, kind: Type[Any]) -> Optional[ShortWay]:
        return None


UNKNOWN, CUPY, TORCH, NUMBA, NUMPY = Library(), CuPy(), Torch(), Numba(), NumPy()

# module whose class an array is an instance of, the class, the row
TABLE: List[Tuple[str, str, Library]] = [
    ("numpy", "ndarray", NUMPY),
    ("cupy", "ndarray", CUPY),
    ("torch", "Tensor", TORCH),
]
_libraries: Dict[Type[Any], Library] = {}


def find_library(kind: Type[Any]) -> Optional[Library]:
    for module, name, library in TABLE:
        known = getattr(sys.modules.get(module), name, None)
        if isinstance(known, type) and issubclass(kind, known):
            return library
    if kind.__module__.partition(".")[0] in ("numba", "numba_cuda"):
        return NUMBA
    if hasattr(kind, "__cuda_array_interface__") or hasattr(kind, "__dlpack__"):
        return UNKNOWN
    return None


def library_of(array: Any) -> Library:
    """The row for an array. TypeError when it is none, saying what would be one."""
    library = _libraries.get(type(array))
    if library is None:
        library = find_library(type(array))
        if library is None and hasattr(array, "__cuda_array_interface__"):
            return UNKNOWN  # given by this object alone, not by its class
        if library is None:
            raise TypeError(f"a {type(array).__name__} is no array of CuPy, PyTorch, Numba or NumPy, and has neither "
                            "__cuda_array_interface__ nor __dlpack__")
        short_way = None if CALLS is None else library.short_way(type(array))
        if short_way:
            CALLS.learn(type(array), *short_way)
        _libraries[type(array)] = library
    return library


def is_array(thing: Any) -> bool:
    try:
        library_of(thing)
    except TypeError:
        return False
    return hasattr(thing, "shape")
