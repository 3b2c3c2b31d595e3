#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the documents say is so: the tutorial's commands run, one after the other; tables of what is supported are what the
program says; pieces of C compile; links lead somewhere.

    tests/test_tutorial.py TOOL SCRATCH         in the source directory
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import unittest

import harness

TOOL, SCRATCH = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
PRELUDE = """
#include <cbgen.h>
#include <stdio.h>
#include <stdlib.h>
const char *block(cbgen_context *context, cbgen_operator *op, cbgen_operator *second, cbgen_csr matrix, int64_t n,
                  int64_t nnz, int *row_ptr, int *col_idx, double *values, double *new_values, double *x, double *y,
                  double *b, double *d, double *r, double *rr, void *stream, int iterations, size_t length,
                  int *row_of_entry, int *column_of_entry);
const char *block(cbgen_context *context, cbgen_operator *op, cbgen_operator *second, cbgen_csr given, int64_t n,
                  int64_t nnz, int *row_ptr, int *col_idx, double *values, double *new_values, double *x, double *y,
                  double *b, double *d, double *r, double *rr, void *stream, int iterations, size_t length,
                  int *row_of_entry, int *column_of_entry) {
"""


def text_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def blocks(path, language):
    return re.findall(rf"^```{language}\n(.*?)^```", text_of(path), re.M | re.S)


def section(path, title):
    """The rows of the first table below a title, without its head."""
    part = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", text_of(path), re.M | re.S)[1]
    rows = [line for line in part.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows[2:]]


def say(*arguments):
    return subprocess.run([TOOL, *arguments], capture_output=True, text=True, check=True, timeout=harness.LIMIT).stdout


class Documents(unittest.TestCase):
    def test_commands_of_the_tutorial(self):
        folder = os.path.join(SCRATCH, "tutorial")
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(os.path.join(folder, "bin"))
        os.symlink(TOOL, os.path.join(folder, "bin", "cbgen"))
        os.symlink(os.path.abspath("examples"), os.path.join(folder, "examples"))
        environment = {**os.environ, "PATH": os.path.join(folder, "bin") + ":" + os.environ["PATH"], "CBGEN_CACHE_DIR": ""}
        commands = "".join(blocks("docs/tutorial.md", "sh")).splitlines()
        self.assertGreater(len(commands), 6)
        for command in commands:
            result = subprocess.run(["sh", "-ec", command], cwd=folder, env=environment, capture_output=True, text=True,
                                    check=False, timeout=harness.LIMIT)
            self.assertEqual(result.returncode, 0, f"{command}: {result.stderr}")
            self.assertTrue(result.stdout or "-o" in command.split(), f"{command} says nothing")
        for name in ("kernel.cu", "report.html"):
            self.assertGreater(os.path.getsize(os.path.join(folder, name)), 1000)

    def test_pieces_of_c(self):
        """Those of docs/library.md are among them."""
        for path, least in (("docs/library.md", 5), ("docs/tutorial.md", 4), ("docs/migration.md", 1)):
            pieces = blocks(path, "c")
            self.assertGreaterEqual(len(pieces), least, path)
            for piece in pieces:
                matrix = "" if "cbgen_csr matrix" in piece else "cbgen_csr matrix = given;\n"
                result = subprocess.run(["cc", "-std=c11", "-Wall", "-Werror", "-Wno-unused", "-Iinclude", "-fsyntax-only", "-x",
                                         "c", "-"], input=f"{PRELUDE}{matrix}{piece}return NULL;\n}}\n", capture_output=True,
                                        text=True, check=False)
                self.assertEqual(result.returncode, 0, f"{path}: {result.stderr}")

    def test_functions_that_are_named_exist(self):
        header = text_of("include/cbgen.h")
        for path in ("docs/tutorial.md", "docs/migration.md"):
            for name in set(re.findall(r"\bcbgen_(?!spmv)[a-z_]+\b", text_of(path))):
                self.assertRegex(header, rf"\b{name}\b", f"{path}: there is no {name}")

    def test_gpus_that_are_supported(self):
        lines = [re.split(" {2,}| (?=[0-9]+ +[0-9]+ KiB)", line.strip()) for line in say("help", "architectures").splitlines()[1:]]
        said = [[f"`{line[0]}`", line[1], line[-2], line[-1]] for line in lines if not line[1].startswith("refused")]
        self.assertGreater(len(said), 8)
        self.assertEqual(section("docs/supported.md", "GPUs"), said)

    def test_types_that_are_supported(self):
        words = re.search(r"--type=(\S+) ", say("help", "options"))[1].split("|")
        rows = section("docs/supported.md", "Types")
        self.assertEqual([row[0].strip("`") for row in rows], words)
        long = {"f64": "double", "f32": "float", "f16": "half", "bf16": "bfloat16", "split": "double in two parts",
                "c128": "two doubles", "c64": "two floats"}
        for name, values, vectors, sums in rows:
            parts = name.strip("`").split("-")
            self.assertEqual([values, vectors], [long[parts[0]], long[parts[-1]]])
            self.assertEqual(sums, "float" if "16" in parts[-1] else vectors)

    def test_versions_that_are_supported(self):
        software = {row[0]: row[1] for row in section("docs/supported.md", "Software")}
        cmake = re.search(r"cmake_minimum_required\(VERSION ([\d.]+)", text_of("CMakeLists.txt"))[1]
        self.assertTrue(software["CMake, C and C++ compiler"].startswith(cmake))
        python = re.search(r'requires-python = ">=([\d.]+)"', text_of("pyproject.toml"))[1]
        self.assertTrue(software["Python"].startswith(python))
        oldest = min(row[2] for row in section("docs/supported.md", "GPUs"))
        self.assertEqual(software["NVRTC"], f"{oldest} or later")

    def test_links(self):
        for path in ["README.md", "python/README.md", *glob.glob("docs/*.md")]:
            for link in re.findall(r"\]\(([^)#]+)\)", text_of(path)):
                if "://" not in link:
                    self.assertTrue(os.path.exists(os.path.join(os.path.dirname(path), link)), f"{path}: {link}")


if __name__ == "__main__":
    harness.main(sys.argv[:1])
