#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Python package: what it takes as a matrix and as vectors, on which stream products go, and what it refuses.

Run twice: with the compiled part of the package, and by ctypes alone (CBGEN_CALLS=ctypes).
"""
import ctypes
import html
import os
import re
import sys
import types
import unittest
import unittest.mock
import xml.etree.ElementTree

import harness
import numpy
import scipy.sparse
from python_stand_ins import CUPY, NUMBA, TORCH
from python_support import FAKE, DLPackArray, FakeCase, InterfaceArray, Stream, fake_get, matrix, vector

import cbgen_spmv as cbgen

class Sparse:
    """As SciPy's and CuPy's matrices of a format look, of 40 x 40, with any arrays."""

    shape = (40, 40)

    def __init__(self, name, data, indices, first):
        self.format, self.data = name, data
        if name == "coo":
            self.row, self.col = first, indices
        else:
            self.indices, self.indptr = indices, first


same = numpy.testing.assert_array_equal


def on_host(array):
    return array if isinstance(array, numpy.ndarray) else array.numpy()


class Matrices(FakeCase):
    """`compile` of everything that it says it takes."""

    def check(self, given, expected, **more):
        operator = cbgen.compile(given, **more)
        x = vector(expected.shape[1], operator.dtype)
        same(operator @ x, expected @ x)
        self.assertEqual(operator.shape, expected.shape)
        return operator

    def test_value_types(self):
        for dtype, type_of_vectors in [("f8", "f8"), ("f4", "f4"), ("f2", "f4")]:
            plain = matrix()
            given = (plain.data.astype(dtype), plain.indices, plain.indptr)
            operator = self.check(given, plain, shape=plain.shape)
            self.assertEqual(operator.dtype, numpy.dtype(type_of_vectors))
            self.assertEqual(operator.info.matrix_type, numpy.dtype(dtype).name)

    def test_types_by_request(self):
        operator = self.check(matrix(dtype=numpy.float32), matrix(), type="f32-f64")
        self.assertEqual(operator.dtype, numpy.float64)
        self.assertEqual(operator.info.matrix_type, "float32")

    def test_split_values(self):
        operator, plain = cbgen.compile(matrix(), split=True), cbgen.compile(matrix())
        self.assertTrue(operator.info.split and not plain.info.split)
        x, rounded = vector(operator.shape[1]), matrix()
        numpy.testing.assert_array_equal(operator @ x, plain @ x)
        rounded.data = rounded.data.astype(numpy.float32).astype(float)
        same(operator.multiply_heads(x), rounded @ x)
        out = vector(operator.shape[0])
        same(operator.multiply_heads(x, out.copy(), alpha=2, beta=0.5), 2 * (rounded @ x) + 0.5 * out)
        there = CUPY.ndarray(numpy.zeros(operator.shape[0]))
        self.assertIs(operator.multiply_heads(CUPY.ndarray(x), there), there)
        numpy.testing.assert_array_equal(there.get(), operator.multiply_heads(x))
        same(operator.T.multiply_heads(out), rounded.T @ out)
        with self.assertRaisesRegex(cbgen.Error, "'split' of the request"):
            plain.multiply_heads(x)
        beyond = matrix()
        beyond.data[3] = 1e-50
        with self.assertRaisesRegex(cbgen.Error, "no split form"):
            cbgen.compile(beyond, split=True)

    def test_operators_for_solvers(self):
        square = matrix()[:30, :30].tocsr()
        operator = cbgen.compile(square, solver="cg")
        same(operator @ vector(30), square @ vector(30))
        with self.assertRaisesRegex(cbgen.Error, "no method 'sor'"):
            cbgen.compile(square, solver="sor")
        with self.assertRaisesRegex(cbgen.Error, "square matrices"):
            cbgen.compile(matrix()[:30, :29].tocsr(), solver="cg")

    def test_half_vectors(self):
        operator = self.check(matrix(), matrix(), type="f16")
        self.assertEqual((operator.dtype, operator.info.vector_type, operator.info.sum_type),
                         (numpy.float16, "float16", "float32"))
        x, expected = vector(operator.shape[1], numpy.float16), matrix() @ vector(operator.shape[1])
        for kind in (InterfaceArray, DLPackArray, CUPY.ndarray, TORCH.Tensor):
            out = kind(numpy.zeros(operator.shape[0], numpy.float16))
            operator.multiply(kind(x), out)
            same(out.numpy() if kind is TORCH.Tensor else out.get(), expected)
        self.assertRaisesRegex(TypeError, "x is float32, the operator multiplies float16", operator.matvec,
                               x.astype(numpy.float32))

    def test_bfloat16_vectors(self):
        def upper_half(numbers):
            words = numpy.asarray(numbers, numpy.float32).view(numpy.uint32)
            return ((words + 0x7fff + (words >> 16 & 1)) >> 16).astype(numpy.uint16)

        operator = cbgen.compile(matrix(), type="bf16")
        bits, expected = upper_half(vector(operator.shape[1])), upper_half(matrix() @ vector(operator.shape[1]))
        out = TORCH.Tensor(numpy.zeros(operator.shape[0], numpy.uint16))
        operator.multiply(TORCH.Tensor(bits), out)
        same(out.numpy(), expected)
        with unittest.mock.patch.dict(sys.modules, {"ml_dtypes": None}):
            self.assertRaisesRegex(TypeError, "install ml_dtypes", operator.matvec, bits)
        stand_in = types.SimpleNamespace(bfloat16=numpy.uint16)
        with unittest.mock.patch.dict(sys.modules, {"ml_dtypes": stand_in}):
            same(operator @ bits, expected)

    def test_index_widths(self):
        plain = matrix(30, 50)
        for rows in (numpy.int32, numpy.int64):
            for columns in (numpy.int32, numpy.int64):
                given = (plain.data, plain.indices.astype(columns), plain.indptr.astype(rows))
                self.check(given, plain, shape=plain.shape)

    def test_shapes(self):
        for rows, cols in [(1, 1), (1, 70), (70, 1), (0, 5), (5, 0), (0, 0), (33, 65)]:
            self.check(matrix(rows, cols, density=0.5), matrix(rows, cols, density=0.5))
        self.check(scipy.sparse.csr_matrix((20, 30)), scipy.sparse.csr_matrix((20, 30)))

    def test_formats(self):
        plain = matrix()
        for given in (plain.tocoo(), plain.tocsc(), scipy.sparse.csr_array(plain), plain.tolil(), plain.todia(),
                      scipy.sparse.coo_array(plain), scipy.sparse.csc_array(plain), scipy.sparse.bsr_array(plain)):
            self.check(given, plain)

    def test_formats_on_the_gpu(self):
        plain = matrix()
        for name in ("csc", "coo"):
            given = plain.asformat(name)
            first, second = (given.row, given.col) if name == "coo" else (given.indptr, given.indices)
            arrays = [CUPY.ndarray(array) for array in (given.data, second, first)]
            self.check(Sparse(name, *arrays), plain)

    def test_blocks(self):
        plain = matrix()
        for size in [(1, 1), (2, 2), (4, 5), (20, 10), (40, 40)]:
            given = scipy.sparse.bsr_matrix(plain, blocksize=size)
            operator = self.check(given, plain, values="mutable")
            self.assertEqual(operator.info.entries, given.data.size)
        large = scipy.sparse.bsr_matrix(numpy.ones((65, 65)), blocksize=(65, 65))  # converted
        self.check(large, large)

    def test_new_values_in_the_matrix_own_order(self):
        plain = matrix()
        order = numpy.random.default_rng(1).permutation(plain.nnz)
        shuffled = plain.tocoo()
        places = (shuffled.row[order], shuffled.col[order])
        shuffled = scipy.sparse.coo_matrix((shuffled.data[order], places), plain.shape)
        twice = scipy.sparse.coo_matrix((numpy.append(plain.tocoo().data, [4.0]), (numpy.append(plain.tocoo().row, [3]),
                                        numpy.append(plain.tocoo().col, [5]))), plain.shape)
        for given in (plain.tocsc(), shuffled, twice, scipy.sparse.bsr_matrix(plain, blocksize=(4, 2))):
            operator = self.check(given, given.copy(), values="mutable")
            turned = operator.T
            new = given.copy()
            new.data = numpy.arange(float(given.data.size)).reshape(given.data.shape)
            operator.update_values(new.data)
            x = vector(40)
            same(operator @ x, new.tocsr() @ x)
            same(turned @ x, new.tocsr().T @ x)

    def test_semirings(self):
        plain = matrix()
        dense, x, y = plain.toarray(), vector(40), vector(40) - 100
        ones = scipy.sparse.csr_matrix((numpy.ones_like(plain.data), plain.indices, plain.indptr), plain.shape)
        present = ones.toarray() > 0
        for name, expected, joined in [
            ("min-plus", numpy.where(present, dense + x, numpy.inf).min(axis=1), numpy.minimum),
            ("max-times", numpy.where(present, dense * x, -numpy.inf).max(axis=1), numpy.maximum),
            ("or-and", (present & (dense != 0) & (x != 0)).any(axis=1).astype(float),
             lambda a, b: ((a != 0) | (b != 0)).astype(float)),
        ]:
            operator = cbgen.compile(plain, semiring=name)
            same(operator @ x, expected)
            out = y.copy()
            operator.multiply(x, out=out, beta=1)
            same(out, joined(y, expected))
            self.refuses(cbgen.ArgumentError, "alpha must be 1", operator.multiply, x, alpha=2.0)
            self.assertIn(f"(semiring {name})", operator.plan)
        self.refuses(cbgen.ArgumentError, "semiring", cbgen.compile, plain, semiring="min-max")

    def test_pattern(self):
        plain = matrix()
        ones = scipy.sparse.csr_matrix((numpy.ones_like(plain.data), plain.indices, plain.indptr), plain.shape)
        self.check((None, plain.indices, plain.indptr), ones, shape=plain.shape)

    def test_booleans_and_integers(self):
        """As SciPy multiplies them with a vector of float64; what is stored as False or 0 stays a zero."""
        plain = matrix()
        for dtype in (bool, "i1", "u1", "i2", "u4", "i8"):
            for given in (plain.astype(dtype), plain.astype(dtype).tocoo(), abs(plain).astype(dtype).T):
                self.assertEqual(self.check(given, given.astype(float)).dtype, numpy.float64)
        stored = scipy.sparse.csr_matrix((plain.data > 1, plain.indices, plain.indptr), plain.shape)
        self.assertEqual(self.check(stored, stored.astype(float)).nnz, plain.nnz)
        large = scipy.sparse.csr_matrix((numpy.array([2**53, -2**53]), numpy.array([0, 1]), numpy.array([0, 1, 2])))
        same(cbgen.compile(large) @ numpy.ones(2), [2.0**53, -2.0**53])
        twice = (numpy.array([True, True]), numpy.array([0, 0]), numpy.array([0, 2]))
        self.check(twice, numpy.array([[2.0]]), shape=(1, 1))

    def test_booleans_and_integers_on_the_gpu(self):
        plain = matrix()
        for data in (plain.data > 1, plain.data.astype("i8"), plain.data.astype("i4")):
            given = CUPY.ndarray(data), CUPY.ndarray(plain.indices), CUPY.ndarray(plain.indptr)
            expected = scipy.sparse.csr_matrix((data.astype(float), plain.indices, plain.indptr), plain.shape)
            self.check(given, expected, shape=plain.shape)
            for more in ({}, {"cuda": False}):
                self.check(TORCH.SparseTensor(plain, data, **more), expected)

    def test_unsorted_with_duplicates(self):
        given = (numpy.array([1.0, 2.0, 4.0, 8.0]), numpy.array([2, 0, 2, 1]), numpy.array([0, 3, 4]))
        dense = numpy.array([[2.0, 0.0, 5.0], [0.0, 8.0, 0.0]])
        operator = self.check(given, dense, shape=(2, 3))
        self.assertEqual(operator.nnz, 3)

    def test_arrays_longer_than_the_rows_say(self):
        plain = matrix()
        given = (numpy.append(plain.data, [7.0, 7.0]), numpy.append(plain.indices, [0, 0]), plain.indptr)
        self.check(given, plain, shape=plain.shape)

    def test_strided_arrays(self):
        plain = matrix()
        self.check((numpy.repeat(plain.data, 2)[::2], plain.indices, plain.indptr), plain, shape=plain.shape)

    def test_on_the_gpu(self):
        plain = matrix()
        for kind in (InterfaceArray, DLPackArray, CUPY.ndarray):
            given = (kind(plain.data), kind(plain.indices), kind(plain.indptr))
            self.check(given, plain, shape=plain.shape)

    def test_torch(self):
        plain = matrix(30, 50)
        for more in ({}, {"cuda": False}):
            self.check(TORCH.SparseTensor(plain, **more), plain)
        self.check(TORCH.SparseTensor(plain.astype(numpy.float32)), plain)
        upper = (plain.data.astype(numpy.float32).view(numpy.uint32) >> 16).astype(numpy.uint16)  # exact for these
        for more in ({}, {"cuda": False}):
            operator = self.check(TORCH.SparseTensor(plain, upper, **more), plain)
            self.assertEqual((operator.info.matrix_type, operator.dtype), ("bfloat16", numpy.float32))

    def test_transposed(self):
        plain = matrix(30, 50)
        operator = self.check(plain, plain.T, transpose=True)
        self.assertEqual(operator.T.shape, (30, 50))

    def test_expected_products_and_values(self):
        for values in ("stored", "mutable", "fixed"):
            operator = self.check(matrix(), matrix(), values=values, expected_products=10)
            self.assertEqual(operator.info.values, values)

    def test_tuning(self):
        for tune in ("off", "model", "measure"):
            info = self.check(matrix(), matrix(), tune=tune).info
            self.assertEqual(info.measured_seconds > 0, tune == "measure")

    def test_complex(self):
        for dtype, arrays in ((numpy.complex128, numpy.asarray), (numpy.complex64, InterfaceArray)):
            plain = (matrix(seed=1) + 1j * matrix(seed=2)).astype(dtype).tocsr()
            given = (arrays(plain.data), arrays(plain.indices), arrays(plain.indptr))
            operator = cbgen.compile(given, shape=plain.shape, values="mutable")
            x = (vector(40, seed=3) - 2j * vector(40, seed=4)).astype(dtype)
            self.assertEqual((operator.dtype, operator.info.matrix_type), (dtype, numpy.dtype(dtype).name))
            for library in (lambda array: array, CUPY.ndarray, TORCH.Tensor):
                same(on_host(operator @ library(x)), plain @ x)
                same(on_host(operator.T @ library(x)), plain.T @ x)
                same(on_host(operator.H @ library(x)), plain.conj().T @ x)
                out = library(x.copy())
                operator.multiply(library(x), out, alpha=2 - 1j, beta=3j)
                same(on_host(out), (2 - 1j) * (plain @ x) + 3j * x)
            same(operator.rmatvec(x), plain.conj().T @ x)
            same(operator.H.H @ x, plain @ x)
            self.assertIs(operator.H.H, operator)
            same(x @ operator, x @ plain)
            same(operator @ x.real.copy(), plain @ x.real)  # NumPy's, converted
            many = numpy.array([x, 2 * x]).T
            same(operator @ many, plain @ many)
            at_once = cbgen.compile(given, shape=plain.shape, vectors=2)
            self.assertEqual(at_once.info.vectors, 2)
            for library in (lambda array: array, CUPY.ndarray, TORCH.Tensor):
                same(on_host(at_once @ library(many)), on_host(operator @ library(many)))
            same(at_once.matmat(many, many.copy(), alpha=1j, beta=2 - 1j), 1j * (plain @ many) + (2 - 1j) * many)
            same(at_once.H.matmat(many), plain.conj().T @ many)
            same((2 * operator - operator).H @ x, plain.conj().T @ x)
            operator.update_values(2j * plain.data)
            same(operator @ x, 2j * (plain @ x))
            same(operator.H @ x, -2j * (plain.conj().T @ x))
            operator.update_values(plain.data.real.copy())  # real ones
            same(operator @ x, plain.real @ x)
            self.refuses(TypeError, "convert it", operator.multiply, CUPY.ndarray(x.real.copy()))
            again = cbgen.load(bytes(operator))
            same(again @ x, plain.real @ x)
        conjugated = cbgen.compile(plain, conjugate=True, transpose=True)
        same(conjugated @ x, plain.conj().T @ x)
        real = cbgen.compile(matrix(), type="c64")
        same(real @ x, matrix() @ x)
        self.refuses(cbgen.ArgumentError, "vectors are real", cbgen.compile(matrix()).multiply, vector(40), alpha=1j)

    def test_refused(self):
        plain = matrix()
        data, indices, indptr = plain.data, plain.indices, plain.indptr
        gpu, gpu_indices, gpu_indptr = InterfaceArray(data), InterfaceArray(indices), InterfaceArray(indptr)
        for kind, words, given, more in [
            (TypeError, "is no sparse matrix", plain.toarray(), {}),
            (TypeError, "is no sparse matrix", "matrix.mtx", {}),
            (TypeError, "needs shape=", (data, indices, indptr), {}),
            (TypeError, "shape= belongs to", plain, {"shape": (40, 40)}),
            (ValueError, "a matrix has (rows, columns)", (data, indices, indptr), {"shape": (40,)}),
            (cbgen.ArgumentError, "choose c128 or c64", plain.astype(complex), {"type": "f64"}),
            (cbgen.UnsupportedError, "atomics", plain.astype(complex), {"context": cbgen.Context(atomics="on")}),
            (ValueError, "the values are int64, some beyond 2**53", (data.astype(int) + 2**53 + 1, indices, indptr),
             {"shape": plain.shape}),
            (ValueError, "some beyond 2**53", (data.astype(int) - 2**53 - 1, indices, indptr), {"shape": plain.shape}),
            (TypeError, "the values are int64", (InterfaceArray(data.astype(int)), gpu_indices, gpu_indptr),
             {"shape": plain.shape}),
            (TypeError, "in foreign byte order", (data.astype(">f8"), indices, indptr), {"shape": plain.shape}),
            (TypeError, "the column indices are uint32", (data, indices.astype("u4"), indptr), {"shape": plain.shape}),
            (ValueError, "contiguous array of one dimension", (data[:, None], indices, indptr), {"shape": plain.shape}),
            (ValueError, "row pointers for 39 rows", (data, indices, indptr), {"shape": (39, 40)}),
            (ValueError, "there are only", (data[:-1], indices, indptr), {"shape": plain.shape}),
            (ValueError, "some on the GPU", (gpu, indices, indptr), {"shape": plain.shape}),
            (ValueError, "values='often'", plain, {"values": "often"}),
            (ValueError, "convert it first", plain.tolil(), {"values": "mutable"}),
            (ValueError, "one of each for a value", Sparse("coo", data, plain.indices, plain.indices[1:]), {}),
            (ValueError, "column pointers for 40 columns", Sparse("csc", data, indices, indptr[1:]), {}),
            (ValueError, "there are only", Sparse("csc", data[1:], indices, indptr), {}),
            (cbgen.ArgumentError, "type", plain, {"type": "f63"}),
            (cbgen.ArgumentError, "tune", plain, {"tune": "sometimes"}),
            (cbgen.ArgumentError, "col_idx", (data, indices + 40, indptr), {"shape": plain.shape}),
            (cbgen.ArgumentError, "row_ptr", (data, indices, indptr[::-1].copy()[[40] + list(range(39)) + [0]]),
             {"shape": plain.shape}),
        ]:
            with self.subTest(words=words):
                self.refuses(kind, words, cbgen.compile, given, **more)

    def test_argument_error_is_a_value_error(self):
        error = self.refuses(ValueError, "", cbgen.compile, matrix(), type="f63")
        self.assertEqual(error.status, cbgen.Status.ARGUMENT)
        self.assertIsInstance(error, cbgen.Error)


def drawn(text):
    """The cells of a notebook's drawing that are not empty. What is not closed is an error: XML has the same rules here."""
    cells = set()
    for path in xml.etree.ElementTree.fromstring(text).iter("path"):
        for col, row, length in re.findall(r"M(\d+) (\d+)h(\d+)", path.get("d")):
            cells |= {(int(row), int(col) + i) for i in range(int(length))}
    return cells


