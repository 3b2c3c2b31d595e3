#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/common.sh: what a build shows of itself.

    tests/test_scripts.py SCRATCH       in the source directory
"""
import os
import re
import shutil
import subprocess
import sys
import unittest

import harness

SCRATCH, COMMON = os.path.abspath(sys.argv[1]), os.path.abspath("scripts/common.sh")
FILES = 25


class Builds(unittest.TestCase):
    def setUp(self):
        self.folder = harness.fresh_folder(self, SCRATCH)

    def build(self, generator, last="int last;"):
        """A project of small files, with the functions of a copy of common.sh, which goes to where it lies."""
        os.makedirs(os.path.join(self.folder, "scripts"), exist_ok=True)
        shutil.copy(COMMON, os.path.join(self.folder, "scripts"))
        for number in range(FILES):
            self.write(f"part{number}.c", f"int part{number};\n" if number < FILES - 1 else last + "\n")
        self.write("CMakeLists.txt", "cmake_minimum_required(VERSION 3.22)\nproject(parts LANGUAGES C)\n"
                                     "file(GLOB parts *.c)\nadd_library(parts ${parts})\n")
        return subprocess.run(["bash", "-c", ". scripts/common.sh; build $BUILD/try; echo done"], cwd=self.folder,
                              env={**os.environ, "CMAKE_GENERATOR": generator, "BUILD": os.path.join(self.folder, "build")},
                              capture_output=True, text=True, check=False, timeout=harness.LIMIT)

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    def check_progress(self, generator):
        result = self.build(generator)
        self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)
        self.assertRegex(result.stdout, r"^  configured with \S+, \d+ at a time; log: build/try\.log\n")
        shown = [int(percent) for percent in re.findall(r"(?m)^ +(\d+) %  \S", result.stdout)]
        self.assertEqual([percent // 10 for percent in shown], list(range(shown[0] // 10, 11)))
        self.assertIn(" %  part", result.stdout)
        self.assertTrue(result.stdout.endswith("\ndone\n"))
        with open(os.path.join(self.folder, "build", "try.log"), encoding="utf-8") as log:
            self.assertEqual(log.read().count("Building C object"), FILES)

    def test_make_shows_how_far_it_is(self):
        self.check_progress("Unix Makefiles")

    @unittest.skipUnless(shutil.which("ninja"), "there is no ninja")
    def test_ninja_shows_how_far_it_is(self):
        self.check_progress("Ninja")

    def test_a_failure_shows_the_end_of_the_log(self):
        result = self.build("Unix Makefiles", last="this is no C")
        self.assertEqual(result.returncode, 1)
        self.assertIn("this is no C", result.stderr)
        self.assertIn("Building failed; all of it is in ", result.stderr)
        self.assertNotIn("done", result.stdout)


if __name__ == "__main__":
    harness.main([sys.argv[0], *sys.argv[2:]])
