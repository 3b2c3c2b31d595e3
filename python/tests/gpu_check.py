#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Everything of the package that only a GPU can show, in one go: CuPy, PyTorch and Numba arrays, their streams and CUDA
graphs, cupyx solvers, threads, several GPUs. Prints a table; exits 1 when something failed.

    CBGEN_LIBRARY=build/libcbgen.so python3 python/tests/gpu_check.py [--seconds=N] [WORD…]

With words: only checks that have one of them in their name. Checks run in the order of FIRST, then as they stand here,
and none begins once N seconds have passed (no limit): those are told at the end, and the exit status is 1 then, too.

Needs numpy and scipy; what needs a library that is not there is left out, and said so. Matrices and vectors are of
small integers, so that products are compared exactly.
"""
import gc
import io
import os
import sys
import threading
import time
import traceback
import unittest.mock
from importlib import import_module

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "src"))
import numpy
import scipy.sparse
import scipy.sparse.linalg

import cbgen_spmv as cbgen

SIZE = 20000
CHECKS, FAILURES = [], []
# What nothing else shows, then what most programs use; each takes a second or two once PyTorch has begun.
FIRST = ["torch_gradients", "torch_module_short_way", "torch_training_in_a_graph", "torch_compile_without_breaks",
         "torch_short_way", "cupy_short_way", "update_on_the_gpu_and_in_a_graph", "torch_streams_and_graph", "cupy_graph",
         "threads_and_streams", "torch_vectors", "cupy_vectors", "torch_and_cupy_together", "cupy_streams", "matrix_on_the_gpu",
         "torch_matrices"]


def check(*libraries):
    """Registers a function as a check that is given these libraries."""

    def register(function):
        CHECKS.append((function, libraries))
        return function

    return register


class LeftOut(Exception):
    pass


def need(name):
    try:
        return import_module(name)
    except ImportError as failure:
        raise LeftOut(str(failure)) from None


def matrix(rows=SIZE, cols=SIZE, dtype=numpy.float64, per_row=9, seed=1):
    generator = numpy.random.default_rng(seed)
    columns = generator.integers(0, cols, (rows, per_row))
    made = scipy.sparse.csr_matrix((generator.integers(-4, 5, rows * per_row).astype(dtype), columns.ravel(),
                                    numpy.arange(0, rows * per_row + 1, per_row)), shape=(rows, cols))
    made.sum_duplicates()
    return made


def vector(length=SIZE, dtype=numpy.float64, seed=2):
    return numpy.random.default_rng(seed).integers(-8, 9, length).astype(dtype)


def solvable(n=60):
    """The Laplacian of a grid, shifted: symmetric positive definite."""
    line = scipy.sparse.diags([-1.0, 2.1, -1.0], [-1, 0, 1], shape=(n, n))
    return scipy.sparse.csr_matrix(scipy.sparse.kronsum(line, line))


def same(found, expected, what="the product"):
    found = found.get() if hasattr(found, "get") else found
    found = found.cpu().numpy() if hasattr(found, "cpu") else found
    found = found.copy_to_host() if hasattr(found, "copy_to_host") else numpy.asarray(found)
    if found.shape != expected.shape or not (found == expected).all():
        raise AssertionError(f"{what} differs: {numpy.abs(found - expected).max()} at most")


def raises(kind, words, call):
    try:
        call()
    except kind as error:
        assert words in str(error), f"'{words}' is not in '{error}'"
        return
    raise AssertionError(f"no {kind.__name__} with '{words}'")


def scratched(rows=64, cols=SIZE):
    """A matrix of few long rows, compiled so that thread blocks share rows, and the operator."""
    plain = matrix(rows, cols, per_row=4000)
    operator = cbgen.compile(plain, context=cbgen.Context(recipe="cb"))
    assert operator.info.has_scratch, operator.plan
    return plain, operator


PLAIN, X = matrix(), vector()
EXPECTED = PLAIN @ X


# ---- NumPy


@check()
def numpy_vectors_and_scipy_solvers():
    operator = cbgen.compile(PLAIN)
    same(operator @ X, EXPECTED)
    same(operator.rmatvec(X), PLAIN.T @ X)
    plain, b = solvable(), vector(3600)
    for solver in (scipy.sparse.linalg.cg, scipy.sparse.linalg.bicgstab, scipy.sparse.linalg.gmres):
        found, failed = solver(cbgen.compile(plain), b)
        assert not failed and numpy.linalg.norm(plain @ found - b) < 1e-4 * numpy.linalg.norm(b), solver.__name__


@check()
def save_and_load():
    operator = cbgen.compile(PLAIN)
    content = bytes(operator)
    same(cbgen.load(content) @ X, EXPECTED)
    same(cbgen.load(io.BytesIO(content)) @ X, EXPECTED)
    return f"{len(content) / 1e6:.1f} MB"


@check()
def update_from_the_host():
    operator = cbgen.compile(PLAIN, values="mutable")
    operator.update_values(2 * PLAIN.data)
    same(operator @ X, 2 * EXPECTED)


# ---- CuPy


@check("cupy")
def cupy_vectors(cupy):
    for dtype in (numpy.float64, numpy.float32):
        plain, x = matrix(dtype=dtype), vector(dtype=dtype)
        operator, given = cbgen.compile(plain), cupy.asarray(x)
        made = operator @ given
        assert type(made) is cupy.ndarray and made.dtype == dtype
        same(made, plain @ x)
        out = cupy.asarray(vector(seed=3, dtype=dtype))
        operator.multiply(given, out, alpha=2.0, beta=-3.0)
        same(out, 2 * (plain @ x) - 3 * vector(seed=3, dtype=dtype))
        same(operator @ given[:, None], (plain @ x)[:, None])
        same(operator @ cupy.asarray(numpy.repeat(x, 2))[::2], plain @ x)
        many = numpy.array([vector(seed=seed, dtype=dtype) for seed in range(3)]).T
        for order in "CF":
            same(operator @ cupy.asarray(many, order=order), plain @ many)
        same(given @ operator, x @ plain)
    raises(TypeError, "x is float64", lambda: operator @ cupy.asarray(X))
    raises(ValueError, "ascontiguousarray", lambda: operator.multiply(cupy.zeros(2 * SIZE, "f4")[::2]))


@check("cupy")
def matrix_on_the_gpu(cupy):
    sparse = import_module("cupyx.scipy.sparse")
    for given in (sparse.csr_matrix(PLAIN), sparse.csc_matrix(PLAIN), sparse.coo_matrix(PLAIN)):
        operator = cbgen.compile(given)
        same(operator @ cupy.asarray(X), EXPECTED)
        same(operator.rmatvec(cupy.asarray(X)), PLAIN.T @ X)
    wide = tuple(cupy.asarray(part) for part in (PLAIN.data, PLAIN.indices.astype("i8"), PLAIN.indptr.astype("i8")))
    same(cbgen.compile(wide, shape=PLAIN.shape) @ cupy.asarray(X), EXPECTED)
    half = (wide[0].astype("f2"),) + wide[1:]
    same(cbgen.compile(half, shape=PLAIN.shape) @ cupy.asarray(X.astype("f4")), EXPECTED.astype("f4"))


@check("cupy")
def cupy_streams(cupy):
    operator, x, out = cbgen.compile(PLAIN), cupy.asarray(X), cupy.empty(SIZE)
    for stream in (cupy.cuda.Stream(), cupy.cuda.Stream(non_blocking=True)):
        with stream:
            late = cupy.asarray(X)
            for _ in range(200):
                late = late * 1.0
            same(operator @ late, EXPECTED, "a product on the current stream")
        cupy.cuda.Device().synchronize()
        operator.multiply(x, out, stream=stream)
        stream.synchronize()
        same(out, EXPECTED, "a product on stream=")
        same(operator.multiply(x, stream=stream.ptr), EXPECTED)


@check("cupy")
def cupy_graph(cupy):
    for plain, operator in ((PLAIN, cbgen.compile(PLAIN)), scratched()):
        stream, x, out = cupy.cuda.Stream(non_blocking=True), cupy.zeros(SIZE), cupy.zeros(plain.shape[0])
        operator.prepare(stream)
        cupy.cuda.Device().synchronize()
        with stream:
            stream.begin_capture()
            operator.multiply(x, out, alpha=2.0)
            graph = stream.end_capture()
            for seed in (4, 5):
                x.set(vector(seed=seed))
                graph.launch(stream)
                stream.synchronize()
                same(out, 2 * (plain @ vector(seed=seed)), "a replayed product")


@check("cupy")
def update_on_the_gpu_and_in_a_graph(cupy):
    operator, x, out = cbgen.compile(PLAIN, values="mutable"), cupy.asarray(X), cupy.zeros(SIZE)
    transposed = operator.T
    operator.update_values(cupy.asarray(3 * PLAIN.data))
    same(operator @ x, 3 * EXPECTED)
    same(transposed @ x, 3 * (PLAIN.T @ X))
    stream, values = cupy.cuda.Stream(non_blocking=True), cupy.asarray(PLAIN.data)
    cupy.cuda.Device().synchronize()
    with stream:
        stream.begin_capture()
        operator.update_values(values)
        operator.multiply(x, out)
        graph = stream.end_capture()
        for factor in (2, 5):
            values.set(factor * PLAIN.data)
            graph.launch(stream)
            stream.synchronize()
            same(out, factor * EXPECTED, "a replayed update")


@check("cupy")
def cupyx_solvers(cupy):
    linalg = import_module("cupyx.scipy.sparse.linalg")
    plain, b, done = solvable(), vector(3600), []
    operator, right = cbgen.compile(plain), cupy.asarray(b)
    own = import_module("cupyx.scipy.sparse").csr_matrix(plain)
    for name in ("cg", "gmres", "cgs", "bicgstab", "minres"):
        solver = getattr(linalg, name, None)
        if solver is None:
            continue
        found, failed = solver(operator, right)
        error = numpy.linalg.norm(plain @ found.get() - b) / numpy.linalg.norm(b)
        # as good as with CuPy's own matrix: solvers differ in when they stop
        same_way = numpy.linalg.norm(plain @ solver(own, right)[0].get() - b) / numpy.linalg.norm(b)
        assert not failed and error < max(1e-3, 2 * same_way), f"{name}: {failed}, {error}; CuPy's own: {same_way}"
        done.append(name)
    found = linalg.lsmr(operator, right, maxiter=2000)[0]
    assert numpy.linalg.norm(plain @ found.get() - b) < 1e-2 * numpy.linalg.norm(b), "lsmr"
    largest = scipy.sparse.linalg.eigsh(plain, k=2, return_eigenvectors=False)
    found = linalg.eigsh(linalg.aslinearoperator(operator), k=2, return_eigenvectors=False)
    numpy.testing.assert_allclose(numpy.sort(found.get()), numpy.sort(largest), rtol=1e-6)
    return ", ".join(done + ["lsmr", "eigsh"])


@check("cupy")
def dlpack_alone(cupy):
    class Bare:
        def __init__(self, array):
            self.array, self.shape = array, array.shape

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

        def __dlpack__(self, **more):
            return self.array.__dlpack__(**more)

    operator, out = cbgen.compile(PLAIN), cupy.zeros(SIZE)
    operator.multiply(Bare(cupy.asarray(X)), Bare(out))
    same(out, EXPECTED)


@check("cupy")
def threads_and_streams(cupy):
    """4 threads × 4 streams, with an operator that has scratch and one without."""
    wrong = []
    for plain, operator in ((PLAIN, cbgen.compile(PLAIN)), scratched()):
        def work(seed, plain=plain, operator=operator):
            try:
                x = vector(plain.shape[1], seed=seed)
                streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(4)]
                given, outs = cupy.asarray(x), [cupy.zeros(plain.shape[0]) for _ in streams]
                cupy.cuda.Device().synchronize()
                for _ in range(50):
                    for stream, out in zip(streams, outs):
                        operator.multiply(given, out, stream=stream)
                for stream, out in zip(streams, outs):
                    stream.synchronize()
                    same(out, plain @ x)
            except BaseException as failure:
                wrong.append(repr(failure))

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong, wrong[0]


@check("cupy")
def memory_is_given_back(cupy):
    def used():
        gc.collect()
        free, total = cupy.cuda.runtime.memGetInfo()
        return total - free

    def live(times, x=cupy.asarray(X)):
        for _ in range(times):
            operator = cbgen.compile(PLAIN, values="mutable")
            operator @ x
            operator.T @ X

    live(3)
    before = used()
    live(12)
    growth = used() - before
    assert growth < 8 << 20, f"{growth} bytes more after 12 operators"
    return f"growth {growth} bytes"


@check("cupy")
def several_gpus(cupy):
    count = cupy.cuda.runtime.getDeviceCount()
    if count < 2:
        raise LeftOut("there is one GPU")
    for device in range(count):
        operator = cbgen.compile(PLAIN, device=device)
        with cupy.cuda.Device(device):
            x = cupy.asarray(X)
            assert cbgen.compile(PLAIN).device == device
        made = operator @ x
        assert made.device.id == device
        same(made, EXPECTED)
        same(operator @ X, EXPECTED)
    with cupy.cuda.Device(0):
        raises(ValueError, f"the operator on GPU {count - 1}", lambda: operator @ cupy.asarray(X))


@check("cupy")
def cost_of_a_call(cupy):
    """Host time per product of a tiny matrix, in microseconds."""
    tiny = scipy.sparse.eye(64, format="csr")
    sparse, operator = import_module("cupyx.scipy.sparse").csr_matrix(tiny), cbgen.compile(tiny)
    x, out = cupy.ones(64), cupy.ones(64)
    stream = cupy.cuda.get_current_stream()

    def microseconds(call):
        best = 1e9
        for _ in range(5):
            stream.synchronize()
            start = time.perf_counter()
            for _ in range(500):
                call()
            best = min(best, (time.perf_counter() - start) / 500)
            stream.synchronize()
        return f"{1e6 * best:.1f}"

    calls = {"multiply(out=, stream=)": lambda: operator.multiply(x, out, stream=0),
             "multiply(out=)": lambda: operator.multiply(x, out), "A @ x": lambda: operator @ x,
             "cupyx csr @ x": lambda: sparse @ x}
    return ", ".join(f"{name} {microseconds(call)}" for name, call in calls.items())


# ---- PyTorch


@check("torch")
def torch_vectors(torch):
    for dtype in (numpy.float64, numpy.float32):
        plain, x = matrix(dtype=dtype), vector(dtype=dtype)
        operator, given = cbgen.compile(plain), torch.tensor(x, device="cuda")
        made = operator @ given
        assert isinstance(made, torch.Tensor) and made.is_cuda
        same(made, plain @ x)
        out = torch.tensor(vector(seed=3, dtype=dtype), device="cuda")
        operator.multiply(given, out, alpha=2.0, beta=-3.0)
        same(out, 2 * (plain @ x) - 3 * vector(seed=3, dtype=dtype))
        many = numpy.array([vector(seed=seed, dtype=dtype) for seed in range(3)]).T
        same(operator @ torch.tensor(many, device="cuda"), plain @ many)
        same(operator.rmatvec(given), plain.T @ x)
    raises(TypeError, ".cuda()", lambda: operator @ torch.ones(SIZE))
    raises(TypeError, "detach", lambda: operator @ torch.ones(SIZE, device="cuda", requires_grad=True))


@check("torch")
def torch_matrices(torch):
    import warnings

    warnings.simplefilter("ignore")  # PyTorch calls sparse CSR tensors a beta feature
    for dtype, vectors in [("float64", "float64"), ("float32", "float32"), ("float16", "float32"), ("bfloat16", "float32")]:
        for device in ("cpu", "cuda"):
            given = torch.sparse_csr_tensor(torch.tensor(PLAIN.indptr), torch.tensor(PLAIN.indices),
                                            torch.tensor(PLAIN.data).to(getattr(torch, dtype)), PLAIN.shape).to(device)
            operator = cbgen.compile(given)
            assert operator.info.matrix_type == dtype, operator.info.matrix_type
            assert str(operator.dtype) == vectors, operator.dtype
            same(operator @ torch.tensor(X.astype(vectors), device="cuda"), EXPECTED.astype(vectors), f"{dtype} on {device}")
    for kind, dtype in (("f16", "float16"), ("bf16", "bfloat16")):  # sums in float32, rounded once, as PyTorch rounds
        operator = cbgen.compile(PLAIN, type=kind)
        x = torch.tensor(X, device="cuda").to(getattr(torch, dtype))
        expected = torch.tensor(EXPECTED).to(getattr(torch, dtype)).to(torch.float64).numpy()
        same((operator @ x).to(torch.float64), expected, kind)


@check("torch")
def torch_streams_and_graph(torch):
    for plain, operator in ((PLAIN, cbgen.compile(PLAIN)), scratched()):
        expected = plain @ X
        with torch.cuda.stream(torch.cuda.Stream()):
            late = torch.tensor(X, device="cuda")
            for _ in range(200):
                late = late * 1.0
            same(operator @ late, expected, "a product on the current stream")
        x, graph, stream = torch.zeros(SIZE, dtype=torch.float64, device="cuda"), torch.cuda.CUDAGraph(), torch.cuda.Stream()
        operator.prepare(stream)
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.graph(graph, stream=stream):
            out = operator @ x  # from the graph's own memory pool
        for seed in (4, 5):
            x.copy_(torch.tensor(vector(seed=seed)))
            graph.replay()
            torch.cuda.synchronize()
            same(out, plain @ vector(seed=seed), "a replayed product")


@check("torch", "cupy")
def torch_and_cupy_together(torch, cupy):
    operator, out = cbgen.compile(PLAIN), cupy.empty(SIZE)
    operator.multiply(torch.tensor(X, device="cuda"), out)
    same(out, EXPECTED)
    with torch.cuda.stream(torch.cuda.Stream()):
        raises(ValueError, "give stream=", lambda: operator.multiply(torch.tensor(X, device="cuda"), out))


# ---- the short way, and PyTorch's operators


def goes_the_short_way(operator, x, out):
    """Products by the compiled part alone: what Python does in its place fails here."""
    if cbgen._compiled.CALLS is None:
        raise LeftOut("the package has no compiled part")
    operator @ x  # the class of x is learnt by the first product
    with unittest.mock.patch.object(cbgen.Operator, "_multiply", side_effect=AssertionError("the long way")):
        with unittest.mock.patch.object(cbgen.Operator, "_matmul", side_effect=AssertionError("the long way")):
            same(operator @ x, EXPECTED)
            operator.multiply(x, out, alpha=2.0)
            same(out, 2 * EXPECTED)


@check("cupy")
def cupy_short_way(cupy):
    goes_the_short_way(cbgen.compile(PLAIN), cupy.asarray(X), cupy.zeros(SIZE))
    with cupy.cuda.Stream(non_blocking=True) as stream:
        x, out = cupy.asarray(X), cupy.zeros(SIZE)
        goes_the_short_way(cbgen.compile(PLAIN), x, out)
        stream.synchronize()


@check("torch")
def torch_short_way(torch):
    x, out = torch.tensor(X, device="cuda"), torch.zeros(SIZE, dtype=torch.float64, device="cuda")
    goes_the_short_way(cbgen.compile(PLAIN), x, out)
    with torch.cuda.stream(torch.cuda.Stream()):
        x, out = torch.tensor(X, device="cuda"), torch.zeros(SIZE, dtype=torch.float64, device="cuda")
        goes_the_short_way(cbgen.compile(PLAIN), x, out)
    return "by DLPack's functions" if hasattr(torch.Tensor, "__dlpack_c_exchange_api__") else "by attributes"


@check("torch")
def torch_module_short_way(torch):
    """The compiled part multiplies for modules, too, once each operator is there, and derivatives follow."""
    module = import_module("cbgen_spmv.torch")
    A, x, other = module.Matrix(PLAIN), torch.tensor(X, device="cuda"), vector(seed=6)
    A(x.clone().requires_grad_()).backward(torch.tensor(other, device="cuda"))
    if cbgen._compiled.CALLS is None:
        raise LeftOut("the package has no compiled part")
    with unittest.mock.patch.object(module, "product", side_effect=AssertionError("the long way")):
        for stream in (torch.cuda.current_stream(), torch.cuda.Stream()):
            with torch.cuda.stream(stream):
                learning = torch.tensor(X, device="cuda", requires_grad=True)
                same(A(learning.detach()), EXPECTED)
                same(A @ learning.detach()[:, None], EXPECTED[:, None])
                y = A(learning)
                same(y.detach(), EXPECTED)
                y.backward(torch.tensor(other, device="cuda"))
                same(learning.grad, PLAIN.T @ other)
                with torch.no_grad():
                    assert not A(learning).requires_grad


def small_module(torch, **more):
    """A matrix of 12 x 9, as PyTorch's on the GPU, and compiled as a module."""
    plain = matrix(12, 9, per_row=3)
    parts = (torch.tensor(part, device="cuda") for part in (plain.indptr, plain.indices, plain.data))
    csr = torch.sparse_csr_tensor(*parts, size=plain.shape)
    return plain, import_module("cbgen_spmv.torch").Matrix(csr, **more)