class Order(FakeCase):
    def graph(self, count=600):
        generator = numpy.random.default_rng(3)
        places = generator.permutation(count)
        ends = (count * generator.random((2, 6 * count)) ** 4).astype(int)
        plain = scipy.sparse.csr_matrix((generator.random(6 * count), (places[ends[0]], places[ends[1]])),
                                        shape=(count, count))
        plain.sum_duplicates()
        return plain

    def test_vectors_have_the_order_that_is_told(self):
        plain, x = self.graph(), numpy.random.default_rng(4).random(600)
        for kind in ("symmetric", "unsymmetric"):
            operator = cbgen.compile(plain, reorder=kind, values="mutable")
            rows, columns = operator.permutation()
            self.assertEqual(sorted(rows), list(range(600)))
            self.assertFalse(numpy.array_equal(columns, numpy.arange(600)))
            self.assertEqual(numpy.array_equal(rows, columns), kind == "symmetric")
            numpy.testing.assert_allclose(operator @ x[columns], (plain @ x)[rows], rtol=1e-12)
            numpy.testing.assert_allclose(operator.T @ x[rows], (plain.T @ x)[columns], rtol=1e-12)
            self.assertTrue(numpy.array_equal(operator.T.permutation()[0], columns))
            operator.update_values(2 * plain.data)
            numpy.testing.assert_allclose(operator @ x[columns], 2 * (plain @ x)[rows], rtol=1e-12)
            loaded = cbgen.load(bytes(operator))
            self.assertTrue(numpy.array_equal(loaded.permutation()[1], columns))

    def test_the_given_order(self):
        rows, columns = cbgen.compile(matrix(30, 45)).permutation()
        self.assertTrue(numpy.array_equal(rows, numpy.arange(30)) and numpy.array_equal(columns, numpy.arange(45)))
        with self.assertRaisesRegex(ValueError, "reorder='rcm'; it is 'none', 'symmetric' or 'unsymmetric'"):
            cbgen.compile(matrix(), reorder="rcm")


