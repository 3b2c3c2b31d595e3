# SPDX-License-Identifier: Apache-2.0
"""What operators have in common, and what can be made of them: 2 * A, A + B, A - B, -A, A @ B, A ** 3, of which nothing
is compiled: a sum is one launch for each term, and only a composition needs vectors in between."""
from __future__ import annotations

from numbers import Integral, Real
from typing import Any, Tuple

import numpy

from ._arrays import COMPLEX, Number, Shape, dtype_name, is_array, is_complex, library_of, numpy_dtype


class Linear:
    """The interface of linear operators that SciPy's and CuPy's solvers know. A class that has it gives `shape`,
    `_type`, `device`, `multiply`, `matvec` and `T`."""

    ndim = 2
    __array_ufunc__ = None  # `array @ A` comes to __rmatmul__, and `numpy.float64(2) * A` to __rmul__

    _type: str

    @property
    def shape(self) -> Tuple[int, int]:
        raise NotImplementedError

    @property
    def device(self) -> int:
        """The number of the GPU."""
        raise NotImplementedError

    def multiply(self, x: Any, out: Any = None, *, alpha: Number = 1.0, beta: Number = 0.0, stream: Any = None) -> Any:
        raise NotImplementedError

    def matvec(self, x: Any) -> Any:
        raise NotImplementedError

    @property
    def T(self) -> Linear:
        raise NotImplementedError

    @property
    def dtype(self) -> numpy.dtype[Any]:
        """Of x and y. The stored values' is in `info`. TypeError: bfloat16, and ml_dtypes is not installed."""
        return numpy_dtype(self._type)

    def _takes_parts(self, x: Any) -> bool:
        """Whether x is complex and the operator real, so that it multiplies real and imaginary parts."""
        return is_complex(x) and self._type not in COMPLEX

    # ---- products

    def rmatvec(self, x: Any) -> Any:
        """Aᵀ x, of a complex A its conjugate transpose's product, as SciPy has it. The first call compiles that operator."""
        return self.H.matvec(x)

    def matmat(self, x: Any) -> Any:
        """A X, one column after the other."""
        rows, cols = self.shape
        if self._takes_parts(x):
            return complex_product(self, x)
        if len(x.shape) != 2 or x.shape[0] != cols:
            raise ValueError(f"X has shape {tuple(x.shape)}; a matrix of {rows} x {cols} takes ({cols}, columns)")
        library = library_of(x)
        shape: Shape = (rows, x.shape[1])
        if library.on_host:
            result: Any = numpy.empty(shape, self.dtype, order="F")
        else:
            result = library.empty(x, shape, self._type, None, True)
        for column in range(x.shape[1]):
            source = x[:, column] if library.on_host else library.contiguous(x[:, column])
            self.multiply(source, out=result[:, column])
        return result

    def rmatmat(self, x: Any) -> Any:
        """Aᵀ X, of a complex A with the conjugate transpose, one column after the other."""
        return self.H.matmat(x)

    def dot(self, x: Any) -> Any:
        """A x, A X, or of a number or an operator what `*` gives."""
        if isinstance(x, Real):
            return Combination.scaled(self, float(x))
        if isinstance(x, Linear):
            return Combination.composed(self, x)
        return self.matmat(x) if len(x.shape) == 2 and x.shape[1] != 1 else self.matvec(x)

    def _matmul(self, x: Any) -> Any:
        return self.dot(x) if isinstance(x, Linear) or is_array(x) else NotImplemented

    def _rmatmul(self, x: Any) -> Any:
        if not is_array(x):
            return NotImplemented
        return self.T.matmat(x.T).T if len(x.shape) == 2 else self.T.matvec(x)

    # ---- what can be made of it

    @property
    def H(self) -> Linear:
        """The adjoint: of a real matrix the transpose, of a complex one its conjugate."""
        return self.T

    def transpose(self) -> Linear:
        """The same as .T."""
        return self.T

    def adjoint(self) -> Linear:
        """The same as .H."""
        return self.H

    def __mul__(self, x: Any) -> Any:
        return self.dot(x) if isinstance(x, (Real, Linear)) or is_array(x) else NotImplemented

    def __rmul__(self, x: Any) -> Any:
        return Combination.scaled(self, float(x)) if isinstance(x, Real) else self._rmatmul(x)

    def __truediv__(self, x: Any) -> Any:
        return Combination.scaled(self, 1 / float(x)) if isinstance(x, Real) else NotImplemented

    def __neg__(self) -> Combination:
        return Combination.scaled(self, -1.0)

    def __add__(self, other: Any) -> Any:
        return Combination.sum(self, other) if isinstance(other, Linear) else NotImplemented

    def __sub__(self, other: Any) -> Any:
        return Combination.sum(self, -other) if isinstance(other, Linear) else NotImplemented

    def __pow__(self, power: Any) -> Any:
        if not isinstance(power, Integral):
            return NotImplemented
        if power < 1:
            raise ValueError(f"the power {power} of an operator: it is 1 or more")
        return Combination.composed(*[self] * int(power))


