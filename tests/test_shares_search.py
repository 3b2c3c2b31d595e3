#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The search for the best shares of an extraction (bench/train/search.py), with times that are made up.

    tests/test_shares_search.py       in the source directory; the search itself needs scikit-learn"""
import argparse
import sys
import time
import unittest

import harness

sys.path.insert(0, "bench/train")
import search  # noqa: E402


class Program:
    """In the place of bench_shares: a product is fastest at (40, 20), and a tenth of the pairs are refused."""

    def __init__(self):
        self.asked = []

    def ask(self, line):
        words = line.split()
        if words[0] == "matrix":
            return {"matrix": words[2], "type": words[1]}
        cols, rows = int(words[1]), int(words[2])
        self.asked.append((cols, rows))
        answer = {"cols": cols, "rows": rows, "ns": 100, "base_ns": 90}
        if cols % 10 == 7:
            return {**answer, "refusal": "no"}
        return {**answer, "us": (100 + abs(cols - 40) + abs(rows - 20)) / 100, "base_us": 2.0}


class Searches(unittest.TestCase):
    def arguments(self, **more):
        return argparse.Namespace(**{"evaluations": 12, "end": time.monotonic() + 100, **more})

    def test_pairs_that_are_named_are_timed(self):
        program = Program()
        record = search.search(program, "some", "f64", self.arguments(), [(0, 0), (30, 20), (7, 1)])
        self.assertEqual(program.asked, [(0, 0), (30, 20), (7, 1)])
        self.assertEqual(record["points"], [[0, 0, 1.6, 2.0, 100], [30, 20, 1.1, 2.0, 100], [7, 1, None, None, 100]])

    def test_what_is_unfinished_is_left_out(self):
        self.assertIsNone(search.search(Program(), "some", "f64", self.arguments(end=0.0), None))

    def test_the_search_finds_the_valley(self):
        try:
            import sklearn  # noqa: F401
        except ImportError:
            self.skipTest("scikit-learn is not installed")
        records = [search.search(Program(), "some", "f64", self.arguments(), None) for _ in range(2)]
        self.assertEqual(records[0], records[1])
        pairs = [tuple(point[:2]) for point in records[0]["points"]]
        self.assertEqual(pairs[:2], [(0, 0), (100, 100)])
        self.assertEqual(len(set(pairs)), 12)
        self.assertTrue(all(0 < rows <= cols <= 100 for cols, rows in pairs[1:]))
        self.assertLess(min(us for _, _, us, _, _ in records[0]["points"] if us), 1.3)


if __name__ == "__main__":
    harness.main(sys.argv[:1])