@check("torch")
def torch_gradients(torch):
    """All of a Jacobian for one vector; projections of it, and PyTorch's checks of the registrations, for several."""
    plain, A = small_module(torch)
    values = torch.tensor(plain.data, device="cuda", requires_grad=True)
    for shape in ((9,), (9, 3)):
        x = torch.randn(*shape, dtype=torch.float64, device="cuda", requires_grad=True)
        for call, given in ((A, (x,)), (A.multiply, (x, values))):
            projected = len(shape) == 2
            assert torch.autograd.gradcheck(call, given, fast_mode=projected)
            assert torch.autograd.gradgradcheck(call, given, fast_mode=True)
    tests, operators = ("test_schema", "test_faketensor", "test_aot_dispatch_static"), torch.ops.cbgen_spmv
    torch.library.opcheck(operators.product, (x, A._key, False), test_utils=tests)
    torch.library.opcheck(operators.product_of, (values, x, A.rows, A.columns, A._key, False), test_utils=tests)


@check("torch")
def torch_compile_without_breaks(torch):
    """Compiled once, in the mode that also records a CUDA graph."""
    (_, A), (_, T) = small_module(torch), small_module(torch, trainable=True)

    def loss(x):
        return torch.relu(T(2 * x)).square().sum() + A(x[:, 0]).square().sum()

    compiled = torch.compile(loss, fullgraph=True, mode="reduce-overhead")
    for _ in range(4):  # it is recorded at the second
        x = torch.randn(9, 3, dtype=torch.float64, device="cuda", requires_grad=True)
        wanted = [loss(x), *torch.autograd.grad(loss(x), (x, T.values))]
        found = compiled(x)
        found = [found.clone(), *(part.clone() for part in torch.autograd.grad(found, (x, T.values)))]
        for one, other in zip(found, wanted):
            torch.testing.assert_close(one, other)