class Inspection(FakeCase):
    def test_text_plan_key_and_info(self):
        plain = matrix()
        operator = cbgen.compile(plain)
        self.assertIn("y = αA·x + βy", operator.source.splitlines()[0])
        self.assertIn(operator.key, operator.source)
        self.assertIn(operator.plan, operator.source)
        self.assertTrue(operator.plan.startswith("(spmv "))
        self.assertIsInstance(operator.plan_json, dict)
        self.assertRegex(operator.key, r"^[0-9a-f]{16}$")
        info = operator.info
        self.assertEqual((info.rows, info.cols, info.nnz), (40, 40, plain.nnz))
        self.assertEqual((info.matrix_type, info.vector_type, info.sum_type), ("float64",) * 3)
        self.assertGreater(info.stored_bytes, 8 * plain.nnz - 1)
        self.assertGreater(info.total_seconds, 0)
        self.assertEqual(info.cache, "off")
        self.assertGreater(operator.measure(), 0)
        self.assertGreater(operator.info.measured_seconds, 0)
        self.assertRegex(repr(operator), rf"^<cbgen\.Operator 40 x 40, {plain.nnz} nonzeros, float64, recipe \w+, GPU 0>$")

    def test_notebooks(self):
        """The drawing is the matrix's, whatever its format; names are escaped, tags closed, and repr stays one line."""
        plain = scipy.sparse.csr_matrix(scipy.sparse.diags([1.0, 2.0, 3.0], [-1, 0, 2], shape=(40, 40)))
        wide = matrix(30, 45)
        for given, expected in [(plain, plain), (plain.tocsc(), plain), (plain.tocoo(), plain), (wide, wide)]:
            operator = cbgen.compile(given)
            self.assertEqual(drawn(operator._repr_html_()), set(zip(*expected.nonzero())))
            self.assertNotIn("\n", repr(operator))
        self.assertEqual(drawn(operator.T._repr_html_()), set(zip(*wide.T.nonzero())))
        blocks = scipy.sparse.bsr_matrix(numpy.kron(numpy.eye(6), numpy.ones((8, 8))), blocksize=(8, 8))
        self.assertEqual(drawn(cbgen.compile(blocks)._repr_html_()), set(zip(*blocks.nonzero())))
        large = scipy.sparse.identity(480, format="csr")
        self.assertEqual(drawn(cbgen.compile(large)._repr_html_()), {(i, i) for i in range(48)})
        text = cbgen.compile(plain)._repr_html_()
        operator = cbgen.compile(plain, keep_matrix=False)
        for part in ("40 × 40", f"{plain.nnz} nonzeros", "bytes per nonzero", f"<b>{operator.plan_json['recipe']}</b>"):
            self.assertIn(part, text)
        self.assertIn(html.escape(operator.plan[:60]), text)
        self.assertNotIn('role="img"', operator._repr_html_())
        operator.measure()
        self.assertIn("measured <b>", operator._repr_html_())
        loaded = cbgen.load(bytes(operator))
        self.assertIn("40 × 40", loaded._repr_html_())
        loaded.close()
        self.assertIsNone(loaded._repr_html_())
        empty = cbgen.compile(scipy.sparse.csr_matrix((3, 4)))
        self.assertEqual(drawn(empty._repr_html_()), set())
        kernel = cbgen.generate(plain, name="rod<b>&")
        self.assertIn("rod", kernel._repr_html_())
        self.assertNotIn("rod<b>&", kernel._repr_html_())
        self.assertEqual(drawn(kernel._repr_html_()), set())

    def test_generate(self):
        kernel = cbgen.generate(matrix(), name="rod", arch="sm_80", embed="never")
        self.assertIn('for "rod"', kernel.source.splitlines()[0])
        self.assertIn("sm_80", kernel.source)
        self.assertEqual((kernel.symbol, kernel.embedded), ("rod", False))
        self.assertGreater(len(kernel.data), kernel.stored_bytes)
        self.assertRegex(repr(kernel), rf"^<cbgen\.Kernel 'rod', 40 x 40, {matrix().nnz} nonzeros, f64, recipe \w+>$")
        self.refuses(cbgen.ArgumentError, "sm_1", cbgen.generate, matrix(), arch="sm_1")


