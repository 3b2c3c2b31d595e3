# SPDX-License-Identifier: Apache-2.0
"""The few calls of the CUDA driver that this package makes itself, through ctypes.

They serve vectors in host memory (upload, multiply, download), the choice of a GPU, and waiting before an operator is
freed. Products with vectors on the GPU make none of them. Like the library, this opens $CBGEN_LIBCUDA, else
libcuda.so.1, and works in a GPU's primary context: the one that CuPy, PyTorch and Numba use.
"""
from __future__ import annotations

import ctypes
import os
import threading
from contextlib import contextmanager
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p
from types import TracebackType
from typing import Any, Dict, Iterator, Optional, Type

from ._errors import ArgumentError, DeviceError, Error, MissingError, OutOfMemoryError

OUT_OF_MEMORY = 2
NO_DEVICE = 100  # CUDA_ERROR_NO_DEVICE
NO_GPU = ("the CUDA driver shows no GPU (does CUDA_VISIBLE_DEVICES hide them?): products need one; cbgen.generate works "
          "without")
POINTER_DEVICE_ORDINAL = 9  # CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
CAPTURE_MODE_RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED

PROTOTYPES = {
    "cuInit": (c_uint,),
    "cuDeviceGet": (POINTER(c_int), c_int),
    "cuDeviceGetCount": (POINTER(c_int),),
    "cuDevicePrimaryCtxRetain": (POINTER(c_void_p), c_int),
    "cuCtxPushCurrent_v2": (c_void_p,),
    "cuCtxPopCurrent_v2": (POINTER(c_void_p),),
    "cuCtxSynchronize": (),
    "cuMemAlloc_v2": (POINTER(c_uint64), c_size_t),
    "cuMemFree_v2": (c_uint64,),
    "cuMemcpyHtoD_v2": (c_uint64, c_void_p, c_size_t),
    "cuMemcpyDtoH_v2": (c_void_p, c_uint64, c_size_t),
}

# what these would have told stays unknown where a driver lacks them
OPTIONAL = {
    "cuGetErrorString": (c_int, POINTER(c_char_p)),
    "cuCtxGetCurrent": (POINTER(c_void_p),),
    "cuCtxGetDevice": (POINTER(c_int),),
    "cuPointerGetAttribute": (c_void_p, c_int, c_uint64),
    "cuThreadExchangeStreamCaptureMode": (POINTER(c_int),),
}


class Driver:
    """libcuda, opened and initialised; `open_driver` gives the one of this process."""

    def __init__(self) -> None:
        path = os.environ.get("CBGEN_LIBCUDA") or "libcuda.so.1"
        try:
            self.library = ctypes.CDLL(path)
        except OSError as failure:
            raise MissingError(f"cannot open the CUDA driver ({failure}): products need an NVIDIA GPU and its driver; "
                               "cbgen.generate works without") from None
        for name, arguments in PROTOTYPES.items():
            self._bind(name, arguments)
        self._optional = {name for name, arguments in OPTIONAL.items() if self._has(name, arguments)}
        result = self.library.cuInit(0)
        if result == NO_DEVICE:
            raise MissingError(NO_GPU)
        self.check(result, "initialise the CUDA driver" + (
            " in a forked process, whose parent must not have used it" if _forked else ""))

    def _bind(self, name: str, arguments: Any) -> None:
        try:
            function = getattr(self.library, name)
        except AttributeError:
            raise MissingError(f"{self.library._name} has no '{name}': it is no CUDA driver that cbgen knows") from None
        function.restype, function.argtypes = c_int, arguments

    def _has(self, name: str, arguments: Any) -> bool:
        try:
            self._bind(name, arguments)
        except MissingError:
            return False
        return True

    def address_of(self, name: str) -> int:
        """Of a function; 0 where the driver lacks it."""
        return ctypes.cast(self.library[name], c_void_p).value or 0 if self._has(name, OPTIONAL[name]) else 0

    def words(self, result: int) -> str:
        text = c_char_p()
        if "cuGetErrorString" in self._optional and not self.library.cuGetErrorString(result, byref(text)):
            return (text.value or b"").decode(errors="replace")
        return f"CUDA error {result}"

    def check(self, result: int, what: str) -> None:
        if result == OUT_OF_MEMORY:
            raise OutOfMemoryError(f"cannot {what}: out of memory on the GPU")
        if result:
            raise DeviceError(f"cannot {what}: {self.words(result)}")

    def devices(self) -> int:
        """How many GPUs there are; MissingError for none."""
        count = c_int()
        self.check(self.library.cuDeviceGetCount(byref(count)), "count the GPUs")
        if not count.value:
            raise MissingError(NO_GPU)
        return count.value

    def handle(self, ordinal: int) -> int:
        found = c_int()
        self.check(self.library.cuDeviceGet(byref(found), ordinal), f"find GPU {ordinal}")
        return found.value

    def current_device(self) -> Optional[int]:
        """The GPU whose context is current on this thread, None without one."""
        context, device = c_void_p(), c_int()
        if not {"cuCtxGetCurrent", "cuCtxGetDevice"} <= self._optional:
            return None
        if self.library.cuCtxGetCurrent(byref(context)) or not context.value:
            return None
        if self.library.cuCtxGetDevice(byref(device)):
            return None
        return next((ordinal for ordinal in range(self.devices()) if self.handle(ordinal) == device.value), None)

    def device_of(self, pointer: int) -> Optional[int]:
        """The GPU that memory lies on; None when the driver does not say."""
        ordinal = c_int(-1)
        if "cuPointerGetAttribute" not in self._optional or not pointer:
            return None
        failed = self.library.cuPointerGetAttribute(byref(ordinal), POINTER_DEVICE_ORDINAL, pointer)
        return None if failed or ordinal.value < 0 else ordinal.value

    def relax_capture(self, mode: int) -> int:
        """Lets this thread make calls that a capture elsewhere would forbid; gives the mode to restore."""
        wanted = c_int(mode)
        if "cuThreadExchangeStreamCaptureMode" in self._optional:
            self.library.cuThreadExchangeStreamCaptureMode(byref(wanted))
        return wanted.value


