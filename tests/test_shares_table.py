#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The predictor of an extraction's shares: the library evaluates its tables as the trainer does, on every label that is
committed; profiles of these are those that the library makes; what it chooses loses little on matrices it was trained
with. And the program that times products for labels, on the fake GPU.

    tests/test_shares_table.py CHOICE SHARES       the programs of bench/choice.c and bench/shares.c, in the source directory"""
import contextlib
import io
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import unittest

import harness

sys.path.insert(0, "bench/train")
import learn  # noqa: E402
import shares  # noqa: E402

CHOICE, WORKER = sys.argv[1:3]
DATA = "bench/train/data/shares.jsonl.gz"
FEATURES = 51


def ask(lines):
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([WORKER, os.path.join(folder, "lock"), "--repetitions=1"], capture_output=True, text=True,
                              input="".join(line + "\n" for line in lines), check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def tables():
    """{(model, bytes): (least gain, [(output, tree)])} from the library's text."""
    with open("analysis/choose/shares_tables.c", encoding="utf-8") as file:
        text = file.read()

    def triples(name):
        body = re.search(rf"{name}\[\] = {{(.*?)}};", text, re.S)[1]
        return [tuple(map(int, found)) for found in re.findall(r"\{(-?\d+),(-?\d+),(-?\d+)\}", body)]
    found = {}
    entry = r'\{"([^"]+)", (\d+), (-?\d+), \{(trees_\d+), (nodes_\d+), \d+, \d+\}\}'
    for model, width, gain, trees, nodes in re.findall(entry, text):
        all_nodes = triples(nodes)
        forest = [(output, all_nodes[first:first + count]) for output, count, first in triples(trees)]
        found[model, int(width)] = int(gain), forest
    return found


