# SPDX-License-Identifier: Apache-2.0
"""The library's handles of one operator, and when they are given back.

An operator that has scratch serves one stream at a time, so every stream gets a handle of its own (a clone: the same
kernel and arrays, other scratch) when it is first seen. A vector in host memory goes through two buffers on the GPU.
"""
from __future__ import annotations

import ctypes
import os
import threading
from ctypes import byref
from typing import Any, Dict, Optional, Tuple, Union

from . import _abi, _dlpack
from ._arrays import Number
from ._compiled import CALLS
from ._driver import Device
from ._library import LIBRARY, check
from ._matrix import VALUE_TYPES

PER_THREAD_STREAM = 2  # one name for another stream in every thread
PRODUCT_SIZE = ctypes.sizeof(_abi.Product)
StreamKey = Union[int, Tuple[int, int]]
DLPACK_TYPES = {name: numbers for numbers, name in _dlpack.NAMES.items()}
TYPE_NAMES: Dict[int, str] = {number: name for name, number in VALUE_TYPES.items()}


def parts_of(number: Any) -> Tuple[float, float]:
    """The real and the imaginary part."""
    return float(number.real), float(number.imag)


def stream_key(stream: int) -> StreamKey:
    return (stream, threading.get_ident()) if stream == PER_THREAD_STREAM else stream