@check("torch")
def torch_training_in_a_graph(torch):
    """Forward and backward are captured once; replays follow what x and the values became."""
    plain, T = small_module(torch, trainable=True)
    x = torch.zeros(9, dtype=torch.float64, device="cuda", requires_grad=True)
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            torch.autograd.grad(T(x).square().sum(), (x, T.values))
    torch.cuda.current_stream().wait_stream(stream)
    with torch.cuda.graph(graph, stream=stream):
        y = T(x)
        of_x, of_values = torch.autograd.grad(y.square().sum(), (x, T.values))
    rows = numpy.repeat(numpy.arange(12), numpy.diff(plain.indptr))
    for factor in (2, 3):
        new, now = vector(9, seed=factor), plain.copy()
        now.data = factor * plain.data
        with torch.no_grad():
            x.copy_(torch.tensor(new))
            T.values.copy_(torch.tensor(now.data))
        graph.replay()
        torch.cuda.synchronize()
        expected = now @ new
        same(y.detach(), expected, "a replayed product")
        same(of_x.detach(), now.T @ (2 * expected), "a replayed derivative for x")
        same(of_values.detach(), (2 * expected)[rows] * new[plain.indices], "a replayed derivative for the values")


# ---- Numba


@check("numba.cuda")
def numba_vectors(cuda):
    if not cuda.is_available():
        raise LeftOut("Numba finds no GPU")
    operator = cbgen.compile(PLAIN)
    x = cuda.to_device(X)
    same(operator @ x, EXPECTED)
    stream = cuda.stream()
    out = operator.multiply(x, cuda.device_array(SIZE), stream=stream)
    stream.synchronize()
    same(out, EXPECTED)


