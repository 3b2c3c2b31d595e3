#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cbgen why` from outside: a planted slow row is named first, by the clock of the fake GPU and as predicted; the reports
as they were (goldens: CBGEN_UPDATE_GOLDENS=1 writes them anew); what it refuses.

    tests/test_tool_why.py TOOL         in the source directory, with the fake GPU
"""
import json
import os
import re
import subprocess
import sys
import unittest

import harness

TOOL = os.path.abspath(sys.argv[1])
# Row 500 has 5000 nonzeros, others have six; a thread block has 256 rows.
SLOW = ("generate:long_row,rows=1000,cols=9000,per_row=6,long_rows=1,long_length=5000", "--recipe=sell", "--sell-vary=off",
        "--sell-sort=off", "--sell-lanes=1", "--sell-vector=1")
NO_GPU = {"CBGEN_LIBCUDA": "missing/libcuda.so"}


class Case(unittest.TestCase):
    def check(self, code, message, *arguments, gpu=True):
        environment = {**os.environ, "OMP_NUM_THREADS": "1", **({} if gpu else NO_GPU)}
        result = subprocess.run([TOOL, "why", *arguments], capture_output=True, text=True, timeout=harness.LIMIT, check=False,
                                env=environment)
        self.assertEqual(result.returncode, code, f"{arguments}: {result.stderr}")
        self.assertIn(message, result.stderr)
        if not message:
            self.assertEqual(result.stderr, "")
        return result.stdout

    def golden(self, name, text):
        path = f"tests/data/why/{name}"
        if os.environ.get("CBGEN_UPDATE_GOLDENS") == "1":
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        with open(path, encoding="utf-8") as file:
            self.assertEqual(text, file.read())

    def document(self, *arguments, **more):
        return json.loads(self.check(0, "", *arguments, "--json", **more))


class SlowRow(Case):
    def test_goldens(self):
        self.golden("predicted.txt", self.check(0, "", *SLOW, gpu=False))
        self.golden("measured.txt", self.check(0, "", *SLOW))
        self.golden("row.txt", self.check(0, "", *SLOW, "--row=500"))
        self.golden("row.json", self.check(0, "", *SLOW, "--row=500", "--json"))

    def test_the_worked_case(self):
        """What docs/inspecting.md shows is what is printed, but for what it leaves out."""
        with open("docs/inspecting.md", encoding="utf-8") as file:
            shown = re.search(r"<!-- why -->\n```\n(.*?)\n```\n<!-- end -->", file.read(), re.S)[1]
        printed = self.check(0, "", *SLOW[:-1], gpu=False)
        for part in shown.split("\n…\n"):
            self.assertIn(f"\n{part}\n", printed)

    def test_it_is_named_first(self):
        for gpu in (False, True):
            with self.subTest(gpu=gpu):
                document = self.document(*SLOW, gpu=gpu)
                first, *others = document["blocks"]
                self.assertEqual((first["launch"], first["block"]), (1, 1))
                self.assertEqual(first["longest"], {"row": 500, "nonzeros": 5000})
                self.assertEqual(first["predicted"]["bound"], "chain")
                self.assertEqual(first["first_last_row"], [256, 511])
                self.assertEqual(len(others), 3)
                for other in others:
                    self.assertLess(100 * other["predicted"]["ns"], first["predicted"]["ns"])
                    if gpu:
                        self.assertLess(100 * other["measured_us"], first["measured_us"])

    def test_options_help(self):
        """What each option is said to bring is what a plan with it says."""
        document = self.document(*SLOW, gpu=False)
        self.assertIn("sell-vary", [row["option"] for row in document["options"]])
        for row in document["options"]:
            other = self.document(*SLOW, f"--{row['option']}={row['value']}", gpu=False)
            self.assertEqual(other["predicted"]["ns"], row["predicted_ns"])
            self.assertLess(row["predicted_ns"], document["predicted"]["ns"])

    def test_no_option_where_it_is_taken(self):
        document = self.document(SLOW[0], "--recipe=sell", "--sell-vary=on", gpu=False)
        self.assertNotIn(("sell-vary", "on"), [(row["option"], row["value"]) for row in document["options"]])

    def test_row_beside_the_median(self):
        for gpu in (False, True):
            document = self.document(*SLOW, "--row=500", gpu=gpu)
            self.assertEqual(document["row"], {"row": 500, "nonzeros": 5000})
            self.assertEqual([(row["block"], row["row_nonzeros"]) for row in document["blocks"]], [(1, 5000)])
            self.assertEqual(document["median"]["nonzeros"], 1536)
        fast = self.document(*SLOW, "--row=999", gpu=False)
        self.assertEqual([row["block"] for row in fast["blocks"]], [3])

    def test_segments_are_several(self):
        text = self.check(0, "", SLOW[0], "--recipe=merge", "--merge-piece=512", "--row=500", gpu=False)
        self.assertIn("\nrow      500: 5000 nonzeros, in 10 thread blocks\n", text)


class Others(Case):
    def test_every_layout(self):
        for recipe in ("blocks", "dia", "cb"):
            document = self.document("generate:fe3,n=6", f"--recipe={recipe}", gpu=False)
            self.assertEqual(sum(row["nonzeros"] for row in document["blocks"]) > 0, True)
            self.assertEqual(document["measured"], None)
            self.assertIn("libcuda", document["not_measured"])

    def test_a_layout_that_does_not_tell(self):
        text = self.check(0, "", "generate:uniform,n=300,per_row=9", "--recipe=du", "--du-segment=2")
        self.assertIn("\n         layout du does not tell which thread block has which nonzeros\n", text)
        self.assertRegex(text, r"(?m)^     1 +\d+ +\d+\.\d\d +\d+\.\d\d +- +- ")

    def test_another_architecture_is_predicted(self):
        document = self.document(*SLOW, "--arch=sm_80")
        self.assertEqual(document["measured"], None)
        self.assertEqual(document["not_measured"], "'--arch=sm_80': the GPU is 'sm_90'")
        self.assertEqual(self.document(*SLOW, "--arch=sm_90")["measured"]["runs"], 7)

    def test_runs(self):
        self.assertEqual(self.document(*SLOW, "--repeat=2")["measured"]["runs"], 2)
        self.assertEqual(self.check(0, "", *SLOW, "-q"), "")

    def test_no_nonzeros(self):
        document = self.document("generate:empty,rows=600,cols=5", "--recipe=sell", "--row=300")
        self.assertEqual([row["nonzeros"] for row in document["blocks"]], [0])


class Refused(Case):
    def test_input(self):
        for message, *arguments in [
            ("there is no row 1000: the matrix has 1000, from 0", *SLOW, "--row=1000"),
            ("'--row=-1': it takes a number from 0", *SLOW, "--row=-1"),
            ("'--row=x': it takes a number", *SLOW, "--row=x"),
            ("'--row' needs a value", *SLOW, "--row"),
            ("'generate:empty,rows=0,cols=3' has no rows: its kernel has no thread blocks", "generate:empty,rows=0,cols=3"),
            ("'why' needs a file", ),
            ("'--block' means nothing to 'why'", *SLOW, "--block=1"),
            ("'--tune=measure' means nothing to 'why'", *SLOW, "--tune=measure"),
            ("unknown recipe 'none'", SLOW[0], "--recipe=none"),
        ]:
            with self.subTest(arguments=arguments):
                self.assertEqual(self.check(2, message, *arguments, gpu=False), "")
        self.check(4, "cannot open 'missing.mtx'", "missing.mtx")

    def test_devices(self):
        """A GPU that is asked for is measured on, or it is an error."""
        self.check(5, "libcuda", *SLOW, "--device=0", gpu=False)
        self.check(2, "there is no GPU '7'", *SLOW, "--device=7")

    def test_memory_of_the_fake_gpu(self):
        os.environ["CBGEN_FAKE_SET"] = "memory=1000000"
        try:
            self.check(6, "out of memory on GPU 0", *SLOW)
        finally:
            del os.environ["CBGEN_FAKE_SET"]


if __name__ == "__main__":
    harness.main([sys.argv[0], *sys.argv[2:]])
