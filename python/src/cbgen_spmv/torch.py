# SPDX-License-Identifier: Apache-2.0
"""Sparse products as PyTorch knows operators: with gradients for x and for the values, for torch.compile and CUDA graphs.

    from cbgen_spmv.torch import Matrix
    A = Matrix(csr)                             # a torch.sparse_csr tensor, or SciPy's or CuPy's
    y = A(x)                                    # A @ x; differentiable in x
    y = A.multiply(x, values)                   # other values of the same pattern: differentiable in both

Importing this module imports PyTorch and registers two operators, torch.ops.cbgen_spmv.product and product_of: kernels
for "cuda" and "cpu", fake kernels, and derivatives. Matrices are named in calls by a key, since an operator takes
tensors, numbers and texts only.

For tensors in host memory the vectors are copied to the GPU and back: for trying things, not for speed.
"""
from __future__ import annotations

import itertools
import threading
import weakref
from typing import Any, Callable, Dict, Optional, Tuple

import torch  # type: ignore[import-not-found,unused-ignore]
from torch.autograd import forward_ad  # type: ignore[import-not-found,unused-ignore]
from torch.compiler import is_compiling  # type: ignore[import-not-found,unused-ignore]

from ._compiled import CALLS
from ._operator import Operator, compile

__all__ = ["Matrix"]

NAMESPACE = "cbgen_spmv"
_matrices: "weakref.WeakValueDictionary[str, Matrix]" = weakref.WeakValueDictionary()
_keys = itertools.count()


def check_real(what: str, tensor: Any) -> None:
    if tensor.is_complex():
        raise TypeError(f"{what} {str(tensor.dtype).rpartition('.')[2]}, whose products have no gradients here: use "
                        "cbgen_spmv.compile")


def csr_tensors(matrix: Any) -> Tuple[Any, Any, Any, Tuple[int, int]]:
    """(values, columns, row pointers, shape), as tensors that share the matrix's memory where they can. TypeError."""
    if isinstance(matrix, torch.Tensor):
        if matrix.layout is not torch.sparse_csr:
            raise TypeError(f"a tensor of layout {matrix.layout} is no sparse matrix here: convert it with "
                            ".to_sparse_csr()")
        parts = matrix.values(), matrix.col_indices(), matrix.crow_indices()
    elif hasattr(matrix, "tocsr"):
        csr = matrix.tocsr()
        parts = csr.data, csr.indices, csr.indptr
        parts = tuple(torch.from_numpy(part) if hasattr(part, "__array_interface__") else torch.from_dlpack(part)
                      for part in parts)
    else:
        raise TypeError(f"a {type(matrix).__name__} is no sparse matrix: give a torch.sparse_csr tensor, or a sparse matrix "
                        "of SciPy or CuPy")
    check_real("the values are", parts[0])
    rows, cols = matrix.shape
    return *parts, (int(rows), int(cols))


