#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cbgen.linear_program`: against SciPy's linprog, in arrays of several libraries, and what it refuses."""
import sys
import unittest
from concurrent.futures import ThreadPoolExecutor

import harness
import numpy
import scipy.optimize
import scipy.sparse
from python_stand_ins import CUPY, TORCH
from python_support import FakeCase, Stream

import cbgen_spmv as cbgen
from cbgen_spmv._library import LIBRARY

ROWS, COLS = 25, 40
INF = numpy.inf


def program(dtype=numpy.float64):
    """A matrix, and what it takes that a solution exists: rows that x = 1 satisfies, costs of which none is below 0."""
    random = numpy.random.RandomState(4)
    matrix = scipy.sparse.random(ROWS, COLS, 0.2, "csr", random_state=random)
    at_ones = matrix @ numpy.ones(COLS)
    kinds = numpy.arange(ROWS) % 3
    row_lower = numpy.where(kinds == 0, at_ones, numpy.where(kinds == 1, at_ones - 0.1, -INF))
    row_upper = numpy.where(kinds == 0, at_ones, numpy.where(kinds == 2, at_ones + 0.1, INF))
    vectors = {"cost": random.rand(COLS), "row_lower": row_lower, "row_upper": row_upper,
               "upper": numpy.where(numpy.arange(COLS) % 2, 3.0, INF)}
    return matrix.astype(dtype), {name: vector.astype(dtype) for name, vector in vectors.items()}


def best(matrix, given):
    """What SciPy says."""
    both = scipy.sparse.vstack([matrix, -matrix]).tocsr()
    right = numpy.concatenate([given["row_upper"], -given["row_lower"]])
    kept = numpy.isfinite(right)
    return scipy.optimize.linprog(given["cost"], A_ub=both[kept], b_ub=right[kept],
                                  bounds=[(0, top) for top in given["upper"]]).fun


