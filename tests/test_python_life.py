#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Python package: new values, saving and loading, streams and threads, GPUs, contexts, failures, and that everything
is given back.

    tests/test_python_life.py SCRATCH
"""
import gc
import io
import logging
import os
import pickle
import stat
import subprocess
import sys
import tempfile
import threading
import unittest

import harness
import numpy
import scipy.sparse
from python_stand_ins import CUPY
from python_support import FAKE, FakeCase, Graph, InterfaceArray, Stream, fake_get, matrix, vector

import cbgen_spmv as cbgen

SCRATCH = sys.argv.pop(1)
same = numpy.testing.assert_array_equal
X, PLAIN = vector(40), matrix()


def scratch_folder():
    os.makedirs(SCRATCH, exist_ok=True)
    return tempfile.TemporaryDirectory(dir=SCRATCH)


def with_scratch():
    """An operator whose plan sums rows over several thread blocks, so that it serves one stream at a time."""
    operator = cbgen.compile(matrix(40, 2000, density=0.5), context=cbgen.Context(recipe="cb"))
    assert operator.info.has_scratch
    return operator


class Updates(FakeCase):
    def test_from_everywhere(self):
        operator = cbgen.compile(PLAIN, values="mutable")
        wraps = (numpy.array, InterfaceArray, CUPY.ndarray, lambda values: numpy.repeat(values, 2)[::2])
        for factor, wrap in enumerate(wraps, 2):
            operator.update_values(wrap(factor * PLAIN.data))
            same(operator @ X, factor * (PLAIN @ X))

    def test_booleans_and_integers(self):
        operator = cbgen.compile(PLAIN.astype(int), values="mutable")
        for values in (PLAIN.data.astype("i8"), PLAIN.data > 0):
            operator.update_values(values)
            same(operator @ X, scipy.sparse.csr_matrix((values.astype(float), PLAIN.indices, PLAIN.indptr)) @ X)
        self.refuses(TypeError, "the values are int64", operator.update_values, CUPY.ndarray(PLAIN.data.astype(int)))

    def test_other_value_type(self):
        operator = cbgen.compile(PLAIN, values="mutable")
        operator.update_values(numpy.float32(3) * PLAIN.data.astype(numpy.float32))
        same(operator @ X, 3 * (PLAIN @ X))

    def test_order_of_the_caller(self):
        arrays = (numpy.array([1.0, 2.0, 4.0, 8.0]), numpy.array([2, 0, 2, 1]), numpy.array([0, 3, 4]))
        operator = cbgen.compile(arrays, shape=(2, 3), values="mutable")
        operator.update_values(numpy.array([10.0, 20.0, 30.0, 40.0]))
        same(operator @ numpy.array([1.0, 2.0, 3.0]), [20 + 3 * 40, 80])
        self.refuses(ValueError, "3 values for a matrix that was compiled with 4", operator.update_values, numpy.ones(3))

    def test_copies(self):
        operator = cbgen.compile(PLAIN, values="mutable")
        compilations = fake_get("compilations")
        copy, third = operator.copy(), operator.copy(InterfaceArray(3 * PLAIN.data))
        operator.update_values(2 * PLAIN.data)
        self.assertEqual(fake_get("compilations"), compilations)
        same(copy @ X, PLAIN @ X)
        same(operator @ X, 2 * (PLAIN @ X))
        operator.close()
        same(third @ X, 3 * (PLAIN @ X))
        same(third.copy(5 * PLAIN.data) @ X, 5 * (PLAIN @ X))
        self.assertEqual((copy.info.cache, copy.info.values, copy.key), ("off", "mutable", third.key))
        self.refuses(ValueError, "3 values for", copy.copy, numpy.ones(3))
        self.refuses(cbgen.ArgumentError, "compile it with mutable values", cbgen.compile(PLAIN).copy)

    def test_transpose(self):
        operator = cbgen.compile(PLAIN, values="mutable")
        transposed = operator.T
        operator.update_values(2 * PLAIN.data)
        same(transposed @ X, 2 * (PLAIN.T @ X))
        transposed.update_values(InterfaceArray(3 * PLAIN.data))
        same(operator @ X, 3 * (PLAIN @ X))
        copy = operator.copy(2 * PLAIN.data)  # the transpose with it
        same(copy.T @ X, 2 * (PLAIN.T @ X))
        same(transposed @ X, 3 * (PLAIN.T @ X))
        self.refuses(ValueError, "the operator was loaded or copied", cbgen.compile(PLAIN, values="mutable").copy().rmatvec,
                     X)
        late = cbgen.compile(PLAIN, values="mutable")
        late.update_values(2 * PLAIN.data)
        self.refuses(ValueError, "ask for A.T once before", late.rmatvec, X)

    def test_refused(self):
        operator = cbgen.compile(PLAIN, values="mutable")
        for kind, words, values in [
            (cbgen.ArgumentError, "complex values", PLAIN.data.astype(complex)),
            (ValueError, "some beyond 2**53", PLAIN.data.astype(int) + 2**53 + 9),
            (ValueError, "values for a matrix", PLAIN.data[1:]),
            (ValueError, "of one dimension", PLAIN.data[:, None]),
            (TypeError, "is no array", list(PLAIN.data)),
        ]:
            self.refuses(kind, words, operator.update_values, values)
        self.refuses(cbgen.ArgumentError, "", cbgen.compile(PLAIN).update_values, PLAIN.data)
        self.refuses(cbgen.ArgumentError, "", cbgen.compile(PLAIN, values="fixed").update_values, PLAIN.data)
        same(operator @ X, PLAIN @ X)


class Saving(FakeCase):
    def check(self, operator):
        same(operator @ X, PLAIN @ X)
        self.assertEqual(operator.shape, (40, 40))

    def test_every_way(self):
        operator = cbgen.compile(PLAIN)
        content = bytes(operator)
        file = io.BytesIO()
        operator.save(file)
        with scratch_folder() as folder:
            path = os.path.join(folder, "operator.cbo")
            operator.save(path)
            with open(path, "rb") as saved:
                self.assertEqual((saved.read(), file.getvalue()), (content, content))
            self.assertEqual(os.listdir(folder), ["operator.cbo"])
            del operator
            for source in (content, bytearray(content), path, io.BytesIO(content)):
                self.check(cbgen.load(source))
            self.check(pickle.loads(pickle.dumps(cbgen.load(path))))

    def test_what_stands_at_the_path(self):
        """Permissions and links stay, a pipe is written to, a folder is refused, nothing else appears."""
        operator = cbgen.compile(PLAIN)
        with scratch_folder() as folder:
            place = lambda name: os.path.join(folder, name)
            with open(place("old"), "w", encoding="ascii") as file:
                file.write("old")
            os.chmod(place("old"), 0o640)
            os.symlink("old", place("link"))
            os.symlink("new", place("dangling"))
            os.mkfifo(place("pipe"))
            os.mkdir(place("folder"))
            for name in ("link", "dangling"):
                operator.save(place(name))
                self.assertTrue(os.path.islink(place(name)))
            self.assertEqual(stat.S_IMODE(os.stat(place("old")).st_mode), 0o640)
            for name in ("old", "new"):
                self.check(cbgen.load(place(name)))
            with subprocess.Popen(["cat", place("pipe")], stdout=subprocess.PIPE) as reader:
                operator.save(place("pipe"))
                self.assertEqual(reader.communicate()[0], bytes(operator))
            self.refuses(IsADirectoryError, "", operator.save, place("folder"))
            self.assertEqual(sorted(os.listdir(folder)), ["dangling", "folder", "link", "new", "old", "pipe"])

    def test_mutable(self):
        operator = cbgen.load(bytes(cbgen.compile(PLAIN, values="mutable")))
        operator.update_values(2 * PLAIN.data)
        same(operator @ X, 2 * (PLAIN @ X))
        self.assertEqual(operator.info.values, "mutable")
        arrays = (numpy.array([1.0, 2.0, 4.0, 8.0]), numpy.array([2, 0, 2, 1]), numpy.array([0, 3, 4]))
        operator = cbgen.load(bytes(cbgen.compile(arrays, shape=(2, 3), values="mutable")))
        self.assertEqual((operator.nnz, operator.info.entries), (3, 4))
        operator.update_values(numpy.array([10.0, 20.0, 30.0, 40.0]))
        same(operator @ numpy.array([1.0, 2.0, 3.0]), [20 + 3 * 40, 80])
        self.refuses(ValueError, "3 values for", operator.update_values, numpy.ones(3))

    def test_refused(self):
        content = bytes(cbgen.compile(PLAIN))
        for damaged in (b"", b"no operator", content[:-1], content[:100] + b"\xff" + content[101:]):
            self.refuses(cbgen.FormatError, "", cbgen.load, damaged)
        self.refuses(FileNotFoundError, "", cbgen.load, os.path.join(SCRATCH, "none"))
        self.refuses(FileNotFoundError, "", cbgen.compile(PLAIN).save, os.path.join(SCRATCH, "no", "folder"))
        self.refuses(ValueError, "keep_matrix=False", cbgen.load(content).rmatvec, X)
        self.refuses(ValueError, "keep_matrix=False", cbgen.compile(PLAIN, keep_matrix=False).rmatvec, X)


class StreamsAndThreads(FakeCase):
    def test_scratch_is_cloned_for_each_stream(self):
        operator, plain = with_scratch(), matrix(40, 2000, density=0.5)
        streams = [Stream() for _ in range(3)]
        before = fake_get("blocks")
        for _ in range(2):
            for stream in streams:
                x, out = InterfaceArray(vector(2000)), InterfaceArray(numpy.zeros(40))
                operator.multiply(x, out, stream=stream)
                same(out.get(), plain @ vector(2000))
        self.assertEqual(len(operator._handles._of_stream), 3)
        self.assertGreater(fake_get("blocks"), before)

    def test_threads(self):
        wrong = []
        for operator, plain in ((cbgen.compile(PLAIN), PLAIN), (with_scratch(), matrix(40, 2000, density=0.5))):
            def work(seed, operator=operator, plain=plain):
                x, stream = vector(plain.shape[1], seed=seed), Stream()
                for _ in range(10):
                    out = InterfaceArray(numpy.zeros(40))
                    operator.multiply(InterfaceArray(x), out, stream=stream)
                    if (out.get() != plain @ x).any() or (operator @ x != plain @ x).any():
                        wrong.append(seed)

            threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        del operator, plain, work
        self.assertEqual(wrong, [])

    def test_compiling_in_threads(self):
        context, made = cbgen.Context(), []

        def work():
            made.append(cbgen.compile(PLAIN, context=context))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(made), 4)
        for operator in made:
            same(operator @ X, PLAIN @ X)
        del operator
        made.clear()

    def test_graph(self):
        for operator, plain in ((cbgen.compile(PLAIN), PLAIN), (with_scratch(), matrix(40, 2000, density=0.5))):
            first, stream = Stream(), Stream()
            x, out = InterfaceArray(vector(plain.shape[1])), InterfaceArray(numpy.zeros(40))
            operator.multiply(x, out, stream=first)
            operator.prepare(stream)
            with Graph(stream) as graph:
                operator.multiply(x, out, alpha=2.0, stream=stream)
            for seed in (7, 8):
                x.put(vector(plain.shape[1], seed=seed))
                graph.launch(stream)
                same(out.get(), 2 * (plain @ vector(plain.shape[1], seed=seed)))
            graph.close()

    def test_update_in_a_graph(self):
        operator, stream = cbgen.compile(PLAIN, values="mutable"), Stream()
        x, out, values = InterfaceArray(X), InterfaceArray(numpy.zeros(40)), InterfaceArray(PLAIN.data)
        with Graph(stream) as graph:
            operator.update_values(values, stream=stream)
            operator.multiply(x, out, stream=stream)
        for factor in (2, 3):
            values.put(factor * PLAIN.data)
            graph.launch(stream)
            same(out.get(), factor * (PLAIN @ X))
        graph.close()


class Devices(FakeCase):
    def setUp(self):
        super().setUp()
        FAKE.fake_set(b"devices", 2)

    def tearDown(self):
        super().tearDown()
        FAKE.fake_set_current(-1)

    def test_by_number(self):
        operators = [cbgen.compile(PLAIN, device=device) for device in (0, 1)]
        for device, operator in enumerate(operators):
            self.assertEqual(operator.device, device)
            out = InterfaceArray(numpy.zeros(40), device)
            operator.multiply(InterfaceArray(X, device), out)
            same(out.get(), PLAIN @ X)
            same(operator @ X, PLAIN @ X)
            self.assertEqual((operator @ CUPY.ndarray(X, device))._device, device)
        del operator, operators

    def test_by_the_matrix(self):
        given = tuple(InterfaceArray(part, 1) for part in (PLAIN.data, PLAIN.indices, PLAIN.indptr))
        operator = cbgen.compile(given, shape=PLAIN.shape)
        self.assertEqual(operator.device, 1)
        same(operator @ X, PLAIN @ X)
        self.refuses(ValueError, "the context is on GPU 0", cbgen.compile, given, shape=PLAIN.shape, device=0)
        mixed = given[:2] + (InterfaceArray(PLAIN.indptr, 0),)
        self.refuses(ValueError, "different GPUs", cbgen.compile, mixed, shape=PLAIN.shape)

    def test_by_the_current_one(self):
        self.assertEqual(cbgen.compile(PLAIN).device, 0)
        FAKE.fake_set_current(1)
        self.assertEqual(cbgen.compile(PLAIN).device, 1)

    def test_values_elsewhere(self):
        operator = cbgen.compile(PLAIN, values="mutable", device=0)
        self.refuses(ValueError, "the values are on GPU 1", operator.update_values, InterfaceArray(PLAIN.data, 1))

    def test_refused(self):
        self.refuses(cbgen.ArgumentError, "", cbgen.compile, PLAIN, device=2)
        self.refuses(TypeError, "Context(device=…)", cbgen.compile, PLAIN, device=1, context=cbgen.Context())
        self.refuses(TypeError, "Context(device=…)", cbgen.Context().set, "device", 1)


class Contexts(FakeCase):
    def test_options(self):
        context = cbgen.Context(recipe="sell", sell_lanes=4, sell_sort=False)
        self.assertIn("(lanes 4)", cbgen.compile(PLAIN, context=context).plan)
        context.set("sell_lanes", 8)
        self.assertIn("(lanes 8)", cbgen.compile(PLAIN, context=context).plan)
        self.refuses(cbgen.ArgumentError, "colour", context.set, "colour", "red")
        self.refuses(cbgen.ArgumentError, "colour", cbgen.Context, colour="red")
        self.refuses(TypeError, "'tune' is a matter of the context", cbgen.compile, PLAIN, context=context, tune="off")

    def test_log(self):
        lines = []
        with cbgen.Context(log=lines.append) as context:
            operator = cbgen.compile(PLAIN, context=context, name="rod")
        self.assertTrue(any("plan" in line for line in lines), lines)
        self.assertTrue(any("'rod'" in line for line in lines), lines)
        self.refuses(ValueError, "the context is closed", cbgen.compile, PLAIN, context=context)
        same(operator @ X, PLAIN @ X)  # which outlives it
        with self.assertLogs("cbgen", logging.INFO) as caught:
            cbgen.compile(PLAIN)
        self.assertEqual(len(caught.output), len(lines))
        self.refuses(TypeError, "log=", cbgen.Context, log=3)

    def test_cache(self):
        with scratch_folder() as folder:
            found = [cbgen.compile(PLAIN, cache=os.path.join(folder, "cache")).info.cache for _ in range(2)]
        self.assertEqual(found, ["miss", "hit"])


class Failures(FakeCase):
    """Whatever call of CUDA fails, the message is clear, nothing is lost, and the next product is right."""

    def test_every_call_of_a_product(self):
        operator = cbgen.compile(PLAIN, values="mutable")
        transient = 0
        for nth in range(1, 30):
            FAKE.fake_set(b"fail_at", fake_get("calls") + nth)
            FAKE.fake_set(b"failure", 2 if nth % 2 else 1)
            try:
                operator @ X
            except cbgen.Error as error:
                self.assertTrue(str(error))
                self.assertIsInstance(error, (cbgen.DeviceError, cbgen.OutOfMemoryError))
                transient += 1
            FAKE.fake_set(b"fail_at", 0)
            same(operator @ X, PLAIN @ X)
        self.assertGreater(transient, 3)

    def test_every_call_of_compile(self):
        refused, nth = 0, 0
        while True:
            nth, operator = nth + 1, None
            before = fake_get("calls")
            FAKE.fake_set(b"fail_at", before + nth)
            FAKE.fake_set(b"failure", 1)
            try:
                operator = cbgen.compile(PLAIN)
            except cbgen.Error as error:
                self.assertTrue(str(error))
                refused += 1
            finally:
                FAKE.fake_set(b"fail_at", 0)
            if operator is not None:
                same(operator @ X, PLAIN @ X)
                if fake_get("calls") < before + nth:
                    break
        self.assertGreater(refused, 5)

    def test_no_memory(self):
        FAKE.fake_set(b"memory", 1000)
        error = self.refuses(MemoryError, "memory", cbgen.compile, PLAIN)
        self.assertEqual(error.status, cbgen.Status.MEMORY)
        self.assertIsInstance(error, cbgen.OutOfMemoryError)

    def test_no_gpu(self):
        code = "import cbgen_spmv as cbgen, scipy.sparse\nprint(cbgen.generate(scipy.sparse.eye(9, format='csr')).symbol)\n" \
               "try: cbgen.compile(scipy.sparse.eye(9, format='csr'))\nexcept cbgen.MissingError as e: print(e)"
        output = run(code, CBGEN_LIBCUDA="/nowhere/libcuda.so").stdout
        self.assertIn("matrix\ncannot open the CUDA driver", output)
        self.assertIn("cbgen.generate works without", output)

    def test_a_driver_without_gpu(self):
        """Its initialisation says so, or it counts none."""
        code = "import scipy.sparse\nfrom python_support import FAKE, cbgen\nmatrix = scipy.sparse.eye(9, format='csr')\n" \
               "FAKE.fake_set({}); FAKE.fake_set({})\nprint(cbgen.generate(matrix).symbol)\n" \
               "try: cbgen.compile(matrix)\nexcept cbgen.MissingError as e: print(e)"
        for settings in (("b'failure', 100", "b'fail_at', 1"), ("b'devices', 0", "b'devices', 0")):
            output = run(code.format(*settings)).stdout
            self.assertIn("matrix\nthe CUDA driver shows no GPU", output)
            self.assertIn("CUDA_VISIBLE_DEVICES", output)

    def test_nvrtc_of_an_environment_that_is_not_activated(self):
        """It is found along sys.path, before any other; unless a variable or an option names one."""
        compiling = "from python_support import matrix, vector, cbgen\ny = cbgen.compile(matrix(){}) @ vector(40)\n" \
                    "assert (y == matrix() @ vector(40)).all()"
        fake = os.environ["CBGEN_NVRTC"]
        with scratch_folder() as folder:
            for wheel, name in (("cu13", "libnvrtc.so.13"), ("cuda_nvrtc", "libnvrtc.so.12")):
                site = os.path.join(folder, wheel)
                file = os.path.join(site, "nvidia", wheel, "lib", name)
                os.makedirs(os.path.dirname(file))
                os.symlink(fake, file)
                path = os.pathsep.join([site, os.path.dirname(os.path.abspath(__file__)), os.environ["PYTHONPATH"]])
                run(compiling.format(""), PYTHONPATH=path, CBGEN_NVRTC="")
                os.unlink(file)
                with open(file, "w", encoding="ascii") as damaged:
                    damaged.write("no library")
                result = run(compiling.format(""), PYTHONPATH=path, CBGEN_NVRTC="", expect=1)
                self.assertIn(f"NVRTC does not open: {file}", result.stderr)
                run(compiling.format(""), PYTHONPATH=path, CBGEN_NVRTC=fake)
                run(compiling.format(f", context=cbgen.Context(nvrtc='{fake}')"), PYTHONPATH=path, CBGEN_NVRTC="")

    def test_no_library(self):
        for library, words in [("/nowhere/libcbgen.so", "cannot open libcbgen"), ("libm.so.6", "has no 'cbgen_version'")]:
            result = run("import cbgen_spmv", CBGEN_LIBRARY=library, expect=1)
            self.assertIn(words, result.stderr)
            self.assertIn("CBGEN_LIBRARY", result.stderr)
            self.assertIn("ImportError", result.stderr)


def run(code, expect=0, **environment):
    path = os.pathsep.join([os.path.dirname(os.path.abspath(__file__)), os.environ.get("PYTHONPATH", "")])
    result = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path, **environment},
                            capture_output=True, text=True, check=False)
    assert result.returncode == expect, result.stderr
    return result


class Ends(FakeCase):
    """setUp and tearDown compare what there is on the GPU; here: when it goes."""

    def test_last_reference(self):
        operator = cbgen.compile(PLAIN)
        operator @ X
        operator.T @ X
        self.assertGreater(fake_get("blocks"), self.before["blocks"])
        del operator
        self.assertEqual(fake_get("blocks"), self.before["blocks"])  # at once, without a collection

    def test_transpose_outlives(self):
        transposed = cbgen.compile(PLAIN).T
        gc.collect()
        same(transposed @ X, PLAIN.T @ X)
        same(transposed.T @ X, PLAIN @ X)

    def test_cycle(self):
        operator = cbgen.compile(PLAIN)
        operator.myself = operator
        del operator
        gc.collect()
        self.assertEqual(fake_get("blocks"), self.before["blocks"])

    def test_close(self):
        with cbgen.compile(PLAIN) as operator:
            same(operator @ X, PLAIN @ X)
        self.assertEqual(fake_get("blocks"), self.before["blocks"])
        operator.close()
        self.assertTrue(operator.closed)
        for call in (lambda: operator @ X, lambda: operator.plan, lambda: operator.T, lambda: operator.info,
                     lambda: operator.update_values(PLAIN.data), lambda: bytes(operator),
                     lambda: operator.multiply(InterfaceArray(X), InterfaceArray(X))):
            self.refuses(ValueError, "the operator is closed", call)
        self.assertEqual(repr(operator), "<cbgen.Operator, closed>")
        self.refuses(TypeError, "made by cbgen.compile", cbgen.Operator)

    def test_interpreter_exit(self):
        code = "import atexit, sys\n" \
               "def report(): print(FAKE.fake_get(b'blocks'), FAKE.fake_get(b'modules'), FAKE.fake_complaint())\n" \
               "atexit.register(report)\n" \
               "from python_support import FAKE, matrix, vector, cbgen\n" \
               "kept = cbgen.compile(matrix()); kept @ vector(40); kept.T @ vector(40); kept.again = kept"
        result = run(code)
        self.assertEqual((result.stdout, result.stderr), ("0 0 b''\n", ""))

    def test_forked_child(self):
        code = "import os\nfrom python_support import FAKE, matrix, vector, cbgen\n" \
               "kept = cbgen.compile(matrix()); calls = FAKE.fake_get(b'calls')\n" \
               "if os.fork() == 0:\n    del kept\n    os._exit(FAKE.fake_get(b'calls') != calls)\n" \
               "assert os.wait()[1] == 0\n" \
               "assert (kept @ vector(40) == matrix() @ vector(40)).all()\nprint('fine')"
        self.assertEqual(run(code).stdout, "fine\n")

    def test_multiprocessing_by_fork(self):
        """Workers generate after their parent did, and compile when it did not open a GPU; what the parent has on a GPU
        says so in a worker instead of hanging or crashing."""
        code = "import multiprocessing, sys\nfrom python_support import FAKE, matrix, vector, cbgen\n" \
               "def text(_): return cbgen.generate(matrix()).source\n" \
               "def product(_): return bytes(cbgen.compile(matrix()) @ vector(40))\n" \
               "def parents(_):\n    calls = FAKE.fake_get(b'calls')\n" \
               "    try:\n        kept @ vector(40)\n    except cbgen.DeviceError as failure:\n" \
               "        return 'forked' in str(failure) and FAKE.fake_get(b'calls') == calls\n" \
               "def in_workers(work):\n" \
               "    with multiprocessing.get_context('fork').Pool(2) as pool:\n" \
               "        return set(pool.map_async(work, range(4)).get(120))\n" \
               "assert in_workers(text) == {text(0)} and in_workers(text) == {text(0)}\n" \
               "found = in_workers(product)\nkept = cbgen.compile(matrix())\n" \
               "assert found == {bytes(kept @ vector(40))}\n" \
               "assert in_workers(parents) == {True}\nprint('fine')"
        result = run(code)
        self.assertEqual(result.stdout, "fine\n", result.stderr)


if __name__ == "__main__":
    harness.main(sys.argv[:1])
