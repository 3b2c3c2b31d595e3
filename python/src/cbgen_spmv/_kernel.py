# SPDX-License-Identifier: Apache-2.0
"""Generation alone: the text of a kernel, on a machine without a GPU."""
from __future__ import annotations

import ctypes
import json
from ctypes import byref
from dataclasses import dataclass
from typing import Any, Optional, Tuple

from . import _abi
from ._context import Context
from ._html import describe as describe_html
from ._html import plan_facts
from ._library import LIBRARY, text_of
from ._matrix import take_matrix, view_matrix


@dataclass(frozen=True, repr=False)
class Kernel:
    """A generated kernel.cu and what belongs to it."""

    source: str
    """The CUDA text with its host part."""
    data: bytes
    """The data image that the text's NAME_load takes (kernel.cbd)."""
    embedded: bool
    """Whether the text carries the data image itself."""
    symbol: str
    """NAME, the prefix of the text's functions."""
    plan: str
    plan_json: Any
    stored_bytes: int
    """What a product reads beside x and y."""

    def __repr__(self) -> str:
        plan = self.plan_json
        return (f"<cbgen.Kernel '{self.symbol}', {plan['rows']} x {plan['cols']}, {plan['nonzeros']} nonzeros, "
                f"{plan['type']}, recipe {plan['recipe']}>")

    def _repr_html_(self) -> str:
        """For notebooks."""
        return describe_html(f"cbgen.Kernel '{self.symbol}'", self.plan_json, plan_facts(self.plan_json), "")


def generate(matrix: Any, *, name: str = "matrix", shape: Optional[Tuple[int, int]] = None,
             context: Optional[Context] = None, **options: Any) -> Kernel:
    """Writes the kernel of a matrix in host memory. Needs no GPU. `options` as for cbgen.Context; "arch" names the GPU
    architecture that it is for."""
    if context is not None and options:
        raise TypeError(f"'{next(iter(options))}' is a matter of the context when one is given")
    used = context or Context(**options)
    views = view_matrix(take_matrix(matrix, shape))
    (suffix, given), handle = views.given(name), ctypes.c_void_p()
    with used._lock:
        used.check(getattr(LIBRARY, "cbgen_generate" + suffix)(used.handle(), byref(given), byref(handle)))
    try:
        return describe(handle)
    finally:
        LIBRARY.cbgen_kernel_free(handle)


def describe(handle: ctypes.c_void_p) -> Kernel:
    length = ctypes.c_size_t()
    data = LIBRARY.cbgen_kernel_data(handle, byref(length))
    return Kernel(
        source=text_of(LIBRARY.cbgen_kernel_source, handle),
        data=ctypes.string_at(data, length.value) if data else b"",
        embedded=bool(LIBRARY.cbgen_kernel_embedded(handle)),
        symbol=text_of(LIBRARY.cbgen_kernel_symbol, handle),
        plan=text_of(LIBRARY.cbgen_kernel_plan, handle),
        plan_json=json.loads(text_of(LIBRARY.cbgen_kernel_plan_json, handle)),
        stored_bytes=LIBRARY.cbgen_kernel_stored_bytes(handle))