class Handles:
    def __init__(self, handle: ctypes.c_void_p, device: Device) -> None:
        self.device = device
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._first: Optional[ctypes.c_void_p] = handle
        self._of_stream: Dict[StreamKey, ctypes.c_void_p] = {}
        self._host: Optional[HostVectors] = None
        self._many = threading.Lock()
        try:
            info = self.info()
        except BaseException:
            self.free()
            raise
        self.has_scratch = bool(info.has_scratch)
        self.mutable = info.values == _abi.Values.MUTABLE
        self.call: Any = None if CALLS is None else self._short_way(info)

    def _short_way(self, info: _abi.Info) -> Any:
        """What the compiled part needs for products. `free` tells it that the handle is gone."""
        CALLS.set_pointer_attribute(self.device.driver.address_of("cuPointerGetAttribute"))
        name = TYPE_NAMES[info.vector_type]
        code, bits = DLPACK_TYPES[name]
        address = ctypes.cast(LIBRARY.cbgen_multiply, ctypes.c_void_p).value
        return CALLS.Call(address, self.first.value, info.rows, info.cols, bits // 8, self.device.ordinal, code, bits,
                          name)

    @property
    def first(self) -> ctypes.c_void_p:
        if self._first is None:
            raise ValueError("the operator is closed")
        return self._first

    def check(self, status: int, handle: Union[None, int, ctypes.c_void_p] = None) -> None:
        if status:
            check(status, LIBRARY.cbgen_operator_message, handle or self.first)

    def info(self) -> _abi.Info:
        info = _abi.Info(struct_size=ctypes.sizeof(_abi.Info))
        self.check(LIBRARY.cbgen_operator_info(self.first, byref(info)))
        return info

    def for_stream(self, stream: int) -> ctypes.c_void_p:
        """The handle whose products may run on a stream beside those of other streams."""
        if not self.has_scratch:
            return self.first
        return self._of_stream.get(stream_key(stream)) or self._new_for(stream_key(stream))

    def address(self, stream: int) -> Optional[int]:
        """The same as a number, for the compiled part."""
        return self.for_stream(stream).value

    def _new_for(self, key: StreamKey) -> ctypes.c_void_p:
        with self._lock:
            if key not in self._of_stream:
                handle = self.first
                if self._of_stream:  # the first stream takes the first handle
                    handle = ctypes.c_void_p()
                    self.check(LIBRARY.cbgen_operator_clone(self.first, byref(handle)))
                self._of_stream[key] = handle
            return self._of_stream[key]

    def multiply(self, stream: int, alpha: Number, x: int, beta: Number, y: int, heads: bool = False) -> None:
        handle = self.for_stream(stream)
        (alpha, alpha_imag), (beta, beta_imag) = parts_of(alpha), parts_of(beta)
        product = _abi.Product(PRODUCT_SIZE, alpha, beta, x, y, stream, heads=heads, alpha_imag=alpha_imag,
                               beta_imag=beta_imag)
        status = LIBRARY.cbgen_multiply(handle, byref(product))
        if status:
            self.check(status, handle)

    def multiply_many(self, stream: int, vectors: int, order: _abi.Order, alpha: Number, x: int, beta: Number,
                      y: int) -> None:
        """X and Y are dense."""
        handle = self.for_stream(stream)
        (alpha, alpha_imag), (beta, beta_imag) = parts_of(alpha), parts_of(beta)
        products = _abi.Products(ctypes.sizeof(_abi.Products), vectors, order, 0, 0, alpha, beta, x, y, stream,
                                 alpha_imag, beta_imag)
        status = LIBRARY.cbgen_multiply_many(handle, byref(products))
        if status:
            self.check(status, handle)

    def multiply_many_host(self, order: _abi.Order, alpha: Number, x: Any, beta: Number, y: Any) -> None:
        """X and Y: NumPy arrays of the operator's type that lie in this order. They have memory on the GPU for the call."""
        device = self.device
        with device:
            if self.mutable:
                device.wait()
            there = device.alloc(x.nbytes + 256 + y.nbytes)
            try:
                y_there = there + (x.nbytes + 255) // 256 * 256
                device.upload(there, x.ctypes.data, x.nbytes)
                if beta != 0:
                    device.upload(y_there, y.ctypes.data, y.nbytes)
                with self._many:  # one product at a time, as with HostVectors
                    self.multiply_many(0, x.shape[1], order, alpha, there, beta, y_there)
                    device.download(y.ctypes.data, y_there, y.nbytes)
            finally:
                device.free(there)

    def host(self, x_bytes: int, y_bytes: int) -> HostVectors:
        with self._lock:
            if self._host is None:
                self.first  # not on behalf of a closed operator
                self._host = HostVectors(self.device, x_bytes, y_bytes)
            return self._host

    def free(self) -> None:
        """Gives everything back, after the products that still run. May be called again, and at interpreter exit."""
        with self._lock:
            first, self._first = self._first, None
            clones, self._of_stream = self._of_stream, {}
            host, self._host = self._host, None
            if self.call is not None:
                self.call.close()
        if first is None or os.getpid() != self._pid:  # a forked child has no GPU: the handles are its parent's
            return
        self.device.wait_to_free()
        if host:
            host.free()
        for handle in clones.values():
            if handle is not first:
                LIBRARY.cbgen_operator_free(handle)
        LIBRARY.cbgen_operator_free(first)


class HostVectors:
    """x and y on the GPU for callers whose vectors are in host memory. One product at a time, on the default stream."""

    def __init__(self, device: Device, x_bytes: int, y_bytes: int) -> None:
        self.lock = threading.Lock()
        self._device, self._x_bytes, self._y_bytes = device, x_bytes, y_bytes
        with device:
            self._x = device.alloc(x_bytes)
            try:
                self._y = device.alloc(y_bytes)
            except BaseException:
                device.free(self._x)
                raise

    def multiply(self, handles: Handles, alpha: Number, x: Any, beta: Number, y: Any, heads: bool = False) -> None:
        """x and y: contiguous NumPy arrays of the operator's type and lengths."""
        with self.lock, self._device:
            if handles.mutable:  # the values may still be on their way on some other stream
                self._device.wait()
            self._device.upload(self._x, x.ctypes.data, self._x_bytes)
            if beta != 0:
                self._device.upload(self._y, y.ctypes.data, self._y_bytes)
            handles.multiply(0, alpha, self._x, beta, self._y, heads)
            self._device.download(y.ctypes.data, self._y, self._y_bytes)

    def free(self) -> None:
        self._device.give_back(self._x, self._y)
