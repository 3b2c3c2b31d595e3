#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Python package as its users get it: `pip install` from the source tree, the programs of its README, its types.

    tests/test_python_package.py SCRATCH        in the source directory

CBGEN_LIBRARY and the fake CUDA's variables are those of the other Python tests; what pip builds is looked at without
them.
"""
import contextlib
import io
import os
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
import types
import unittest
import unittest.mock
import zipfile

import harness
import numpy
import scipy.sparse

SCRATCH = os.path.abspath(sys.argv.pop(1))
SOURCES = "python/src/cbgen_spmv"


def run(*command, **environment):
    left_out = ("LD_PRELOAD", "PYTHONPATH", "CBGEN_LIBRARY", "CBGEN_CALLS")
    kept = {name: value for name, value in os.environ.items() if name not in left_out}
    result = subprocess.run(command, capture_output=True, text=True, check=False, env={**kept, **environment})
    assert result.returncode == 0, f"{' '.join(command)}\n{result.stdout}{result.stderr}"
    return result.stdout


def blocks_of_readme():
    with open("python/README.md", encoding="utf-8") as file:
        return re.findall(r"```python\n(.*?)```", file.read(), re.S)


class Wheel(unittest.TestCase):
    """Needs scikit-build-core in this Python: nothing is fetched."""

    def test_sdist_wheel_and_first_use(self):
        """As it goes to PyPI and from there into an environment: the wheel is built from the sdist."""
        shutil.rmtree(SCRATCH, ignore_errors=True)
        os.makedirs(SCRATCH)
        code = f"import scikit_build_core.build as b; print(b.build_sdist({SCRATCH!r}))"
        sdist = os.path.join(SCRATCH, run(sys.executable, "-c", code).split()[-1])
        self.assertRegex(os.path.basename(sdist), r"^cbgen_spmv-\d+\.\d+\.\d+\.tar\.gz$")
        with tarfile.open(sdist) as packed:
            parts = {name.split("/")[1] for name in packed.getnames() if "/" in name}
        self.assertEqual(parts & {"tests", "bench", "docs", "packaging", "scripts", "build"}, set())
        self.assertLess(os.path.getsize(sdist), 4 << 20)
        beside = {"families-sm_90.bin": "what scripts/wheel makes\n", "notices": "licences\n"}
        for name, text in beside.items():
            with open(os.path.join(SCRATCH, name), "w", encoding="utf-8") as file:
                file.write(text)
        run(sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "--no-index", "-w", SCRATCH,
            "-C", f"build-dir={SCRATCH}/build", "-C", f"cmake.define.CBGEN_WHEEL_FAMILIES={SCRATCH}",
            "-C", f"cmake.define.CBGEN_WHEEL_NOTICES={SCRATCH}/notices", "-C", "cmake.define.CMAKE_C_FLAGS_RELEASE=-O0",
            sdist, CMAKE_BUILD_PARALLEL_LEVEL="2")  # what it consists of does not depend on how fast it is
        names = [name for name in os.listdir(SCRATCH) if name.endswith(".whl")]
        self.assertEqual(len(names), 1)
        self.assertRegex(names[0], r"^cbgen_spmv-\d+\.\d+\.\d+-cp310-abi3-linux_\w+\.whl$")
        self.check_contents(os.path.join(SCRATCH, names[0]))
        self.check_first_use(os.path.join(SCRATCH, names[0]))

    def check_contents(self, wheel):
        with zipfile.ZipFile(wheel) as opened:
            members = [name for name in opened.namelist() if ".dist-info/" not in name]
            command = next(name for name in members if name.endswith(".data/scripts/cbgen"))
            members.remove(command)
            self.assertTrue(opened.read(command).startswith(b"#!python\n"))  # which installers replace
            self.assertTrue(opened.getinfo("cbgen_spmv/cbgen").external_attr >> 16 & 0o111)
            self.assertEqual(opened.read("cbgen_spmv/families-sm_90.bin"), b"what scripts/wheel makes\n")
            about = opened.read(next(name for name in opened.namelist() if name.endswith("/METADATA"))).decode()
        expected = {f"cbgen_spmv/{name}" for name in os.listdir(SOURCES) if name.endswith(".py")}
        others = {f"cbgen_spmv/{name}" for name in ("py.typed", "libcbgen.so", "LICENSE", "NOTICES", "_calls.abi3.so",
                                                    "cbgen", "families-sm_90.bin")}
        self.assertEqual(set(members), expected | others)  # nothing beside its own folder
        for line in ("Name: cbgen-spmv", "Requires-Python: >=3.10", "Requires-Dist: numpy>=1.21", "Provides-Extra: cuda13",
                     "Provides-Extra: nvrtc", 'Requires-Dist: nvidia-cuda-nvrtc<14,>=13; extra == "nvrtc"',
                     "# cbgen for Python"):
            self.assertIn(line, about.splitlines())

    def environment(self, wheel):
        """The Python of a new environment that has the wheel, and the NumPy and SciPy of this one."""
        run(sys.executable, "-m", "venv", os.path.join(SCRATCH, "environment"))
        python = os.path.join(SCRATCH, "environment", "bin", "python")
        run(python, "-m", "pip", "install", "--no-deps", "--no-index", wheel)
        site = run(python, "-c", "import sysconfig; print(sysconfig.get_path('platlib'))").strip()
        shared = os.path.join(SCRATCH, "shared")
        os.makedirs(shared)
        for module in (numpy, scipy):
            place = os.path.dirname(os.path.dirname(module.__file__))
            for name in (module.__name__, f"{module.__name__}.libs"):
                if os.path.exists(os.path.join(place, name)):
                    os.symlink(os.path.join(place, name), os.path.join(shared, name))
        with open(os.path.join(site, "shared.pth"), "w", encoding="utf-8") as file:
            file.write(shared + "\n")
        return python, site

    def check_first_use(self, wheel):
        python, site = self.environment(wheel)
        code = "import cbgen_spmv as cbgen; print(cbgen._library.LIBRARY._name, cbgen._compiled.CALLS.__file__); " \
               "print(cbgen.__version__ == cbgen.library_version)"
        place = os.path.join(site, "cbgen_spmv")
        self.assertEqual(run(python, "-c", code), f"{place}/libcbgen.so {place}/_calls.abi3.so\nTrue\n")
        tool = os.path.join(os.path.dirname(python), "cbgen")
        self.assertRegex(run(tool, "--version"), r"^cbgen \d+\.\d+\.\d+")
        self.assertEqual(subprocess.run([tool, "nonsense"], capture_output=True, check=False).returncode,
                         subprocess.run([os.path.join(place, "cbgen"), "nonsense"], capture_output=True,
                                        check=False).returncode)
        quick_start = os.path.join(SCRATCH, "quick_start.py")
        with open(quick_start, "w", encoding="utf-8") as file:
            file.write(blocks_of_readme()[0])
        sanitizer = {name: value for name, value in os.environ.items() if name == "LD_PRELOAD"}  # the fake driver's
        self.assertIn("(spmv ", run(python, quick_start, **sanitizer))  # on the fake driver that the environment names
        without = subprocess.run([python, quick_start], capture_output=True, text=True, check=False,
                                 env={"PATH": os.environ["PATH"], "CBGEN_LIBCUDA": "/nowhere/libcuda.so.1"})
        self.assertEqual(without.returncode, 1)
        self.assertIn("MissingError: cannot open the CUDA driver", without.stderr)
        self.assertIn("products need an NVIDIA GPU and its driver; cbgen.generate works without", without.stderr)


class Documents(unittest.TestCase):
    def test_programs_of_the_readme(self):
        here = [block for block in blocks_of_readme() if not re.search(r"^import (cupy|torch)", block, re.M)]
        self.assertGreater(len(here), 1)
        names = {}
        for block in here:
            exec(compile(block, "python/README.md", "exec"), names)  # the programs check themselves
        self.assertIn("A", names)

    def test_every_public_name_is_documented(self):
        import cbgen_spmv as cbgen

        with open("python/README.md", encoding="utf-8") as file:
            text = file.read()
        undocumented = {"Status", "Info", "Kernel", "Operator", "__version__", "library_version"}
        for name in set(cbgen.__all__) - undocumented:
            self.assertIn(name, text)
        for name in dir(cbgen.Operator):
            if not name.startswith("_"):
                self.assertTrue(getattr(cbgen.Operator, name).__doc__ or name in text, name)

    def test_examples_compile(self):
        for folder in ("examples/python", "python/tests"):
            for name in os.listdir(folder):
                if name.endswith(".py"):
                    with open(os.path.join(folder, name), encoding="utf-8") as file:
                        text = file.read()
                    compile(text, name, "exec")
                    self.assertTrue(folder != "examples/python" or len(text.splitlines()) < 150, name)


class Example(unittest.TestCase):
    def test_conjugate_gradient(self):
        """With NumPy in CuPy's place, and the operator on the fake GPU."""
        cupy, cuda, sparse = (types.ModuleType(name) for name in ("cupy", "cupy.cuda", "cupyx.scipy.sparse"))
        kernels = {"scaled": numpy.multiply, "direction": direction, "step": step}
        cupy.ElementwiseKernel = lambda inputs, outputs, operation, name: kernels[name]
        cuda.get_current_stream = lambda: types.SimpleNamespace(synchronize=lambda: None)
        for name in ("ones", "asarray", "empty", "zeros_like", "dot", "linalg"):
            setattr(cupy, name, getattr(numpy, name))
        cupy.cuda, cupy.asnumpy, sparse.csr_matrix = cuda, numpy.asarray, scipy.sparse.csr_matrix
        whole = types.SimpleNamespace(scipy=types.SimpleNamespace(sparse=sparse))
        modules = {"cupy": cupy, "cupyx": whole, "cupyx.scipy": whole.scipy, "cupyx.scipy.sparse": sparse}
        output = io.StringIO()
        with unittest.mock.patch.dict(sys.modules, modules), contextlib.redirect_stdout(output):
            main = runpy.run_path("examples/python/conjugate_gradient.py")["main"]
            self.assertEqual(main("blocks:5"), 0, output.getvalue())
        lines = output.getvalue().splitlines()
        self.assertEqual(lines[0], "### conjugate_gradient.py: blocks:5, 375 x 375, 19773 nonzeros")
        self.assertEqual([line.split(" |")[0] for line in lines if line.startswith("| c")], ["| cuSPARSE", "| cbgen"])
        self.assertEqual(len([line for line in lines if line.endswith(": passed")]), 2)


def direction(z, now, before, p):
    p[:] = z + now / before * p


def step(p, q, rz, pq, x, r):
    x += rz / pq * p
    r -= rz / pq * q


class Types(unittest.TestCase):
    def test_strict(self):
        run(sys.executable, "-m", "mypy", "--strict", "--cache-dir", os.path.join(SCRATCH, "mypy"), SOURCES)

    def test_a_user_s_program(self):
        program = os.path.join(SCRATCH, "user.py")
        os.makedirs(SCRATCH, exist_ok=True)
        with open(program, "w", encoding="utf-8") as file:
            file.write("import cbgen_spmv as cbgen\nA = cbgen.compile(None)\nrows: int = A.shape[0]\nkey: int = A.key\n")
        command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", os.path.join(SCRATCH, "mypy"), program]
        environment = {**os.environ, "MYPYPATH": "python/src"}
        environment.pop("LD_PRELOAD", None)
        output = subprocess.run(command, capture_output=True, text=True, check=False, env=environment).stdout
        self.assertIn('user.py:4: error: Incompatible types in assignment (expression has type "str"', output)
        self.assertIn("Found 1 error in 1 file", output)


if __name__ == "__main__":
    harness.main(sys.argv)
