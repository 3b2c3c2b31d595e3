#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cbgen.solve`: SciPy's names and meanings, arrays of several libraries, what it refuses."""
import sys
import unittest

import harness
import numpy
import scipy.sparse
from python_stand_ins import CUPY, TORCH
from python_support import FakeCase, Stream

import cbgen_spmv as cbgen

ROWS = 90


def system(symmetric=True, dtype=numpy.float64):
    """Dominated by its diagonal."""
    pattern = scipy.sparse.random(ROWS, ROWS, 0.04, "csr", random_state=numpy.random.RandomState(3))
    pattern.data[:] = 1
    upper = pattern + pattern.T if symmetric else pattern + 0.25 * pattern.T
    upper.setdiag(0)
    upper.eliminate_zeros()
    sums = numpy.asarray(upper.sum(axis=1)).ravel() + numpy.arange(ROWS) % 5 + 0.5
    return (scipy.sparse.diags(sums) - upper).tocsr().astype(dtype)


RIGHT = numpy.sin(numpy.arange(ROWS))


class Solve(FakeCase):
    def check(self, matrix, x, rtol=1e-5):
        left = RIGHT - matrix.astype(numpy.float64) @ numpy.asarray(x, numpy.float64).ravel()
        self.assertLess(numpy.linalg.norm(left), 1.2 * rtol * numpy.linalg.norm(RIGHT) + 1e-13)

    def test_methods(self):
        for method, symmetric in (("cg", True), ("bicgstab", False)):
            matrix = system(symmetric)
            for preconditioner in (None, "jacobi", matrix.diagonal()):
                x, info = cbgen.solve(matrix, RIGHT, method=method, rtol=1e-9, M=preconditioner)
                self.assertEqual((info, type(x), x.dtype, x.shape), (0, numpy.ndarray, numpy.float64, (ROWS,)))
                self.check(matrix, x, 1e-9)

    def test_other_methods(self):
        for method, symmetric, more in (("cg-mixed", True, {}), ("minres", True, {}),
                                        ("gmres", False, {"restart": 5}), ("gmres", False, {}),
                                        ("chebyshev", True, {}), ("chebyshev", True, {"lowest": 0.05, "highest": 2.0}),
                                        ("jacobi", False, {"weight": 0.9})):
            matrix, residuals = system(symmetric), []
            x, info = cbgen.solve(matrix, RIGHT, method=method, rtol=1e-9, M="jacobi", callback=residuals.append, **more)
            self.assertEqual(info, 0)
            self.check(matrix, x, 1e-9)
            self.assertAlmostEqual(residuals[0], 1.0, delta=1e-14)
            self.assertLessEqual(residuals[-1], 1e-9)
            self.assertGreater(min(residuals[:-1]), 1e-9)

    def test_complex_numbers(self):
        """Hermitian matrices and others, real right sides and complex ones."""
        for method, hermitian, kind, m in (("cg", True, "c16", None), ("cg", True, "c8", "jacobi"), ("minres", True, "c16", "jacobi"),
                                           ("chebyshev", True, "c16", None), ("bicgstab", False, "c16", "array"),
                                           ("gmres", False, "c8", None), ("jacobi", False, "c16", "jacobi")):
            matrix = system(hermitian).astype(kind)
            lower, upper = scipy.sparse.tril(matrix, -1), scipy.sparse.triu(matrix, 1)
            matrix = (matrix + (0.5j * lower - 0.5j * upper) + (0 if hermitian else 0.25j * lower)).tocsr().astype(kind)
            matrix.setdiag(1.3 * matrix.diagonal())
            residuals, rtol = [], 1e-5 if kind == "c8" else 1e-9
            for b in (RIGHT.astype("f4" if kind == "c8" else "f8"), (RIGHT + 1j * numpy.cos(RIGHT)).astype(kind)):
                x, info = cbgen.solve(matrix, b, method=method, rtol=rtol, callback=residuals.append,
                                      M=matrix.diagonal() if m == "array" else m)
                self.assertEqual((info, x.dtype, x.shape), (0, numpy.dtype(kind), (ROWS,)))
                self.assertLess(numpy.linalg.norm(b - matrix.astype("c16") @ x), 1.5 * rtol * numpy.linalg.norm(b))
                self.assertAlmostEqual(residuals[0], 1, delta=1e-6)
        b = RIGHT + 1j * numpy.cos(RIGHT)
        for array in (numpy.asarray, CUPY.ndarray):  # a real matrix
            x, info = cbgen.solve(system(), array(b), x0=array(0.5 * b), rtol=1e-9)
            x = x if isinstance(x, numpy.ndarray) else x.get()
            self.assertEqual((info, x.dtype), (0, numpy.complex128))
            self.assertLess(numpy.linalg.norm(b - system() @ x), 1.2e-9 * numpy.linalg.norm(b))
        x, info = cbgen.solve(system(dtype=numpy.float32), b.astype("c8"), rtol=1e-4)
        self.assertEqual((info, x.dtype), (0, numpy.complex64))
        self.refuses(TypeError, "b is complex128, the operator multiplies float64", cbgen.solve, cbgen.compile(system()), b)
        value, x, info = cbgen.power(scipy.sparse.csr_matrix([[2, 2j], [-2j, -1]]), numpy.array([1, 1j]), maxiter=300)
        self.assertEqual(info, 0)
        self.assertAlmostEqual(value, 3, delta=1e-7)
        self.refuses(cbgen.UnsupportedError, "no meaning for complex numbers", cbgen.pagerank, system().astype("c16"), b)

    def test_blocks(self):
        for method, symmetric in (("cg", True), ("bicgstab", False)):
            matrix = system(symmetric)
            for size in (2, 7):
                x, info = cbgen.solve(matrix, RIGHT, method=method, rtol=1e-9, M=("block-jacobi", size))
                self.assertEqual(info, 0)
                self.check(matrix, x, 1e-9)
        blocks = scipy.sparse.block_diag([[[3.0, 1, 0], [1, 4, 2], [0, 2, 5]]] * 30, "csr")
        self.assertEqual(cbgen.solve(blocks, RIGHT, maxiter=1, rtol=1e-10, M=("block-jacobi", 3))[1], 0)
        for words, wrong in (("2 to 16", ("block-jacobi", 17)), ("a tuple is", ("ilu", 2))):
            self.assertRaisesRegex(ValueError, words, cbgen.solve, blocks, RIGHT, M=wrong)

    def test_preconditioners_of_the_callers(self):
        for method, symmetric in (("cg", True), ("bicgstab", False)):
            matrix, calls = system(symmetric), []
            inverse = cbgen.compile(scipy.sparse.diags(1 / matrix.diagonal()).tocsr())
            expected = []
            cbgen.solve(matrix, RIGHT, method=method, rtol=1e-9, M="jacobi", callback=expected.append)

            def product(r, z, stream):
                calls.append(r.__cuda_array_interface__["shape"])
                inverse.multiply(r, z, stream=stream)  # pylint: disable=cell-var-from-loop

            for preconditioner in (inverse, product):
                residuals = []
                x, info = cbgen.solve(matrix, RIGHT, method=method, rtol=1e-9, M=preconditioner,
                                      callback=residuals.append)
                self.assertEqual(info, 0)
                self.check(matrix, x, 1e-9)
                self.assertLessEqual(abs(len(residuals) - len(expected)), 1)
            self.assertEqual(len(calls), 3 if method == "bicgstab" else 2)  # under capture, and no more
            self.assertEqual(calls[0], (ROWS,))

    def test_preconditioners_that_fail(self):
        def wrong(r, z, stream):
            raise KeyError("of the caller's")

        self.assertRaisesRegex(KeyError, "of the caller's", cbgen.solve, system(), RIGHT, M=wrong)
        self.assertRaisesRegex(cbgen.Error, "takes no 'precondition'", cbgen.solve, system(), RIGHT, method="minres", M=wrong)
        self.assertRaisesRegex(ValueError, "M is", cbgen.solve, system(), RIGHT,
                               M=cbgen.compile(scipy.sparse.eye(ROWS + 1).tocsr()))

    def test_each_x(self):
        """While it runs, and what it raises ends it."""
        for method, symmetric in (("cg", True), ("bicgstab", False), ("minres", True)):
            matrix, residuals, found = system(symmetric), [], []
            cbgen.solve(matrix, RIGHT, method=method, rtol=1e-9, callback=residuals.append)
            x, info = cbgen.solve(matrix, RIGHT, method=method, rtol=1e-9, callback=found.append, callback_type="x")
            self.assertEqual(info, 0)
            self.assertLessEqual(abs(len(found) + 1 - len(residuals)), 1)
            numpy.testing.assert_array_equal(found[-1], x)
            for each, residual in list(zip(found, residuals[1:]))[:5]:
                self.assertEqual((type(each), each.shape), (numpy.ndarray, (ROWS,)))
                left = numpy.linalg.norm(matrix @ each - RIGHT) / numpy.linalg.norm(RIGHT)
                self.assertAlmostEqual(left, residual, delta=1e-8)
            found = []
            there = cbgen.solve(matrix, CUPY.ndarray(RIGHT), method=method, rtol=1e-9, callback=found.append,
                                callback_type="x")[0]
            self.assertIsInstance(found[-1], CUPY.ndarray)
            numpy.testing.assert_array_equal(found[-1].get(), there.get())
        found = []
        cbgen.solve(system(False), RIGHT, method="gmres", rtol=1e-12, restart=3, maxiter=2, callback=found.append,
                    callback_type="x")
        self.assertEqual(len(found), 2)

        def ends(_):
            found.append(1)
            raise StopIteration("enough")

        found = []
        self.assertRaisesRegex(StopIteration, "enough", cbgen.solve, system(), RIGHT, callback=ends, callback_type="x")
        self.assertEqual(found, [1])
        self.assertRaisesRegex(ValueError, "it is 'pr_norm' or 'x'", cbgen.solve, system(), RIGHT, callback=ends,
                               callback_type="legacy")

    def test_rounds_of_gmres(self):
        matrix, residuals = system(False), []
        info = cbgen.solve(matrix, RIGHT, method="gmres", rtol=1e-14, restart=3, maxiter=2, callback=residuals.append)[1]
        self.assertEqual((info, len(residuals)), (6, 7))

    def test_power(self):
        matrix = system()
        value, x, info = cbgen.power(matrix, numpy.ones(ROWS), rtol=1e-6, maxiter=20000)
        self.assertEqual(info, 0)
        self.assertAlmostEqual(value, numpy.linalg.eigvalsh(matrix.toarray()).max(), delta=1e-6 * value)
        self.assertAlmostEqual(numpy.linalg.norm(x), 1)
        self.assertLess(numpy.linalg.norm(matrix @ x - value * x), 2e-6 * value)

    def test_pagerank(self):
        links = scipy.sparse.random(ROWS, ROWS, 0.03, "csr", random_state=numpy.random.RandomState(5))
        sums = numpy.asarray(links.sum(axis=0)).ravel()
        self.assertGreater(numpy.count_nonzero(sums == 0), 2)
        shares = (links @ scipy.sparse.diags(1 / numpy.where(sums == 0, 1, sums))).tocsr()
        ranks = numpy.ones(ROWS) / ROWS
        for _ in range(300):
            ranks = 0.85 * (shares @ ranks)
            ranks += (1 - ranks.sum()) / ROWS
        for matrix, more in ((shares, {}), (links, {"M": sums})):
            x, info = cbgen.pagerank(matrix, numpy.ones(ROWS), tol=1e-13, **more)
            self.assertEqual(info, 0)
            numpy.testing.assert_allclose(x, ranks, rtol=1e-10)
        self.assertRaisesRegex(ValueError, "the sums of columns", cbgen.pagerank, links, numpy.ones(ROWS), M="jacobi")

    def test_operators_and_first_guesses(self):
        matrix = system()
        operator = cbgen.compile(matrix)
        x, info = cbgen.solve(operator, RIGHT, rtol=1e-10)
        self.assertEqual(info, 0)
        guess = x.copy()
        again, info = cbgen.solve(operator, RIGHT, guess, rtol=1e-8, maxiter=1)
        self.assertEqual(info, 0)  # it was solved before
        numpy.testing.assert_array_equal(again, x)
        numpy.testing.assert_array_equal(guess, x)
        column, info = cbgen.solve(operator, RIGHT.reshape(-1, 1), method="bicgstab")
        self.assertEqual((info, column.shape), (0, (ROWS, 1)))
        self.check(matrix, column)

    def test_arrays_on_the_gpu(self):
        matrix = system()
        operator = cbgen.compile(matrix)
        for kind in (CUPY.ndarray, TORCH.Tensor):
            b = kind(RIGHT)
            x, info = cbgen.solve(operator, b, rtol=1e-8, M="jacobi")
            self.assertEqual((info, type(x)), (0, type(b)))
            self.check(matrix, x.numpy() if kind is TORCH.Tensor else x.get(), 1e-8)
        x, info = cbgen.solve(operator, CUPY.ndarray(RIGHT), M=CUPY.ndarray(matrix.diagonal()), stream=Stream())
        self.assertEqual(info, 0)

    def test_floats(self):
        matrix = system(dtype=numpy.float32)
        x, info = cbgen.solve(matrix, RIGHT.astype(numpy.float32), rtol=1e-4)
        self.assertEqual((info, x.dtype), (0, numpy.float32))
        self.check(matrix, x, 1e-4)

    def test_what_is_not_solved(self):
        matrix = system()
        self.assertEqual(cbgen.solve(matrix, RIGHT, rtol=1e-12, maxiter=3)[1], 3)
        self.assertEqual(cbgen.solve(-matrix, RIGHT)[1], -1)
        self.assertEqual(cbgen.solve(matrix, RIGHT * numpy.nan)[1], -2)
        x, info = cbgen.solve(matrix, RIGHT, rtol=0, atol=0.1)
        self.assertEqual(info, 0)
        self.assertLess(numpy.linalg.norm(RIGHT - matrix @ x), 0.101)

    def test_what_is_refused(self):
        matrix = system()
        operator = cbgen.compile(matrix, values="mutable")
        for kind, words, *arguments, more in (
                (ValueError, "it is one of cg, cg-mixed, bicgstab", operator, RIGHT, {"method": "power"}),
                (cbgen.ArgumentError, "'restart' is 65", operator, RIGHT, {"method": "gmres", "restart": 65}),
                (ValueError, "square", cbgen.compile(matrix[:50]), RIGHT[:50], {}),
                (ValueError, "at least 1", operator, RIGHT, {"maxiter": 0}),
                (ValueError, r"shape \(30,\)", operator, RIGHT[:30], {}),
                (ValueError, "it is None, 'jacobi', ", operator, RIGHT, {"M": "ilu"}),
                (TypeError, "NumPy vectors take no stream", operator, RIGHT, {"stream": 0}),
                (TypeError, "both are on the GPU", operator, CUPY.ndarray(RIGHT), RIGHT, {}),
                (cbgen.ArgumentError, "tolerance", operator, RIGHT, {"rtol": -1.0}),
                (ValueError, "keeps its matrix", cbgen.compile(matrix, keep_matrix=False), RIGHT, {"M": "jacobi"})):
            with self.subTest(words):
                self.assertRaisesRegex(kind, words, cbgen.solve, *arguments, **more)
        operator.update_values(2 * matrix.data)
        self.assertRaisesRegex(ValueError, "was compiled with", cbgen.solve, operator, RIGHT, M="jacobi")
        x, info = cbgen.solve(operator, RIGHT)
        self.assertEqual(info, 0)
        self.check(2 * matrix, x)