class Tables(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tables = tables()
        cls.labels = shares.read([DATA], CHOICE) if os.path.exists(DATA) else []

    def test_a_gpu_without_a_table_has_none(self):
        line = "shares no such GPU\t8 " + " ".join(["0"] * FEATURES)
        self.assertEqual(learn.ask(CHOICE, [line]), ["none"])

    def test_what_is_measured_is_trained_with(self):
        keys = {(label.model, shares.VALUE_BYTES[label.kind]) for label in self.labels}
        self.assertEqual(set(self.tables), keys)

    def test_the_library_predicts_as_the_trainer(self):
        rng = random.Random(1)
        for (model, width), (gain, trees) in self.tables.items():
            found = [label.features for label in self.labels
                     if (label.model, shares.VALUE_BYTES[label.kind]) == (model, width)]
            self.assertGreaterEqual(len(found), 100)
            found += [[rng.choice((0, 64, 1024, 16384, rng.randint(0, 32767))) for _ in range(FEATURES)]
                      for _ in range(2000)]
            answers = learn.ask(CHOICE, [f"shares {model}\t{width} " + " ".join(map(str, features))
                                         for features in found])
            for features, answer in zip(found, answers):
                wanted = (*shares.predict(trees, gain, features), *shares.sums(trees, features))
                self.assertEqual(tuple(map(int, answer.split())), wanted)

    def test_profiles_are_todays(self):
        small = sorted({label.matrix: label for label in self.labels
                        if label.matrix.startswith("generate:") and label.nnz < 150000}.items())[:40]
        if self.labels:
            self.assertGreaterEqual(len(small), 20)
        answers = learn.ask(CHOICE, [f"spread {matrix}" for matrix, _ in small])
        for (matrix, label), answer in zip(small, answers):
            self.assertEqual(learn.ask(CHOICE, ["describe " + answer])[0].split(), list(map(str, label.features)), matrix)

    def test_choices_lose_little(self):
        for kind in sorted({label.kind for label in self.labels}):
            found = [label for label in self.labels if label.kind == kind]
            gain, trees = self.tables[found[0].model, shares.VALUE_BYTES[kind]]
            best, none, _, worst = shares.cost(found, [shares.predict(trees, gain, label.features) for label in found])
            print(f"{kind}: {len(found)} matrices, {100 * (best - 1):.2f} % over the best, {100 * (none - 1):+.2f} % over nothing hot")
            self.assertLessEqual(none, 1.0, "nothing hot would be as good")
            self.assertLessEqual(best, 1.05)
            self.assertLessEqual(worst, 1.25)
            all_hot = shares.cost(found, [(100, 100)] * len(found))
            self.assertGreater(all_hot[0], 1.05, "these measurements tell nothing")


class Worker(unittest.TestCase):
    def test_answers(self):
        answers = ask(["matrix f64 generate:rmat,scale=7,edge_factor=6", "try 0 0", "try 66 42", "try 100 100", "try 40 60", "try 0 7",
                       "matrix f32 generate:rmat,scale=7,edge_factor=6 rows=1/2", "try 30 20",
                       "matrix f64 missing", "try 30 20", "what"])
        first, none, some, whole, more, half, part, other, missing, closed, unknown = answers
        self.assertEqual((first["rows"], first["type"], first["model"]), (128, "f64", "Fake GPU"))
        self.assertEqual((first["counts"][0], first["counts"][1], len(first["counts"])), (first["nnz"], 128, 49))
        self.assertEqual(learn.ask(CHOICE, ["spread generate:rmat,scale=7,edge_factor=6"])[0].split(), list(map(str, first["counts"])))
        self.assertEqual((none["us"], none["ns"]), (none["base_us"], none["base_ns"]))
        for answer, pair in ((some, (66, 42)), (whole, (100, 100)), (other, (30, 20))):
            self.assertEqual((answer["cols"], answer["rows"]), pair)
            self.assertGreater(answer["us"], 0)
            self.assertGreater(answer["base_us"], 0)
        self.assertGreater(some["us"], some["base_us"])  # of the fake GPU: two launches
        self.assertIn("exceeds 'crux-cols' 40", more["refusal"])
        self.assertIn("share of 0", half["refusal"])
        self.assertEqual((part["rows"], part["type"]), (64, "f32"))
        self.assertIn("cannot open 'missing'", missing["refusal"])
        self.assertEqual(closed["refusal"], "there is no matrix")
        self.assertIn("write 'matrix TYPE MATRIX'", unknown["refusal"])

    def test_without_a_gpu_there_are_predictions(self):
        done = subprocess.run([WORKER, os.devnull, "--no-gpu"], input="matrix f64 generate:rmat,scale=7\ntry 50 50\n", text=True,
                              capture_output=True, check=True)
        answer = json.loads(done.stdout.splitlines()[1])
        self.assertGreater(answer["ns"], 0)
        self.assertNotIn("us", answer)

    def test_wrong_calls(self):
        for arguments in ([], [os.devnull, "--what"], [os.devnull, "--repetitions=0"]):
            done = subprocess.run([WORKER, *arguments], capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn("usage: bench_shares", done.stderr)


class Labels(unittest.TestCase):
    """A file of labels as the search writes it."""

    def read(self, points):
        record = {"matrix": "some", "type": "f64", "model": "GPU", "rows": 2, "cols": 2, "nnz": 3, "counts": [0] * 49, "points": points}
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
            file.write(json.dumps(record) + "\n")
            file.flush()
            return shares.read([file.name], CHOICE)

    def test_the_fastest_pair_is_the_label(self):
        label = self.read([[0, 0, 10, 10, 1], [100, 100, 12, 10, 1], [40, 20, 16, 20, 1], [50, 20, None, None, 1]])[0]
        self.assertEqual((label.cols, label.rows), (0.4, 0.2))  # 16 of 20: beside it, nothing hot took longer
        self.assertAlmostEqual(label.gain, 0.32193, 4)
        self.assertEqual(len(label.features), FEATURES)

    def test_what_gains_no_more_than_noise_is_nothing(self):
        label = self.read([[0, 0, 10, 10, 1], [100, 100, 9.95, 10, 1]])[0]
        self.assertEqual((label.cols, label.rows, label.gain), (0, 0, 0))
        self.assertEqual(self.read([[100, 100, 9.95, 10, 1]]), [])

    def test_what_was_not_timed_costs_as_its_neighbour(self):
        label = self.read([[0, 0, 10, 10, 1], [100, 100, 12, 10, 1], [40, 20, 8, 10, 1]])[0]
        self.assertEqual(shares.cost([label], [(45, 10)])[1], 0.8)
        self.assertEqual(shares.cost([label], [(1, 1)])[0], 1.0)  # the nearest with something hot
        self.assertEqual(shares.cost([label], [(0, 0)])[0], 1.25)

    def test_groups_have_each_size(self):
        labels = [shares.Label(str(i), "f64", "GPU", i * i, [], {}, 0, 0, 0) for i in range(100)]
        groups = shares.fifths(labels, 5)
        for fifth in range(5):
            self.assertEqual(sorted(groups[20 * fifth:20 * fifth + 20]), sorted(list(range(5)) * 4))

    def test_the_summary_can_be_read(self):
        text = io.StringIO()
        with contextlib.redirect_stdout(text):
            shares.show(self.read([[0, 0, 10, 10, 1], [40, 20, 8, 10, 1]]))
        self.assertIn("f64: 1 matrices; nothing is hot in the best of 0 (0 %)", text.getvalue())
        self.assertIn("1.25 x  some: (0.40, 0.20)", text.getvalue())


if __name__ == "__main__":
    harness.main(sys.argv[:1])
