#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Solvers from Python: cbgen.solve beside cupyx.scipy.sparse.linalg (cuSPARSE, cuBLAS and CuPy's own kernels, driven by the
host), on the same systems with the same right side and Jacobi's preconditioner.

    bench/python_solvers.py [--json FILE] [--stand-ins] [METHOD:SHAPE,N …]

METHOD: cg, gmres (restarted after 30 iterations) or bicgstab, which CuPy lacks. SHAPE: stencil7 or fe3 (27 neighbours, 3
unknowns for each node) on N x N x N points; off-diagonal entries are random, symmetric (for gmres and bicgstab those below
the diagonal are smaller), and the diagonal dominates a little. Milliseconds of a whole solution to 1e-8, as a program waits
for it: medians of 7 after one; for cbgen.solve that is making the solver from a kept kernel, too, so that bench_solve has
what an iteration alone takes. Iterations are counted by callbacks in another run (CuPy calls back once for each round of gmres), and NumPy checks b - A x. "setup": until
cbgen's operator and the first solution are there.

--stand-ins: no GPU and no CuPy; SciPy takes CuPy's place, so that only whether it runs has a meaning. CBGEN_LIBRARY names
libcbgen. The exit status is 1 when a solution was wrong.
"""
import argparse
import inspect
import itertools
import json
import os
import statistics
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python", "src"))
import numpy
import scipy.sparse

REPEATS, RESTART, TOLERANCE, MOST = 7, 30, 1e-8, 6000
STANDARD = ["cg:stencil7,12", "cg:stencil7,32", "cg:stencil7,64", "cg:fe3,7", "cg:fe3,20", "gmres:stencil7,32",
            "gmres:stencil7,64"]


def system(shape, n, symmetric):
    """A matrix of the shape, in CSR."""
    points = numpy.arange(n ** 3).reshape(n, n, n)
    far = [step for step in itertools.product((-1, 0, 1), repeat=3) if shape == "fe3" or sum(map(abs, step)) <= 1]
    rows, columns = [], []
    for step in far:
        here = tuple(slice(max(0, -s), n - max(0, s)) for s in step)
        there = tuple(slice(max(0, s), n - max(0, -s)) for s in step)
        rows.append(points[here].ravel())
        columns.append(points[there].ravel())
    row, column = numpy.concatenate(rows), numpy.concatenate(columns)
    if shape == "fe3":
        unknown = numpy.arange(9)
        row = (3 * row[:, None] + unknown // 3).ravel()
        column = (3 * column[:, None] + unknown % 3).ravel()
    order = n ** 3 * (3 if shape == "fe3" else 1)
    value = -numpy.random.RandomState(1).uniform(0.25, 0.75, len(row))
    whole = scipy.sparse.csr_matrix((value, (row, column)), shape=(order, order))
    upper = scipy.sparse.triu(whole, 1)
    whole = upper + (1 if symmetric else 0.6) * upper.T
    diagonal = -1.001 * numpy.asarray(whole.sum(axis=1)).ravel() + 1e-3
    whole = scipy.sparse.csr_matrix(whole + scipy.sparse.diags(diagonal))
    whole.sort_indices()
    return whole


def milliseconds(solve, wait):
    """Of a whole solution, and what it found."""
    times, x = [], None
    for _ in range(REPEATS + 1):
        wait()
        start = time.perf_counter()
        x = solve()
        wait()
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times[1:]), x


class Other:
    """CuPy, or SciPy in its place."""

    def __init__(self, stand_in):
        if stand_in:
            import scipy.sparse.linalg as linalg
            self.name, self.linalg, self.array, self.matrix = "SciPy", linalg, numpy.asarray, scipy.sparse.csr_matrix
            self.wait, self.back = lambda: None, numpy.asarray
        else:
            import cupy
            import cupyx.scipy.sparse
            import cupyx.scipy.sparse.linalg as linalg
            self.name, self.linalg, self.array = f"CuPy {cupy.__version__}", linalg, cupy.asarray
            self.matrix, self.wait, self.back = cupyx.scipy.sparse.csr_matrix, cupy.cuda.Device().synchronize, cupy.asnumpy

    def solver(self, method, plain, b):
        """What solves; None: there is no such method."""
        function = getattr(self.linalg, method, None)
        if function is None:
            return None
        matrix, inverse = self.matrix(plain), self.array(1 / plain.diagonal())
        given = {"M": self.linalg.LinearOperator(plain.shape, lambda r: inverse * r.ravel(), dtype=plain.dtype)}
        relative = "rtol" if "rtol" in inspect.signature(function).parameters else "tol"  # older ones
        if method == "gmres":
            given["restart"] = RESTART
        given.update({relative: TOLERANCE, "atol": 0.0, "maxiter": MOST})
        if method == "gmres" and "callback_type" in inspect.signature(function).parameters:
            given["callback_type"] = "pr_norm"  # SciPy: one call for each iteration
        return lambda **more: function(matrix, b, **given, **more)[0]


def residual(plain, b, x):
    return float(numpy.linalg.norm(b - plain @ x) / numpy.linalg.norm(b))


def count(solve):
    """Calls of the callback."""
    calls = []
    solve(callback=lambda _: calls.append(1))
    return len(calls)


def measure(cbgen, other, name):
    method, _, shape = name.partition(":")
    shape, _, n = shape.partition(",")
    plain = system(shape, int(n), method == "cg")
    host_b = numpy.random.RandomState(2).uniform(-1, 1, plain.shape[0])
    b, found = other.array(host_b), {"method": method, "matrix": f"{shape},{n}", "rows": plain.shape[0],
                                     "nonzeros": int(plain.nnz), "other": other.name}
    start = time.perf_counter()
    with cbgen.compile(plain) as operator:
        def solve(**more):
            return cbgen.solve(operator, b, method=method, M="jacobi", rtol=TOLERANCE, atol=0.0, maxiter=MOST,
                               **({"restart": RESTART} if method == "gmres" else {}), **more)[0]
        solve()
        found["setup_ms"] = round(1e3 * (time.perf_counter() - start), 1)
        found["cbgen_ms"], x = milliseconds(solve, other.wait)
        found["cbgen_iterations"] = count(solve) - 1  # the first is told of what there was before
        found["cbgen_residual"] = residual(plain, host_b, other.back(x))
    theirs = other.solver(method, plain, b)
    if theirs:
        found["other_ms"], x = milliseconds(theirs, other.wait)
        found["other_iterations"], found["other_residual"] = count(theirs), residual(plain, host_b, other.back(x))
    return found


def line_of(name, found):
    ours = f"{found['cbgen_ms']:.2f} | {found['cbgen_iterations']}"
    theirs, residuals = "– | – | –", f"{found['cbgen_residual']:.1e}"
    if "other_ms" in found:
        ratio = found["other_ms"] / found["cbgen_ms"]
        theirs = f"{found['other_ms']:.2f} | {found['other_iterations']} | {ratio:.1f}"
        residuals += f", {found['other_residual']:.1e}"
    return f"| {name} | {found['rows']} | {found['nonzeros']} | {ours} | {theirs} | {found['setup_ms']} | {residuals} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", help="a line for each system goes there")
    parser.add_argument("--stand-ins", action="store_true", help="SciPy in CuPy's place")
    parser.add_argument("systems", nargs="*", default=STANDARD, metavar="METHOD:SHAPE,N")
    asked = parser.parse_args()
    import cbgen_spmv as cbgen
    other, wrong = Other(asked.stand_ins), 0
    print(f"| system | rows | nonzeros | cbgen.solve ms | iterations | {other.name} ms | iterations | times as long | setup ms |"
          " residuals |")
    print("| --- |" + " --: |" * 8 + " --- |")
    for name in asked.systems:
        found = measure(cbgen, other, name)
        print(line_of(name, found), flush=True)
        wrong |= not found["cbgen_residual"] < 1e-6
        if asked.json:
            with open(asked.json, "a", encoding="utf-8") as file:
                file.write(json.dumps(found) + "\n")
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