class Products(FakeCase):
    """Vectors of every kind."""

    def setUp(self):
        super().setUp()
        self.matrix = matrix(30, 50)
        self.operator = cbgen.compile(self.matrix)
        self.x = vector(50)
        self.y = self.matrix @ self.x

    def tearDown(self):
        del self.operator
        super().tearDown()

    def test_arrays_of_all_interfaces(self):
        older = type("Older", (DLPackArray,), {"versions": False})
        for kind in (InterfaceArray, DLPackArray, older, CUPY.ndarray):
            for shape in ((50,), (50, 1)):
                x, out = kind(self.x.reshape(shape)), kind(numpy.full((30,) + shape[1:], numpy.nan))
                copies = fake_get("copies_to_host") + fake_get("copies_to_device")
                self.assertIs(self.operator.multiply(x, out=out), out)
                self.assertEqual(fake_get("copies_to_host") + fake_get("copies_to_device"), copies)
                same(out.get(), self.y.reshape((30,) + shape[1:]))

    def test_alpha_and_beta(self):
        before = vector(30, seed=5)
        for wrap, unwrap in [(InterfaceArray, InterfaceArray.get), (numpy.array, numpy.asarray)]:
            out = wrap(before)
            self.operator.multiply(wrap(self.x), out, alpha=2.0, beta=-3.0)
            same(unwrap(out), 2 * self.y - 3 * before)
            out = wrap(numpy.full(30, numpy.nan))
            self.operator.multiply(wrap(self.x), out, alpha=-1.0)
            same(unwrap(out), -self.y)
        self.refuses(ValueError, "beta needs out=", self.operator.multiply, self.x, beta=1.0)

    def test_results_of_the_same_library(self):
        made = self.operator @ CUPY.ndarray(self.x)
        self.assertIs(type(made), CUPY.ndarray)
        same(made.get(), self.y)
        made = self.operator.matvec(CUPY.ndarray(self.x[:, None]))
        same(made.get(), self.y[:, None])
        self.refuses(TypeError, "give out=", self.operator.matvec, InterfaceArray(self.x))

    def test_torch(self):
        tensor = TORCH.Tensor
        made = self.operator @ tensor(self.x)
        self.assertIs(type(made), tensor)
        same(made.numpy(), self.y)
        many = numpy.array([vector(50, seed=seed) for seed in range(3)]).T
        same((self.operator @ tensor(many)).numpy(), self.matrix @ many)
        same((self.operator @ tensor(many.T.copy()).T).numpy(), self.matrix @ many)
        out = tensor(vector(30, seed=5))
        self.operator.multiply(tensor(self.x), out, alpha=2.0, beta=3.0)
        same(out.numpy(), 2 * self.y + 3 * vector(30, seed=5))
        learning = tensor(self.x)
        learning.requires_grad = True
        self.refuses(TypeError, "these products are not differentiated", self.operator.matvec, learning)
        same(self.operator.matvec(learning.detach()).numpy(), self.y)
        self.refuses(TypeError, "move it with .cuda()", self.operator.multiply, tensor(self.x, cuda=False))
        self.refuses(ValueError, "give x.contiguous()", self.operator.multiply, tensor(many)[:, 1])
        self.refuses(TypeError, "x is float32", self.operator.multiply, tensor(self.x.astype(numpy.float32)))

    def test_numba(self):
        made = self.operator @ NUMBA.cuda.DeviceNDArray(self.x)
        self.assertIs(type(made), NUMBA.cuda.DeviceNDArray)
        same(made.get(), self.y)

    def test_parts_of_arrays(self):
        whole = InterfaceArray(numpy.append(numpy.full(3, numpy.nan), self.x))
        whole._offset, whole._shape = 24, (50,)
        out = InterfaceArray(numpy.full(31, numpy.nan))
        out._offset, out._shape = 8, (30,)
        self.operator.multiply(whole, out)
        same(out.get(), self.y)

    def test_strides(self):
        spread = InterfaceArray(numpy.repeat(self.x, 2), shape=(50,), strides=(16,))
        out = InterfaceArray(numpy.zeros(30))
        self.refuses(ValueError, "x is not contiguous", self.operator.multiply, spread, out)
        dense = InterfaceArray(self.x, strides=(8,))
        self.operator.multiply(dense, out)
        same(out.get(), self.y)
        spread = CUPY.ndarray(numpy.repeat(self.x, 2), shape=(50,), strides=(16,))
        self.refuses(ValueError, "give cupy.ascontiguousarray", self.operator.multiply, spread)
        same(self.operator.matvec(spread).get(), self.y)  # which may allocate

    def test_many_columns(self):
        many = numpy.array([vector(50, seed=seed) for seed in range(4)]).T
        for order in "CF":
            same(self.operator @ many.copy(order), self.matrix @ many)
        same((self.operator @ CUPY.ndarray(many)).numpy(), self.matrix @ many)
        rows = numpy.array([vector(30, seed=seed) for seed in range(3)])
        same(rows @ self.operator, rows @ self.matrix)
        same(rows[0] @ self.operator, rows[0] @ self.matrix)
        same(self.operator.rmatmat(rows.T), self.matrix.T @ rows.T)
        self.refuses(ValueError, "takes (50, columns)", self.operator.matmat, many.T)

    def test_several_vectors(self):
        """One pass over the matrix for all columns, however they lie, with the bits of single products."""
        many = numpy.array([vector(50, seed=seed) for seed in range(11)]).T
        operator = cbgen.compile(self.matrix, vectors=8)
        self.assertEqual(operator.info.vectors, 8)
        expected = numpy.array([self.operator @ column.copy() for column in many.T]).T
        for order in "CF":
            same(operator @ many.copy(order), expected)
            out = numpy.asarray(expected, order=order)
            same(operator.matmat(many, out, alpha=2.0, beta=-1.0), expected)
        same((operator @ CUPY.ndarray(many)).numpy(), expected)
        same((operator @ TORCH.Tensor(many)).numpy(), expected)
        by_column = operator @ TORCH.Tensor(numpy.ascontiguousarray(many.T)).T
        same(by_column.numpy(), expected)
        self.assertFalse(by_column.is_contiguous())
        out = TORCH.Tensor(numpy.zeros((30, 11)))
        operator.matmat(TORCH.Tensor(many), out, alpha=0.5)
        same(out.numpy(), expected / 2)
        rows = numpy.array([vector(30, seed=seed) for seed in range(3)])
        same(rows @ operator, rows @ self.operator)  # the transpose is compiled for as many
        self.assertEqual(operator.T.info.vectors, 8)
        self.refuses(ValueError, "both lie alike", operator.matmat, TORCH.Tensor(many),
                     TORCH.Tensor(numpy.zeros((11, 30))).T)
        self.refuses(ValueError, "out has shape", operator.matmat, many, numpy.zeros((30, 4)))
        self.refuses(ValueError, "beta needs out=", operator.matmat, many, beta=1.0)
        self.refuses(TypeError, "float32", operator.matmat, CUPY.ndarray(many.astype(numpy.float32)))
        self.refuses(ValueError, "vectors=0", cbgen.compile, self.matrix, vectors=0)
        plain = numpy.zeros((30, 11))
        same(self.operator.matmat(many, plain, alpha=2.0), 2 * expected)  # column by column

    def test_complex_vectors(self):
        """Real and imaginary parts side by side, with the bits of products of their own."""
        x = vector(50, seed=1) + 1j * vector(50, seed=2)
        expected = (self.operator @ x.real.copy()) + 1j * (self.operator @ x.imag.copy())
        many = numpy.array([x, 2 * x.conj(), 3j * x]).T
        of_many = (self.operator @ many.real.copy()) + 1j * (self.operator @ many.imag.copy())
        left = vector(30, seed=3) - 1j * vector(30, seed=4)
        for operator in (self.operator, cbgen.compile(self.matrix, vectors=2)):
            for one in (x, numpy.repeat(x, 2)[::2]):
                same(operator @ one, expected)
            same(operator @ x.reshape(50, 1), expected.reshape(30, 1))
            same(operator @ many, of_many)
            same(operator @ numpy.asfortranarray(many), of_many)
            for library in (CUPY.ndarray, TORCH.Tensor):
                same((operator @ library(x)).numpy(), expected)
                same((operator @ library(many)).numpy(), of_many)
            same(left @ operator, left.real @ operator + 1j * (left.imag @ operator))
            same((2 * operator - operator) @ x, 2 * expected - expected)
            out = expected.copy()
            self.assertIs(operator.multiply(x, out, alpha=2.0, beta=-1.0), out)
            same(out, expected)
        out = TORCH.Tensor(numpy.zeros(30, complex))
        operator.multiply(TORCH.Tensor(x), out, alpha=0.5)
        same(out.numpy(), expected / 2)
        self.refuses(ValueError, "compiled with vectors=2", self.operator.multiply, TORCH.Tensor(x), out)
        self.refuses(ValueError, "out has shape", operator.multiply, x, numpy.zeros(29, complex))
        self.refuses(ValueError, "x has shape", operator.multiply, x[:49])
        self.refuses(TypeError, "out float64", operator.multiply, x, numpy.zeros(30))
        self.refuses(TypeError, "whose parts are float32", operator.multiply, CUPY.ndarray(x.astype(numpy.complex64)))
        Plain = type("Plain", (InterfaceArray,), {"dtype": property(lambda array: array._dtype)})
        self.refuses(TypeError, "complex vectors of this library", operator.multiply, Plain(x))
        narrow = cbgen.compile(self.matrix, type="f32", vectors=2)
        self.assertEqual((narrow @ x.astype(numpy.complex64)).dtype, numpy.complex64)

    def test_transposed(self):
        x = vector(30)
        same(self.operator.rmatvec(x), self.matrix.T @ x)
        self.assertEqual(self.operator.T.shape, (50, 30))
        self.assertIs(self.operator.T, self.operator.T)
        self.assertIs(self.operator.T.T, self.operator)
        self.assertIs(self.operator.H, self.operator.T)

    def test_numpy_kinds(self):
        for x in (self.x.astype(numpy.int8), self.x.astype(numpy.float32), self.x > 0, numpy.repeat(self.x, 2)[::2],
                  self.x.astype(">f8")):
            same(self.operator @ x, self.matrix @ x.astype(float))
        single = cbgen.compile(self.matrix.astype(numpy.float32))
        same(single @ self.x.astype("i2"), self.y.astype(numpy.float32))
        self.refuses(TypeError, "x is int32, the operator multiplies float32: convert it", single.matvec, self.x.astype("i4"))
        out = numpy.zeros(30)
        self.assertIs(self.operator.multiply(self.x, out), out)
        same(out, self.y)

    def test_refused_vectors(self):
        multiply, x, out = self.operator.multiply, InterfaceArray(self.x), InterfaceArray(numpy.zeros(30))
        single = self.x.astype(numpy.float32)
        bool_array = InterfaceArray(self.x > 0)
        masked = type("Masked", (), {"__cuda_array_interface__": {**x.__cuda_array_interface__, "mask": x}, "shape": (50,)})
        on_host = type("OnHost", (DLPackArray,), {"device_type": 1})
        shifted = InterfaceArray(self.x, offset=4)
        both = InterfaceArray(numpy.zeros(60))
        half = InterfaceArray(numpy.zeros(60))
        half._memory, half._offset, half._shape, both._shape = both._memory, 160, (30,), (50,)
        for kind, words, given, target in [
            (TypeError, "x is float32, the operator multiplies float64", InterfaceArray(single), out),
            (TypeError, "x is bool", bool_array, out),
            (TypeError, "x is int64, the operator multiplies float64: convert it", CUPY.ndarray(self.x.astype(int)), None),
            (TypeError, "out is float32", x, InterfaceArray(numpy.zeros(30, numpy.float32))),
            (TypeError, "x is longdouble" if numpy.dtype("g").name == "longdouble" else "x is float128",
             self.x.astype("g"), None),
            (ValueError, "x has shape (49,)", InterfaceArray(self.x[1:]), out),
            (ValueError, "x has shape (1, 50)", InterfaceArray(self.x[None]), out),
            (ValueError, "out has shape (29,)", x, InterfaceArray(numpy.zeros(29))),
            (ValueError, "x has shape (49,)", self.x[1:], None),
            (ValueError, "out has shape (31,)", self.x, numpy.zeros(31)),
            (ValueError, "out is not contiguous", self.x, numpy.zeros(60)[::2]),
            (ValueError, "not float64", self.x, numpy.zeros(30, numpy.float32)),
            (ValueError, "not aligned", shifted, out),
            (ValueError, "overlap", both, half),
            (ValueError, "out is read-only", x, InterfaceArray(numpy.zeros(30), readonly=True)),
            (ValueError, "out is read-only", x, DLPackArray(numpy.zeros(30), readonly=True)),
            (TypeError, "masked", masked(), out),
            (TypeError, "not on a CUDA GPU", on_host(self.x), out),
            (TypeError, "both are on the GPU, or both are NumPy arrays", x, numpy.zeros(30)),
            (TypeError, "both are on the GPU, or both are NumPy arrays", self.x, out),
            (TypeError, "is no array of CuPy", list(self.x), None),
            (TypeError, "is no array of CuPy", x, object()),
        ]:
            with self.subTest(words=words):
                self.refuses(kind, words, multiply, given, target)
        readonly = numpy.zeros(30)
        readonly.flags.writeable = False
        self.refuses(ValueError, "out is read-only", multiply, self.x, readonly)
        self.refuses(TypeError, "take no stream=", multiply, self.x, stream=0)
        with self.assertRaises(TypeError):
            self.operator @ 3
        with self.assertRaises(TypeError):
            "text" @ self.operator
        same(self.operator @ self.x, self.y)  # and goes on working

    def test_another_gpu(self):
        FAKE.fake_set(b"devices", 2)
        for kind in (InterfaceArray, DLPackArray, CUPY.ndarray):
            self.refuses(ValueError, "x is on GPU 1, the operator on GPU 0", self.operator.multiply, kind(self.x, 1),
                         InterfaceArray(numpy.zeros(30)))


