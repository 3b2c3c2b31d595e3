#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cbgen_spmv.torch with PyTorch itself, on the host: tensors in host memory go to the fake GPU and back. Registrations, shapes,
fake kernels, derivatives, torch.compile, modules. What needs tensors on a GPU is in python/tests/gpu_check.py.

    tests/test_python_torch.py
"""
import contextlib
import copy
import ctypes
import gc
import io
import runpy
import sys
import unittest
import warnings

import harness
import numpy
import scipy.sparse
from python_support import DLPackFunctions, DLTensor, FakeCase, matrix

try:
    import torch
except (ImportError, OSError) as failure:
    harness.skip(f"there is no PyTorch ({failure})")
    harness.finish()

import cbgen_spmv as cbgen
import cbgen_spmv.torch
from cbgen_spmv.torch import Matrix

warnings.filterwarnings("ignore", "Sparse (CSR tensor support|invariant checks)")
PLAIN = matrix(12, 9, density=0.3)
f64 = torch.float64


def random(*shape, seed=1, requires_grad=False):
    return torch.randn(*shape, dtype=f64, generator=torch.Generator().manual_seed(seed)).requires_grad_(requires_grad)


def expected(x, plain=PLAIN):
    return torch.from_numpy(plain @ x.detach().numpy())


class TorchCase(FakeCase):
    def tearDown(self):
        torch.compiler.reset()
        super().tearDown()

    def close(self, found, wanted):
        torch.testing.assert_close(found, wanted, rtol=1e-12, atol=1e-12)


class Products(TorchCase):
    def test_matrices(self):
        csr = torch.sparse_csr_tensor(*(torch.from_numpy(part) for part in (PLAIN.indptr, PLAIN.indices, PLAIN.data)),
                                      size=PLAIN.shape)
        x = random(9)
        for given in (PLAIN, PLAIN.tocsc(), PLAIN.tocoo(), scipy.sparse.csr_array(PLAIN), csr, csr.requires_grad_()):
            A = Matrix(given)
            self.assertEqual((A.shape, A.trainable), ((12, 9), False))
            self.close(A(x), expected(x))
            self.close(A @ x, expected(x))
            self.assertEqual(repr(A), f"Matrix(12 x 9, {PLAIN.nnz} values)")

    def test_shapes(self):
        A = Matrix(PLAIN)
        for shape in ((9,), (9, 1), (9, 4)):
            self.close(A(random(*shape)), expected(random(*shape)))
        self.close(A(random(4, 9).t()), expected(random(4, 9).t()))
        self.close(A(random(18)[::2]), expected(random(18)[::2]))
        for rows, cols in ((0, 5), (5, 0), (0, 0)):
            self.assertEqual(Matrix(scipy.sparse.csr_matrix((rows, cols)))(random(cols)).shape, (rows,))

    def test_types(self):
        for dtype in (numpy.float32, numpy.float64):
            A = Matrix(PLAIN.astype(dtype))
            x = torch.arange(9.0).to(torch.from_numpy(numpy.zeros(1, dtype)).dtype)
            self.close(A(x), torch.from_numpy(PLAIN.astype(dtype) @ x.numpy()))
        A = Matrix(PLAIN, type="f32-f64")
        self.close(A(random(9)), expected(random(9)))

    def test_other_values(self):
        A = Matrix(PLAIN)
        for factor in (2, 3):
            values = factor * torch.from_numpy(PLAIN.data)
            self.close(A.multiply(random(9), values), factor * expected(random(9)))
            self.close(A(random(9)), expected(random(9)))

    def test_refused(self):
        A, x = Matrix(PLAIN), random(9)
        values = torch.from_numpy(PLAIN.data)
        for kind, words, call in [
            (ValueError, "a matrix of 12 x 9 takes (9,) or (9, k)", lambda: A(random(8))),
            (ValueError, "x has shape (1, 9)", lambda: A(random(1, 9))),
            (ValueError, "x has shape (9, 1, 1)", lambda: A(random(9, 1, 1))),
            (TypeError, "x is complex128, whose products have no gradients", lambda: A(x.to(torch.complex128))),
            (ValueError, f"{PLAIN.nnz - 1} values for", lambda: A.multiply(x, values[1:])),
            (TypeError, "the values are complex128", lambda: A.multiply(x, values.to(torch.complex128))),
            (TypeError, "convert it with .to_sparse_csr()", lambda: Matrix(torch.eye(3))),
            (TypeError, "convert it with .to_sparse_csr()", lambda: Matrix(torch.eye(3).to_sparse())),
            (TypeError, "is no sparse matrix", lambda: Matrix(PLAIN.toarray())),
            (TypeError, "'transpose' is no option here", lambda: Matrix(PLAIN, transpose=True)),
            (cbgen.ArgumentError, "type", lambda: Matrix(PLAIN, type="f63")(x)),
            (TypeError, "a PyTorch tensor on 'cpu'", lambda: cbgen.compile(PLAIN) @ x.to_sparse()),
        ]:
            with self.subTest(words=words):
                self.refuses(kind, words, call)


class Derivatives(TorchCase):
    def test_x(self):
        A = Matrix(PLAIN)
        for shape in ((9,), (9, 2)):
            x = random(*shape, requires_grad=True)
            self.assertTrue(torch.autograd.gradcheck(A, (x,)))
            self.assertTrue(torch.autograd.gradgradcheck(A, (x,)))

    def test_values(self):
        A = Matrix(PLAIN)
        values = torch.from_numpy(PLAIN.data.copy()).requires_grad_()
        for shape in ((9,), (9, 2)):
            x = random(*shape, requires_grad=True)
            self.assertTrue(torch.autograd.gradcheck(A.multiply, (x, values)))
            self.assertTrue(torch.autograd.gradgradcheck(A.multiply, (x, values)))

    def test_values_of_duplicates(self):
        parts = torch.tensor([0, 3, 4]), torch.tensor([2, 0, 2, 1]), torch.tensor([1.0, 2.0, 4.0, 8.0], dtype=f64)
        A = Matrix(torch.sparse_csr_tensor(*parts, size=(2, 3), check_invariants=False), trainable=True)
        A(torch.tensor([1.0, 10.0, 100.0], dtype=f64)).dot(torch.tensor([1.0, 1000.0], dtype=f64)).backward()
        self.close(A.values.grad, torch.tensor([100.0, 1.0, 100.0, 10000.0], dtype=f64))

    def test_only_what_is_asked_for(self):
        """No transposed operator is compiled while nobody needs a derivative for x."""
        A = Matrix(PLAIN, trainable=True)
        A(random(9)).sum().backward()
        self.assertEqual(list(A._operators), [(False, True)])
        with torch.no_grad():
            self.assertFalse(A(random(9, requires_grad=True)).requires_grad)

    def test_by_the_dispatcher(self):
        """Tensors of a mode or another class go through the registered operators, with the same results."""
        A, x, values = Matrix(PLAIN), random(9), torch.from_numpy(PLAIN.data)
        self.refuses(RuntimeError, "functorch", torch.func.grad(lambda x: A(x).sum()), x)  # PyTorch's own limit
        subclass = type("Named", (torch.Tensor,), {})
        self.close(A(x.as_subclass(subclass)).as_subclass(torch.Tensor), A(x))
        from torch.fx.experimental.proxy_tensor import make_fx

        traced = make_fx(lambda x: A(x) + A.multiply(x, values))(x)
        called = [str(node.target) for node in traced.graph.nodes if "cbgen_spmv" in str(node.target)]
        self.assertEqual(called, ["cbgen_spmv.product.default", "cbgen_spmv.product_of.default"])

    def test_traces_hold_the_product(self):
        """And not the result of the call that was traced."""
        A = Matrix(PLAIN)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            traced = torch.jit.trace(lambda x: A(x), (random(9),))
        self.close(traced(random(9, seed=2)), expected(random(9, seed=2)))

    def test_tangents_go_along(self):
        from torch.autograd import forward_ad

        A, tangent, values = Matrix(PLAIN), random(9, seed=3), torch.from_numpy(PLAIN.data)
        for learns in (False, True):
            with forward_ad.dual_level():
                both = forward_ad.make_dual(random(9, requires_grad=learns), tangent)
                found = forward_ad.unpack_dual(A(both))
                self.close(found.primal, expected(random(9)))
                self.close(found.tangent, expected(tangent))
                self.refuses(NotImplementedError, "jvp", A.multiply, both, values)  # and are not lost

    def test_the_module_may_go_before_its_gradients(self):
        x = random(9, requires_grad=True)
        y = Matrix(PLAIN)(x)
        gc.collect()
        self.close(torch.autograd.grad(y.sum(), x)[0], torch.from_numpy(PLAIN.T @ numpy.ones(12)))

    def test_plain_and_dispatched_derivatives_agree(self):
        A = Matrix(PLAIN)
        values, x = torch.from_numpy(PLAIN.data.copy()).requires_grad_(), random(9, 2, requires_grad=True)
        operators = torch.ops.cbgen_spmv
        for plain, dispatched in [
            (A(x), operators.product(x, A._key, False)),
            (A.multiply(x, values), operators.product_of(values, x, A.rows, A.columns, A._key, False)),
        ]:
            inputs = (x, values) if "Of" in type(plain.grad_fn).__name__ else (x,)
            self.assertNotEqual(type(plain.grad_fn), type(dispatched.grad_fn))
            for one, other in zip(torch.autograd.grad(plain.square().sum(), inputs),
                                  torch.autograd.grad(dispatched.square().sum(), inputs)):
                self.close(one, other)
        x = random(9, requires_grad=True)
        self.assertTrue(torch.autograd.gradgradcheck(lambda x: operators.product(x, A._key, False), (x,)))

    def test_registrations(self):
        A, values = Matrix(PLAIN), torch.from_numpy(PLAIN.data.copy()).requires_grad_()
        operators = torch.ops.cbgen_spmv
        for x in (random(9, requires_grad=True), random(9, 3, requires_grad=True)):
            torch.library.opcheck(operators.product, (x, A._key, False))
            torch.library.opcheck(operators.product_of, (values, x, A.rows, A.columns, A._key, False))
        torch.library.opcheck(operators.product, (random(12, requires_grad=True), A._key, True))


class Compiled(TorchCase):
    def check(self, backend):
        A, T = Matrix(PLAIN), Matrix(PLAIN, trainable=True)

        def loss(x):
            return torch.relu(T(2 * x)).square().sum() + A(x[:, 0]).square().sum()

        compiled = torch.compile(loss, fullgraph=True, backend=backend)
        for k in (3, 5):
            x = random(9, k, requires_grad=True)
            plainly, found = loss(x), compiled(x)
            self.close(found, plainly)
            wanted = torch.autograd.grad(plainly, (x, T.values))
            for one, other in zip(torch.autograd.grad(found, (x, T.values)), wanted):
                self.close(one, other)

    def test_aot_eager(self):
        self.check("aot_eager")

    def test_before_any_other_call(self):
        """Nothing of a matrix needs a call outside of what is compiled."""
        for trainable in (False, True):
            A, values = Matrix(PLAIN, trainable=trainable), 2 * torch.from_numpy(PLAIN.data)
            x = random(9, requires_grad=True)
            compiled = torch.compile(lambda x, A=A, values=values: A(x) + A.multiply(x, values), fullgraph=True,
                                     backend="aot_eager")
            found = compiled(x)
            self.close(found, 3 * expected(x))
            self.close(torch.autograd.grad(found.sum(), x)[0], torch.from_numpy(3 * (PLAIN.T @ numpy.ones(12))))

    def test_functions_of_dlpack(self):
        """PyTorch's own table, which the compiled part reads tensors by, is laid out as it reads it."""
        capsule = getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)
        if capsule is None:
            self.skipTest("this PyTorch has no __dlpack_c_exchange_api__")
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        table = DLPackFunctions.from_address(pointer(capsule, b"dlpack_exchange_api"))
        self.assertEqual(table.major, 1)
        x, found, stream = random(4, 6)[1:, ::2], DLTensor(), ctypes.c_void_p(7)
        self.assertEqual(table.read(x, found), 0)
        self.assertEqual((found.data + found.byte_offset, found.device_type, found.ndim), (x.data_ptr(), 1, 2))
        self.assertEqual((found.code, found.bits, found.lanes), (2, 64, 1))
        self.assertEqual((found.shape[:2], found.strides[:2]), ([3, 3], [6, 2]))
        self.assertEqual(table.current_stream(1, 0, ctypes.byref(stream)), 0)

    def test_fake_kernels(self):
        from torch._subclasses.fake_tensor import FakeTensorMode

        A = Matrix(PLAIN)
        real = [A(random(*shape)) for shape in ((9,), (9, 4))]
        with FakeTensorMode():
            for wanted in real:
                x = torch.empty((9, *wanted.shape[1:]), dtype=f64)
                found = torch.ops.cbgen_spmv.product(x, A._key, False)
                self.assertEqual((found.shape, found.stride(), found.dtype), (wanted.shape, wanted.stride(), f64))
            self.refuses(ValueError, "takes (9,) or (9, k)", lambda: torch.ops.cbgen_spmv.product(x[1:], A._key, False))
            rows = torch.empty(PLAIN.nnz, dtype=torch.int64)
            self.refuses(ValueError, "values for a pattern", lambda: torch.ops.cbgen_spmv.product_of(
                x[:, 0], x, rows, rows, A._key, False))


