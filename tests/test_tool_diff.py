#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cbgen diff` from outside: kernels of matrices, files and the cache, compared; what it refuses; and a planted fault.

    tests/test_tool_diff.py TOOL CACHE_PUT SCRATCH         in the source directory
"""
import json
import os
import subprocess
import sys
import unittest

import harness

TOOL, PUT, SCRATCH = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3]
SPEC, OTHER = "generate:fe3,n=4", "generate:fe3,n=5"
KEYS = ["0123456789abcdef0123456789abcdef", "f00d000000000000000000000000cafe", "abcd000000000000000000000000cafe"]
FIELDS = "version=0.1.0\nkind=operator\noption recipe=auto\noption values=mutable\npattern=42\nnvrtc_minor=0\n"


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = harness.fresh_folder(self, SCRATCH)
        self.environment = {**os.environ, "CBGEN_CACHE_DIR": self.path("cache"), "CBGEN_NVRTC": self.path("none"),
                            "OMP_NUM_THREADS": "1"}

    def path(self, name):
        return os.path.join(self.folder, name)

    def check(self, code, message, *arguments, **more):
        result = subprocess.run([TOOL, *arguments], capture_output=True, text=True, timeout=harness.LIMIT, check=False,
                                env=self.environment, **more)
        self.assertEqual(result.returncode, code, f"{arguments}: {result.stderr}")
        self.assertIn(message, result.stderr)
        if not message:
            self.assertEqual(result.stderr, "")
        return result.stdout

    def kernel(self, name, *arguments):
        self.check(0, "", *arguments, "-q", "-o", self.path(name))
        return self.path(name)

    def put(self, key, fields, source):
        with open(source, encoding="utf-8") as file:
            text = file.read()
        subprocess.run([PUT, self.path("cache"), key, "fe3", f"key={fields}", f"source={text}"], check=True)


class Compare(Case):
    def test_same(self):
        kernel = self.kernel("a.cu", SPEC)
        for pair in [(SPEC, SPEC), (kernel, SPEC), (SPEC, kernel), (kernel, kernel)]:
            self.assertEqual(self.check(0, "", "diff", *pair), f"the same kernel: {pair[0]}, {pair[1]}\n")
        self.assertEqual(self.check(0, "", "diff", "-q", kernel, SPEC), "")
        document = json.loads(self.check(0, "", "diff", "--json", kernel, SPEC))
        self.assertEqual(document["same"], True)
        self.assertEqual([document[name] for name in ("key", "plan", "constants", "arrays", "bytes", "registers")], [[]] * 6)
        self.assertEqual(document["text"], {"removed": 0, "added": 0, "is_cut": False, "unified": ""})

    def test_plan_first(self):
        a, b = self.kernel("a.cu", SPEC, "--recipe=sell"), self.kernel("b.cu", SPEC, "--recipe=blocks", "--block-size=3x3")
        text = self.check(1, "differ: ", "diff", a, b)
        places = [text.index(word) for word in ("kernel\n", "plan\n  spmv\n    sell\n", "constants\n", "arrays\n  sell0\n",
                                                "bytes\n", f"--- {a}\n+++ {b}\n@@ -1,")]
        self.assertEqual(places, sorted(places))
        self.assertRegex(text, r"(?m)^      lanes +\d+  →  —$")
        self.assertRegex(text, r"(?m)^    kBlockRows +—  →  3$")
        self.assertRegex(text, r"(?m)^    values +double, \d+, \d+ B, stored  →  —$")
        self.assertNotIn("registers", text)  # there is no NVRTC here
        document = json.loads(self.check(1, "differ: ", "diff", "--json", a, b))
        self.assertEqual(document["same"], False)
        self.assertIn({"name": "blocks0/kBlockRows", "a": None, "b": "3"}, document["constants"])
        self.assertIn("spmv/sell/lanes", [row["name"] for row in document["plan"]])
        self.assertEqual(document["text"]["unified"].count("\n-"), document["text"]["removed"])

    def test_two_matrices(self):
        text = self.check(1, "differ: ", "diff", SPEC, OTHER, "--recipe=sell", "--type=f32")
        self.assertRegex(text, r"(?m)^  size +192 × 192, \d+ nonzeros, float  →  375 × 375, \d+ nonzeros, float$")
        self.assertRegex(text, r"(?m)^  rows +192  →  375$")  # of the keys
        self.assertRegex(text, r"(?m)^      slices +\d+  →  \d+$")

    def test_planted_fault(self):
        """One constant, one array's count and one index are changed: each is told, and nothing else."""
        a = self.kernel("a.cu", SPEC, "--recipe=sell")
        with open(a, encoding="utf-8") as file:
            text = file.read()
        edited = text.replace("constexpr int kBatch = ", "constexpr int kBatch = 1", 1)
        self.assertNotEqual(edited, text)
        for old, new in [("const double *values;  // ", "const double *values;  // 7"), ("row = local_row, ", "row = local_row + 1, ")]:
            self.assertIn(old, edited)
            edited = edited.replace(old, new, 1)
        with open(self.path("b.cu"), "w", encoding="utf-8") as file:
            file.write(edited)
        document = json.loads(self.check(1, "3 lines removed, 3 added", "diff", "--json", a, self.path("b.cu")))
        self.assertEqual([row["name"] for row in document["constants"]], ["sell0/kBatch"])
        self.assertEqual([row["name"] for row in document["arrays"]], ["sell0/values"])
        self.assertEqual((document["plan"], document["kernel"]), ([], []))
        self.assertIn("row = local_row + 1, ", document["text"]["unified"])


