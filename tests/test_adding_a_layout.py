#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/ADDING-A-LAYOUT.md does what it says: its code, put into a copy of the source tree, makes a layout that plans,
verifies and passes the checks of the tree, and it takes four files: C, template, row, test.

    tests/test_adding_a_layout.py SCRATCH        in the source directory

A block of code that begins with ```c file=PATH is that file, or its next part. One that begins with ```c insert=PATH
goes into a file that is there: so is its first line, and what follows comes below it. Blocks of sh hold commands of
the tool, which must succeed; other blocks of cpp stand in what the last of them prints.
"""
import os
import re
import shutil
import subprocess
import sys
import unittest

import harness

SCRATCH = os.path.abspath(sys.argv[1])
TREE, BUILD = os.path.join(SCRATCH, "tree"), os.path.join(SCRATCH, "build")
DOCUMENT = "docs/ADDING-A-LAYOUT.md"
SHARED = ("test_options", "test_kernels_random")  # go through all layouts
BLOCK = re.compile(r"^```(\w+)(?: (file|insert)=(\S+))?\n(.*?)^```$", re.M | re.S)


def run(*command, cwd=TREE, **environment):
    result = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=harness.LIMIT,
                            env={**os.environ, **environment})
    told = result.stdout[-4000:] + result.stderr[-4000:]
    assert result.returncode == 0, f"{' '.join(command)}: {result.returncode}\n{told}"
    return result.stdout


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def insert(path, block):
    """The text of the file with the block's lines below the block's first one."""
    text, (first, rest) = read(path), block.split("\n", 1)
    assert text.split("\n").count(first) == 1, f"{path} has not exactly one line '{first}'"
    return text.replace(f"{first}\n", f"{first}\n{rest}", 1)


def apply_document():
    """Writes the document's files into the tree. Returns their paths, the document's commands, and what they print."""
    made, changed, commands, printed = [], [], [], []
    for language, kind, path, block in BLOCK.findall(read(os.path.join(TREE, DOCUMENT))):
        target = os.path.join(TREE, path)
        if kind == "file":
            assert path in made or not os.path.exists(target), f"{path} is there already"
            write(target, (read(target) if path in made else "") + block)
            made.append(path)
        elif kind == "insert":
            write(target, insert(target, block))
            changed.append(path)
        elif language == "sh":
            commands += block.splitlines()
        else:
            printed.append(block)
    return sorted(set(made + changed)), commands, printed


class AddingALayout(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        shutil.rmtree(SCRATCH, ignore_errors=True)
        shutil.copytree(".", TREE, symlinks=True, ignore=lambda folder, names: {"build", ".git"} & set(names))
        cls.paths, cls.commands, cls.printed = apply_document()
        run("cmake", "-S", TREE, "-B", BUILD, "-DCBGEN_TESTS=ON", "-DCBGEN_WERROR=ON", "-DCMAKE_BUILD_TYPE=Debug",
            "-DCMAKE_C_FLAGS_DEBUG=-O0", "-DCMAKE_CXX_FLAGS_DEBUG=-O0")
        run("cmake", "--build", BUILD, "--parallel", str(os.cpu_count()), "--target", "cbgen_tool", "test_ell", *SHARED)

    def test_it_takes_four_files(self):
        self.assertEqual(self.paths, ["analysis/layout.c", "analysis/layouts/ell/ell.c", "templates/ell.cu.in",
                                      "tests/test_ell.c"])

    def test_its_own_test_passes(self):
        told = run(os.path.join(BUILD, "tests/test_ell"), CBGEN_TEST_TMP=SCRATCH, CMOCKA_MESSAGE_OUTPUT="tap")
        self.assertRegex(told, r"(?m)^ok \d+ - verify_sees_what_is_left_out")

    def test_the_commands_succeed(self):
        self.assertGreater(len(self.commands), 5)
        for command in self.commands:
            words = command.split()
            self.assertEqual(words[0], "cbgen")
            told = run(os.path.join(BUILD, "cbgen"), *words[1:])
            if words[1] == "verify":
                self.assertRegex(told, r"plan +\(spmv \(ell ")
                self.assertIn("rows compared", told)
        self.assertEqual(len(self.printed), 1)
        self.assertIn(self.printed[0], told)

    def test_help_and_the_tests_of_all_layouts_know_it(self):
        tool = os.path.join(BUILD, "cbgen")
        self.assertRegex(run(tool, "help", "recipes"), r"(?m)^ +ell +plain ELL")
        for test in SHARED:
            run(os.path.join(BUILD, "tests", test), CBGEN_RANDOM_COUNT="60", CBGEN_TEST_TMP=SCRATCH)

    def test_the_style_of_the_tree_is_kept(self):
        """What the checks of the tree say of it they say without the layout, too."""
        def told(folder):
            style = [sys.executable, "tests/test_style.py", os.path.join(BUILD, "cbgen")]
            return subprocess.run(style, cwd=folder, capture_output=True, text=True, check=False).stdout.splitlines()
        with_it = told(TREE)
        self.assertNotEqual(with_it, [])  # "no violations", if nothing else
        self.assertEqual(sorted(set(with_it) - set(told("."))), [])


if __name__ == "__main__":
    harness.main(sys.argv[:1] + sys.argv[2:], verbosity=2)
