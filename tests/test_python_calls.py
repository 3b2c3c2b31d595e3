#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The compiled part of the Python package (_calls.c): that products take the short way where they should, give what the
package gives without it, errors included, and leave no reference behind.

    tests/test_python_calls.py          CBGEN_CALLS names the file
"""
import ctypes
import gc
import json
import os
import subprocess
import sys
import unittest
import unittest.mock

import harness
import numpy
from python_stand_ins import CUPY, TORCH
from python_support import (DLPACK_CURRENT, DLPACK_READ, FAKE, DLPackArray, DLPackFunctions, DLTensor, FakeCase,
                            InterfaceArray, Stream, fake_get, matrix, vector)

import cbgen_spmv as cbgen

PLAIN, X = matrix(30, 50), vector(50)
Y = PLAIN @ X
CALLS = cbgen._compiled.CALLS
same = numpy.testing.assert_array_equal


def numpy_of(array):
    return array.numpy() if hasattr(array, "numpy") else array.get()


def dlpack_functions(asked):
    """What PyTorch offers as Tensor.__dlpack_c_exchange_api__, for its stand-in. `asked`: the calls are noted there."""
    codes = {"float64": (2, 64), "float32": (2, 32), "bfloat16": (4, 16)}

    @DLPACK_READ
    def read(tensor, found):
        asked.append("read")
        if not tensor.is_cuda:
            return -1
        code, bits = codes[tensor.dtype.name]
        count = len(tensor.shape)
        tensor.kept = ((ctypes.c_int64 * count)(*tensor.shape), (ctypes.c_int64 * count)(*tensor.strides))
        found[0] = DLTensor(tensor.data_ptr() - 8, 2, tensor.device.index, count, code, bits, 1, *tensor.kept, 8)
        return 0

    @DLPACK_CURRENT
    def current_stream(device_type, device, stream):
        asked.append("stream")
        stream[0] = TORCH.cuda.current_stream(device).cuda_stream
        return 0

    table = DLPackFunctions(1, 3, None, None, None, None, read, current_stream)
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return table, new(ctypes.addressof(table), b"dlpack_exchange_api", None)


class ShortWay(FakeCase):
    def setUp(self):
        super().setUp()
        self.operator = cbgen.compile(PLAIN)
        for kind in (CUPY.ndarray, TORCH.Tensor):  # a type is learnt when it is first seen
            self.operator @ kind(X)
        cbgen._arrays.library_of(InterfaceArray(X))
        self.blocked = [unittest.mock.patch.object(cbgen.Operator, name, side_effect=AssertionError("the long way"))
                        for name in ("_multiply", "_matvec", "_matmul")]
        for each in self.blocked:
            each.start()

    def tearDown(self):
        unittest.mock.patch.stopall()
        del self.operator
        super().tearDown()

    def check_products(self, kind):
        for shape in ((50,), (50, 1)):
            x, rows = kind(X.reshape(shape)), (30,) + shape[1:]
            for made in (self.operator @ x, self.operator.matvec(x), self.operator.multiply(x),
                         self.operator.multiply(x, None)):
                self.assertIs(type(made), kind)
                same(numpy_of(made), Y.reshape(rows))
            before = vector(30, seed=5).reshape(rows)
            for arguments, named in [(("out",), {}), ((), {"out": "out"})]:
                out = kind(before)
                values = [out for _ in arguments], {name: out for name in named}
                self.assertIs(self.operator.multiply(x, *values[0], alpha=2, beta=numpy.float64(-3), **values[1]), out)
                same(numpy_of(out), 2 * Y.reshape(rows) - 3 * before)

    def test_cupy(self):
        self.check_products(CUPY.ndarray)

    def test_torch_by_attributes(self):
        self.check_products(TORCH.Tensor)

    def test_mixed(self):
        out = TORCH.Tensor(numpy.zeros(30))
        self.operator.multiply(CUPY.ndarray(X), out)
        same(out.numpy(), Y)
        out = InterfaceArray(numpy.zeros(30))
        self.operator.multiply(TORCH.Tensor(X), out)
        same(out.get(), Y)

    def test_interface(self):
        one = Stream()
        for more in ({}, {"stream": 1}, {"stream": one.ptr}, {"strides": (8,)}, {"offset": 16}):
            x, out = InterfaceArray(X, **more), InterfaceArray(numpy.full(30, numpy.nan), **more)
            self.assertIs(self.operator.multiply(x, out, alpha=2), out)
            same(out.get(), 2 * Y)
        out = InterfaceArray(numpy.zeros((30, 1)), strides=(8, 8))
        self.operator.multiply(InterfaceArray(X[:, None]), out)
        same(out.get(), Y[:, None])
        kind = type("Other", (InterfaceArray,), {})
        cbgen._arrays.library_of(kind(X))
        self.operator.multiply(kind(X), out)

    def test_given_streams(self):
        one = Stream()
        for given in (one, one.ptr, 0, 1):
            out = CUPY.ndarray(numpy.zeros(30))
            self.operator.multiply(CUPY.ndarray(X), out, stream=given)
            same(out.get(), Y)

    def test_all_types(self):
        for name, values in (("f32", numpy.float32), ("f16", numpy.float16)):
            operator = cbgen.compile(PLAIN, type=name)
            same((operator @ CUPY.ndarray(X.astype(values))).get(), Y)

    def test_scratch_has_a_handle_for_each_stream(self):
        plain = matrix(40, 2000, density=0.5)
        operator = cbgen.compile(plain, context=cbgen.Context(recipe="cb"))
        self.assertTrue(operator.info.has_scratch)
        x = CUPY.ndarray(vector(2000))
        for stream in (CUPY.cuda.Stream(), CUPY.cuda.Stream()):
            with stream:
                same((operator @ x).get(), plain @ vector(2000))
                same((operator @ x).get(), plain @ vector(2000))
        self.assertEqual(len(operator._handles._of_stream), 2)

    def test_failures_are_the_library_s(self):
        x, out = CUPY.ndarray(X), CUPY.ndarray(numpy.zeros(30))
        messages = []
        for nth in range(1, 9):  # one of them is the launch
            FAKE.fake_set(b"fail_at", fake_get("calls") + nth)
            FAKE.fake_set(b"failure", 1)
            try:
                self.operator.multiply(x, out)
            except cbgen.DeviceError as error:
                messages.append(str(error))
            finally:
                FAKE.fake_set(b"fail_at", 0)
        self.assertTrue(messages and all(messages))
        self.operator.multiply(x, out)
        same(out.get(), Y)

    def test_no_reference_stays(self):
        x, out, none, dtype = CUPY.ndarray(X), CUPY.ndarray(numpy.zeros(30)), None, numpy.dtype("f8")
        tensor = TORCH.Tensor(X)
        watched = (x, out, tensor, dtype, self.operator, True, False, CUPY.ndarray, TORCH.Tensor, TORCH.float64)
        before = [sys.getrefcount(each) for each in watched]
        for _ in range(2000):
            self.operator.multiply(x, out, alpha=1.0, stream=0)
            self.operator.multiply(x, out=none if False else out, beta=0.0)
        for _ in range(50):
            self.operator @ tensor
            self.operator @ x
        after = [sys.getrefcount(each) for each in watched]
        self.assertLess(max(abs(a - b) for a, b in zip(after, before)), 20)

    def test_plain_is_for_tensors_that_nobody_listens_to(self):
        said, learning = [False], TORCH.Tensor(X)
        learning.requires_grad = True
        plain = self.operator._plain
        CALLS.set_listeners(())
        self.assertIsNone(plain(TORCH.Tensor(X), False))  # it is not known who listens
        CALLS.set_listeners((lambda: 0, lambda: said[0]))
        for x, detached, gives in [
            (TORCH.Tensor(X), False, True), (TORCH.Tensor(X), True, True), (learning, True, True),
            (learning, False, False), (CUPY.ndarray(X), False, False), (TORCH.Tensor(X[1:]), False, False),
            (X, False, False), (None, True, False),
            (TORCH.Tensor(X, cuda=False), False, False), (TORCH.Tensor(X.astype("f4")), False, False),
        ]:
            said[0] = False
            found = plain(x, detached)
            self.assertEqual(found is not None, gives)
            if gives:
                same(found.numpy(), Y)
                self.assertEqual((found.shape, found.requires_grad), ((30,), False))
            said[0] = True
            self.assertIsNone(plain(x, detached))
        said[0] = False
        self.assertEqual(plain(TORCH.Tensor(X.reshape(50, 1)), False).shape, (30, 1))
        CALLS.set_listeners((lambda: 1 // 0,))
        self.assertIsNone(plain(TORCH.Tensor(X), False))
        CALLS.set_listeners((lambda: interrupt(None),))
        self.assertRaises(KeyboardInterrupt, plain, TORCH.Tensor(X), False)
        self.assertRaises(TypeError, plain, TORCH.Tensor(X))
        self.assertRaises(TypeError, CALLS.set_listeners, [])
        CALLS.set_listeners(())

    def test_ctrl_c_is_not_swallowed(self):
        with unittest.mock.patch.object(type(CUPY.ndarray(X)), "shape", property(interrupt)):
            self.assertRaises(KeyboardInterrupt, self.operator.multiply, CUPY.ndarray(X), CUPY.ndarray(numpy.zeros(30)))


class Masked(InterfaceArray):
    @property
    def __cuda_array_interface__(self):
        return {**super().__cuda_array_interface__, "mask": self}


class Odd(InterfaceArray):
    @property
    def __cuda_array_interface__(self):
        return {**super().__cuda_array_interface__, "data": self.address}


def interrupt(_):
    raise KeyboardInterrupt


class LongWay(FakeCase):
    """What the short way does not take."""

    def setUp(self):
        super().setUp()
        self.operator = cbgen.compile(PLAIN)
        self.operator @ CUPY.ndarray(X)
        self.operator @ TORCH.Tensor(X)
        for kind in (InterfaceArray, Masked, Odd):
            cbgen._arrays.library_of(kind(X))

    def tearDown(self):
        del self.operator
        super().tearDown()

    def goes_the_long_way(self, *arguments, **named):
        with unittest.mock.patch.object(cbgen.Operator, "_multiply", return_value="long") as method:
            self.assertEqual(self.operator.multiply(*arguments, **named), "long")
        self.assertEqual((method.call_args.args, method.call_args.kwargs), (arguments, named))

    def test_everything_else(self):
        x, out, zeros = CUPY.ndarray(X), CUPY.ndarray(numpy.zeros(30)), numpy.zeros
        subclass = type("Sub", (CUPY.ndarray,), {})
        same((self.operator @ subclass(X)).get(), Y)  # not learnt by that
        raising = type("Raising", (), {"__float__": interrupt.__class__})
        learning = TORCH.Tensor(X)
        learning.requires_grad = True
        both = CUPY.ndarray(zeros(60))
        half = CUPY.ndarray(zeros(60))
        half._memory, half._offset, half._shape, both._shape = both._memory, 160, (30,), (50,)
        for arguments, named in [
            ((X,), {}), ((X, zeros(30)), {}), ((DLPackArray(X), DLPackArray(zeros(30))), {}), ((x, zeros(30)), {}),
            ((subclass(X), out), {}), ((InterfaceArray(X),), {}),
            ((x, InterfaceArray(zeros(30), readonly=True)), {}), ((x, InterfaceArray(zeros(30, "f4"))), {}),
            ((x, InterfaceArray(zeros(31))), {}), ((x, InterfaceArray(zeros(30), strides=(16,))), {}),
            ((x, InterfaceArray(zeros((30, 1)), strides=(16, 8))), {}),
            ((x, InterfaceArray(zeros(30), strides=())), {}),
            ((x, InterfaceArray(zeros((30, 2)))), {}), ((x, Masked(zeros(30))), {}), ((x, Odd(zeros(30))), {}),
            ((InterfaceArray(X, stream=7), InterfaceArray(zeros(30), stream=8)), {}),
            ((CUPY.ndarray(X[1:]), out), {}), ((x, CUPY.ndarray(zeros(31))), {}), ((CUPY.ndarray(X[None]), out), {}),
            ((CUPY.ndarray(X.astype("f4")), out), {}), ((x, CUPY.ndarray(zeros(30, "f4"))), {}),
            ((CUPY.ndarray(X, offset=4), out), {}), ((x, CUPY.ndarray(zeros(30), offset=4)), {}),
            ((CUPY.ndarray(numpy.repeat(X, 2), shape=(50,), strides=(16,)), out), {}), ((both, half), {}),
            ((learning, out), {}), ((TORCH.Tensor(X, cuda=False), out), {}), ((TORCH.Tensor(X.astype("f4")), out), {}),
            ((TORCH.Tensor(numpy.array([X, X]).T)[:, 1], out), {}), ((x,), {"beta": 1.0}), ((x,), {"stream": 0}),
            ((x, out), {"alpha": "two"}),
            ((x, out), {"beta": raising()}), ((x, out), {"stream": "fast"}),
            ((x, out), {"gamma": 1}), ((x, out, 1), {}), ((), {"x": x}), ((x, out), {"out": out}), ((), {}),
        ]:
            with self.subTest(arguments=len(arguments), named=named):
                self.goes_the_long_way(*arguments, **named)

    def test_differing_streams(self):
        with TORCH.cuda.stream(TORCH.cuda.Stream()):
            self.goes_the_long_way(CUPY.ndarray(X), TORCH.Tensor(numpy.zeros(30)))

    def test_another_gpu(self):
        FAKE.fake_set(b"devices", 2)
        self.goes_the_long_way(CUPY.ndarray(X, 1), CUPY.ndarray(numpy.zeros(30)))
        self.goes_the_long_way(CUPY.ndarray(X), CUPY.ndarray(numpy.zeros(30), 1))
        self.goes_the_long_way(TORCH.Tensor(X, 1), TORCH.Tensor(numpy.zeros(30), 1))
        self.goes_the_long_way(InterfaceArray(X, 1), InterfaceArray(numpy.zeros(30), 1))

    def test_closed(self):
        self.operator.close()
        self.goes_the_long_way(CUPY.ndarray(X), CUPY.ndarray(numpy.zeros(30)))
        self.refuses(ValueError, "the operator is closed", self.operator.multiply, CUPY.ndarray(X))
        self.refuses(ValueError, "the operator is closed", lambda: self.operator @ CUPY.ndarray(X))

    def test_many_types(self):
        """There is room for so many; the others go the long way."""
        kinds = [type(f"Kind{i}", (), {}) for i in range(40)]
        learnt = [CALLS.learn(kind, "cupy", {}, print, print, None) for kind in kinds]
        self.assertEqual(learnt[0], True)
        self.assertEqual(learnt[-1], False)
        self.assertTrue(CALLS.learn(kinds[0], "cupy", {}, print, print, None))
        CALLS.forget()
        cbgen._arrays._libraries.clear()
        same((self.operator @ CUPY.ndarray(X)).get(), Y)


class TorchByDLPack(ShortWay):
    """PyTorch 2.10 and later: tensors are read by C functions that their class names."""

    def setUp(self):
        self.asked = []
        self.table, TORCH.Tensor.__dlpack_c_exchange_api__ = dlpack_functions(self.asked)
        self.learn_again()
        super().setUp()

    def tearDown(self):
        super().tearDown()
        del TORCH.Tensor.__dlpack_c_exchange_api__
        self.learn_again()

    def learn_again(self):
        CALLS.forget()
        cbgen._arrays._libraries.clear()

    def test_its_functions_are_asked(self):
        self.asked.clear()
        self.operator @ TORCH.Tensor(X)
        self.assertEqual(self.asked, ["read", "read", "stream"])

    def test_what_does_not_fit(self):
        unittest.mock.patch.stopall()
        for tensor in (TORCH.Tensor(X, cuda=False), TORCH.Tensor(X.astype("f4")), TORCH.Tensor(X[1:]), TORCH.Tensor(X[None]),
                       TORCH.Tensor(numpy.array([X, X]).T)[:, 1], TORCH.Tensor(numpy.array([X, X]).T)):
            with unittest.mock.patch.object(cbgen.Operator, "_multiply", return_value="long"):
                self.assertEqual(self.operator.multiply(tensor), "long")

    def test_another_version_of_it(self):
        for change in ({"major": 2}, {"read": DLPACK_READ()}, {"current_stream": DLPACK_CURRENT()}):
            for name, value in change.items():
                setattr(self.table, name, value)
            self.learn_again()
            self.asked.clear()
            unittest.mock.patch.stopall()
            same((self.operator @ TORCH.Tensor(X)).numpy(), Y)  # by attributes
            self.assertEqual(self.asked, [])
            self.table.major = 1


OUTCOMES = """
import json, sys
sys.path.insert(0, "tests")
import numpy
from python_stand_ins import CUPY, TORCH
from python_support import InterfaceArray, DLPackArray, Stream, matrix, vector
import cbgen_spmv as cbgen
plain, X, zeros = matrix(30, 50), vector(50), numpy.zeros
A, learning = cbgen.compile(plain), TORCH.Tensor(X)
learning.requires_grad = True
x, out, tensor = CUPY.ndarray(X), CUPY.ndarray(zeros(30)), TORCH.Tensor(X)
closed = cbgen.compile(plain)
closed.close()
cases = [
    lambda: A @ x, lambda: A @ tensor, lambda: A @ X, lambda: A @ X[:, None], lambda: A @ CUPY.ndarray(X[:, None]),
    lambda: A.matvec(x), lambda: A.multiply(x, out, alpha=2), lambda: A.multiply(x, out, alpha=2, beta=True),
    lambda: A.multiply(x, out=None),
    lambda: A.multiply(x, beta=1), lambda: A.multiply(), lambda: A.multiply(x, out, 2.0),
    lambda: A.multiply(x, out, gamma=1), lambda: A.multiply(x, out, out=out),
    lambda: A.multiply(x, out, alpha="two"), lambda: A.multiply(x, out, stream="fast"),
    lambda: A.multiply(x, out, beta=None), lambda: A.multiply(x, 3), lambda: A.multiply("x", out), lambda: A @ 3,
    lambda: 3 @ A, lambda: A @ "x", lambda: A @ A.T @ X[:30], lambda: A @ X[1:], lambda: A @ x.astype("f4"),
    lambda: A @ CUPY.ndarray(X[None]), lambda: X[:30] @ A,
    lambda: CUPY.ndarray(X[:30]) @ A, lambda: A.matvec(learning), lambda: A @ InterfaceArray(X), lambda: closed @ x,
    lambda: closed.multiply(x, out), lambda: A @ TORCH.Tensor(X, cuda=False), lambda: A.multiply(x, zeros(30)),
    lambda: A.multiply(x, x), lambda: A.multiply(x, CUPY.ndarray(zeros(30), offset=4)),
    lambda: A.multiply(x, out, stream=1 << 70), lambda: A.__matmul__(x),
    lambda: A.__rmatmul__(X[:30]), lambda: A.matvec(), lambda: A.matvec(x, out),
]
found = []
for case in cases:
    try:
        result = case()
        content = result.numpy() if hasattr(result, "numpy") else result.get() if hasattr(result, "get") else result
        found.append([type(result).__name__, str(numpy.asarray(content).tolist())])
    except Exception as failure:
        found.append([type(failure).__name__, str(failure)])
