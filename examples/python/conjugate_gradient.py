#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A x = b by conjugate gradients with Jacobi's preconditioner (the diagonal), for a symmetric positive definite matrix,
with CuPy: the same loop once with cuSPARSE (CuPy's `csr @ x`) and once with cbgen.

    conjugate_gradient.py [MATRIX]      a Matrix Market file, or blocks:N (N^3 nodes, 27 neighbours, 3 unknowns each)
"""
import sys
import time

import cupy
import cupyx.scipy.sparse
import numpy
import scipy.io
import scipy.sparse

import cbgen_spmv as cbgen

TOLERANCE = 1e-8  # of the residual, relative to b
MOST = 20000  # iterations
CHECK_EVERY = 10  # iterations between looks at the residual: each look waits for the GPU

scaled = cupy.ElementwiseKernel("T r, T inverse", "T z", "z = r * inverse", "scaled")
direction = cupy.ElementwiseKernel("T z, T now, T before", "T p", "p = z + now / before * p", "direction")
step = cupy.ElementwiseKernel("T p, T q, T rz, T pq", "T x, T r",
                              "T alpha = rz / pq; x += alpha * p; r -= alpha * q", "step")


def open_matrix(spec):
    if not spec.startswith("blocks:"):
        return scipy.sparse.csr_matrix(scipy.io.mmread(spec), dtype=numpy.float64)
    n = int(spec.partition(":")[2])
    line = scipy.sparse.diags_array([1.0, 1.0, 1.0], offsets=[-1, 0, 1], shape=(n, n))
    neighbours = scipy.sparse.kron(scipy.sparse.kron(line, line), line)
    nodes = scipy.sparse.diags_array(numpy.full(n**3, 28.0)) - neighbours
    unknowns = numpy.array([[2.0, -0.5, 0.25], [-0.5, 3.0, -0.5], [0.25, -0.5, 4.0]])
    return scipy.sparse.csr_matrix(scipy.sparse.kron(nodes, unknowns, format="csr"))


def solve(apply, b, inverse, most=MOST):
    """Starts from 0. `apply(p)` gives A p. The result: the solution and the iterations."""
    x, r = cupy.zeros_like(b), b.copy()
    z = scaled(r, inverse)
    p, rz = z.copy(), cupy.dot(r, z)
    goal = TOLERANCE * float(cupy.linalg.norm(b))
    for done in range(1, most + 1):
        q = apply(p)
        step(p, q, rz, cupy.dot(p, q), x, r)
        if done % CHECK_EVERY == 0 and float(cupy.linalg.norm(r)) <= goal:
            return x, done
        scaled(r, inverse, z)
        before, rz = rz, cupy.dot(r, z)
        direction(z, rz, before, p)
    return x, most


def timed(call):
    """What it gives and the seconds until the GPU is done."""
    cupy.cuda.get_current_stream().synchronize()
    start = time.perf_counter()
    result = call()
    cupy.cuda.get_current_stream().synchronize()
    return result, time.perf_counter() - start


def product_seconds(apply, p):
    """The median of 5 batches of 20."""

    def batch():
        for _ in range(20):
            apply(p)

    return numpy.median([timed(batch)[1] / 20 for _ in range(5)])


class Contender:
    """One way to multiply, and what it took, in seconds."""

    def __init__(self, name, make, b, inverse):
        """`make()` gives apply(p) from arrays in host memory; set-up ends with the first product."""

        def set_up():
            apply = make()
            apply(b)
            return apply

        self.name = name
        apply, self.setup = timed(set_up)
        solve(apply, b, inverse, 5)  # a warm-up
        self.product = product_seconds(apply, b)
        (self.x, self.iterations), self.loop = timed(lambda: solve(apply, b, inverse))


def with_cusparse(matrix):
    on_gpu = cupyx.scipy.sparse.csr_matrix(matrix)
    return lambda p: on_gpu @ p


def with_cbgen(operator):
    q = cupy.empty(operator.shape[0])
    return lambda p: operator.multiply(p, out=q)


def break_even(first, second):
    """After how many iterations the second's set-up is repaid."""
    later = second.setup - first.setup
    gain = first.loop / first.iterations - second.loop / second.iterations
    if later <= 0:
        return "at once" if gain >= 0 else f"up to {later / gain:.0f} iterations (a shorter set-up, longer iterations)"
    return "never" if gain <= 0 else f"after {later / gain:.0f} iterations"


def main(spec):
    matrix = open_matrix(spec)
    b, inverse = cupy.ones(matrix.shape[0]), cupy.asarray(1 / matrix.diagonal())
    operators = []

    def compile_it():
        operators.append(cbgen.compile(matrix))
        return with_cbgen(operators[0])

    table = [Contender("cuSPARSE", lambda: with_cusparse(matrix), b, inverse), Contender("cbgen", compile_it, b, inverse)]
    print(f"### conjugate_gradient.py: {spec}, {matrix.shape[0]} x {matrix.shape[1]}, {matrix.nnz} nonzeros\n")
    print("| | set-up, ms | product, us | iterations | per iteration, us | loop, ms | total, ms |")
    print("| --- | --: | --: | --: | --: | --: | --: |")
    for each in table:
        print(f"| {each.name} | {1e3 * each.setup:.2f} | {1e6 * each.product:.2f} | {each.iterations} | "
              f"{1e6 * each.loop / each.iterations:.2f} | {1e3 * each.loop:.2f} | {1e3 * (each.setup + each.loop):.2f} |")
    print(f"\ncbgen repays its set-up against cuSPARSE {break_even(*table)}")
    print(f"cbgen: {operators[0].plan}; cache: {operators[0].info.cache}")
    passed = True
    for each in table:
        residual = numpy.linalg.norm(matrix @ cupy.asnumpy(each.x) - 1) / numpy.sqrt(matrix.shape[0])
        passed &= bool(residual <= 2 * TOLERANCE)
        print(f"check: residual with {each.name}, on the host: {residual:.2g}, at most {2 * TOLERANCE:.2g}: "
              f"{'passed' if residual <= 2 * TOLERANCE else 'FAILED'}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "blocks:48"))