class Cache(Case):
    def setUp(self):
        super().setUp()
        kernel = self.kernel("a.cu", SPEC, "--embed=never")
        self.put(KEYS[0], FIELDS, kernel)
        self.put(KEYS[1], FIELDS.replace("recipe=auto", "recipe=sell").replace("minor=0", "minor=1"), kernel)
        self.put(KEYS[2], FIELDS.replace("pattern=42", "pattern=43").replace("values=mutable\n", "values=fixed\nextra=1\n"),
                 kernel)

    def test_why_a_lookup_missed(self):
        text = self.check(1, "2 facts, 0 lines removed, 0 added", "diff", "0123", "f00d")
        self.assertEqual([line.split() for line in text.splitlines()],
                         [["key"], ["option", "recipe", "auto", "→", "sell"], ["nvrtc_minor", "0", "→", "1"]])
        document = json.loads(self.check(1, "differ", "diff", "--json", "0123", "abcd"))
        self.assertEqual(document["key"], [{"name": "option values", "a": "mutable", "b": "fixed"},
                                           {"name": "pattern", "a": "42", "b": "43"},
                                           {"name": "extra", "a": None, "b": "1"}])
        self.check(0, "", "diff", "0123", KEYS[0])

    def test_matrix_and_entry(self):
        self.assertRegex(self.check(1, "differ: ", "diff", SPEC, "0123"), r"(?m)^  option sell-lanes +\S+  →  —$")

    def test_show_names_the_nearest(self):
        text = self.check(0, "", "cache", "show", "0123")
        self.assertIn("\n\n" + FIELDS, text)
        self.assertIn(f"\nnearest   {KEYS[1]}: option recipe: auto here, sell there; nvrtc_minor: 0 here, 1 there\n", text)
        self.assertNotIn("\nnearest ", self.check(0, "", "cache", "show", "abcd"))

    def test_entries_of_no_use(self):
        subprocess.run([PUT, self.path("cache"), "beef" + KEYS[0][4:], "fe3", "tuning=sell"], check=True)
        self.check(3, "holds no kernel", "diff", "beef", "0123")
        with open(self.path(f"cache/{KEYS[0]}.entry"), "r+b") as file:
            file.seek(-1, os.SEEK_END)
            file.write(b"?")
        self.check(3, "damaged", "diff", "0123", "f00d")


class Refused(Case):
    def test_usage(self):
        for message, *arguments in [
            ("'diff' needs a file", ),
            ("'diff' needs two of", SPEC),
            ("'diff' takes two: 'third' is one too many", SPEC, SPEC, "third"),
            ("standard input can be one of the two", "-", "-"),
            ("'--output' means nothing to 'diff'", SPEC, SPEC, "--output=x"),
            ("'--tune=measure' means nothing to 'diff'", SPEC, SPEC, "--tune=measure"),
            ("'--recipe'", SPEC, SPEC, "--recipe"),
        ]:
            with self.subTest(arguments=arguments):
                self.assertEqual(self.check(2, message, "diff", *arguments), "")

    def test_input(self):
        strange, nul = self.path("strange.cu"), self.path("nul.cu")
        with open(strange, "w", encoding="utf-8") as file:
            file.write("__global__ void kernel() {}\n")
        with open(nul, "wb") as file:
            file.write(b"// y = A\0")
        self.check(3, "'%s' is no kernel that cbgen wrote" % strange, "diff", strange, SPEC)
        self.check(3, "is no text", "diff", SPEC, nul)
        self.check(4, "there is no cache", "diff", "missing.cu", SPEC)
        os.makedirs(self.path("cache"), 0o700)
        self.check(4, "neither a file nor the key", "diff", "missing.cu", SPEC)
        self.check(4, "no entry 'f00d'", "diff", SPEC, "f00d")
        kernel = self.kernel("whole.cu", SPEC)
        with open(kernel, encoding="utf-8") as file:
            text = file.read()
        for length in range(0, len(text), 2477):  # whatever is left of a kernel, it is compared or refused
            with open(self.path("cut.cu"), "w", encoding="utf-8") as file:
                file.write(text[:length])
            result = subprocess.run([TOOL, "diff", "-q", self.path("cut.cu"), kernel], capture_output=True, check=False,
                                    timeout=harness.LIMIT, env=self.environment)
            self.assertIn(result.returncode, (1, 3), length)


if __name__ == "__main__":
    harness.main([sys.argv[0], *sys.argv[4:]])
