#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Operators of the Python package in SciPy's solvers, as they are and through aslinearoperator."""
import sys
import unittest

import harness
import numpy
import scipy.sparse
import scipy.sparse.linalg as linalg
from python_stand_ins import CUPY
from python_support import FakeCase, matrix, vector

import cbgen


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
