#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a product costs the host from Python: `A @ x` and `A.multiply(x, out)` with CuPy and PyTorch, by the compiled part
of the package and by ctypes alone, beside these libraries' own products and the bare call of cbgen_multiply.

    bench/python_calls.py [--grid N] [--json FILE] [--stand-ins]

A 7-point matrix on N x N x N points (60). Medians of 21 batches of 200 calls, in microseconds of the host's time: the GPU
is waited for between batches, never in them, and batches of all calls take turns, so that a host that changes its pace
changes it for all. The shortest batches go to the file as "least". "package" is the same with a function that does nothing
in place of cbgen_multiply: what Python and this package add. --stand-ins: no GPU, no CuPy, no PyTorch; objects of ours whose
attributes cost about as much as theirs, so that only the package's part has a meaning.

CBGEN_LIBRARY and CBGEN_CALLS name libcbgen and the compiled part. The exit status is 1 when a product was wrong.
"""
import argparse
import ctypes
import ctypes.util
import json
import os
import statistics
import subprocess
import sys
import time
import types

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python", "src"))
import numpy
import scipy.sparse

BATCHES, CALLS = 21, 200


def stencil(n):
    line = scipy.sparse.diags([-1.0, 2.0, -1.0], [-1, 0, 1], shape=(n, n))
    return scipy.sparse.csr_matrix(scipy.sparse.kronsum(scipy.sparse.kronsum(line, line), line))


def microseconds(calls, wait):
    """{name: median} and {name: least} of batches that take turns."""
    found = {name: [] for name in calls}
    for _ in range(BATCHES + 1):
        for name, call in calls.items():
            wait()
            start = time.perf_counter_ns()
            for _ in range(CALLS):
                call()
            found[name].append((time.perf_counter_ns() - start) / CALLS / 1000)
    wait()
    return [{name: choose(times[1:]) for name, times in found.items()} for choose in (statistics.median, min)]


# ---- libraries: (name, array from NumPy's, NumPy's from an array, wait for the GPU, its own product)


def with_cupy(plain):
    import cupy
    import cupyx.scipy.sparse

    own = cupyx.scipy.sparse.csr_matrix(plain)
    return "CuPy", cupy.asarray, cupy.asnumpy, cupy.cuda.Device().synchronize, lambda x: own @ x


def with_torch(plain):
    import torch

    own = torch.sparse_csr_tensor(*(torch.from_numpy(part) for part in (plain.indptr, plain.indices, plain.data)),
                                  size=plain.shape).cuda()
    return ("PyTorch", lambda array: torch.from_numpy(array).cuda(), lambda array: array.cpu().numpy(),
            torch.cuda.synchronize, lambda x: own @ x)


def with_stand_ins(_):
    """A CuPy of attributes in slots, whose arrays are in the memory that the driver gives."""
    import cbgen_spmv as cbgen

    device = cbgen._driver.open_device(0)
    slots = type("Slots", (), {"__slots__": ("ptr", "device_id", "c_contiguous")})

    class ndarray:
        __slots__ = "shape", "dtype", "flags", "data", "device"
        __cuda_array_interface__ = None

    def empty(shape, dtype, order="C"):
        made = ndarray()
        made.shape, made.dtype, made.flags, made.data = shape, numpy.dtype(dtype), flags, slots()
        made.data.ptr, made.data.device_id, made.device = block, 0, place
        return made

    def array(content):
        made = empty(content.shape, content.dtype)
        with device:
            made.data.ptr = device.alloc(content.nbytes)
            device.upload(made.data.ptr, content.ctypes.data, content.nbytes)
        return made

    def fetch(found):
        content = numpy.empty(found.shape, found.dtype)
        with device:
            device.download(content.ctypes.data, found.data.ptr, content.nbytes)
        return content

    class Place:
        id = 0
        __enter__ = __exit__ = lambda *_: None

    flags, place = slots(), Place()
    flags.c_contiguous = True
    with device:
        block = device.alloc(1 << 20)
    stream = types.SimpleNamespace(ptr=0)
    cupy = types.ModuleType("cupy")
    cupy.ndarray, cupy.empty, cupy.ascontiguousarray = ndarray, empty, lambda array: array
    cupy.cuda = types.SimpleNamespace(get_current_stream=lambda number=-1: stream)
    sys.modules["cupy"] = cupy
    return "stand-ins", array, fetch, lambda: None, None


def measure(plain, library, dry):
    """The figures of one library, by the way that this process has. `dry`: without cbgen_multiply."""
    import cbgen_spmv as cbgen

    name, array, fetch, wait, own = library(plain)
    shared = cbgen._library.LIBRARY
    if dry:
        nothing = ctypes.CDLL(ctypes.util.find_library("m")).fegetround  # 0, CBGEN_OK
        nothing.restype, nothing.argtypes = ctypes.c_int, shared.cbgen_multiply.argtypes
        shared.cbgen_multiply = nothing
    A, content = cbgen.compile(plain), numpy.arange(plain.shape[1]) % 7.0
    x, out = array(content), array(numpy.zeros(plain.shape[0]))
    A.multiply(x, out)
    right = dry or bool((fetch(out) == plain @ content).all() and (fetch(A @ x) == plain @ content).all())
    calls = {"matmul": lambda: A @ x, "multiply": lambda: A.multiply(x, out),
             "axpby": lambda: A.multiply(x, out, alpha=2.0, beta=0.5)}
    if name == "PyTorch":
        calls.update(differentiated(plain, x))
    if not dry:
        calls["bare"] = bare(A, shared, x, out)
        calls.update({"own": lambda: own(x)} if own else {})
    medians, least = microseconds(calls, wait)
    return {"library": name, "calls": "ctypes" if cbgen._compiled.CALLS is None else "compiled", "right": right, **medians,
            "least": least}


def differentiated(plain, x):
    """cbgen_spmv.torch.Matrix: its product without a gradient, and with one to come; what a new vector costs."""
    from cbgen_spmv.torch import Matrix

    module, learning = Matrix(plain), x.clone().requires_grad_()
    return {"module": lambda: module(x), "gradient": lambda: module(learning), "empty": lambda: x.new_empty(x.shape[0])}


def bare(A, shared, x, out):
    """cbgen_multiply by ctypes, with arguments that are ready: about 0.4 microseconds more than from C."""
    pointers = [each.data_ptr() if hasattr(each, "data_ptr") else each.data.ptr for each in (x, out)]
    import cbgen_spmv as cbgen

    product = ctypes.byref(cbgen._abi.Product(ctypes.sizeof(cbgen._abi.Product), 1.0, 0.0, *pointers, 0))
    function, handle = shared.cbgen_multiply, A._handles.first
    return lambda: function(handle, product)


def child(arguments):
    libraries = {"cupy": with_cupy, "torch": with_torch, "stand-ins": with_stand_ins}
    found = measure(stencil(arguments.grid), libraries[arguments.child], arguments.dry)
    print(json.dumps(found))


def ask(arguments, library, calls, dry):
    """The figures from a process of its own; None when the library is not there."""
    environment = dict(os.environ)
    if calls:
        environment["CBGEN_CALLS"] = calls
    command = [sys.executable, __file__, "--grid", str(arguments.grid), "--child", library] + (["--dry"] if dry else [])
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if result.returncode:
        print(f"{library}: {result.stderr.strip().splitlines()[-1]}")
        return None
    return json.loads(result.stdout)


def cell(value):
    return "" if value is None else f"{value:.2f}"


def main():
    parser = argparse.ArgumentParser(description="What a product costs the host from Python.")
    parser.add_argument("--grid", type=int, default=60)
    parser.add_argument("--json")
    parser.add_argument("--stand-ins", action="store_true")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--dry", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments)
        return 0
    rows = []
    print("| library | calls by | A @ x | package | multiply | package | alpha, beta | own product | bare call | "
          "Matrix | with gradient |")
    print("| --- | --- | --: | --: | --: | --: | --: | --: | --: | --: | --: |")
    for library in ["stand-ins"] if arguments.stand_ins else ["cupy", "torch"]:
        for calls in (None, "ctypes"):
            found, dry = ask(arguments, library, calls, False), ask(arguments, library, calls, True)
            if not found or not dry:
                continue
            rows.append({**found, "package_matmul": dry["matmul"], "package_multiply": dry["multiply"]})
            values = [found["matmul"], dry["matmul"], found["multiply"], dry["multiply"], found["axpby"],
                      found.get("own"), found["bare"], found.get("module"), found.get("gradient")]
            print(f"| {found['library']} | {found['calls']} | " + " | ".join(cell(value) for value in values) + " |", flush=True)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    complete = len(rows) == 2 or not arguments.stand_ins
    return 0 if rows and complete and all(row["right"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