class Streams(FakeCase):
    """On which stream a product is launched: cbgen_multiply is asked, whoever calls it."""

    def setUp(self):
        super().setUp()
        self.x, self.streams = vector(40), []
        self.library, self.original = cbgen._library.LIBRARY, cbgen._library.LIBRARY.cbgen_multiply

        @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(cbgen._abi.Product))
        def multiply(handle, product):
            self.streams.append(product.contents.stream or 0)
            return self.original(handle, product)

        self.library.cbgen_multiply = multiply
        self.operator = cbgen.compile(matrix())

    def tearDown(self):
        self.library.cbgen_multiply = self.original
        del self.operator
        super().tearDown()

    def launched_on(self, x, out=None, **more):
        self.operator.multiply(x, out, **more)
        return self.streams.pop()

    def test_interface(self):
        one = Stream()
        for announced, expected in [(None, 0), (1, 0), (2, 2), (one.ptr, one.ptr)]:
            if expected != 2:  # the fake has no per-thread stream
                x, out = InterfaceArray(self.x, stream=announced), InterfaceArray(numpy.zeros(40), stream=announced)
                self.assertEqual(self.launched_on(x, out), expected)
        silent = InterfaceArray(numpy.zeros(40))
        self.assertEqual(self.launched_on(InterfaceArray(self.x, stream=one.ptr), silent), one.ptr)
        told = InterfaceArray(numpy.zeros(40), stream=one.ptr)
        self.assertEqual(self.launched_on(InterfaceArray(self.x), told), one.ptr)

    def test_cupy(self):
        x = CUPY.ndarray(self.x)
        self.assertEqual(self.launched_on(x), 0)
        with CUPY.cuda.Stream() as stream:
            self.assertEqual(self.launched_on(x), stream.ptr)
        legacy = CUPY.cuda.Stream.__new__(CUPY.cuda.Stream)
        legacy.ptr = 1  # the other name of the default stream
        CUPY.cuda.Stream.adopted.append(1)
        with legacy:
            self.assertEqual(self.launched_on(x), 0)

    def test_torch(self):
        x, stream = TORCH.Tensor(self.x), TORCH.cuda.Stream()
        self.assertEqual(self.launched_on(x), 0)
        with TORCH.cuda.stream(stream):
            self.assertEqual(self.launched_on(x), stream.ptr)
            self.refuses(ValueError, "give stream=", self.operator.multiply, x, CUPY.ndarray(numpy.zeros(40)))
        made = self.operator.multiply(x, stream=stream)
        self.assertEqual((self.streams.pop(), made.stream_of_memory), (stream.ptr, stream.ptr))

    def test_dlpack(self):
        x, out, one = DLPackArray(self.x), DLPackArray(numpy.zeros(40)), Stream()
        self.assertEqual(self.launched_on(x, out), 0)
        self.assertEqual(x.asked_stream, 1)  # the protocol's number of the default stream
        self.assertEqual(self.launched_on(x, out, stream=one), one.ptr)
        self.assertEqual((x.asked_stream, out.asked_stream), (one.ptr, one.ptr))

    def test_given(self):
        one = Stream()
        core = type("Core", (), {"__cuda_stream__": lambda self: (0, one.ptr)})()
        torch = type("Torch", (), {"cuda_stream": one.ptr})()
        numba = type("Numba", (), {"handle": type("Handle", (), {"value": one.ptr})()})()
        x, out = InterfaceArray(self.x), InterfaceArray(numpy.zeros(40))
        for given in (one, one.ptr, core, torch, numba):
            self.assertEqual(self.launched_on(x, out, stream=given), one.ptr)
        self.assertEqual(self.launched_on(x, out, stream=0), 0)
        self.refuses(TypeError, "it takes a CUDA stream", self.operator.multiply, x, out, stream="fast")
        self.assertEqual(self.launched_on(CUPY.ndarray(self.x), stream=one), one.ptr)
        self.assertEqual(self.launched_on(CUPY.ndarray(self.x), CUPY.ndarray(numpy.zeros(40)), stream=one), one.ptr)
        self.assertEqual(CUPY.cuda.Stream.adopted[-1], one.ptr)  # the result's memory is that stream's

    def test_different(self):
        one, two = Stream(), Stream()
        x, out = InterfaceArray(self.x, stream=one.ptr), InterfaceArray(numpy.zeros(40), stream=two.ptr)
        self.refuses(ValueError, "give stream=", self.operator.multiply, x, out)
        self.assertEqual(self.launched_on(x, out, stream=two), two.ptr)
        same(out.get(), matrix() @ self.x)


if __name__ == "__main__":
    harness.main([sys.argv[0], *os.environ.get("CBGEN_PYTHON_TESTS", "").split()])
