#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Operators of the Python package in SciPy's solvers, as they are and through aslinearoperator."""
import sys
import unittest

import harness
import numpy
import scipy.sparse
import scipy.sparse.linalg as linalg
from python_stand_ins import CUPY, TORCH
from python_support import FakeCase, Stream, fake_get, matrix, vector

import cbgen_spmv as cbgen


def solvable(size=60, symmetric=True):
    """Diagonally dominant; symmetric: positive definite."""
    part = matrix(size, size, density=0.05)
    whole = part + part.T if symmetric else part
    return (whole + scipy.sparse.diags_array(numpy.abs(whole).sum(axis=1).A1 + 1.0)).tocsr()


class Solvers(FakeCase):
    def solves(self, solver, plain, **more):
        b = vector(plain.shape[0])
        for operator in (cbgen.compile(plain), linalg.aslinearoperator(cbgen.compile(plain))):
            x, failed = solver(operator, b, rtol=1e-12, atol=0, **more)
            self.assertEqual(failed, 0)
            self.assertLess(numpy.linalg.norm(plain @ x - b), 1e-9 * numpy.linalg.norm(b))

    def test_symmetric(self):
        for solver in (linalg.cg, linalg.cgs):
            self.solves(solver, solvable())
        x, failed = linalg.minres(cbgen.compile(solvable()), vector(60), rtol=1e-12)
        self.assertEqual(failed, 0)
        self.assertLess(numpy.linalg.norm(solvable() @ x - vector(60)), 1e-8)

    def test_general(self):
        for solver in (linalg.bicgstab, linalg.gmres, linalg.lgmres, linalg.gcrotmk):
            self.solves(solver, solvable(symmetric=False))

    def test_those_that_transpose(self):
        for solver in (linalg.bicg, linalg.qmr):
            self.solves(solver, solvable(symmetric=False))
        plain = solvable(symmetric=False)
        found = linalg.lsqr(cbgen.compile(plain), vector(60), atol=1e-14, btol=1e-14)[0]
        self.assertLess(numpy.linalg.norm(plain @ found - vector(60)), 1e-8)

    def test_preconditioned(self):
        plain = solvable()
        inverse = cbgen.compile(scipy.sparse.diags_array(1 / plain.diagonal()).tocsr())
        self.solves(linalg.cg, plain, M=inverse)

    def test_single_precision(self):
        plain = solvable()
        b = vector(60, numpy.float32)
        x, failed = linalg.cg(cbgen.compile(plain.astype(numpy.float32)), b, rtol=1e-5)
        self.assertEqual((failed, x.dtype), (0, numpy.float32))
        self.assertLess(numpy.linalg.norm(plain @ x - b), 1e-4 * numpy.linalg.norm(b))

    def test_eigenvalues_and_singular_values(self):
        plain = solvable()
        operator = cbgen.compile(plain)
        numpy.testing.assert_allclose(linalg.eigsh(operator, k=3)[0], linalg.eigsh(plain, k=3)[0], rtol=1e-9)
        numpy.testing.assert_allclose(linalg.svds(operator, k=3)[1], linalg.svds(plain, k=3)[1], rtol=1e-9)
        start = numpy.random.default_rng(1).random((60, 2))
        found, expected = (linalg.lobpcg(each, start.copy(), maxiter=200, tol=1e-9)[0] for each in (operator, plain))
        numpy.testing.assert_allclose(sorted(found), sorted(expected), 1e-6)

    def test_arithmetic_of_linear_operators(self):
        plain = solvable()
        operator = linalg.aslinearoperator(cbgen.compile(plain))
        x = vector(60)
        numpy.testing.assert_allclose((2 * operator + operator.T) @ x, 3 * (plain @ x))
        numpy.testing.assert_allclose((operator @ operator).matvec(x), plain @ (plain @ x))


