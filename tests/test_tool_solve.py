#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cbgen solve` from outside, on the fake GPU: solutions that are right, what it prints and writes, what it refuses.

    tests/test_tool_solve.py TOOL SCRATCH         in the source directory; the environment names the fake
"""
import json
import math
import os
import random
import struct
import subprocess
import sys
import unittest
import zipfile

import harness

TOOL, SCRATCH = os.path.abspath(sys.argv[1]), sys.argv[2]
ROWS = 150


def laplacian(seed, symmetric):
    """{(row, column): value} of a random graph's Laplacian and a little more on the diagonal."""
    draw = random.Random(seed)
    entries = {}
    for row in range(ROWS):
        for _ in range(3):
            column = draw.randrange(ROWS)
            if column != row:
                entries[row, column] = -1.0
                entries[column, row] = -1.0 if symmetric else -0.25
    for row in range(ROWS):
        entries[row, row] = 0.5 + sum(abs(value) for (i, j), value in entries.items() if i == row and i != j)
    return entries


class Solve(unittest.TestCase):
    def setUp(self):
        self.folder = harness.fresh_folder(self, SCRATCH)
        self.environment = {**os.environ, "CBGEN_CACHE_DIR": "", "CBGEN_FAKE_STRICT": "1"}

    def path(self, name):
        return os.path.join(self.folder, name)

    def matrix(self, entries, rows=ROWS):
        with open(self.path("a.mtx"), "w", encoding="utf-8") as file:
            file.write(f"%%MatrixMarket matrix coordinate real general\n{rows} {rows} {len(entries)}\n")
            file.writelines(f"{i + 1} {j + 1} {value!r}\n" for (i, j), value in sorted(entries.items()))
        return self.path("a.mtx")

    def check(self, code, message, *arguments):
        result = subprocess.run([TOOL, "solve", *arguments], capture_output=True, text=True, timeout=harness.LIMIT,
                                check=False, env=self.environment)
        self.assertEqual(result.returncode, code, f"{arguments}: {result.stderr}")
        self.assertIn(message, result.stderr)
        if not message:
            self.assertEqual(result.stderr, "")
        return result.stdout

    def test_forms(self):
        """Each says which it is, and finds the same."""
        file, found = self.matrix(laplacian(5, True)), []
        for form in ("grid", "cluster", "block", "graph", "grid+steps"):
            report = json.loads(self.check(0, "", file, f"--program-form={form}", "--json"))
            self.assertEqual(report["form"], form)
            found.append(report["iterations"])
        self.assertLessEqual(max(found) - min(found), 1)
        self.assertIn("form      graph\n", self.check(0, "", file, "--program-form=graph"))
        self.check(2, "it takes grid, cluster, block or graph", file, "--program-form=circle")
        report = json.loads(self.check(0, "", file, "--method=gmres", "--program-form=graph", "--json"))
        self.assertEqual((report["form"], report["reason"]), ("graph", "converged"))

    def archive(self, name, **arrays):
        """A .npz of arrays (shape, numbers), doubles by rows, or what numpy would write for other ones."""
        with zipfile.ZipFile(self.path(name), "w") as file:
            for key, (shape, numbers, *order) in arrays.items():
                header = f"{{'descr': '<f8', 'fortran_order': {bool(order)}, 'shape': {shape}, }}".ljust(117) + "\n"
                file.writestr(f"{key}.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() +
                              struct.pack(f"<{len(numbers)}d", *numbers))
        return self.path(name)

    def test_systems(self):
        """Many at once, each with values and a right side of its own."""
        entries, count = laplacian(6, True), 5
        file, draw = self.matrix(entries), random.Random(7)
        systems = [{place: value * (1 + 0.1 * s) + (place[0] == place[1]) * 0.1 * s for place, value in entries.items()}
                   for s in range(count)]
        sides = [[draw.uniform(-1, 1) for _ in range(ROWS)] for _ in range(count)]
        values = [system[place] for system in systems for place in sorted(system)]
        archive = self.archive("s.npz", values=((count, len(entries)), values),
                               b=((count, ROWS), [number for side in sides for number in side]))
        for method in ("cg", "bicgstab"):
            for more in ((), ("--preconditioner=none",), ("--type=f32",)):
                report = json.loads(self.check(0, "", file, f"--systems={archive}", f"--method={method}", "--json",
                                               "-o", self.path("x"), *more))
                self.assertEqual((report["systems"], report["converged"], report["method"]), (count, count, method))
                self.assertEqual([each["reason"] for each in report["outcomes"]], ["converged"] * count)
                x, limit = self.numbers("x"), 1e-4 if more == ("--type=f32",) else 2e-8
                self.assertEqual(len(x), count * ROWS)
                for s in range(count):
                    residual = self.residual(systems[s], sides[s], x[s * ROWS:(s + 1) * ROWS])
                    self.assertLess(residual, limit)
                    self.assertAlmostEqual(report["outcomes"][s]["true_residual"], residual, delta=limit)
        text = self.check(0, "", file, f"--systems={archive}")
        self.assertIn("5 systems, 5 converged, ", text)
        self.assertIn("iterations ", text)
        # without right sides, those of the call; by a number, values near the matrix's
        archive = self.archive("v.npz", values=((count, len(entries)), values))
        json.loads(self.check(0, "", file, f"--systems={archive}", "--rhs=product", "--json", "-o", self.path("x")))
        wanted = [sum(value for (i, _), value in entries.items() if i == row) for row in range(ROWS)]
        self.assertLess(self.residual(systems[2], wanted, self.numbers("x")[2 * ROWS:3 * ROWS]), 2e-8)
        report = json.loads(self.check(0, "", file, "--systems=3", "--json", "-o", self.path("x"), "--repeat=2"))
        self.assertEqual((report["systems"], report["converged"]), (3, 3))
        nearby = {(i, j): value * (1 + 2 / 8192) * (1 + 2 / 8192 if i == j else 1) for (i, j), value in entries.items()}
        self.assertLess(self.residual(nearby, [1] * ROWS, self.numbers("x")[2 * ROWS:]), 2e-8)

    def test_systems_have_their_own_diagonals(self):
        """The second is scaled, rows and columns alike, which its own diagonal takes away again."""
        entries = laplacian(8, True)
        file, order = self.matrix(entries), sorted(entries)
        scaled = [entries[i, j] * 10.0 ** (i % 4 + j % 4) for i, j in order]
        archive = self.archive("s.npz", values=((2, len(order)), [entries[place] for place in order] + scaled))
        report = json.loads(self.check(0, "", file, f"--systems={archive}", "--iterations=120", "--json"))
        self.assertEqual(report["converged"], 2)

    def test_systems_that_fail(self):
        entries = laplacian(6, True)
        file = self.matrix(entries)
        zero = [entries[place] for place in sorted(entries)] + [0.0] * len(entries)
        archive = self.archive("s.npz", values=((2, len(entries)), zero))
        output = self.check(1, "1 of 2 systems were not solved, first number 1: ", file, f"--systems={archive}", "--json")
        report = json.loads(output)
        self.assertEqual(report["converged"], 1)
        self.assertEqual(report["outcomes"][0]["reason"], "converged")
        self.assertNotEqual(report["outcomes"][1]["reason"], "converged")

    def test_systems_refused(self):
        entries = laplacian(6, True)
        file, n = self.matrix(entries), len(entries)
        for message, arrays in ((f"has {n - 1} numbers in 1 rows; it needs {n} in each", {"values": ((1, n - 1), [1] * (n - 1))}),
                                ("there is no array 'values'", {"b": ((1, ROWS), [1] * ROWS)}),
                                ("a row for each system", {"values": ((2, n), [1] * 2 * n), "b": ((1, ROWS), [1] * ROWS)}),
                                (f"has {2 * ROWS} numbers in {ROWS} rows",
                                 {"values": ((2, n), [1] * 2 * n), "b": ((ROWS, 2), [1] * 2 * ROWS)}),
                                ("'values.npy' lies by columns", {"values": ((2, n), [1] * 2 * n, "F")}),
                                ("needs", {"values": ((0, n), [])})):
            self.check(3, message, file, f"--systems={self.archive('s.npz', **arrays)}")
        self.check(3, "this is no .npz", file, f"--systems={file}")
        self.check(4, "nowhere.npz", file, "--systems=nowhere.npz")
        self.check(2, "it takes 1 to", file, "--systems=0")
        self.check(2, "needs a number, or the name", file, "--systems=")
        both = self.archive("s.npz", values=((1, n), [1] * n), b=((1, ROWS), [1] * ROWS))
        self.check(2, "has right sides: leave '--rhs' out", file, f"--systems={both}", "--rhs=ones")
        for words, option in (("'--history' has no effect on many systems", "--history"),
                              ("'--program-form' has no effect", "--program-form=grid"),
                              ("'--parameter' has no effect", "--parameter=restart=3"),
                              ("take '--preconditioner=jacobi' or none", "--preconditioner=blocks"),
                              ("take '--method=cg' or bicgstab, not 'gmres'", "--method=gmres")):
            self.check(2, words, file, "--systems=2", option)

    def numbers(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return [float(line) for line in file]

    def residual(self, entries, b, x):
        """The norm of b - A x, as a part of that of b."""
        left = list(b)
        for (i, j), value in entries.items():
            left[i] -= value * x[j]
        return math.hypot(*left) / math.hypot(*b)

    def test_solutions(self):
        for method, symmetric in (("cg", True), ("bicgstab", True), ("bicgstab", False), ("minres", True),
                                  ("gmres", False), ("chebyshev", True)):
            for preconditioner in ("jacobi", "none"):
                entries = laplacian(3, symmetric)
                text = self.check(0, "", self.matrix(entries), f"--method={method}", "--json", "-o", self.path("x.txt"),
                                  f"--preconditioner={preconditioner}")
                told = json.loads(text)
                x = self.numbers("x.txt")
                self.assertEqual(len(x), ROWS)
                residual = self.residual(entries, [1.0] * ROWS, x)
                self.assertLess(residual, 1.1e-8)
                self.assertAlmostEqual(told["true_residual"], residual, delta=1e-13)
                self.assertEqual((told["reason"], told["method"], told["matrix"]), ("converged", method, "a"))
                self.assertEqual(len(told["history"]), told["iterations"] + 1)
                self.assertEqual(told["history"][0], 1)
                self.assertEqual(told["history"][-1], told["residual"])

    def complex_matrix(self, hermitian):
        """{(row, column): value} and its file."""
        entries = {(i, j): value * (1.25 if i == j else 1 + 0.5j if i < j else 1 - 0.5j if hermitian else 0.5 - 1j)
                   for (i, j), value in laplacian(13, True).items()}
        with open(self.path("c.mtx"), "w", encoding="utf-8") as file:
            file.write(f"%%MatrixMarket matrix coordinate complex general\n{ROWS} {ROWS} {len(entries)}\n")
            file.writelines(f"{i + 1} {j + 1} {complex(value).real!r} {complex(value).imag!r}\n"
                            for (i, j), value in sorted(entries.items()))
        return entries, self.path("c.mtx")

    def test_complex_systems(self):
        """Right sides and solutions of two numbers in a line."""
        draw = random.Random(21)
        sides = {"ones": [1 + 0j] * ROWS, self.path("b"): [complex(draw.uniform(-1, 1), draw.uniform(-1, 1)) for _ in range(ROWS)]}
        with open(self.path("b"), "w", encoding="utf-8") as file:
            file.writelines(f"{value.real!r} {value.imag!r}\n" for value in sides[self.path("b")])
        for method, hermitian, more in (("cg", True, ()), ("cg", True, ("--preconditioner=blocks",)), ("minres", True, ()),
                                        ("gmres", False, ("--preconditioner=none",)), ("bicgstab", False, ("--type=c64",)),
                                        ("bicgstab", False, ("--program-form=graph",))):
            entries, file = self.complex_matrix(hermitian)
            limit, more = (1e-4, more) if more == ("--type=c64",) else (1.1e-8, more + ("--type=c128",))
            for rhs, b in sides.items():
                told = json.loads(self.check(0, "", file, f"--method={method}", f"--rhs={rhs}", "--json", "-o", self.path("x"),
                                             f"--tolerance={limit / 1.1}", *more))
                with open(self.path("x"), encoding="utf-8") as written:
                    x = [complex(*map(float, line.split())) for line in written]
                left = list(b)
                for (i, j), value in entries.items():
                    left[i] -= value * x[j]
                residual = math.hypot(*map(abs, left)) / math.hypot(*map(abs, b))
                self.assertLess(residual, limit)
                self.assertAlmostEqual(told["true_residual"], residual, delta=1e-12 if limit < 1e-5 else 1e-5)
                self.assertEqual(told["reason"], "converged")
                self.assertAlmostEqual(told["history"][0], 1, delta=1e-6)
        self.check(0, "", file, "--type=c128", "--method=bicgstab", "--rhs=product", "-q", "-o", self.path("x"))  # A times ones
        with open(self.path("x"), encoding="utf-8") as written:
            for line in written:
                self.assertLess(abs(complex(*map(float, line.split())) - 1), 1e-6)
        self.check(0, "", self.matrix(laplacian(3, True)), "--type=c128", "-q", "-o", self.path("x"))  # a real matrix
        with open(self.path("x"), encoding="utf-8") as written:
            self.assertEqual({float(line.split()[1]) for line in written}, {0.0})
        with open(self.path("short"), "w", encoding="utf-8") as written:
            written.write("1 " * ROWS)
        self.check(3, f"has {ROWS} numbers, and the matrix {ROWS} rows, each of two numbers", file, "--type=c128",
                   f"--rhs={self.path('short')}")
        self.check(3, "no meaning for complex numbers", file, "--type=c128", "--method=pagerank")
        self.check(3, "'--systems' takes real systems", file, "--type=c128", "--systems=2")
        self.check(2, "choose c128 or c64", file)

    def test_blocks(self):
        entries = laplacian(11, True)
        for more in ((), ("--parameter=block_size=3",), ("--method=bicgstab", "--parameter=block_size=16")):
            self.check(0, "", self.matrix(entries), "--preconditioner=blocks", "-o", self.path("x.txt"), "-q", *more)
            self.assertLess(self.residual(entries, [1.0] * ROWS, self.numbers("x.txt")), 1.1e-8)
        self.check(2, "takes no 'blocks'", self.path("a.mtx"), "--preconditioner=blocks", "--method=minres")

    def test_power(self):
        entries = {(i, i): 1.0 + i for i in range(9)}
        entries[9, 9] = -20.0
        told = json.loads(self.check(0, "", self.matrix(entries, 10), "--method=power", "--json"))
        self.assertAlmostEqual(told["value"], -20.0, delta=1e-6)
        self.assertIn("value     -20", self.check(0, "", self.path("a.mtx"), "--method=power"))

    def test_pagerank(self):
        links = {(i * 7 % 11, i): 1.0 for i in range(9)} | {(0, 3): 2.0}  # pages 9 and 10 have no links
        told = json.loads(self.check(0, "", self.matrix(links, 11), "--method=pagerank", "--json", "-o", self.path("x.txt"),
                                     "--parameter=damping=0.7", "--tolerance=1e-12"))
        self.assertEqual(told["reason"], "converged")
        ranks = [1 / 11] * 11
        sums = [sum(value for (_, j), value in links.items() if j == page) or 1 for page in range(11)]
        for _ in range(200):
            handed = [0.7 * sum(value * ranks[j] / sums[j] for (i, j), value in links.items() if i == page)
                      for page in range(11)]
            ranks = [rank + (1 - sum(handed)) / 11 for rank in handed]
        for mine, theirs in zip(ranks, self.numbers("x.txt")):
            self.assertAlmostEqual(mine, theirs, delta=1e-11)

    def test_right_sides(self):
        entries = laplacian(5, True)
        matrix = self.matrix(entries)
        self.check(0, "", matrix, "--rhs=product", "-o", self.path("x.txt"), "-q")
        self.assertLess(max(abs(number - 1) for number in self.numbers("x.txt")), 1e-6)
        b = [math.sin(i) for i in range(ROWS)]
        with open(self.path("b.txt"), "w", encoding="utf-8") as file:
            file.write("\n".join(map(repr, b)))
        self.check(0, "", matrix, "--rhs", self.path("b.txt"), "-o", self.path("x.txt"), "-q")
        self.assertLess(self.residual(entries, b, self.numbers("x.txt")), 1.1e-8)
        self.check(0, "", matrix, "--rhs", self.path("b.txt"), "--tolerance=1e-3", "-o", self.path("x.txt"), "-q")
        self.assertGreater(self.residual(entries, b, self.numbers("x.txt")), 1e-6)
        with open(self.path("b.txt"), "a", encoding="utf-8") as file:
            file.write("\n7")
        self.check(3, f"has {ROWS + 1} numbers, and the matrix {ROWS} rows", matrix, "--rhs", self.path("b.txt"))
        with open(self.path("b.txt"), "w", encoding="utf-8") as file:
            file.write("1 2 three")
        self.check(3, "number 3 is none", matrix, "--rhs", self.path("b.txt"))
        self.check(4, "none.txt", matrix, "--rhs", self.path("none.txt"))

    def test_its_json_is_drawn(self):
        matrix = self.matrix(laplacian(3, True))
        with open(self.path("cg.json"), "w", encoding="utf-8") as file:
            file.write(self.check(0, "", matrix, "--json"))
        page = subprocess.run([TOOL, "report", matrix, "--predicted", "-q", "-o", "-", "--solution", self.path("cg.json")],
                              capture_output=True, text=True, timeout=harness.LIMIT, check=True, env=self.environment)
        self.assertIn(">1 cg, converged</text>", page.stdout)

    def test_text(self):
        text = self.check(0, "", self.matrix(laplacian(7, True)), "--history", "--repeat=2", "--type=f32").splitlines()
        self.assertRegex(text[0], r"^ +0  1\.000000e\+00$")
        self.assertRegex(text[-4], r"^converged after \d+ iterations, \d+\.\d+ ms \(\d+\.\d+ us each\)$")
        self.assertEqual(len(text) - 5, int(text[-4].split()[2]))
        self.assertRegex(text[-2], r"^form +(grid|cluster|block)$")
        self.assertRegex(text[-1], r"^plan +\(spmv ")

    def test_what_is_not_solved(self):
        matrix = self.matrix(laplacian(9, True))
        self.assertIn("no convergence after 2 iterations",
                      self.check(1, "was not solved: no convergence after 2 iterations", matrix, "--iterations=2"))
        wrong = self.matrix({(i, i): -1.0 if i % 2 else 2.0 for i in range(ROWS)})
        self.check(1, "breakdown", wrong, "--preconditioner=none")

    def test_what_is_refused(self):
        matrix = self.matrix(laplacian(9, True))
        for code, message, *arguments in (
                (2, "'--method=sor': it takes cg, bicgstab", "--method=sor"),
                (2, "parameter=restart", "--method=gmres", "--parameter=restart=0"),
                (2, "between 0 and 1", "--method=pagerank", "--parameter=damping=1"),
                (2, "a number above 0", "--method=jacobi", "--parameter=weight=-1"),
                (2, "these ascend", "--method=chebyshev", "--parameter=lowest=3",
                 "--parameter=highest=2"),
                (2, "it takes restart, block_size", "--parameter=height=1"),
                (2, "from 2 to 16", "--parameter=block_size=17"),
                (2, "it takes a number above 0", "--parameter=weight"),
                (2, "between 0 and 1", "--tolerance=2"),
                (2, "between 0 and 1", "--tolerance=1e-3x"),
                (2, "a number from 1", "--iterations=0"),
                (2, "it takes jacobi, blocks or none", "--preconditioner=ilu"),
                (2, "not 'min-plus'", "--semiring=min-plus")):
            with self.subTest(arguments):
                self.check(code, message, matrix, *arguments)
        self.check(2, "20 rows and 30 columns", "generate:random,rows=20,cols=30,density=0.2")


if __name__ == "__main__":
    harness.main(sys.argv[:1])
