#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tool in processes with a decimal comma and every rounding mode (hostile_numerics.c): all that it reads and writes
is the same as in an ordinary one.

    tests/test_tool_numerics.py TOOL SCRATCH PRELOAD…       in the source directory; the environment names the fake
"""
import json
import os
import subprocess
import sys
import unittest

import harness

TOOL, SCRATCH = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
PRELOAD = " ".join(os.path.abspath(library) for library in sys.argv[3:] if library)
LOCALE = "tr_TR.UTF-8"  # a decimal comma, and an "I" that is no capital "i"
MODES = {"to the nearest": 0, "upward": 1, "downward": 2, "toward zero": 3}
GOOD = "tests/data/frontend/good"


def make_locale():
    folder = os.path.join(SCRATCH, "locale")
    if not os.path.isdir(os.path.join(folder, LOCALE)):
        os.makedirs(folder, exist_ok=True)
        subprocess.run(["localedef", "--no-archive", "-i", "tr_TR", "-f", "UTF-8", os.path.join(folder, LOCALE)], check=True)
    return folder


def write_matrix(path):
    """Numbers that round differently in every mode, that take the slow way through the parser, and duplicates."""
    values = [0.1, 1 / 3, 2.5e-3, 1e22, 123456.789, 2.0 ** -1074, 0.7]
    lines = [f"{i + 1} {(i * i) % 60 + 1} {values[i % 7]!r}{'0' * 25 if i % 11 == 0 and 'e' not in repr(values[i % 7]) else ''}"
             for i in range(60)]
    lines += [f"{i + 1} {(i * i) % 60 + 1} 0.2" for i in range(0, 60, 3)] + ["7 7 9007199254740993", "8 8 8.5e-324"]
    with open(path, "w", encoding="ascii") as file:
        file.write("%%MATRIXMARKET MATRIX COORDINATE REAL GENERAL\n60 60 " + str(len(lines)) + "\n" + "\n".join(lines) + "\n")


def write_edges(path):
    with open(path, "w", encoding="ascii") as file:
        file.writelines(f"{i} {(7 * i) % 50} {i / 7!r}\n" for i in range(50))


class SameInEveryMode(unittest.TestCase):
    def setUp(self):
        self.folder = harness.fresh_folder(self, SCRATCH)
        self.locale = make_locale()

    def run_tool(self, mode, *arguments, **more):
        environment = {**os.environ, "CBGEN_CALIBRATION": os.path.join(self.folder, "calibrations"), "CBGEN_FAKE_STRICT": "1",
                       "CBGEN_FAKE_SET": "memory=4194304,scalar_ns=100", "OMP_NUM_THREADS": "3", **more}
        if mode is not None:
            environment.update(LD_PRELOAD=PRELOAD, LC_ALL=LOCALE, LOCPATH=self.locale, CBGEN_TEST_ROUNDING=str(mode))
        result = subprocess.run([TOOL, *arguments], capture_output=True, timeout=harness.LIMIT, check=False,
                                env=environment)
        self.assertEqual((result.returncode, result.stderr), (0, b""), f"{arguments}, {mode}: {result.stderr.decode()}")
        return result.stdout

    def check(self, *arguments, **more):
        """`{}` in an argument stands for a file; it and standard output must be the same."""
        path = os.path.join(self.folder, "out")

        def run_once(mode):
            printed = self.run_tool(mode, *[argument.replace("{}", path) for argument in arguments], **more)
            written = {}
            for name in sorted(os.listdir(self.folder)):
                if name.startswith("out"):
                    with open(os.path.join(self.folder, name), "rb") as file:
                        written[name] = file.read()
                    os.remove(os.path.join(self.folder, name))
            return printed, written

        plain = run_once(None)
        self.assertTrue(plain[0] or plain[1])
        for name, mode in MODES.items():
            other = run_once(mode)
            if other != plain:
                self.fail(f"{arguments}, {name}: {first_difference(plain, other)}")
        return plain

    def test_matrix_market_text_and_data(self):
        path = os.path.join(self.folder, "matrix.mtx")
        write_matrix(path)
        _, written = self.check(path, "-o", "{}.cu", "--embed=never", "--values=fixed")
        self.assertEqual(sorted(written), ["out.cbd", "out.cu"])
        self.assertIn(b"0.3333333333333333,", written["out.cu"])
        self.check(path, "-o", "{}.cu", "--type=f32", "--embed=always")

    def test_edges_and_archives(self):
        path = os.path.join(self.folder, "edges.txt")
        write_edges(path)
        self.check(path, "-o", "{}.cu", "--embed=never")
        for name in ("type-float32.npz", "csc.npz", "type-int64.npz"):
            self.check(os.path.join(GOOD, name), "-o", "-", "--values=fixed")

    def test_generated_matrices_and_profiles(self):
        self.check("analyze", "generate:road,n=30,keep=0.6,values=tenths", "--json")
        self.check("analyze", "generate:rmat,scale=8,edge_factor=9")
        self.check("generate:stencil5,n=20,values=hundredths,extra=0.1", "-o", "-", "--values=fixed")

    def test_calibration_is_written_and_read(self):
        text, _ = self.check("calibrate", "--repeat=1", "-o", "-")
        figures = json.loads(text)
        os.makedirs(os.path.join(self.folder, "calibrations"))
        with open(os.path.join(self.folder, "calibrations", "fake-gpu.json"), "wb") as file:
            file.write(text)

        def predicted(mode):
            report = json.loads(self.run_tool(mode, "run", "generate:fe3,n=2,values=tenths", "--json"))
            self.assertEqual(report["device"]["figures"]["latency_ns"], figures["latency_ns"])
            return report["predicted_us"], report["plan"]

        plain = predicted(None)
        for name, mode in MODES.items():
            self.assertEqual(predicted(mode), plain, name)


def first_difference(plain, other):
    pairs = [("standard output", plain[0], other[0]), *((name, plain[1][name], other[1].get(name, b"")) for name in plain[1])]
    for name, one, two in pairs:
        for number, (left, right) in enumerate(zip(one.splitlines(), two.splitlines())):
            if left != right:
                return f"{name}, line {number + 1}: {left[:200]!r} and {right[:200]!r}"
    return "one is longer"


if __name__ == "__main__":
    harness.main(sys.argv[:1])
