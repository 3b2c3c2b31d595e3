# SPDX-License-Identifier: Apache-2.0
"""What the tests of the Python package share: the fake CUDA as an application sees it, arrays in its memory that
describe themselves in every way that libraries do, and matrices.

The environment names libcbgen (CBGEN_LIBRARY) and the fake (CBGEN_LIBCUDA, CBGEN_NVRTC, CBGEN_FAKE_CUDA).
"""
import ctypes
import gc
import os
import unittest

import numpy
import scipy.sparse

import cbgen_spmv as cbgen

FAKE = ctypes.CDLL(os.environ["CBGEN_FAKE_CUDA"])
for function, result, arguments in [
    ("fake_reset", None, []), ("fake_alloc", ctypes.c_uint64, [ctypes.c_int, ctypes.c_size_t]),
    ("fake_free", None, [ctypes.c_uint64]), ("fake_set_current", None, [ctypes.c_int]),
    ("fake_put", ctypes.c_int, [ctypes.c_uint64, ctypes.c_void_p, ctypes.c_size_t]),
    ("fake_take", ctypes.c_int, [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_size_t]),
    ("fake_stream", ctypes.c_void_p, [ctypes.c_int, ctypes.c_uint]), ("fake_stream_free", None, [ctypes.c_void_p]),
    ("fake_set", ctypes.c_int, [ctypes.c_char_p, ctypes.c_long]), ("fake_get", ctypes.c_long, [ctypes.c_char_p]),
    ("fake_complaint", ctypes.c_char_p, []),
]:
    getattr(FAKE, function).restype, getattr(FAKE, function).argtypes = result, arguments


def fake_get(name):
    return FAKE.fake_get(name.encode())


class Stream:
    """A stream as CuPy's: its handle is `ptr`."""

    def __init__(self, device=0):
        self.ptr = FAKE.fake_stream(device, 1)

    def __del__(self):
        FAKE.fake_stream_free(self.ptr)


class Graph:
    """What a stream is given within `with` is recorded, and done by each launch."""

    def __init__(self, stream):
        self.stream, self.graph, self.runnable = ctypes.c_void_p(stream.ptr), ctypes.c_void_p(), ctypes.c_void_p()

    def __enter__(self):
        assert FAKE.cuCtxPushCurrent_v2(cbgen._driver.open_device(0).context) == 0
        assert FAKE.cuStreamBeginCapture_v2(self.stream, 0) == 0
        return self

    def __exit__(self, kind, *_):
        ended = FAKE.cuStreamEndCapture(self.stream, ctypes.byref(self.graph))
        if kind is None:
            assert ended == 0
            assert FAKE.cuGraphInstantiateWithFlags(ctypes.byref(self.runnable), self.graph, ctypes.c_ulonglong(0)) == 0

    def launch(self, stream):
        assert FAKE.cuGraphLaunch(self.runnable, ctypes.c_void_p(stream.ptr)) == 0

    def close(self):
        assert FAKE.cuGraphExecDestroy(self.runnable) == 0 and FAKE.cuGraphDestroy(self.graph) == 0
        assert FAKE.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p())) == 0


class Memory:
    """A block of the application's on a GPU."""

    def __init__(self, nbytes, device=0):
        self.address, self.device = FAKE.fake_alloc(device, max(nbytes, 1)), device
        assert self.address, "the fake has no memory left"

    def __del__(self):
        FAKE.fake_free(self.address)


class DeviceArray:
    """Memory on the GPU with a shape, strides in bytes and a dtype. Subclasses say so in some library's way."""

    def __init__(self, content, device=0, *, offset=0, shape=None, strides=None, stream=None, readonly=False):
        content = numpy.asarray(content)
        self._base, self._offset, self._device, self._stream, self._readonly = None, offset, device, stream, readonly
        self._shape = content.shape if shape is None else shape
        self._strides, self._dtype = strides, content.dtype
        packed = numpy.ascontiguousarray(content)
        self._memory = Memory(offset + packed.nbytes, device)
        if packed.nbytes:
            assert FAKE.fake_put(self._memory.address + offset, packed.ctypes.data, packed.nbytes)

    @property
    def address(self):
        return self._memory.address + self._offset

    @property
    def shape(self):
        return self._shape

    def put(self, content):
        packed = numpy.ascontiguousarray(content, self._dtype)
        assert FAKE.fake_put(self.address, packed.ctypes.data, packed.nbytes)

    def get(self):
        """The contents as NumPy's: of a contiguous array."""
        result = numpy.empty(self._shape, self._dtype)
        if result.nbytes:
            assert FAKE.fake_take(result.ctypes.data, self.address, result.nbytes)
        return result


