# SPDX-License-Identifier: Apache-2.0
"""The library's context: options, the GPU, messages and the log."""
from __future__ import annotations

import ctypes
import logging
import os
import threading
import weakref
from typing import Any, Callable, Dict, Optional, Tuple, Union

from . import _abi
from ._driver import open_driver
from ._library import LIBRARY, check
from ._nvrtc import find_nvrtc

LOGGER = logging.getLogger("cbgen")
LOGGER.addHandler(logging.NullHandler())

Log = Union[None, bool, logging.Logger, Callable[[str], None]]


def log_function(log: Log) -> Optional[Callable[[str], None]]:
    if log is False:
        return None
    if log is None or log is True:
        return LOGGER.info
    if isinstance(log, logging.Logger):
        return log.info
    if callable(log):
        return log
    raise TypeError(f"log= is {type(log).__name__}; it takes a logging.Logger, a function of one line, or False")


def option_text(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def current_device() -> int:
    """The GPU whose context is current on this thread, else 0."""
    return open_driver().current_device() or 0


def destroy(handle: ctypes.c_void_p, pid: int) -> None:
    if os.getpid() == pid:  # a forked child has no GPU: the context is its parent's
        LIBRARY.cbgen_context_destroy(handle)


class Context:
    """Options under which matrices are compiled, and the GPU that they are compiled for.

        context = cbgen.Context(device=1, tune="measure", cache="/scratch/kernels", log=print)
        A = cbgen.compile(matrix, context=context)

    Options are those of `cbgen help options` and of `cbgen_set` in cbgen.h, dashes written as underscores:
    `cache_limit="512M"`, `recipe="sell"`, `sell_lanes=8`. What compiling did goes to the logger "cbgen" at level INFO,
    or where `log` says. A context may be shared by threads; calls that compile take turns.
    """

    def __init__(self, *, device: Optional[int] = None, log: Log = None, **options: Any) -> None:
        handle = ctypes.c_void_p()
        self._lock = threading.RLock()
        check(LIBRARY.cbgen_context_create(ctypes.byref(handle)), lambda _: b"out of memory for a context", None)
        self._handle = handle
        self._finalizer = weakref.finalize(self, destroy, handle, os.getpid())
        self._set_log(log_function(log))
        self._device: Optional[int] = None
        options.setdefault("nvrtc", find_nvrtc())
        for name, value in options.items():
            if value is not None:
                self.set(name, value)
        if device is not None:
            self._choose(device)

    def _set_log(self, function: Optional[Callable[[str], None]]) -> None:
        if function is None:
            self._log = _abi.LOG()
        else:
            call: Callable[[str], None] = function
            self._log = _abi.LOG(lambda _, line: call(line.decode(errors="replace")))
        self.check(LIBRARY.cbgen_set_log(self._handle, self._log, None))

    @property
    def device(self) -> Optional[int]:
        """The number of the GPU; None until one was given or needed."""
        return self._device

    def set(self, name: str, value: Any) -> None:
        """Sets an option for what is compiled from now on. cbgen.ArgumentError: there is no such option or value."""
        if name == "device":
            raise TypeError("the GPU is chosen when a context is made: Context(device=…)")
        with self._lock:
            self.check(LIBRARY.cbgen_set(self.handle(), name.replace("_", "-").encode(), option_text(value).encode()))

    def close(self) -> None:
        """Gives the context back at once. Operators compiled with it live on."""
        with self._lock:
            self._finalizer()

    def __enter__(self) -> Context:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<cbgen.Context on {'no GPU yet' if self._device is None else f'GPU {self._device}'}>"

    # what compile, load and generate need

    def handle(self) -> ctypes.c_void_p:
        if not self._finalizer.alive:
            raise ValueError("the context is closed")
        return self._handle

    def check(self, status: int) -> None:
        check(status, LIBRARY.cbgen_message, self._handle)

    def _choose(self, device: int) -> None:
        with self._lock:
            self.check(LIBRARY.cbgen_set(self.handle(), b"device", str(device).encode()))
            self._device = device

    def choose_device(self, wanted: Optional[int]) -> int:
        """The GPU to compile for: the context's, else the wanted one (where a matrix lies), else the current one."""
        with self._lock:
            if self._device is None:
                self._choose(current_device() if wanted is None else wanted)
            chosen: int = self._device or 0
            if wanted is not None and wanted != chosen:
                raise ValueError(f"the matrix lies on GPU {wanted}, the context is on GPU {chosen}: give a context "
                                 f"with device={wanted}, or none")
            return chosen


_shared: Dict[Tuple[Any, ...], Context] = {}
_shared_lock = threading.Lock()


def forget() -> None:
    """In a forked child: its parent's contexts are of no use there."""
    global _shared_lock
    _shared_lock = threading.Lock()
    _shared.clear()


os.register_at_fork(after_in_child=forget)


def shared_context(device: Optional[int], options: Dict[str, Any]) -> Context:
    """The context of all callers who bring none, one for each GPU and choice of options. It stays, and with it what the
    library has opened and compiled for its own use on that GPU."""
    device = current_device() if device is None else device
    texts = sorted((name, option_text(value)) for name, value in options.items() if value is not None)
    key = (device, tuple(texts), os.environ.get("CBGEN_CACHE_DIR"), os.environ.get("CBGEN_NVRTC"))
    with _shared_lock:
        if key not in _shared:
            _shared[key] = Context(device=device, **options)
        return _shared[key]
