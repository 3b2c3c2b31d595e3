#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The examples in C++ and Fortran, built against the installed library as their CMakeLists.txt say, and run on the fake CUDA.
CUDA's run-time library is tests/fake_runtime.

    tests/test_languages.py BUILD SCRATCH [FLAGS]        FLAGS: of a sanitized build
"""
import os
import re
import shutil
import subprocess
import sys

import harness

BUILD, SCRATCH = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
FLAGS = "".join(sys.argv[3:])
PREFIX = os.path.join(SCRATCH, "prefix")
CACHE = os.path.join(SCRATCH, "cache")


def run(*command, **variables):
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=harness.LIMIT,
                          env={**os.environ, "CBGEN_CACHE_DIR": CACHE, **variables})


def describe(result):
    return f"{' '.join(result.args)}: exit status {result.returncode}\n{result.stdout}{result.stderr}"


def expect(condition, what):
    if not condition:
        sys.exit(what)


def must(*command):
    result = run(*command)
    expect(result.returncode == 0, describe(result))


def build(language):
    folder = os.path.join(SCRATCH, language)
    flags = f"{FLAGS} -Wall -Wextra -Werror"
    must("cmake", "-S", os.path.join(PREFIX, "share", "doc", "cbgen", "examples", language), "-B", folder,
         f"-DCMAKE_PREFIX_PATH={PREFIX}", f"-DCMAKE_MODULE_PATH={os.path.abspath('tests/fake_runtime')}",
         f"-DCMAKE_C_FLAGS={FLAGS}", f"-DCMAKE_CXX_FLAGS={flags} -Wpedantic", f"-DCMAKE_Fortran_FLAGS={flags}")
    must("cmake", "--build", folder)
    return os.path.join(folder, "heat")


def check(language, program):
    for _ in "once with an empty cache, once with what was kept":
        result = run(program, "20", "30")
        expect(result.returncode == 0 and not result.stderr, describe(result))
        expect(re.search(r"^cbgen \d+\.\d+\.\d+: \(spmv ", result.stdout) and
               result.stdout.endswith("30 steps of 400 cells: passed\n"), describe(result))
    quiet = {"ASAN_OPTIONS": "detect_leaks=0"}  # what it had is left to the system
    for arguments, variables, words in ((("0",), {}, "N is 1 to 10000"),
                                        (("5",), {"CBGEN_LIBCUDA": "/nowhere"}, "the CUDA driver is not at '/nowhere'"),
                                        (("5",), {"FAKE_RUNTIME_MEMORY": "2"}, "out of memory" if language == "cpp" else "CUDA failed")):
        result = run(program, *arguments, **variables, **quiet)
        expect(result.returncode == 2 and words in result.stderr, describe(result))


def check_sites(program):
    """bench/sites.sh, which a GPU runs, on the fake one."""
    result = run("bench/sites.sh", os.path.join(SCRATCH, "sites.txt"), CBGEN=os.path.join(PREFIX, "bin", "cbgen"),
                 HEAT=program, N="20", PROCESSES="3")
    expect(result.returncode == 0 and result.stdout.count("passed: ") == 6, describe(result))


shutil.rmtree(SCRATCH, ignore_errors=True)
os.makedirs(SCRATCH)
must("cmake", "--install", BUILD, "--prefix", PREFIX)
HEAT = build("cpp")
check("cpp", HEAT)
check_sites(HEAT)
if shutil.which("gfortran"):
    check("fortran", build("fortran"))
else:
    harness.skip("there is no gfortran")
print("the examples in other languages run")
harness.finish()
