# SPDX-License-Identifier: Apache-2.0
"""Reads what an array says of itself in a DLPack capsule (https://dmlc.github.io/dlpack).

The capsule is never consumed: it stays the producer's, which keeps the memory alive as long as the capsule lives.
"""
from __future__ import annotations

import ctypes
from ctypes import POINTER, Structure, c_char_p, c_int, c_void_p
from ctypes import c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64
from typing import Any, Dict, NamedTuple, Optional, Tuple

CPU, CUDA, CUDA_MANAGED = 1, 2, 13
READ_ONLY = 1
NAMES: Dict[Tuple[int, int], str] = {  # (type code, bits)
    (0, 32): "int32", (0, 64): "int64", (2, 16): "float16", (2, 32): "float32", (2, 64): "float64", (4, 16): "bfloat16",
    (5, 64): "complex64", (5, 128): "complex128",
}


class Tensor(Structure):
    """DLTensor, flattened."""

    _fields_ = [
        ("data", c_void_p),
        ("device_type", c_int32),
        ("device_id", c_int32),
        ("ndim", c_int32),
        ("code", c_uint8),
        ("bits", c_uint8),
        ("lanes", c_uint16),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    ]


class Managed(Structure):
    """DLManagedTensor: what "dltensor" capsules hold."""

    _fields_ = [("tensor", Tensor), ("manager", c_void_p), ("deleter", c_void_p)]


class ManagedVersioned(Structure):
    """DLManagedTensorVersioned: what "dltensor_versioned" capsules hold, since DLPack 1.0."""

    _fields_ = [("major", c_uint32), ("minor", c_uint32), ("manager", c_void_p), ("deleter", c_void_p),
                ("flags", c_uint64), ("tensor", Tensor)]


_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype, _pointer_of.argtypes = c_void_p, (ctypes.py_object, c_char_p)
_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.restype, _is_valid.argtypes = c_int, (ctypes.py_object, c_char_p)


class Described(NamedTuple):
    pointer: int
    dtype: str
    shape: Tuple[int, ...]
    strides: Optional[Tuple[int, ...]]  # in elements; None: row-major and dense
    readonly: bool
    device_type: int
    device: int
    capsule: object  # to be held as long as the pointer is used


def capsule_of(array: Any, stream: int) -> object:
    """Asks for the versioned capsule, which can say that memory is read-only, else for the old one."""
    wanted = stream or 1  # the protocol's name of the default stream
    try:
        capsule: object = array.__dlpack__(stream=wanted, max_version=(1, 0))
    except TypeError:
        capsule = array.__dlpack__(stream=wanted)
    return capsule


def describe(array: Any, stream: int) -> Described:
    """What the array is, its contents ready on `stream`. TypeError when this is no DLPack capsule that we know."""
    capsule = capsule_of(array, stream)
    readonly = False
    if _is_valid(capsule, b"dltensor_versioned"):
        versioned = ManagedVersioned.from_address(_pointer_of(capsule, b"dltensor_versioned"))
        if versioned.major != 1:
            raise TypeError(f"a DLPack capsule of version {versioned.major}; this package reads version 1")
        tensor, readonly = versioned.tensor, bool(versioned.flags & READ_ONLY)
    elif _is_valid(capsule, b"dltensor"):
        tensor = Managed.from_address(_pointer_of(capsule, b"dltensor")).tensor
    else:
        raise TypeError(f"__dlpack__ of {type(array).__name__} gave no fresh DLPack capsule")
    name = NAMES.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
    return Described(
        pointer=(tensor.data or 0) + tensor.byte_offset,
        dtype=name or f"DLPack type {tensor.code} of {tensor.bits} bits",
        shape=tuple(tensor.shape[i] for i in range(tensor.ndim)),
        strides=tuple(tensor.strides[i] for i in range(tensor.ndim)) if tensor.strides else None,
        readonly=readonly, device_type=tensor.device_type, device=tensor.device_id, capsule=capsule)
