# SPDX-License-Identifier: Apache-2.0
"""The base class of Operator where the package has no compiled part: every call goes the long way, in Python."""
from __future__ import annotations

from typing import Any, Callable

from ._arrays import Number


class Products:
    """What _calls.c has under this name, with the same methods."""

    def multiply(self, x: Any, out: Any = None, *, alpha: Number = 1.0, beta: Number = 0.0, stream: Any = None) -> Any:
        """out = alpha A x + beta out, and gives `out` back. Without `out` a new array like x.

        x: shape (columns,) or (columns, 1), contiguous, of the operator's dtype; out likewise with rows. On a GPU
        nothing is copied, and with `out` nothing is allocated. `stream`: a CUDA stream (of CuPy, PyTorch, Numba, or its
        handle); the caller sees to it that x and out are ready there. None: the current stream of the arrays' library.
        TypeError, ValueError: the arrays do not fit, and what to do about it.
        """
        return self._multiply(x, out, alpha=alpha, beta=beta, stream=stream)

    def matvec(self, x: Any) -> Any:
        """A x as a new array. A vector that is not contiguous is copied first."""
        return self._matvec(x)

    def __matmul__(self, x: Any) -> Any:
        return self._matmul(x)

    def __rmatmul__(self, x: Any) -> Any:
        return self._rmatmul(x)

    multiply.__qualname__ = "Operator.multiply"  # for messages about arguments

    def _plain(self, x: Any, detached: bool) -> Any:
        """What the compiled part takes of PyTorch's: nothing here."""
        return None

    def _bind(self, call: Any, handle_of_stream: Any, check: Any) -> None:
        """What the short way needs; there is none here."""

    # the long way, which is Operator's
    _multiply: Callable[..., Any]
    _matvec: Callable[[Any], Any]
    _matmul: Callable[[Any], Any]
    _rmatmul: Callable[[Any], Any]