class Arithmetic(FakeCase):
    """What is made of operators gives what the same is of matrices, in every library's arrays."""

    def setUp(self):
        super().setUp()
        self.a, self.b, self.c = (matrix(30, 50, seed=seed) for seed in (1, 2, 3))
        self.A, self.B = cbgen.compile(self.a), cbgen.compile(self.b)
        self.R, self.r = cbgen.compile(matrix(50, 30, seed=4)), matrix(50, 30, seed=4)

    def tearDown(self):
        del self.A, self.B, self.R
        super().tearDown()

    def check(self, made, expected):
        rows, cols = expected.shape
        self.assertEqual((made.shape, made.dtype, made.ndim), ((rows, cols), numpy.float64, 2))
        same = numpy.testing.assert_array_equal
        x, many, y = vector(cols), numpy.array([vector(cols, seed=seed) for seed in range(3)]).T, vector(rows)
        same(made @ x, expected @ x)
        same(made.matvec(x[:, None]), expected @ x[:, None])
        same(made.dot(many), expected @ many)
        same(made.matmat(many), expected @ many)
        same(made.rmatvec(y), expected.T @ y)
        same(made.rmatmat(y[:, None].repeat(2, 1)), expected.T @ y[:, None].repeat(2, 1))
        same(y @ made, y @ expected)
        for each in (made.T, made.H, made.transpose(), made.adjoint()):
            same(each @ y, expected.T @ y)
        for kind in (CUPY.ndarray, TORCH.Tensor):
            content = kind.get if kind is CUPY.ndarray else kind.numpy
            same(content(made @ kind(x)), expected @ x)
            out = kind(y)
            self.assertIs(made.multiply(kind(x), out, alpha=2.0, beta=-1.0), out)
            same(content(out), 2 * (expected @ x) - y)
            stream = Stream()
            same(content(made.multiply(kind(x), stream=stream)), expected @ x)

    def test_all(self):
        A, B, R, a, b, r = self.A, self.B, self.R, self.a, self.b, self.r
        for made, expected in [
            (2 * A, 2 * a), (A * 2, 2 * a), (numpy.float64(2) * A, 2 * a), (A * numpy.int8(3), 3 * a), (True * A, a),
            (-A, -a), (A / 2, a / 2), (A.dot(4), 4 * a), (A + B, a + b), (A - B, a - b),
            (A + B - 2 * A, b - a), (A @ R, a @ r), ((2 * A) @ (3 * R), 6 * a @ r),
            (R * A, r @ a), (R.dot(A), r @ a), ((A @ R) ** 2, a @ r @ a @ r), ((A + B) @ R, (a + b) @ r),
            ((A @ R @ A) / 4, a @ r @ a / 4), (R @ (2 * A - B) + 3 * (R @ B), r @ (2 * a - b) + 3 * r @ b),
            (-(A.T @ B), -(a.T @ b)), ((A + B).T @ A, (a + b).T @ a),
        ]:
            with self.subTest(made=repr(made)):
                self.check(made, expected.tocsr())

    def test_products_by_stars(self):
        x = vector(50)
        numpy.testing.assert_array_equal(self.A * x, self.a @ x)
        numpy.testing.assert_array_equal((self.A + self.B) * x, (self.a + self.b) @ x)
        numpy.testing.assert_array_equal(vector(30) * self.A, self.a.T @ vector(30))

    def test_what_it_costs(self):
        """A sum is one launch for each term, without a vector in between; values and scaling are the operators'."""
        x, out = CUPY.ndarray(vector(50)), CUPY.ndarray(numpy.zeros(30))
        both = 2 * self.A - self.B
        both.multiply(x, out)
        blocks, launches = fake_get("blocks"), fake_get("launches")
        both.multiply(x, out)
        self.assertEqual(fake_get("launches") - launches, self.A.info.launches + self.B.info.launches)
        self.assertEqual(fake_get("blocks"), blocks)
        operator = cbgen.compile(self.a, values="mutable")
        twice = 2 * operator
        operator.update_values(3 * self.a.data)
        numpy.testing.assert_array_equal(twice @ vector(50), 6 * (self.a @ vector(50)))

    def test_in_solvers(self):
        plain = solvable()
        operator, b = cbgen.compile(plain), vector(60)
        shifted = operator + 0.5 * cbgen.compile(scipy.sparse.identity(60, format="csr"))
        x, failed = linalg.cg(shifted, b, rtol=1e-12, atol=0)
        self.assertEqual(failed, 0)
        numpy.testing.assert_allclose(plain @ x + 0.5 * x, b, rtol=1e-8, atol=1e-8)
        square = linalg.aslinearoperator(operator @ operator)
        numpy.testing.assert_allclose(square @ b, plain @ (plain @ b))

    def test_refused(self):
        single = cbgen.compile(self.a.astype(numpy.float32))
        for kind, words, call in [
            (ValueError, "operators of 30 x 50 and 50 x 30 have no sum", lambda: self.A + self.R),
            (ValueError, "operators of 30 x 50 and 30 x 50 have no product", lambda: self.A @ self.B),
            (ValueError, "operators of 30 x 50 and 30 x 50 have no product", lambda: self.A ** 2),
            (ValueError, "the power 0", lambda: (self.A @ self.R) ** 0),
            (ValueError, "float64, the other float32", lambda: self.A + single),
            (ValueError, "float64, the other float32", lambda: self.R @ single),
            (ValueError, "beta needs out=", lambda: (2 * self.A).multiply(vector(50), beta=1)),
            (ValueError, "takes (50,) or (50, 1)", lambda: (2 * self.A) @ vector(49)),
            (ValueError, "takes (50, columns)", lambda: (2 * self.A) @ numpy.zeros((49, 2))),
            (TypeError, "unsupported operand", lambda: self.A + 1),
            (TypeError, "unsupported operand", lambda: self.A - self.a),
            (TypeError, "unsupported operand", lambda: 2j * self.A),
            (TypeError, "unsupported operand", lambda: self.A / self.B),
            (TypeError, "unsupported operand", lambda: self.A ** 1.5),
            (TypeError, "unsupported operand", lambda: self.A @ 3),
            (TypeError, "can't multiply", lambda: "x" * self.A),
        ]:
            with self.subTest(words=words):
                self.refuses(kind, words, call)
        made = self.A + self.B
        self.B.close()
        self.refuses(ValueError, "the operator is closed", lambda: made @ vector(50))

    def test_words(self):
        self.assertEqual(repr(2 * self.A - self.B),
                         "<cbgen.Combination 30 x 50, float64: 2 * <30 x 50> + -1 * <30 x 50>>")
        self.assertEqual(repr((self.A + self.B) @ self.R), "<cbgen.Combination 30 x 30, float64: "
                         "(<cbgen.Combination 30 x 50, float64: <30 x 50> + <30 x 50>>) @ <50 x 30>>")


class LikeCuPy(FakeCase):
    """What cupyx.scipy.sparse.linalg.aslinearoperator and its solvers ask of an object that is no matrix of CuPy's."""

    def test_attributes(self):
        operator = cbgen.compile(matrix(30, 50))
        self.assertEqual((operator.shape, operator.dtype.char, operator.ndim), ((30, 50), "d", 2))
        for name in ("matvec", "rmatvec", "matmat", "rmatmat"):
            self.assertTrue(callable(getattr(operator, name)))
        for shape in ((50,), (50, 1)):
            x, expected = CUPY.ndarray(vector(50).reshape(shape)), matrix(30, 50) @ vector(50)
            numpy.testing.assert_array_equal(operator.matvec(x).get(), expected.reshape((30,) + shape[1:]))
        x = CUPY.ndarray(vector(30))
        numpy.testing.assert_array_equal(operator.rmatvec(x).get(), matrix(30, 50).T @ vector(30))


if __name__ == "__main__":
    harness.main(sys.argv)
