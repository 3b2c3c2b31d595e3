#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cbgen as part of another project, by add_subdirectory and by FetchContent: it brings its library and no tests, install
rules or target names that a project has itself. And by itself, where cmocka is missing.

    tests/test_subproject.py SCRATCH        in the source directory
"""
import os
import shutil
import subprocess
import sys
import unittest

import harness

SOURCE, SCRATCH = os.getcwd(), os.path.abspath(sys.argv[1])
# what a project may well have itself
TAKEN = ("examples", "tests", "tool", "corpus", "bench_read", "cb_base", "examples_common", "fuzz")
PARENT = """
cmake_minimum_required(VERSION 3.22)
project(parent LANGUAGES C)
foreach(name {taken})
  add_custom_target(${{name}})
endforeach()
find_package(PkgConfig REQUIRED)
pkg_check_modules(DEPS IMPORTED_TARGET zlib)
enable_testing()
add_test(NAME own COMMAND app)
{bring}
add_executable(app main.c)
target_link_libraries(app PRIVATE cbgen::cbgen)
install(TARGETS app)
if(TARGET cbgen::tool)
  add_custom_target(kernels)
  cbgen_add_kernel(kernels MATRIX generate:fe3,n=3)
endif()
"""
BRING = {
    "subdirectory": f'add_subdirectory("{SOURCE}" cbgen)',
    "fetched": f'include(FetchContent)\nFetchContent_Declare(cbgen SOURCE_DIR "{SOURCE}")\nFetchContent_MakeAvailable(cbgen)',
}
MAIN = """
#include <cbgen.h>
#include <stdio.h>
int main(void) {
  cbgen_context *context;
  if (cbgen_context_create(&context)) return 1;
  cbgen_context_destroy(context);
  return puts(cbgen_version()) < 0;
}
"""


def run(*command, expect=0, **environment):
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=harness.LIMIT,
                            env={**os.environ, **environment})
    assert result.returncode == expect, f"{command}: {result.returncode}\n{result.stdout}{result.stderr}"
    return result.stdout


def pkg_config_without(package):
    """A pkg-config that has never heard of it."""
    program = os.path.join(SCRATCH, f"without-{package}", "pkg-config")
    os.makedirs(os.path.dirname(program), exist_ok=True)
    with open(program, "w", encoding="utf-8") as file:
        file.write(f'#!/bin/sh\ncase "$*" in *{package}*) exit 1 ;; esac\nexec pkg-config "$@"\n')
    os.chmod(program, 0o755)
    return program


class Subproject(unittest.TestCase):
    def configure(self, name, *options):
        folder = os.path.join(SCRATCH, name)
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        parent = PARENT.format(taken=" ".join(TAKEN), bring=BRING[name.split("-")[0]])
        for path, text in (("CMakeLists.txt", parent), ("main.c", MAIN)):
            with open(os.path.join(folder, path), "w", encoding="utf-8") as file:
                file.write(text)
        # without optimization and debug information: it is to be built soon
        run("cmake", "-S", folder, "-B", f"{folder}/build", "-DCMAKE_BUILD_TYPE=None", "-DCMAKE_C_FLAGS=-O0 -w", *options)
        return f"{folder}/build"

    def check_quiet(self, build):
        """No test but the parent's, nothing else to install."""
        self.assertIn("Total Tests: 1\n", run("ctest", "--test-dir", build, "-N"))
        self.assertFalse(os.path.exists(os.path.join(build, "cbgen", "cbgenConfig.cmake")))
        targets = run("cmake", "--build", build, "--target", "help")
        self.assertIn("cbgen_tool", targets)
        self.assertNotIn("cbgen_examples", targets)
        self.assertNotIn("bench_soak", targets)

    def test_by_add_subdirectory(self):
        build = self.configure("subdirectory")
        self.check_quiet(build)
        run("cmake", "--build", build, "-j", "2")
        self.assertRegex(run(os.path.join(build, "app")), r"^\d+\.\d+\.\d+\n$")
        self.assertFalse(os.path.exists(os.path.join(build, "cbgen", "cbgen")), "the tool was built without need")
        run("cmake", "--install", build, "--prefix", os.path.join(SCRATCH, "prefix"))
        installed = [name for _, _, names in os.walk(os.path.join(SCRATCH, "prefix")) for name in names]
        self.assertEqual(installed, ["app"])

    def test_by_fetch_content(self):
        self.check_quiet(self.configure("fetched"))

    def test_without_libarchive(self):
        """The library alone: only the tool reads files."""
        build = self.configure("subdirectory-alone", f"-DPKG_CONFIG_EXECUTABLE={pkg_config_without('libarchive')}")
        targets = run("cmake", "--build", build, "--target", "help")
        self.assertIn("cbgen_runtime", targets)
        self.assertNotIn("cbgen_tool", targets)


class Alone(unittest.TestCase):
    """Without cmocka, which only the tests need."""

    def configure(self, *options, expect=0):
        build = os.path.join(SCRATCH, "alone")
        shutil.rmtree(build, ignore_errors=True)
        return run("cmake", "-S", ".", "-B", build, f"-DPKG_CONFIG_EXECUTABLE={pkg_config_without('cmocka')}", *options,
                   expect=expect)

    def test_builds_without_tests_and_says_so(self):
        self.assertIn("The tests are left out: they need cmocka", self.configure())
        self.assertIn("Total Tests: 0\n", run("ctest", "--test-dir", os.path.join(SCRATCH, "alone"), "-N"))
        self.assertTrue(os.path.exists(os.path.join(SCRATCH, "alone", "cbgenConfig.cmake")))

    def test_refuses_when_tests_were_asked_for(self):
        self.configure("-DCBGEN_TESTS=ON", expect=1)


if __name__ == "__main__":
    harness.main([sys.argv[0], *sys.argv[2:]])
