#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The campaign (bench/campaign.c) in a short form on the fake CUDA: right products pass, in both tiers; a spoiled
result and a kernel that computes something else are found, and the line of a failure makes its matrix again.

    tests/test_campaign.py BENCH_CAMPAIGN SCRATCH-FOLDER
"""
import os
import re
import shutil
import subprocess
import sys
import unittest

import harness

PROGRAM, SCRATCH = sys.argv[1], os.path.abspath(sys.argv[2])
FAILURES = os.path.join(SCRATCH, "failures.txt")


def campaign(*options, **environment):
    """Its result, and the lines of failures that it printed."""
    os.makedirs(SCRATCH, exist_ok=True)
    if os.path.exists(FAILURES):
        os.remove(FAILURES)
    result = subprocess.run([PROGRAM, "--failures", FAILURES, *map(str, options)], capture_output=True, text=True,
                            check=False, env=dict(os.environ, **environment), timeout=harness.LIMIT)
    return result, [line for line in result.stdout.splitlines() if line.startswith("FAILED --seed")]


def numbers(lines):
    return {int(re.search(r"--only (\d+)", line)[1]) for line in lines}


class Campaign(unittest.TestCase):
    def passes(self, *options):
        result, failures = campaign(*options)
        self.assertEqual((result.returncode, failures), (0, []), result.stdout + result.stderr)
        self.assertFalse(os.path.exists(FAILURES))
        return result.stdout

    def test_right_products_pass(self):
        said = self.passes("--count", 150, "--threads", 2, "--types", 1, "--specialise", 30, "--others", 0)
        last = re.search(r"^(\d+) matrices, \d+ products, (\d+) rows: 0 wrong, 0 of other bits; (\d+) matrices "
                         r"declined", said, re.M)
        matrices, rows, declined = map(int, last.groups())
        self.assertEqual(matrices + declined, 150)
        self.assertGreater(rows, 50000)
        for tier in ("family", "both, the same bits"):
            self.assertRegex(said, rf"(?m)^{tier} +\d+ +\d+ +\d+ +0 ")
        for step in ("first", "second", "specialised", "new values", "repeated"):
            self.assertRegex(said, rf"(?m)^{step} +\d+ +\d+ +\d+ +0 ")
        worst = max(float(error) for error in re.findall(r"(?m)^[a-z].* +0 +(\d\.\d+)$", said))
        self.assertTrue(0 < worst <= 1, worst)

    def test_all_types_and_other_recipes_pass(self):
        said = self.passes("--seed", 3, "--count", 24, "--threads", 1, "--others", 2, "--specialise", 0)
        self.assertIn("specialised alone", said)
        said = self.passes("--seed", 4, "--first", 400, "--count", 60, "--threads", 1, "--recipe", "merge", "--pack",
                           "host")
        self.assertIn("f32 ", said)

    def test_spoiled_results_are_found(self):
        options = ("--count", 50, "--types", 1, "--recipe", "sell", "--pack", "host", "--specialise", 0, "--others", 0)
        self.passes(*options, "--threads", 1)
        result, failures = campaign(*options, "--threads", 2, "--plant", 5, "--plant", 17, "--plant", 40, "--plant",
                                    43)
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertEqual(numbers(failures), {5, 17, 40, 43})
        for line in failures:
            self.assertEqual("behind y" in line, "--only 43:" in line, line)
        with open(FAILURES, encoding="utf-8") as file:
            self.assertEqual(sorted(file.read().splitlines()), sorted(failures))
        lines = [line for line in failures if "--only 17:" in line]
        told = lines[0].removeprefix("FAILED ").split(":")[0].split()
        alone, again = campaign(*told, "--plant", 17)
        self.assertEqual((alone.returncode, again), (1, lines))
        self.passes(*told)

    def test_a_wrong_kernel_is_found(self):
        folder = os.path.join(SCRATCH, "kernels")
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder, 0o700)
        options = ("--only", 2, "--types", 1, "--recipe", "sell", "--pack", "host")
        result, failures = campaign(*options, CBGEN_DUMP=folder)
        self.assertEqual((result.returncode, failures), (0, []), result.stdout + result.stderr)
        edited = 0
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            with open(path, encoding="utf-8") as file:
                text = file.read()
            with open(path, "w", encoding="utf-8") as file:
                file.write(re.sub(r"return fma\((\w+), (\w+), (\w+)\);", r"return fma(\1, \2, \3 * (1 + 1e-10));",
                                  text))
            edited += "1e-10" in open(path, encoding="utf-8").read()
        self.assertTrue(edited)
        result, failures = campaign(*options, CBGEN_OVERRIDE=folder)
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertEqual(numbers(failures), {2})

    def test_what_ends_it(self):
        for options in (["--count", 0], ["--count"], ["--only", "x"], ["--nothing", 1], ["--threads", 0]):
            result, _ = campaign(*options)
            self.assertEqual(result.returncode, 2, options)
            self.assertIn("usage:", result.stderr)
        result, _ = campaign("--count", 5, CBGEN_FAKE_SET="memory=1000000")
        self.assertEqual(result.returncode, 3, result.stdout)
        self.assertIn("CUDA's error", result.stderr)


if __name__ == "__main__":
    harness.main(sys.argv[:1])
