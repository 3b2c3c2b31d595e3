# SPDX-License-Identifier: Apache-2.0
"""The compiled part of the package (_calls.c), where there is one: it makes a product cost one or two microseconds of
the host's time instead of ten to twenty-five. Without it everything works by ctypes alone, with the same results and
errors.

$CBGEN_CALLS: "ctypes" leaves it out; a file's name takes that one. Else it is looked for beside this file and where pip
puts packages (of an editable install).
"""
from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sysconfig
from typing import Any, List

FILE = "_calls.abi3.so"


def load(path: str) -> Any:
    """The module in a file. ImportError: it is none of this Python's."""
    loader = importlib.machinery.ExtensionFileLoader(f"{__package__}._calls", path)
    specification = importlib.util.spec_from_loader(loader.name, loader)
    if specification is None:
        raise ImportError(f"{path} is no extension module")
    module = importlib.util.module_from_spec(specification)
    loader.exec_module(module)
    return module


def places() -> List[str]:
    folders = [os.path.dirname(os.path.abspath(__file__)),
               os.path.join(sysconfig.get_path("platlib"), str(__package__))]
    return [os.path.join(folder, FILE) for folder in folders]


def find() -> Any:
    """The module; None when there is none, or this Python cannot load it (one without a global lock, for example)."""
    named = os.environ.get("CBGEN_CALLS")
    if named:
        return None if named == "ctypes" else load(named)
    for path in places():
        if os.path.exists(path):
            try:
                return load(path)
            except ImportError:
                return None
    return None


CALLS: Any = find()