def run(function, libraries):
    """("ok", "left out" or "FAILED", what there is to say)"""
    try:
        said = function(*[need(name) for name in libraries])
    except LeftOut as reason:
        return "left out", str(reason)
    except BaseException:
        FAILURES.append(f"{function.__name__}:\n{traceback.format_exc()}")
        return "FAILED", traceback.format_exc().strip().splitlines()[-1]
    return "ok", said or ""


def place(entry):
    name = entry[0].__name__
    return FIRST.index(name) if name in FIRST else len(FIRST)


def main(arguments):
    limits = [float(each.partition("=")[2]) for each in arguments if each.startswith("--seconds=")]
    words = [each for each in arguments if not each.startswith("--")]
    begin, late = time.perf_counter(), []
    print(f"cbgen {cbgen.__version__}, {cbgen._library.LIBRARY._name}; GPU {cbgen._driver.open_driver().devices()} in all")
    print("\n| check | result | s | |\n| --- | --- | --: | --- |")
    for function, libraries in sorted(CHECKS, key=place):
        if words and not any(word in function.__name__ for word in words):
            continue
        start = time.perf_counter()
        if limits and start - begin > limits[0]:
            late.append(function.__name__)
            continue
        result, said = run(function, libraries)
        print(f"| {function.__name__.replace('_', ' ')} | {result} | {time.perf_counter() - start:.1f} | {said} |", flush=True)
    globals()["left_to_the_end"] = cbgen.compile(PLAIN)  # must not disturb the interpreter's exit
    left_to_the_end @ X  # noqa: F821
    print("", *FAILURES, f"{len(FAILURES)} failed, {time.perf_counter() - begin:.1f} s", sep="\n")
    if late:
        print("no time for:", ", ".join(late))
    return 1 if FAILURES or late else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
