# SPDX-License-Identifier: Apache-2.0
"""As much of CuPy, PyTorch and Numba as the package uses, their arrays in the memory of the fake GPU. What the real ones do
is checked by python/tests/gpu_check.py, on a GPU."""
import sys
import types

import numpy
from python_support import FAKE, DeviceArray, InterfaceArray, Stream


def stand_in_cupy():
    """A module with as much of CuPy as the package uses, its arrays in the fake's memory."""
    cupy, cuda = types.ModuleType("cupy"), types.ModuleType("cupy.cuda")
    current = {}

    class Device:
        def __init__(self, number):
            self.id = number

        def __enter__(self):
            self.before, current["device"] = current.get("device", 0), self.id

        def __exit__(self, *_):
            current["device"] = self.before

    class CupyStream(Stream):
        def __enter__(self):
            self.before, current["stream"] = current.get("stream"), self
            return self

        def __exit__(self, *_):
            current["stream"] = self.before

        @classmethod
        def from_external(cls, foreign):
            made = cls.__new__(cls)
            made.ptr = foreign.__cuda_stream__()[1]
            cls.adopted.append(made.ptr)
            return made

        adopted = []

        def __del__(self):
            if self.ptr not in self.adopted:
                super().__del__()

    class ndarray(InterfaceArray):
        def copy(self):
            return type(self)(self.get(), self._device)

        @property
        def data(self):
            return types.SimpleNamespace(ptr=self.address, device_id=self._device)

        @property
        def flags(self):
            return types.SimpleNamespace(c_contiguous=self._strides in (None, (self._dtype.itemsize,)))

        @property
        def dtype(self):
            return self._dtype

        @property
        def device(self):
            return Device(self._device)

        def __getitem__(self, index):  # [:, column] of a dense or column-wise one
            rows, columns = self._shape
            item, column = self._dtype.itemsize, index[1]
            made = ndarray.__new__(ndarray)
            made.__dict__.update(self.__dict__)
            made._shape = (rows,)
            by_column = self._strides == (item, rows * item)
            made._offset = self._offset + column * item * (rows if by_column else 1)
            made._strides = None if by_column else (columns * item,)
            return made

        @property
        def T(self):  # of a dense or column-wise one of two dimensions
            made = ndarray.__new__(ndarray)
            made.__dict__.update(self.__dict__)
            made._shape = self._shape[::-1]
            item = self._dtype.itemsize
            made._strides = (item, made._shape[0] * item) if self._strides is None else None
            return made

        def astype(self, dtype):
            return ndarray(self.numpy().astype(dtype), self._device)

        def view(self, dtype):  # of a dense one, which then has other elements along its last index
            assert self._strides is None
            made = ndarray.__new__(ndarray)
            made.__dict__.update(self.__dict__)
            made._dtype = numpy.dtype(dtype)
            made._shape = self._shape[:-1] + (self._shape[-1] * self._dtype.itemsize // made._dtype.itemsize,)
            return made

        def reshape(self, *shape):
            assert self._strides is None
            made = ndarray.__new__(ndarray)
            made.__dict__.update(self.__dict__)
            made._shape = numpy.empty(self._shape, "u1").reshape(*shape).shape
            return made

        def max(self):
            return self.numpy().max()

        def min(self):
            return self.numpy().min()

        def numpy(self):
            packed = ndarray.__new__(ndarray)
            packed.__dict__.update(self.__dict__)
            if self._strides == (self._dtype.itemsize, self._shape[0] * self._dtype.itemsize):
                packed._shape, packed._strides = self._shape[::-1], None
                return packed.get().T
            return packed.get()

    def empty(shape, dtype, order="C"):
        dtype = numpy.dtype(dtype)
        made = ndarray(numpy.full(shape, numpy.nan, dtype), current.get("device", 0))
        if order == "F":
            made._strides = (dtype.itemsize, shape[0] * dtype.itemsize)
        made.stream_of_memory = current.get("stream")
        return made

    def ascontiguousarray(array):
        if array.flags.c_contiguous:
            return array
        if len(array._shape) == 2:
            return ndarray(numpy.ascontiguousarray(array.numpy()), array._device)
        step, item = array._strides[0], array._dtype.itemsize
        whole = numpy.empty((array._shape[0] - 1) * step // item + 1, array._dtype)
        assert FAKE.fake_take(whole.ctypes.data, array.address, whole.nbytes)
        return ndarray(whole[:: step // item], array._device)

    cupy.ndarray, cupy.empty, cupy.ascontiguousarray, cupy.cuda = ndarray, empty, ascontiguousarray, cuda
    cuda.Stream, cuda.Device = CupyStream, Device
    cuda.get_current_stream = lambda device=-1: current.get("stream") or types.SimpleNamespace(ptr=0)
    return cupy


def stand_in_torch():
    torch, cuda = types.ModuleType("torch"), types.ModuleType("torch.cuda")
    state = {"stream": types.SimpleNamespace(cuda_stream=0), "gradients": True}

    class dtype:
        def __init__(self, name):
            self.name = name

        def __str__(self):
            return "torch." + self.name

    dtype.__module__ = "torch"

    class TorchStream(Stream):
        @property
        def cuda_stream(self):
            return self.ptr

    class Tensor:
        """On the GPU, or in host memory; of one dimension, or two by rows or (its .T) by columns."""

        is_cuda, layout, requires_grad = True, "torch.strided", False

        def __init__(self, content, device=0, cuda=True):
            content = numpy.asarray(content)
            name = {"uint16": "bfloat16"}.get(content.dtype.name, content.dtype.name)
            self.is_cuda, self.shape, self.dtype = cuda, content.shape, getattr(torch, name)
            self.device = types.SimpleNamespace(index=device if cuda else None)
            self.memory = DeviceArray(content, device) if cuda else content
            self.strides = tuple(step // content.itemsize for step in numpy.ascontiguousarray(content).strides)
            self.offset = 0

        def clone(self):
            return type(self)(self.numpy(), self.device.index, self.is_cuda)

        def like(self, shape, strides, offset=0):
            made = Tensor.__new__(Tensor)
            made.__dict__.update(self.__dict__, shape=shape, strides=strides, offset=self.offset + offset)
            return made

        def data_ptr(self):
            address = self.memory.address if self.is_cuda else self.memory.ctypes.data
            return address + self.offset * self.content.itemsize

        @property
        def content(self):  # of each element, as NumPy has it
            return numpy.dtype("uint16" if self.dtype.name == "bfloat16" else self.dtype.name)

        def is_contiguous(self):
            dense = 1
            for extent, stride in zip(reversed(self.shape), reversed(self.strides)):
                if stride != dense:
                    return False
                dense *= extent
            return True

        @property
        def T(self):
            return self.like(self.shape[::-1], self.strides[::-1])

        def __getitem__(self, index):  # one element of host memory, or [:, column]
            if isinstance(index, int):
                return self.memory[index]
            return self.like(self.shape[:1], self.strides[:1], index[1] * self.strides[1])

        def new_empty(self, shape):
            return empty(shape, self.dtype, self.device)

        def contiguous(self):
            return self if self.is_contiguous() else Tensor(self.numpy(), self.device.index, self.is_cuda)

        def to(self, dtype):
            return Tensor(self.numpy().astype(dtype.name), self.device.index, self.is_cuda)

        def max(self):
            return self.numpy().max()

        def min(self):
            return self.numpy().min()

        def detach(self):
            made = self.like(self.shape, self.strides)
            made.requires_grad = False
            return made

        def numpy(self):
            flat = (self.memory.get() if self.is_cuda else self.memory).ravel().view(self.content)[self.offset:]
            steps = [stride * flat.itemsize for stride in self.strides]
            return numpy.lib.stride_tricks.as_strided(flat, self.shape, steps).copy()

        def reshape(self, *shape):
            assert self.is_contiguous()
            shape = numpy.empty(self.shape, "u1").reshape(*shape).shape
            return self.like(shape, numpy.empty(shape, "u1").strides)

        def as_parts(self, name, shape):
            made = self.like(shape, numpy.empty(shape, "u1").strides)
            made.dtype = getattr(torch, name)
            return made

    def view_as_real(tensor):
        return tensor.as_parts({"complex128": "float64", "complex64": "float32"}[tensor.dtype.name], tensor.shape + (2,))

    def view_as_complex(tensor):
        assert tensor.is_contiguous() and tensor.shape[-1] == 2
        return tensor.as_parts({"float64": "complex128", "float32": "complex64"}[tensor.dtype.name], tensor.shape[:-1])

    class SparseTensor:
        layout = "torch.sparse_csr"

        def __init__(self, plain, data=None, **more):
            self.shape, data = plain.shape, plain.data if data is None else data
            self.parts = [Tensor(part, **more) for part in (plain.indptr, plain.indices, data)]

        def crow_indices(self):
            return self.parts[0]

        def col_indices(self):
            return self.parts[1]

        def values(self):
            return self.parts[2]

    def empty(shape, dtype, device):
        made = Tensor(numpy.full(shape, numpy.nan, dtype.name), device.index)
        made.stream_of_memory = state["stream"].cuda_stream
        return made

    class use:
        def __init__(self, stream):
            self.stream = stream

        def __enter__(self):
            self.before, state["stream"] = state["stream"], self.stream

        def __exit__(self, *_):
            state["stream"] = self.before

    for name in ("float64", "float32", "float16", "bfloat16", "complex128", "complex64", "int64", "int32", "bool"):
        setattr(torch, name, dtype(name))
    torch.view_as_real, torch.view_as_complex = view_as_real, view_as_complex
    torch.Tensor, torch.empty, torch.cuda, torch.strided = Tensor, empty, cuda, "torch.strided"
    torch.SparseTensor, torch.is_grad_enabled = SparseTensor, lambda: state["gradients"]
    cuda.Stream, cuda.stream, cuda.current_stream = TorchStream, use, lambda device=None: state["stream"]
    cuda.ExternalStream = lambda handle, device: types.SimpleNamespace(cuda_stream=handle)
    return torch


def stand_in_numba():
    numba, cuda = types.ModuleType("numba"), types.ModuleType("numba.cuda")

    class DeviceNDArray(InterfaceArray):
        """Names no stream in its interface while it has none."""

    DeviceNDArray.__module__ = "numba.cuda.cudadrv.devicearray"

    def device_array(shape, dtype, order):
        return DeviceNDArray(numpy.full(shape, numpy.nan, dtype))

    numba.cuda, cuda.device_array, cuda.DeviceNDArray = cuda, device_array, DeviceNDArray
    sys.modules["numba.cuda"] = cuda
    return numba


CUPY = sys.modules["cupy"] = stand_in_cupy()
TORCH = sys.modules["torch"] = stand_in_torch()
NUMBA = sys.modules["numba"] = stand_in_numba()
