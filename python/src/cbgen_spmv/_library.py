# SPDX-License-Identifier: Apache-2.0
"""Finds libcbgen and opens it once.

In this order: $CBGEN_LIBRARY (a file), libcbgen.so beside this package (wheels carry one), libcbgen.so where pip puts
packages (of an editable install), the environment's own lib (conda's), the loader's own places.
"""
from __future__ import annotations

import ctypes
import os
import re
import sys
import sysconfig
from typing import Any, Callable, List, Optional, Tuple

from . import _abi
from ._errors import error

HELP = (
    "build it with `cmake -B build && cmake --build build` in cbgen's source tree and set CBGEN_LIBRARY to "
    "build/libcbgen.so, or install the package with its own copy: `pip install .` there"
)

VERSION = "0.1.0"  # of this package; the library's may differ in the last number
SONAME = "libcbgen.so.0.1"


def candidates() -> List[str]:
    named = os.environ.get("CBGEN_LIBRARY")
    if named:
        return [named]
    folders = [os.path.dirname(os.path.abspath(__file__)), os.path.join(sysconfig.get_path("platlib"), "cbgen_spmv")]
    files = [os.path.join(folder, "libcbgen.so") for folder in folders] + [os.path.join(sys.prefix, "lib", SONAME)]
    return [file for file in files if os.path.exists(file)][:1] or [SONAME, "libcbgen.so"]


def bind(library: ctypes.CDLL) -> None:
    """Gives every function its prototype. ImportError when the library lacks one."""
    for name, (result, arguments) in _abi.PROTOTYPES.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            raise ImportError(f"{library._name} has no '{name}': it is older than this package ({VERSION}); {HELP}",
                              name="cbgen_spmv", path=library._name) from None
        function.restype, function.argtypes = result, arguments


def check_version(library: Any) -> None:
    version = library.cbgen_version().decode()
    if version.split(".")[:2] != VERSION.split(".")[:2]:
        raise ImportError(f"{library._name} is cbgen {version}, this package is for {VERSION}; {HELP}",
                          name="cbgen_spmv", path=library._name)


def open_library() -> ctypes.CDLL:
    failures = []
    for path in candidates():
        try:
            library = ctypes.CDLL(path)
        except OSError as failure:
            failures.append(str(failure))
            continue
        bind(library)
        check_version(library)
        return library
    raise ImportError(f"cannot open libcbgen ({'; '.join(failures)}): {HELP}", name="cbgen_spmv")


LIBRARY: Any = open_library()


def check(status: int, message_of: Callable[[Any], Optional[bytes]], handle: Any) -> None:
    """Raises what `status` stands for, with the message that the library left in `handle`."""
    if status:
        text = message_of(handle) or LIBRARY.cbgen_status_name(status)
        raise error(status, text.decode(errors="replace"))


def recipe_of(plan_json: bytes) -> str:
    """The recipe's name, which stands near the beginning of a plan's JSON; the whole can be megabytes long."""
    found = re.search(rb'"recipe": *"([^"]*)"', plan_json)
    return found[1].decode() if found else "unknown"


def text_of(function: Any, handle: Any) -> str:
    """The result of a function that gives text, and its length where it takes a place for one."""
    arguments: Tuple[Any, ...] = (handle,) if len(function.argtypes) == 1 else (handle, None)
    found: Optional[bytes] = function(*arguments)
    return (found or b"").decode(errors="replace")