class Batches(FakeCase):
    """Systems of one pattern, as many as 5."""

    SYSTEMS = 5

    def systems(self, symmetric=True, dtype=numpy.float64):
        """The pattern, values of each system, and right sides."""
        matrix = system(symmetric, dtype)
        diagonal = matrix.copy()
        diagonal.data[:] = matrix.indices == numpy.repeat(numpy.arange(ROWS), numpy.diff(matrix.indptr))
        more = numpy.arange(self.SYSTEMS).reshape(-1, 1)
        values = (matrix.data + more * diagonal.data).astype(dtype)
        return matrix, values, (RIGHT + more).astype(dtype), matrix.diagonal() + more

    def check(self, pattern, values, b, x, rtol):
        for one, right, left in zip(values, b, x):
            matrix = scipy.sparse.csr_matrix((one.astype("f8"), pattern.indices, pattern.indptr), pattern.shape)
            self.assertLess(numpy.linalg.norm(right - matrix @ left), 1.2 * rtol * numpy.linalg.norm(right))

    def test_methods(self):
        for method in ("cg", "bicgstab"):
            pattern, values, b, diagonals = self.systems(method == "cg")
            for preconditioner in (None, diagonals):
                with cbgen.Batch(pattern, self.SYSTEMS, method=method, rtol=1e-9, M=preconditioner) as batch:
                    x, info = batch.solve(values, b)
                    self.assertEqual((info.tolist(), x.shape, x.dtype), ([0] * self.SYSTEMS, b.shape, b.dtype))
                    self.check(pattern, values, b, x, 1e-9)
                    again, info = batch.solve(values, b, x)  # it is solved already
                    self.check(pattern, values, b, again, 1e-9)
                    self.assertIsNot(again, x)
                self.assertTrue(batch.closed)
                self.refuses(ValueError, "the batch is closed", batch.solve, values, b)

    def test_arrays_on_the_gpu(self):
        pattern, values, b, diagonals = self.systems(dtype=numpy.float32)
        for kind in (CUPY.ndarray, TORCH.Tensor):
            batch = cbgen.Batch(pattern, self.SYSTEMS, rtol=1e-4, M=kind(diagonals.astype("f4")))
            x, info = batch.solve(kind(values), kind(b))
            self.assertEqual((info.tolist(), type(x)), ([0] * self.SYSTEMS, kind))
            self.check(pattern, values, b, x.numpy() if kind is TORCH.Tensor else x.get(), 1e-4)
        x, info = batch.solve(CUPY.ndarray(values), CUPY.ndarray(b), stream=Stream())
        self.assertEqual(info.tolist(), [0] * self.SYSTEMS)

    def test_one_that_fails_leaves_the_others(self):
        pattern, values, b, _ = self.systems()
        values[1] *= -1
        b[3, 0] = numpy.nan
        x, info = cbgen.Batch(pattern, self.SYSTEMS).solve(values, b)
        self.assertEqual(info.tolist(), [0, -1, 0, -2, 0])
        self.assertEqual(cbgen.Batch(pattern, self.SYSTEMS, rtol=1e-14, maxiter=2).solve(values, b)[1].tolist(),
                         [2, -1, 2, -2, 2])

    def test_what_is_refused(self):
        pattern, values, b, _ = self.systems()
        batch = cbgen.Batch(pattern, self.SYSTEMS)
        for kind, words, *arguments in (
                (ValueError, "values has shape (4, ", values[:4], b), (ValueError, "b has shape (5, 3)", values, b[:, :3]),
                (TypeError, "b is complex128", values, b.astype(complex)),
                (TypeError, "all are on the GPU, or none", values, CUPY.ndarray(b)),
                (TypeError, "values is float32", CUPY.ndarray(values.astype("f4")), CUPY.ndarray(b))):
            self.refuses(kind, words, batch.solve, *arguments)
        self.refuses(ValueError, "is in CSR", cbgen.Batch, pattern.tocsc(), 5)
        self.refuses(ValueError, "maxiter is 0", cbgen.Batch, pattern, 5, maxiter=0)
        self.refuses(ValueError, "type='f16'", cbgen.Batch, pattern, 5, type="f16")
        self.refuses(cbgen.ArgumentError, "there is no method 'lu' for batches", cbgen.Batch, pattern, 5, method="lu")
        self.refuses(cbgen.ArgumentError, "'systems' is 0", cbgen.Batch, pattern, 0)


if __name__ == "__main__":
    harness.main(sys.argv)
