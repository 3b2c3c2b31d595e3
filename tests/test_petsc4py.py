#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The PETSc plug-in from Python, as petsc4py's users load it, on the fake driver: test_petsc4py.py PLUGIN."""
import sys
import unittest

import harness
import petsc4py

petsc4py.init(["test", "-dll_append", sys.argv[1], "-mat_cbgen_recipe", "sell", "-mat_cbgen_specialise", "never",
               "-mat_cbgen_cache", "none"])
import numpy  # noqa: E402
from petsc4py import PETSc  # noqa: E402

N = 60


def laplacian(kind: str) -> PETSc.Mat:
    """Of N points in a row, plus the identity; assembled by this matrix type."""
    A = PETSc.Mat().create(comm=PETSc.COMM_SELF)
    A.setSizes([N, N])
    A.setType(kind)
    A.setPreallocationNNZ(3)
    for row in range(N):
        for column, value in ((row - 1, -1.0), (row, 3.0 + row / N), (row + 1, -1.0)):
            if 0 <= column < N:
                A[row, column] = value
    A.assemble()
    return A


def dense(A: PETSc.Mat) -> numpy.ndarray:
    return A.convert("dense", PETSc.Mat()).getDenseArray().copy()


class WithPetsc4py(unittest.TestCase):
    def test_products(self) -> None:
        A, entries = laplacian("aijcbgen"), dense(laplacian("aij"))
        self.assertEqual(A.getType(), "seqaijcbgen")
        x, y = A.createVecs()
        x.setArray(numpy.linspace(-1, 2, N))
        A.mult(x, y)
        numpy.testing.assert_allclose(y.getArray(), entries @ x.getArray(), rtol=1e-14, atol=1e-14)
        A.multTranspose(x, y)
        numpy.testing.assert_allclose(y.getArray(), entries.T @ x.getArray(), rtol=1e-14, atol=1e-14)

    def test_new_values(self) -> None:
        A = laplacian("aijcbgen")
        x, y = A.createVecs()
        x.set(1)
        A.mult(x, y)
        A[3, 4] = 7.0
        A.assemble()
        A.scale(2)
        A.mult(x, y)
        numpy.testing.assert_allclose(y.getArray(), dense(A) @ numpy.ones(N), rtol=1e-14)
        self.assertEqual(dense(A)[3, 4], 14)

    def test_conversion(self) -> None:
        A = laplacian("aij").convert("aijcbgen", PETSc.Mat())
        self.assertEqual(A.getType(), "seqaijcbgen")
        back = A.convert("aij", PETSc.Mat())
        self.assertEqual(back.getType(), "seqaij")
        numpy.testing.assert_array_equal(dense(back), dense(laplacian("aij")))

    def test_type_by_option(self) -> None:
        PETSc.Options().setValue("-mat_type", "aijcbgen")
        A = PETSc.Mat().create(comm=PETSc.COMM_SELF)
        A.setSizes([N, N])
        A.setFromOptions()
        PETSc.Options().delValue("-mat_type")
        self.assertEqual(A.getType(), "seqaijcbgen")

    def test_solvers(self) -> None:
        A = laplacian("aijcbgen")
        for kind in ("cbgencg", "cbgenbcgs", "cg"):
            x, b = A.createVecs()
            b.setArray(numpy.cos(numpy.arange(N)))
            solver = PETSc.KSP().create(comm=PETSc.COMM_SELF)
            solver.setOperators(A)
            solver.setType(kind)
            solver.getPC().setType("jacobi")
            solver.setTolerances(rtol=1e-10)
            solver.solve(b, x)
            self.assertGreater(solver.getConvergedReason(), 0, kind)
            self.assertGreater(solver.getIterationNumber(), 3, kind)
            residual = b.getArray() - dense(A) @ x.getArray()
            self.assertLess(numpy.linalg.norm(residual), 1e-8 * numpy.linalg.norm(b.getArray()), kind)

    def test_errors(self) -> None:
        A = laplacian("aijcbgen")
        PETSc.Options().setValue("-mat_cbgen_recipe", "nonsense")
        with self.assertRaises(PETSc.Error):
            A.setFromOptions()
            x, y = A.createVecs()
            A.mult(x, y)
        PETSc.Options().setValue("-mat_cbgen_recipe", "sell")


if __name__ == "__main__":
    harness.main(argv=sys.argv[:1])