class Matrix(torch.nn.Module):  # type: ignore[misc,unused-ignore]
    """A sparse matrix of one pattern, compiled for products with tensors: `A @ x`, `A(x)`, `A.multiply(x, values)`.

    matrix: a torch.sparse_csr tensor, or a sparse matrix of SciPy or CuPy (CSR, else converted). float64, float32,
        float16 or bfloat16. Its arrays are referred to, not copied, and must not change.
    trainable: `values` is a parameter of the module, else a constant.
    options: those of cbgen_spmv.compile but for `values`, `transpose` and `shape`.

    x has the shape (columns,) or (columns, k), and the type of the operator; k columns are multiplied one after the
    other. Gradients for x go through the transposed matrix, which is compiled by the first of them; those for values
    are sampled on the pattern: d/dvalues[i] = sum over k of gradient[row of i, k] x[column of i, k]. Both can be
    differentiated again.

    Values that are a parameter, or that `multiply` is given, are put into place before each product, on its stream: a
    matrix with such values serves one stream at a time. Values that are constant are put there once.

    torch.compile(fullgraph=True) takes `A(x)`; it does not know `@` of modules. For a CUDA graph: run once before the
    capture, backward as well, on the stream that captures.
    """

    def __init__(self, matrix: Any, *, trainable: bool = False, **options: Any) -> None:
        super().__init__()
        for name in ("values", "transpose", "shape"):
            if name in options:
                raise TypeError(f"'{name}' is no option here: see cbgen_spmv.torch.Matrix")
        values, columns, pointers, self.shape = csr_tensors(matrix)
        self.register_buffer("columns", columns, persistent=False)
        self.register_buffer("pointers", pointers, persistent=False)
        if trainable:
            self.values = torch.nn.Parameter(values.detach().clone())
        else:
            self.register_buffer("values", values.detach(), persistent=False)
        self.options, self._rows_of_values = options, None
        if trainable:
            self.rows
        self._begin()

    def _begin(self) -> None:
        self._key = str(next(_keys))
        self._operators: Dict[Tuple[bool, bool], Operator] = {}
        self._plain: Dict[bool, Callable[[Any, bool], Any]] = {}  # transposed or not, of operators with constant values
        self._lock = threading.RLock()
        _matrices[self._key] = self

    def __getstate__(self) -> Dict[str, Any]:
        left_out = ("_key", "_operators", "_plain", "_lock")
        return {name: value for name, value in self.__dict__.items() if name not in left_out}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        super().__setstate__(state)
        self._begin()

    @property
    def trainable(self) -> bool:
        return "values" in self._parameters

    @property
    def rows(self) -> Any:
        """The row of each value, made when it is first needed: at once where values are a parameter."""
        found = self._rows_of_values
        if found is None or found.device != self.pointers.device:
            counts = self.pointers[1:] - self.pointers[:-1]
            found = torch.repeat_interleave(torch.arange(self.shape[0], device=counts.device), counts,
                                            output_size=self.values.shape[0])  # known to a compiler, too
            if not torch.compiler.is_compiling():
                self._rows_of_values = found
        return found

    def operator(self, transposed: bool = False, mutable: bool = False) -> Operator:
        """The operator that multiplies, compiled when it is first asked for. `mutable`: whose values may be renewed."""
        with self._lock:
            found = self._operators.get((transposed, mutable))
            if found is None:
                parts = self.values.detach(), self.columns, self.pointers
                found = compile(parts, shape=self.shape, transpose=transposed, keep_matrix=False,
                                values="mutable" if mutable else "stored", **self.options)
                self._operators[(transposed, mutable)] = found
                if not mutable:
                    self._plain[transposed] = found._plain
            return found

    def forward(self, x: Any) -> Any:
        """A x."""
        if self.trainable:
            return self.multiply(x, self.values)
        return self._product(x, False)

    def _product(self, x: Any, transposed: bool) -> Any:
        """With constant values. Most calls end at `plain`, which is compiled."""
        if not is_compiling():
            plain = self._plain.get(transposed)
            if plain is not None:
                found = plain(x, not torch.is_grad_enabled())
                if found is not None:
                    return found
            if plainly(x):
                return Product.apply(x, self, transposed) if learns(x) else product(x, self._key, transposed)
        return torch.ops.cbgen_spmv.product(x, self._key, transposed)

    def __matmul__(self, x: Any) -> Any:
        return self(x)

    def multiply(self, x: Any, values: Any) -> Any:
        """The product of the matrix that has these values, one for each of `self.values`."""
        return call_product_of(values, x, self.rows, self.columns, self._key, False)

    def extra_repr(self) -> str:
        return f"{self.shape[0]} x {self.shape[1]}, {self.values.numel()} values" + ", trainable" * self.trainable


# ---- the operators

def run(operator: Operator, x: Any) -> Any:
    """x of one or two dimensions, contiguous or not, on a GPU or in host memory. ValueError, TypeError: see Operator."""
    if x.device.type == "cpu":
        host = x.detach().numpy()
        return torch.from_numpy(operator._matvec(host) if host.ndim == 1 else operator.matmat(host))
    if x.requires_grad:
        x = x.detach()
    if x.dim() != 2:
        return operator.matvec(x)
    lines = x.t().contiguous()
    out = x.new_empty((lines.shape[0], operator.shape[0]))
    for line, result in zip(lines.unbind(), out.unbind()):
        operator.multiply(line, out=result)
    return out.t()


def matrix_of(key: str) -> Matrix:
    found = _matrices.get(key)
    if found is None:
        raise ValueError(f"the matrix with the key '{key}' is gone: the module that made it must live on")
    return found


def check_vectors(x: Any, key: str, transposed: bool) -> Tuple[int, ...]:
    """The shape of the product."""
    check_real("x is", x)
    shape = matrix_of(key).shape
    rows, cols = shape[::-1] if transposed else shape
    if x.dim() not in (1, 2) or x.shape[0] != cols:
        raise ValueError(f"x has shape {tuple(x.shape)}; a matrix of {rows} x {cols} takes ({cols},) or ({cols}, k)")
    return (rows, *x.shape[1:])


def product(x: Any, key: str, transposed: bool) -> Any:
    check_vectors(x, key, transposed)
    return run(matrix_of(key).operator(transposed), x)


def product_of(values: Any, x: Any, rows: Any, columns: Any, key: str, transposed: bool) -> Any:
    check_vectors(x, key, transposed)
    check_real("the values are", values)
    operator = matrix_of(key).operator(transposed, True)
    given = values.detach().contiguous()
    operator.update_values(given if given.is_cuda else given.numpy())
    return run(operator, x)


def fake_product(x: Any, key: str, transposed: bool) -> Any:
    shape = check_vectors(x, key, transposed)
    return x.new_empty(shape[::-1]).t() if len(shape) == 2 else x.new_empty(shape)


def fake_product_of(values: Any, x: Any, rows: Any, columns: Any, key: str, transposed: bool) -> Any:
    check_real("the values are", values)
    if values.shape != columns.shape:
        raise ValueError(f"{values.shape[0]} values for a pattern of {columns.shape[0]}")
    return fake_product(x, key, transposed)


# ---- derivatives