class LinearPrograms(FakeCase):
    def test_finds_the_best(self):
        for dtype, limit in ((numpy.float64, 1e-5), (numpy.float32, 2e-2)):
            matrix, given = program(dtype)
            tolerance = 1e-7 if dtype is numpy.float64 else 1e-3
            found = cbgen.linear_program(matrix, **given, rtol=tolerance, atol=tolerance)
            expected = best(*program())
            self.assertEqual((found.status, found.x.dtype, found.x.shape, found.y.shape), (0, dtype, (COLS,), (ROWS,)))
            self.assertLess(abs(found.fun - expected), limit * (1 + abs(expected)))
            self.assertLess(abs(found.fun - found.dual_fun), limit * (1 + abs(expected)))
            self.assertAlmostEqual(found.fun, float(given["cost"].astype(float) @ found.x), delta=limit)
            rows = matrix @ found.x
            self.assertLess((given["row_lower"] - rows).max(), 10 * limit)
            self.assertLess((rows - given["row_upper"]).max(), 10 * limit)

    def test_arrays(self):
        matrix, given = program()
        operator = cbgen.compile(matrix)
        expected = cbgen.linear_program(operator, **given)
        for kind in (CUPY.ndarray, TORCH.Tensor):
            content = kind.get if kind is CUPY.ndarray else kind.numpy
            for stream in (None, Stream()):
                there = {name: kind(vector) for name, vector in given.items()}
                found = cbgen.linear_program(operator, **there, stream=stream)
                self.assertIsInstance(found.x, kind)
                numpy.testing.assert_array_equal(content(found.x), expected.x)
                numpy.testing.assert_array_equal(content(found.y), expected.y)
            first = kind(expected.x)
            again = cbgen.linear_program(operator, **there, x0=first, y0=kind(expected.y))
            self.assertEqual((again.status, again.iterations), (0, 64))
            numpy.testing.assert_array_equal(content(first), expected.x)

    def test_one_solver_for_many(self):
        matrix, given = program()
        expected = cbgen.linear_program(matrix, **given)
        with cbgen.LinearSolver(matrix) as solver:
            for _ in range(2):
                found = solver.solve(**given)
                self.assertEqual(found[2:], expected[2:])
                numpy.testing.assert_array_equal(found.x, expected.x)
            self.assertEqual(solver.solve(**given, maxiter=10)[2:4], (1, 10))
            other = {**given, "cost": 2 * given["cost"]}
            self.assertAlmostEqual(solver.solve(**other).fun, 2 * expected.fun, delta=1e-4 * abs(expected.fun))
            with ThreadPoolExecutor(2) as pool:
                for found in pool.map(lambda _: solver.solve(**given), range(4)):
                    numpy.testing.assert_array_equal(found.x, expected.x)
            self.refuses(cbgen.Error, "a tolerance is negative", lambda: solver.solve(**given, rtol=-1.0))
        solver.close()
        self.refuses(ValueError, "the solver is closed", lambda: solver.solve(**given))
        with cbgen.LinearSolver(matrix, scale=False) as solver:
            self.assertEqual(solver.solve(**given)[2:], cbgen.linear_program(matrix, **given, scale=False)[2:])

    def test_recipes_for_programs(self):
        matrix, _ = program()
        usual, chosen = cbgen.compile(matrix), cbgen.compile(matrix, program_loss=600)
        self.assertIsNot(usual._origin.context, chosen._origin.context)
        self.assertIs(chosen.T._origin.context, chosen._origin.context)
        self.refuses(cbgen.ArgumentError, "program-loss", lambda: cbgen.compile(matrix, program_loss=-1))
        self.refuses(TypeError, "'program_loss' is a matter of the context", cbgen.compile, matrix,
                     context=cbgen.Context(program_loss=500), program_loss=500)
        with cbgen.LinearSolver(matrix) as solver, cbgen.LinearSolver(usual) as other:
            self.assertIs(solver.operator._origin.context, chosen._origin.context)
            self.assertIs(other.operator, usual)

    def test_matrices_in_shared_memory(self):
        matrix, given = program()
        expected = cbgen.linear_program(matrix, **given)
        with cbgen.LinearSolver(cbgen.compile(matrix, specialise="now")) as solver:
            for _ in range(2):
                found = solver.solve(**given)
                self.assertEqual(found.status, 0)
                self.assertAlmostEqual(found.fun, expected.fun, delta=1e-5 * (1 + abs(expected.fun)))
            self.assertEqual(LIBRARY.cbgen_lp_form(solver._first), b"graph+matrix")
        for operator in (matrix, cbgen.compile(matrix, specialise="now", values="mutable")):
            with cbgen.LinearSolver(operator, scale=False) as solver:
                self.assertEqual(solver.solve(**given).status, 0)
                self.assertEqual(LIBRARY.cbgen_lp_form(solver._first), b"graph")

    def test_certificates(self):
        matrix, given = program()
        given.update(cost=-numpy.ones(COLS), upper=None, row_lower=None, row_upper=None)
        self.assertEqual(cbgen.linear_program(matrix, **given, maxiter=2000).status, 3)
        self.assertEqual(cbgen.linear_program(matrix, **given, maxiter=2000, certificate_tolerance=1e-3).status, 3)
        self.assertEqual(cbgen.linear_program(matrix, **given, maxiter=2000, certificate_tolerance=0).status, 1)

    def test_numbers_for_all(self):
        matrix, given = program()
        given["lower"], given["upper"] = 0.25, 2
        found = cbgen.linear_program(matrix, **given)
        given["lower"], given["upper"] = numpy.full(COLS, 0.25), numpy.full(COLS, 2.0)
        numpy.testing.assert_array_equal(found.x, cbgen.linear_program(matrix, **given).x)
        self.assertGreaterEqual(found.x.min(), 0.25)

    def test_ends(self):
        matrix, given = program()
        self.assertEqual(cbgen.linear_program(matrix, **given, maxiter=10)[2:4], (1, 10))
        unscaled = cbgen.linear_program(matrix, **given, scale=False)
        self.assertEqual(unscaled.status, 0)
        given["row_lower"] = 5 + given["row_upper"]
        self.assertEqual(cbgen.linear_program(matrix, **given).status, 2)
        matrix, given = program()
        given["row_upper"] = None
        given["row_lower"] = numpy.full(ROWS, -numpy.inf)
        given["cost"] = -numpy.ones(COLS)
        unbounded = cbgen.linear_program(matrix, **given)
        self.assertEqual(unbounded.status, 3)
        self.assertAlmostEqual(given["cost"] @ unbounded.x, -1, places=3)
        given["lower"], given["upper"] = numpy.zeros(COLS), numpy.ones(COLS)
        given["row_lower"] = abs(matrix).sum(axis=1).A1 + 1 if hasattr(matrix.sum(axis=1), "A1") else 1 + abs(matrix).sum(axis=1)
        infeasible = cbgen.linear_program(matrix, **given)
        self.assertEqual(infeasible.status, 2)
        self.assertAlmostEqual(given["row_lower"] @ infeasible.y - numpy.maximum(matrix.T @ infeasible.y, 0).sum(), 1,
                               places=3)
        matrix, given = program()
        given["cost"] = numpy.full(COLS, numpy.nan)
        self.assertEqual(cbgen.linear_program(matrix, **given).status, 4)

    def test_refused(self):
        matrix, given = program()
        operator = cbgen.compile(matrix)
        for kind, words, more in [
            (ValueError, "maxiter is 0", {"maxiter": 0}),
            (ValueError, "certificate_tolerance is -1", {"certificate_tolerance": -1}),
            (cbgen.Error, "'certificate_tolerance' is inf", {"certificate_tolerance": numpy.inf}),
            (ValueError, "upper has shape", {"upper": numpy.zeros(ROWS)}),
            (ValueError, "row_upper has shape", {"row_upper": numpy.zeros(COLS)}),
            (TypeError, "row_upper is on a GPU", {"row_upper": CUPY.ndarray(given["row_upper"])}),
            (TypeError, "take no stream=", {"stream": Stream()}),
            (ValueError, "x0 has shape", {"x0": numpy.zeros(ROWS)}),
            (cbgen.Error, "a tolerance is negative", {"rtol": -1.0}),
        ]:
            with self.subTest(words=words):
                self.refuses(kind, words, lambda: cbgen.linear_program(operator, **{**given, **more}))
        there = {name: CUPY.ndarray(vector) for name, vector in given.items()}
        self.refuses(TypeError, "lower is a NumPy array",
                     lambda: cbgen.linear_program(operator, **there, lower=numpy.zeros(COLS)))
        lost = cbgen.compile(matrix, keep_matrix=False)
        self.refuses(ValueError, "scale=True needs", lambda: cbgen.linear_program(lost, **given))


if __name__ == "__main__":
    harness.main(sys.argv)
