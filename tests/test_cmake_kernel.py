#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cbgen_add_kernel of the installed CMake package, in small projects: kernels are made when the target is built, again
when their matrix changes, and what is asked in vain is told. Where there is nvcc, a program with two kernels is built.

    tests/test_cmake_kernel.py BUILD SCRATCH        in the source directory
"""
import os
import shutil
import subprocess
import sys
import unittest

import harness

BUILD, SCRATCH = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
PREFIX = os.path.join(SCRATCH, "prefix")
MATRIX = "%%MatrixMarket matrix coordinate real general\n3 3 4\n1 1 2\n2 2 3\n3 1 {}\n3 3 5\n"
HEAD = """
cmake_minimum_required(VERSION 3.22)
project(app LANGUAGES {languages})
find_package(cbgen 0.1 REQUIRED)
"""
MAIN = """
#include "tiny_kernel.h"
#include "fe3_kernel.h"
#include <cstdio>
int main(int, char **arguments) {
  tiny_kernel *tiny;
  fe3_kernel *fe3;
  const char *message = tiny_kernel_create(&tiny, nullptr);
  if (!message) message = fe3_kernel_create(&fe3, arguments[1]);
  if (!message) message = tiny_kernel_multiply(tiny, nullptr, nullptr, 1, 0, nullptr);
  if (!message) tiny_kernel_destroy(tiny), fe3_kernel_destroy(fe3);
  return message ? (std::puts(message), 2) : 0;
}
"""


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=harness.LIMIT,
                          env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"})


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        shutil.rmtree(SCRATCH, ignore_errors=True)
        os.makedirs(SCRATCH)
        result = run("cmake", "--install", BUILD, "--prefix", PREFIX)
        assert result.returncode == 0, result.stderr

    def must(self, *command):
        result = run(*command)
        self.assertEqual(result.returncode, 0, f"{command}\n{result.stdout}{result.stderr}")
        return result.stdout

    def project(self, text, languages="NONE"):
        self.folder = os.path.join(SCRATCH, self.id().split(".")[-1])
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(os.path.join(self.folder, "matrices"))
        self.build = os.path.join(self.folder, "build")
        self.write("CMakeLists.txt", HEAD.format(languages=languages) + text)
        self.write("matrices/tiny.v2.mtx", MATRIX.format(4))
        return ("cmake", "-S", self.folder, "-B", self.build, f"-DCMAKE_PREFIX_PATH={PREFIX}")

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    def made(self, name, target="kernels"):
        return os.path.join(self.build, "cbgen", target, name)

    def read(self, name):
        with open(self.made(name), encoding="utf-8") as file:
            return file.read()


class Generated(Case):
    """Custom targets: what is made, and when."""

    def test_files(self):
        self.must(*self.project("""
            add_custom_target(kernels)
            cbgen_add_kernel(kernels MATRIX matrices/tiny.v2.mtx generate:fe3,n=3 ARCH sm_80)
            cbgen_add_kernel(kernels MATRIX matrices/tiny.v2.mtx NAME other DATA_FILE OPTIONS --type=f32 --recipe=merge)
            get_target_property(data kernels CBGEN_KERNEL_DATA)
            message(STATUS "data: ${data}")"""))
        self.assertFalse(os.path.exists(self.made("tiny.cu")), "made before anything was built")
        self.must("cmake", "--build", self.build, "--target", "kernels")
        tiny, other = self.read("tiny.cu"), self.read("other.cu")
        self.assertIn("sm_80", tiny)
        self.assertIn("tiny_load_embedded", tiny)
        self.assertIn("fe3_load_embedded", self.read("fe3.cu"))
        self.assertNotIn("other_load_embedded", other)
        self.assertIn("(merge ", other)
        self.assertIn("float", other)
        self.assertTrue(os.path.exists(self.made("other.cbd")))
        self.assertIn(f"data: {self.made('other.cbd')}", self.must("cmake", self.build))
        tool = os.path.join(PREFIX, "bin", "cbgen")
        for name in ("tiny.cu", "fe3.cu", "other.cu"):
            self.must(tool, "verify", self.made(name))  # what the program would run, on the host
        for header in ("tiny_kernel.h", "other_kernel.h"):
            for language in (("cc", "-std=c99", "-x", "c"), ("c++", "-std=c++17", "-x", "c++")):
                self.must(*language, "-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only", self.made(header))

    def test_again_when_the_matrix_changes(self):
        self.must(*self.project("add_custom_target(kernels)\ncbgen_add_kernel(kernels MATRIX matrices/tiny.v2.mtx)"))
        build = ("cmake", "--build", self.build, "--target", "kernels")
        self.must(*build)
        first, when = self.read("tiny.cu"), os.stat(self.made("tiny.cu")).st_mtime_ns
        self.must(*build)
        self.assertEqual(os.stat(self.made("tiny.cu")).st_mtime_ns, when)
        self.write("matrices/tiny.v2.mtx", MATRIX.format(7).replace("3 3 5", "2 1 5"))
        self.must(*build)
        self.assertNotEqual(self.read("tiny.cu"), first)

    def test_refused(self):
        start = "add_custom_target(kernels)\ncbgen_add_kernel("
        for text, words in [("none MATRIX a.mtx)", "there is no target 'none'"), ("kernels)", "MATRIX takes a file"),
                            ("kernels MATRIX a.mtx b.mtx NAME c)", "several without NAME"),
                            ("kernels MATRIX a.mtx NAME 1st)", "'1st' is no C identifier"),
                            ("kernels a.mtx MATRIX b.mtx)", "is not understood"),
                            ("kernels MATRIX a.mtx OPTIONS --form=ax)", "'--form' is no option of the analysis")]:
            with self.subTest(text):
                result = run(*self.project(start + text))
                self.assertNotEqual(result.returncode, 0)
                self.assertIn(words, " ".join(result.stderr.split()))
        result = run(*self.project("add_library(lib STATIC empty.c)\ncbgen_add_kernel(lib MATRIX a.mtx)", "C"))
        self.assertIn("needs the language CUDA", result.stderr)
        self.must(*self.project(start + "kernels MATRIX missing.mtx)"))
        self.assertNotEqual(run("cmake", "--build", self.build, "--target", "kernels").returncode, 0)
        self.must(*self.project(start + "kernels MATRIX matrices/tiny.v2.mtx OPTIONS --recipe=none)"))
        result = run("cmake", "--build", self.build, "--target", "kernels")
        self.assertIn("unknown recipe 'none'", result.stdout + result.stderr)


class Compiled(Case):
    def test_program(self):
        nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
        if not os.path.exists(nvcc):
            self.skipTest("there is no nvcc")
        configure = self.project("""
            add_executable(app main.cpp)
            set_target_properties(app PROPERTIES CUDA_ARCHITECTURES 80)
            cbgen_add_kernel(app MATRIX matrices/tiny.v2.mtx)
            cbgen_add_kernel(app MATRIX generate:fe3,n=3 DATA_FILE OPTIONS --type=f32)""", "CXX CUDA")
        self.write("main.cpp", MAIN)
        self.must(*configure, f"-DCMAKE_CUDA_COMPILER={nvcc}")
        self.must("cmake", "--build", self.build)
        with open(self.made("tiny.cu", "app"), encoding="utf-8") as file:
            self.assertIn("sm_80", file.read())
        result = run(os.path.join(self.build, "app"), self.made("fe3.cbd", "app"))
        # without a GPU the program can only say so; with one it does its work
        self.assertTrue(result.returncode == 0 or (result.returncode == 2 and "CUDA" in result.stdout), result)


if __name__ == "__main__":
    harness.main([sys.argv[0], *sys.argv[3:]])