def keep_product(ctx: Any, inputs: Tuple[Any, ...], output: Any) -> None:
    _, ctx.key, ctx.transposed = inputs


def derive_product(ctx: Any, gradient: Any) -> Tuple[Any, ...]:
    return matrix_of(ctx.key)._product(gradient, not ctx.transposed), None, None


def keep_product_of(ctx: Any, inputs: Tuple[Any, ...], output: Any) -> None:
    *tensors, ctx.key, ctx.transposed = inputs
    ctx.save_for_backward(*tensors)


def sampled(gradient: Any, x: Any, rows: Any, columns: Any) -> Any:
    """Of the outer product of two vectors, or of the sum of several, what lies on the pattern."""
    products = gradient.index_select(0, rows) * x.index_select(0, columns)
    return products if products.dim() == 1 else products.sum(1)


def derive_product_of(ctx: Any, gradient: Any) -> Tuple[Any, ...]:
    values, x, rows, columns = ctx.saved_tensors
    of_values = of_x = None
    if ctx.needs_input_grad[0]:
        across = (columns, rows) if ctx.transposed else (rows, columns)
        of_values = sampled(gradient, x, *across).to(values.dtype)
    if ctx.needs_input_grad[1]:
        of_x = call_product_of(values, gradient, rows, columns, ctx.key, not ctx.transposed)
    return of_values, of_x, None, None, None, None


# ---- plain calls: PyTorch's dispatcher and its bookkeeping take 10 to 15 microseconds, these 1 to 5


class Product(torch.autograd.Function):  # type: ignore[misc,unused-ignore]
    """With constant values, for an x that learns. It holds the matrix: the module may go before its gradients come."""

    @staticmethod
    def forward(ctx: Any, x: Any, matrix: Matrix, transposed: bool) -> Any:
        ctx.matrix, ctx.transposed = matrix, transposed
        plain = matrix._plain.get(transposed)
        found = None if plain is None else plain(x, True)
        return product(x, matrix._key, transposed) if found is None else found

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Tuple[Any, ...]:
        return ctx.matrix._product(gradient, not ctx.transposed), None, None

    @staticmethod
    def jvp(ctx: Any, tangent: Any, *_: Any) -> Any:
        return ctx.matrix._product(tangent, ctx.transposed)


class ProductOf(torch.autograd.Function):  # type: ignore[misc,unused-ignore]
    @staticmethod
    def forward(ctx: Any, values: Any, x: Any, rows: Any, columns: Any, key: str, transposed: bool) -> Any:
        ctx.key, ctx.transposed = key, transposed
        ctx.save_for_backward(values, x, rows, columns)
        return product_of(values, x, rows, columns, key, transposed)

    backward = staticmethod(derive_product_of)


PLAIN_TYPES = (torch.Tensor, torch.nn.Parameter)
_names = ("_are_functorch_transforms_active", "_len_torch_dispatch_stack", "_is_tracing")
LISTENERS: Tuple[Callable[[], Any], ...] = tuple(getattr(torch._C, name) for name in _names if hasattr(torch._C, name))
_knows_all = len(LISTENERS) == len(_names)


def carries_tangents() -> bool:
    """Whether derivatives go along with tensors: torch.autograd.forward_ad."""
    return bool(getattr(forward_ad, "_current_level", -1) >= 0)


if CALLS is not None:
    CALLS.set_listeners(LISTENERS + (carries_tangents,) if _knows_all else ())


def plainly(x: Any) -> bool:
    """Whether nobody listens to calls or gives tensors another meaning: no compiler, transform, mode, tracer or subclass."""
    if is_compiling() or type(x) not in PLAIN_TYPES or not _knows_all:
        return False
    return not any(listens() for listens in LISTENERS)


def learns(*tensors: Any) -> bool:
    return carries_tangents() or torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)


def call_product_of(values: Any, x: Any, rows: Any, columns: Any, key: str, transposed: bool) -> Any:
    if not plainly(x) or type(values) not in PLAIN_TYPES:
        return torch.ops.cbgen_spmv.product_of(values, x, rows, columns, key, transposed)
    return (ProductOf.apply if learns(values, x) else product_of)(values, x, rows, columns, key, transposed)


def register() -> Any:
    """The library that holds the registrations: they go with it."""
    library = torch.library.Library(NAMESPACE, "DEF")
    for signature, kernel, fake, keep, derive in [
        ("product(Tensor x, str key, bool transposed) -> Tensor", product, fake_product, keep_product, derive_product),
        ("product_of(Tensor values, Tensor x, Tensor rows, Tensor columns, str key, bool transposed) -> Tensor",
         product_of, fake_product_of, keep_product_of, derive_product_of),
    ]:
        name = signature.partition("(")[0]
        library.define(signature)
        for device in ("CUDA", "CPU"):
            library.impl(name, kernel, device)
        torch.library.register_fake(f"{NAMESPACE}::{name}", fake, lib=library)
        torch.library.register_autograd(f"{NAMESPACE}::{name}", derive, setup_context=keep, lib=library)
    return library


LIBRARY = register()
