#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cbgen lp` from outside, on the fake GPU: programs of known values, what it prints and writes, what it refuses.

    tests/test_tool_lp.py TOOL SCRATCH         in the source directory; the environment names the fake
"""
import gzip
import json
import os
import subprocess
import sys
import unittest

import harness

TOOL, SCRATCH = os.path.abspath(sys.argv[1]), sys.argv[2]

# Minimise x + 4 y + 9 z + 10 where x + y <= 5, x + z >= 10, z - y = 7: at (4, -1, 6) it is 64.
PROGRAM = """NAME          TESTPROB
ROWS
 N  COST
 L  LIM1
 G  LIM2
 E  MYEQN
COLUMNS
    XONE      COST         1.0   LIM1         1.0
    XONE      LIM2         1.0
    YTWO      COST         4.0   LIM1         1.0
    YTWO      MYEQN       -1.0
    ZTHREE    COST         9.0   LIM2         1.0
    ZTHREE    MYEQN        1.0
RHS
    RHS       COST       -10.0   LIM1         5.0
    RHS       LIM2        10.0   MYEQN        7.0
BOUNDS
 UP BND       XONE         4.0
 LO BND       YTWO        -1.0
 UP BND       YTWO         1.0
ENDATA
"""


class LinearPrograms(unittest.TestCase):
    def setUp(self):
        self.folder = harness.fresh_folder(self, SCRATCH)
        self.environment = {**os.environ, "CBGEN_CACHE_DIR": "", "CBGEN_FAKE_STRICT": "1"}

    def path(self, name):
        return os.path.join(self.folder, name)

    def file(self, text, name="a.mps"):
        with (gzip.open if name.endswith(".gz") else open)(self.path(name), "wt", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def check(self, code, message, *arguments, given=None):
        result = subprocess.run([TOOL, "lp", *arguments], capture_output=True, text=True, timeout=harness.LIMIT,
                                check=False, env=self.environment, input=given)
        self.assertEqual(result.returncode, code, f"{arguments}: {result.stderr}")
        self.assertIn(message, result.stderr)
        if not message:
            self.assertEqual(result.stderr, "")
        return result.stdout

    def test_solution(self):
        for name in ("a.mps", "a.mps.gz"):
            report = json.loads(self.check(0, "", self.file(PROGRAM, name), "--json", "--tolerance=1e-8"))
            self.assertEqual((report["reason"], report["sense"], report["rows"], report["columns"], report["nonzeros"]),
                             ("solved", "minimise", 3, 3, 6))
            self.assertAlmostEqual(report["value"], 64, places=5)
            self.assertAlmostEqual(report["dual_value"], 64, places=5)
            self.assertLess(report["primal_residual"], 1e-6)
        text = self.check(0, "", self.file(PROGRAM), "-o", self.path("x"))
        for words in ("solved after ", "3 rows, 3 columns, 6 nonzeros\n", "to be minimised", "form      graph"):
            self.assertIn(words, text)
        with open(self.path("x"), encoding="utf-8") as file:
            found = dict(line.split() for line in file)
        self.assertEqual(list(found), ["XONE", "YTWO", "ZTHREE"])
        for name, number in (("XONE", 4), ("YTWO", -1), ("ZTHREE", 6)):
            self.assertAlmostEqual(float(found[name]), number, places=3)
        self.assertIn("solved", self.check(0, "", "-", given=PROGRAM))
        self.assertEqual(self.check(0, "", self.file(PROGRAM), "--quiet"), "")

    def test_maximum(self):
        """The same upside down has the same value, with its sign turned."""
        turned = PROGRAM.replace("ROWS\n", "OBJSENSE\n    MAX\nROWS\n", 1)
        for plus, minus in (("1.0   LIM1", "-1.0   LIM1"), ("4.0   LIM1", "-4.0   LIM1"), ("9.0   LIM2", "-9.0   LIM2"),
                            ("-10.0   LIM1", "10.0   LIM1")):
            head, tail = turned.split("RHS\n", 1)
            turned = (head + "RHS\n" + tail.replace(plus, minus, 1) if plus[0] == "-" else
                      head.replace("COST         " + plus, "COST         " + minus, 1) + "RHS\n" + tail)
        report = json.loads(self.check(0, "", self.file(turned), "--json", "--tolerance=1e-8"))
        self.assertEqual((report["reason"], report["sense"]), ("solved", "maximise"))
        self.assertAlmostEqual(report["value"], -64, places=5)

    def test_types_and_repeats(self):
        report = json.loads(self.check(0, "", self.file(PROGRAM), "--json", "--type=f32", "--repeat=3"))
        self.assertAlmostEqual(report["value"], 64, places=1)

    def test_integers_are_left_out(self):
        whole = PROGRAM.replace(" UP BND       XONE         4.0", " UI BND       XONE         4.5")
        self.assertIn("1 columns shall be integers, which is left out", self.check(0, "", self.file(whole)))
        report = json.loads(self.check(0, "", self.file(whole), "--json"))
        self.assertEqual(report["integers_left_out"], 1)
        self.assertAlmostEqual(report["value"], 64, places=3)

    def test_ends(self):
        infeasible = PROGRAM.replace("LIM2        10.0", "LIM2        99.0").replace("MYEQN        7.0", "MYEQN        3.0")
        output = self.check(1, "was not solved: infeasible after ", self.file(infeasible))
        self.assertTrue(output.startswith("infeasible after "))
        unbounded = PROGRAM.replace("COST         1.0", "COST        -1.0").replace("LIM1         5.0", "LIM1        1e30")
        unbounded = unbounded.replace(" UP BND       XONE         4.0\n", "")
        report = json.loads(self.check(1, "unbounded or infeasible after ", self.file(unbounded), "--json"))
        self.assertEqual(report["reason"], "unbounded or infeasible")
        crossed = PROGRAM.replace("LO BND       YTWO        -1.0", "LO BND       YTWO        3.0")
        self.check(1, "a lower bound is above its upper one after 0", self.file(crossed))
        self.check(1, "no convergence after 3 iterations", self.file(PROGRAM), "--iterations=3")

    def test_refused(self):
        bad = PROGRAM.replace("YTWO      MYEQN", "YTWO      NOEQN")
        self.check(3, "a.mps:11: there is no row 'NOEQN'", self.file(bad))
        self.check(3, "there is nothing to solve", self.file("NAME\nROWS\n N C\nCOLUMNS\n X C 1\nENDATA\n"))
        self.check(3, "the file ends without ENDATA", self.file(PROGRAM.replace("ENDATA", "")))
        self.check(4, "cannot open", self.path("nowhere.mps"))
        self.check(2, "--method", self.file(PROGRAM), "--method=cg")
        self.check(2, "--tolerance", self.file(PROGRAM), "--tolerance=0")


if __name__ == "__main__":
    harness.main(sys.argv[:1])
