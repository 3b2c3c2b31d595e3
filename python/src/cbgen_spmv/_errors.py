# SPDX-License-Identifier: Apache-2.0
"""One exception per status of the library. Each is also the built-in exception that Python programs expect."""
from __future__ import annotations

from typing import Dict, Type

from ._abi import Status


class Error(Exception):
    """What the library refused or could not do. Its text is the library's message; `status` its kind."""

    status: Status = Status.INTERNAL


class ArgumentError(Error, ValueError):
    """An argument or option without meaning, or out of range."""

    status = Status.ARGUMENT


class FormatError(Error, ValueError):
    """Bytes that are not what their format says, or damaged."""

    status = Status.FORMAT


class UnsupportedError(Error, NotImplementedError):
    """Meaningful, but not done by this version."""

    status = Status.UNSUPPORTED


class LimitError(Error, OverflowError):
    """Too large for the types that it would have to fit."""

    status = Status.LIMIT


class OutOfMemoryError(Error, MemoryError):
    """An allocation failed, on the host or on the GPU."""

    status = Status.MEMORY


class FileError(Error, OSError):
    """A file could not be read or written."""

    status = Status.IO


class MissingError(Error, RuntimeError):
    """The machine lacks something: a driver, NVRTC, a GPU."""

    status = Status.MISSING


class CompileError(Error, RuntimeError):
    """The generated text did not compile."""

    status = Status.COMPILE


class DeviceError(Error, RuntimeError):
    """A CUDA call failed."""

    status = Status.DEVICE


class WrongError(Error, ArithmeticError):
    """A check found a wrong result."""

    status = Status.WRONG


class InternalError(Error, RuntimeError):
    """cbgen broke one of its own rules: please report it."""

    status = Status.INTERNAL


CLASSES: Dict[Status, Type[Error]] = {
    each.status: each
    for each in (ArgumentError, FormatError, UnsupportedError, LimitError, OutOfMemoryError, FileError, MissingError,
                 CompileError, DeviceError, WrongError, InternalError)
}


def error(status: int, message: str) -> Error:
    """The exception of a status that is not OK; numbers of a later library become `Error` itself."""
    try:
        return CLASSES[Status(status)](message)
    except ValueError:
        return Error(f"{message} (status {status})")