print(json.dumps([cbgen._compiled.CALLS is not None, found]))
"""


class BothWays(unittest.TestCase):
    def outcomes(self, calls):
        result = subprocess.run([sys.executable, "-c", OUTCOMES], env={**os.environ, "CBGEN_CALLS": calls},
                                capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def test_results_and_errors(self):
        (with_it, compiled), (without, by_ctypes) = self.outcomes(os.environ["CBGEN_CALLS"]), self.outcomes("ctypes")
        self.assertEqual((with_it, without), (True, False))
        for number, (one, other) in enumerate(zip(compiled, by_ctypes)):
            if "matvec() " in other[1]:  # CPython's own words
                one, other = one[:1], other[:1]
            self.assertEqual(one, other, f"case {number}")
        self.assertGreater(len({kind for kind, _ in compiled}), 3)

    def test_what_the_variable_may_name(self):
        for value, words in (("/nowhere/_calls.so", "nowhere"), (os.environ["CBGEN_LIBRARY"], "PyInit__calls")):
            result = subprocess.run([sys.executable, "-c", "import cbgen_spmv"], env={**os.environ, "CBGEN_CALLS": value},
                                    capture_output=True, text=True, check=False)
            self.assertIn(words, result.stderr)
            self.assertIn("ImportError", result.stderr)

    def test_both_have_the_same_documents(self):
        from cbgen_spmv._plain import Products

        for name in ("multiply", "matvec"):
            lines = [[line.strip() for line in getattr(kind, name).__doc__.strip().splitlines()]
                     for kind in (CALLS.Products, Products)]
            self.assertEqual(*lines)


if __name__ == "__main__":
    harness.main(sys.argv)