class InterfaceArray(DeviceArray):
    """Says what it is by __cuda_array_interface__, version 3, or 2 where it has no stream."""

    @property
    def __cuda_array_interface__(self):
        found = {"shape": self._shape, "typestr": self._dtype.str, "data": (self.address, self._readonly),
                 "strides": self._strides, "version": 3}
        if self._stream is None:
            return {**found, "version": 2}
        return {**found, "stream": self._stream}


class DLPackArray(DeviceArray):
    """Says what it is by DLPack: versioned capsules where they are asked for and `versions` allows it."""

    versions = True
    device_type = 2

    def __dlpack_device__(self):
        return self.device_type, self._device

    def __dlpack__(self, *, stream=None, **more):
        if more and not self.versions:
            raise TypeError("unexpected keyword argument 'max_version'")
        self.asked_stream = stream
        return dlpack_capsule(self, versioned="max_version" in more)


TENSOR = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int), ("device_id", ctypes.c_int), ("ndim", ctypes.c_int),
          ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.c_void_p),
          ("strides", ctypes.c_void_p), ("byte_offset", ctypes.c_uint64)]
OLD = type("Old", (ctypes.Structure,), {"_fields_": TENSOR + [("manager", ctypes.c_void_p), ("delete", ctypes.c_void_p)]})
NEW = type("New", (ctypes.Structure,), {
    "_fields_": [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("manager", ctypes.c_void_p),
                 ("delete", ctypes.c_void_p), ("flags", ctypes.c_uint64)] + TENSOR})
new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


def dlpack_capsule(array, versioned):
    managed = NEW() if versioned else OLD()
    if versioned:
        managed.major, managed.minor, managed.flags = 1, 0, 1 if array._readonly else 0
    count, item = len(array._shape), array._dtype.itemsize
    shape = (ctypes.c_int64 * max(count, 1))(*array._shape)
    strides = (ctypes.c_int64 * max(count, 1))(*[step // item for step in array._strides or ()])
    managed.data, managed.byte_offset = array._memory.address, array._offset
    managed.device_type, managed.device_id, managed.ndim = array.device_type, array._device, count
    managed.code = {"i": 0, "f": 2}[array._dtype.kind]
    managed.bits, managed.lanes = 8 * item, 1
    managed.shape = ctypes.addressof(shape)
    managed.strides = ctypes.addressof(strides) if array._strides else None
    array._kept = managed, shape, strides
    return new_capsule(ctypes.addressof(managed), b"dltensor_versioned" if versioned else b"dltensor", None)


class DLTensor(ctypes.Structure):
    """As DLPack has it."""

    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


DLPACK_READ = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(DLTensor))
DLPACK_CURRENT = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))


class DLPackFunctions(ctypes.Structure):
    """DLPackExchangeAPI, which classes offer as __dlpack_c_exchange_api__."""

    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("older", ctypes.c_void_p),
                ("allocate", ctypes.c_void_p), ("from_object", ctypes.c_void_p), ("to_object", ctypes.c_void_p),
                ("read", DLPACK_READ), ("current_stream", DLPACK_CURRENT)]


class FakeCase(unittest.TestCase):
    """Every test starts with a current GPU 0 and no cache, and leaves nothing on the GPU and no complaint of the fake."""

    @classmethod
    def setUpClass(cls):
        os.environ["CBGEN_CACHE_DIR"] = ""

    def setUp(self):
        cbgen._context._shared.clear()
        gc.collect()
        FAKE.fake_reset()
        cbgen._driver._devices.clear()  # contexts that the fake just forgot
        self.before = {name: fake_get(name) for name in ("blocks", "modules", "streams", "pinned")}

    def tearDown(self):
        cbgen._context._shared.clear()
        gc.collect()
        self.assertEqual({name: fake_get(name) for name in self.before}, self.before)
        self.assertEqual(FAKE.fake_complaint(), b"")

    def refuses(self, kind, words, function, *arguments, **more):
        """The call raises `kind` with a message that has these words in it."""
        with self.assertRaises(kind) as caught:
            function(*arguments, **more)
        self.assertIn(words, str(caught.exception))
        return caught.exception


def matrix(rows=40, cols=40, dtype=numpy.float64, seed=1, density=0.15):
    """CSR of small integers: products of integer vectors are exact."""
    generator = numpy.random.default_rng(seed)
    dense = generator.integers(-4, 5, (rows, cols)) * (generator.random((rows, cols)) < density)
    return scipy.sparse.csr_matrix(dense.astype(dtype))


def vector(length, dtype=numpy.float64, seed=2):
    return numpy.random.default_rng(seed).integers(-8, 9, length).astype(dtype)