def complex_product(part: Any, x: Any, out: Any = None, **scales: Any) -> Any:
    """A x for an operator of a real A and complex x, or several: real and imaginary parts are vectors side by side, which
    an operator that was compiled for several multiplies in one pass over the matrix. `out`, `scales`: as
    Operator.matmat."""
    library, kind = library_of(x), dtype_name(x.dtype)
    if COMPLEX[kind] != part._type and not library.on_host:
        raise TypeError(f"x is {kind}, whose parts are {COMPLEX[kind]}, and the operator multiplies {part._type}: "
                        "convert it, or compile the matrix with another type=")
    parts = library.as_real(library.contiguous(x))
    if out is None:
        found = library.contiguous(part.matmat(parts, **scales))
        return library.as_complex(found, (part.shape[0],) + tuple(x.shape[1:]))
    if not is_complex(out) or COMPLEX[dtype_name(out.dtype)] != part._type:
        raise TypeError(f"x is complex, and out {dtype_name(out.dtype)}: its parts are {part._type} then")
    part.matmat(parts, library_of(out).as_real(out), **scales)
    return out


Term = Tuple[float, Tuple[Linear, ...]]


def matching(one: Linear, other: Linear) -> None:
    """ValueError when two operators cannot be parts of one."""
    if one._type != other._type:
        raise ValueError(f"one operator multiplies {one._type}, the other {other._type}: compile both with the same type=")
    if one.device != other.device:
        raise ValueError(f"one operator is on GPU {one.device}, the other on GPU {other.device}")


def extents(part: Linear) -> str:
    return f"{part.shape[0]} x {part.shape[1]}"


class Combination(Linear):
    """A sum of terms, each a number times a composition of operators: made by arithmetic, multiplied like an operator.

    It refers to its operators: new values of theirs are seen, and closing one ends it. Compositions allocate a vector
    between two operators, with each product; a CUDA graph can hold one with PyTorch, whose graphs have memory of their
    own.
    """

    def __init__(self, terms: Tuple[Term, ...]) -> None:
        self._terms = terms
        first = terms[0][1]
        self._shape = first[0].shape[0], first[-1].shape[1]
        self._type, self._device = first[0]._type, first[0].device

    @classmethod
    def terms_of(cls, part: Linear) -> Tuple[Term, ...]:
        return part._terms if isinstance(part, Combination) else ((1.0, (part,)),)

    @classmethod
    def scaled(cls, part: Linear, factor: float) -> Combination:
        return cls(tuple((factor * number, factors) for number, factors in cls.terms_of(part)))

    @classmethod
    def sum(cls, one: Linear, other: Linear) -> Combination:
        matching(one, other)
        if one.shape != other.shape:
            raise ValueError(f"operators of {extents(one)} and {extents(other)} have no sum")
        return cls(cls.terms_of(one) + cls.terms_of(other))

    @classmethod
    def composed(cls, *parts: Linear) -> Combination:
        number, factors = 1.0, list[Linear]()
        for part in parts:
            terms = cls.terms_of(part)
            if len(terms) == 1:  # a product of products is one
                number *= terms[0][0]
            factors += terms[0][1] if len(terms) == 1 else [part]
        for one, other in zip(factors, factors[1:]):
            matching(one, other)
            if one.shape[1] != other.shape[0]:
                raise ValueError(f"operators of {extents(one)} and {extents(other)} have no product")
        return cls(((number, tuple(factors)),))

    @property
    def shape(self) -> Tuple[int, int]:
        return self._shape

    @property
    def device(self) -> int:
        return self._device

    @property
    def T(self) -> Combination:
        """The transpose, of the operators' transposes."""
        return Combination(tuple((number, tuple(factor.T for factor in reversed(factors)))
                                 for number, factors in self._terms))

    @property
    def H(self) -> Combination:
        """The adjoint, of the operators' adjoints."""
        return Combination(tuple((number, tuple(factor.H for factor in reversed(factors)))
                                 for number, factors in self._terms))

    def multiply(self, x: Any, out: Any = None, *, alpha: Number = 1.0, beta: Number = 0.0, stream: Any = None) -> Any:
        """As Operator.multiply: out = alpha A x + beta out."""
        if beta != 0 and out is None:
            raise ValueError("beta needs out=: the vector that is scaled by it")
        for number, factors in self._terms:
            vector = x
            for factor in reversed(factors[1:]):
                vector = factor.multiply(vector, stream=stream)
            out = factors[0].multiply(vector, out, alpha=alpha * number, beta=beta, stream=stream)
            beta = 1.0  # the next terms are added
        return out

    def matvec(self, x: Any) -> Any:
        """A x as a new array. A vector that is not contiguous is copied first."""
        library = library_of(x)
        if self._takes_parts(x):
            return complex_product(self, x)
        return self.multiply(x if library.on_host else library.contiguous(x))

    def __matmul__(self, x: Any) -> Any:
        return self._matmul(x)

    def __rmatmul__(self, x: Any) -> Any:
        return self._rmatmul(x)

    def __repr__(self) -> str:
        written = []
        for number, factors in self._terms:
            names = " @ ".join(f"({factor!r})" if isinstance(factor, Combination) else f"<{extents(factor)}>"
                               for factor in factors)
            written.append(names if number == 1 else f"{number:g} * {names}")
        return f"<cbgen.Combination {extents(self)}, {self._type}: {' + '.join(written)}>"