class Modules(TorchCase):
    def test_training(self):
        """Steps of an optimiser change the values that products see."""
        target = expected(random(9, 20))
        A = Matrix(0 * PLAIN, trainable=True)
        optimiser, losses = torch.optim.Adam(A.parameters(), lr=0.3), []
        for _ in range(60):
            optimiser.zero_grad()
            loss = (A(random(9, 20)) - target).square().mean()
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
        self.assertLess(losses[-1], 0.02 * losses[0])
        self.assertEqual([name for name, _ in A.named_parameters()], ["values"])
        self.assertEqual(list(A.state_dict()), ["values"])
        self.assertEqual(list(Matrix(PLAIN).state_dict()), [])

    def test_copies(self):
        A = Matrix(PLAIN, trainable=True)
        x, file = random(9), io.BytesIO()
        twin = copy.deepcopy(A)
        torch.save(A, file)
        file.seek(0)
        loaded = torch.load(file, weights_only=False)
        with torch.no_grad():
            A.values.mul_(2)
        self.close(A(x), 2 * expected(x))
        for each in (twin, loaded):
            self.close(each(x), expected(x))
            self.assertNotEqual(each._key, A._key)

    def test_it_goes_with_its_last_reference(self):
        A = Matrix(PLAIN)
        A(random(9))
        key = A._key
        del A
        gc.collect()
        self.assertNotIn(key, cbgen_spmv.torch._matrices)
        self.refuses(ValueError, "is gone", lambda: torch.ops.cbgen_spmv.product(random(9), key, False))


class Example(TorchCase):
    def test_graph_network(self):
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            main = runpy.run_path("examples/python/graph_network.py")["main"]
            self.assertEqual(main(600, 40), 0, output.getvalue())
        lines = output.getvalue().splitlines()
        self.assertEqual(len([line for line in lines if line.startswith(("| constant | ", "| learnt | "))]), 4)


if __name__ == "__main__":
    harness.main(sys.argv)