class Device:
    """A GPU with its primary context, which stays alive until the process ends. `with device:` makes it current."""

    def __init__(self, driver: Driver, ordinal: int) -> None:
        self.driver, self.ordinal, self.context, self._pid = driver, ordinal, c_void_p(), os.getpid()
        devices = driver.devices()
        if not 0 <= ordinal < devices:
            raise ArgumentError(f"there is no GPU {ordinal}; the driver shows {devices}, counted from 0")
        driver.check(driver.library.cuDevicePrimaryCtxRetain(byref(self.context), driver.handle(ordinal)),
                     f"make a context on GPU {ordinal}")

    def __enter__(self) -> Device:
        if os.getpid() != self._pid:
            raise DeviceError(f"GPU {self.ordinal} was opened before this process was forked, and CUDA works in the parent "
                              "only; open it after the fork, or let multiprocessing spawn its processes")
        self.driver.check(self.driver.library.cuCtxPushCurrent_v2(self.context),
                          f"make the context of GPU {self.ordinal} current")
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.driver.library.cuCtxPopCurrent_v2(byref(c_void_p()))

    # the rest needs the context to be current

    def alloc(self, nbytes: int) -> int:
        address = c_uint64()
        self.driver.check(self.driver.library.cuMemAlloc_v2(byref(address), max(nbytes, 1)),
                          f"allocate {nbytes} bytes on GPU {self.ordinal}")
        return address.value

    def free(self, address: int) -> None:
        self.driver.library.cuMemFree_v2(address)

    def upload(self, to: int, source: int, nbytes: int) -> None:
        if nbytes:
            self.driver.check(self.driver.library.cuMemcpyHtoD_v2(to, source, nbytes), "copy a vector to the GPU")

    def download(self, to: int, source: int, nbytes: int) -> None:
        if nbytes:
            self.driver.check(self.driver.library.cuMemcpyDtoH_v2(to, source, nbytes), "copy a vector from the GPU")

    def wait(self) -> None:
        self.driver.check(self.driver.library.cuCtxSynchronize(), f"wait for GPU {self.ordinal}")

    # the rest makes the context current itself

    @contextmanager
    def idle(self) -> Iterator[None]:
        """Waits for all work before and after."""
        with self:
            self.wait()
            yield
            self.wait()

    def wait_to_free(self) -> None:
        """Waits for all work. A failure is not this caller's: what it frees must be given back all the same."""
        mode = self.driver.relax_capture(CAPTURE_MODE_RELAXED)
        try:
            with self:
                self.wait()
        except Error:
            pass
        self.driver.relax_capture(mode)

    def give_back(self, *addresses: int) -> None:
        """Frees memory; without a word where the driver is already gone, at the end of the process."""
        try:
            with self:
                for address in addresses:
                    self.free(address)
        except Error:
            pass


_lock = threading.Lock()
_driver: Optional[Driver] = None
_devices: Dict[int, Device] = {}
_forked = False


def forget() -> None:
    """In a forked child: what its parent has opened is not its own, and no other thread holds the lock."""
    global _driver, _lock, _forked
    _driver, _lock, _forked = None, threading.Lock(), True
    _devices.clear()


os.register_at_fork(after_in_child=forget)


def open_driver() -> Driver:
    global _driver
    with _lock:
        if _driver is None:
            _driver = Driver()
        return _driver


def open_device(ordinal: int) -> Device:
    driver = open_driver()
    with _lock:
        if ordinal not in _devices:
            _devices[ordinal] = Device(driver, ordinal)
        return _devices[ordinal]
