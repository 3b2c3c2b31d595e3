# SPDX-License-Identifier: Apache-2.0
"""cbgen_spmv: a sparse matrix in, a CUDA kernel made for that matrix out.

    import cbgen_spmv as cbgen
    A = cbgen.compile(csr)      # a SciPy or CuPy sparse matrix
    y = A @ x                   # CuPy, PyTorch, Numba or NumPy vectors

`compile` and `load` give an `Operator`; `solve` solves systems of equations with one, `power` finds an eigenvalue,
`pagerank` ranks pages, `linear_program` minimises under bounds, a `LinearSolver` again and again; a `Batch` solves many
small systems at once; `Context` holds options; `generate` writes the kernel's text without a GPU.
Whatever the library refuses is a `cbgen.Error`.
"""
from ._abi import Status
from ._algebra import Combination
from ._batch import Batch
from ._context import Context
from ._errors import (ArgumentError, CompileError, DeviceError, Error, FileError, FormatError, InternalError,
                      LimitError, MissingError, OutOfMemoryError, UnsupportedError, WrongError)
from ._kernel import Kernel, generate
from ._library import LIBRARY as _LIBRARY
from ._library import VERSION as __version__
from ._lp import LinearResult, LinearSolver, linear_program
from ._operator import Info, Operator, compile, load
from ._solve import pagerank, power, solve

library_version: str = _LIBRARY.cbgen_version().decode()
"""Of the libcbgen in use."""

__all__ = [
    "ArgumentError", "Batch", "Combination", "CompileError", "Context", "DeviceError", "Error", "FileError", "FormatError", "Info",
    "InternalError", "Kernel", "LimitError", "LinearResult", "LinearSolver", "MissingError", "Operator", "OutOfMemoryError", "Status",
    "UnsupportedError", "WrongError", "__version__", "compile", "generate", "library_version",
    "linear_program", "load", "pagerank", "power", "solve",
]
