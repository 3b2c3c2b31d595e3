#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/paper: what needs no GPU, on two small matrices; that a later call goes on from what is there; the papers' own
matrices, where a folder has them; a plug-in that is not there; and all figures on the fake GPU.

    tests/test_paper.py TOOL SCRATCH         in the source directory; the environment names the fakes
"""
import collections
import glob
import json
import os
import shutil
import subprocess
import sys
import tarfile
import unittest

import harness

TOOL, SCRATCH = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
PAPERS = ("cb", "tile", "merbit", "matxtract", "fbcsr")
NO_GPU = {"CBGEN_LIBCUDA": "/nonexistent", "CBGEN_NVRTC": "/nonexistent"}


def write_matrix(path, entries, rows, cols):
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"%%MatrixMarket matrix coordinate real general\n{rows} {cols} {len(entries)}\n")
        file.writelines(f"{row + 1} {col + 1} {1 + row * 0.5 + col}\n" for row, col in sorted(entries))


# A band, of which blocks of 32 rows along diagonals can be made, and one with a dense corner and a few entries besides.
BAND = {(row, col) for row in range(96) for col in (row - 1, row, row + 1) if 0 <= col < 96}
CORNER = {(row, col) for row in range(20) for col in range(18)} | {(row, 7 * row % 40) for row in range(50)}


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = os.path.join(SCRATCH, self.id().split(".")[-1])
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.path("suite/nested"))
        self.files = {"lhr10": self.path("suite/lhr10.mtx"), "corner": self.path("suite/nested/corner.mtx")}
        write_matrix(self.files["lhr10"], BAND, 96, 96)
        write_matrix(self.files["corner"], CORNER, 50, 40)

    def path(self, name):
        return os.path.join(self.folder, name)

    def paper(self, code, *arguments, **variables):
        """(output, messages)"""
        environment = {**os.environ, "CBGEN_CUSPARSE": "/nonexistent.so", "CBGEN_CALIBRATION": "",
                       "CBGEN_FAKE_SET": "memory=67108864,unrun=1", "OMP_NUM_THREADS": "2", **variables}
        result = subprocess.run([sys.executable, "bench/paper", *arguments, f"--tool={TOOL}", f"--out={self.path('out')}"],
                                capture_output=True, text=True, timeout=harness.LIMIT, check=False, env=environment)
        self.assertEqual(result.returncode, code, result.stderr)
        return result.stdout, result.stderr

    def of_suite(self, paper, *arguments, **variables):
        said = self.paper(0, paper, f"--suitesparse={self.path('suite')}", *arguments, **variables)
        with open(self.path(f"out/{paper}.json"), encoding="utf-8") as file:
            figures = {figure["figure"]: figure for figure in json.load(file)["figures"]}
        with open(self.path(f"out/{paper}.md"), encoding="utf-8") as file:
            self.assertEqual(file.read() + "\n", said[0])
        return figures, *said


class WithoutGpu(Case):
    def figures(self, paper, *arguments):
        return self.of_suite(paper, *arguments, **NO_GPU)

    def test_sub_blocks_and_storage_against_a_count_by_hand(self):
        figures, _, _ = self.figures("cb", "--figures=3,12a")
        self.assertEqual(list(figures), ["Fig. 3", "Fig. 12a"])
        entries = {"lhr10": BAND, "corner": CORNER}
        for name, nonzeros in entries.items():
            blocks = collections.Counter((row // 16, col // 16) for row, col in nonzeros)
            row = next(row for row in figures["Fig. 3"]["rows"] if (row["matrix"], row["columns"]) == (name, "plain"))
            self.assertEqual(row["sub-blocks"], len(blocks))
            self.assertAlmostEqual(row["under 32"], sum(count < 32 for count in blocks.values()) / len(blocks))
            self.assertAlmostEqual(row["256"], sum(count == 256 for count in blocks.values()) / len(blocks))
            rows = 96 if name == "lhr10" else 50
            row = next(row for row in figures["Fig. 12a"]["rows"] if row["matrix"] == name)
            self.assertAlmostEqual(row["CSR"], (4 * (rows + 1) + 12 * len(nonzeros)) / len(nonzeros))
            self.assertAlmostEqual(row["BSR 16x16"], (2052 * len(blocks) + 4 * (-(-rows // 16) + 1)) / len(nonzeros))
            self.assertAlmostEqual(row["COO"], 16.0)
            self.assertGreater(row["cb"], 8)

    def test_fill_rates_are_shares_of_the_nonzeros(self):
        figures, _, _ = self.figures("fbcsr", "--figures=rates,Storage")
        rows = [row for row in figures["Fill rates"]["rows"] if row["matrix"] == "lhr10"]
        self.assertEqual([row["rate %"] for row in rows], [50, 75, 90])
        for row in rows:
            self.assertAlmostEqual(row["all"], sum(row[shape] for shape in ("square", "diag", "anti", "col", "row")))
            self.assertAlmostEqual(row["diag"], (96 + 64 + 64) / len(BAND))  # of three diagonals, what reaches over no edge

    def test_balance_and_chunks(self):
        figures, _, _ = self.figures("cb", "--figures=Balance,4")
        for row in figures["Balance"]["rows"]:
            nonzeros = len(BAND if row["matrix"] == "lhr10" else CORNER)
            self.assertAlmostEqual(row["mean"] * row["thread blocks"], nonzeros)
        self.assertEqual({row["balance"] for row in figures["Fig. 4"]["rows"]}, {"before"})
        figures, _, _ = self.of_suite("matxtract", "--figures=4", **NO_GPU)
        row = next(row for row in figures["Fig. 4"]["rows"] if row["matrix"] == "lhr10")
        chunks = {(entry[0] // 8, entry[1]) for entry in BAND}
        self.assertEqual(row["columns, all chunks"], len(chunks))
        self.assertAlmostEqual(row["density"], len(BAND) / (8 * len(chunks)))

    def test_a_figure_that_needs_a_gpu_says_so(self):
        for paper in PAPERS:
            figures, text, _ = self.figures(paper)
            needing = sum(figure["needs_gpu"] for figure in figures.values())
            self.assertGreater(needing, 0)
            self.assertLess(needing, len(figures))
            self.assertEqual(text.count("Needs a GPU, and there is none here"), needing)
            self.assertIn("the CUDA driver", text)

    def test_every_claim_has_the_papers_number_or_says_that_it_is_not_given(self):
        for paper in PAPERS:
            for figure in self.figures(paper, "--no-gpu")[0].values():
                for claim in figure["claims"]:
                    self.assertTrue(claim["paper"] and claim["why"] and claim["quantity"], claim)

    def test_a_recipe_that_is_missing_or_refuses_is_a_row(self):
        sys.path.insert(0, "bench")
        from papers import store  # pylint: disable=import-outside-toplevel
        known = store.Store(self.path("out"), TOOL)
        rows = known.planned([self.files["lhr10"]], ["sell", "no-such-recipe", "hot"])[self.files["lhr10"]]
        self.assertEqual(rows["no-such-recipe"], {"reason": "this tool has no recipe 'no-such-recipe'"})
        self.assertIn("use another recipe", rows["hot"]["reason"])
        self.assertGreater(rows["sell"]["stored_bytes"], 0)


class Resuming(Case):
    def calls(self, said):
        return int(said.split("(")[1].split(" ")[0])

    def test_a_later_call_asks_only_for_what_is_not_there(self):
        figures, text, said = self.of_suite("fbcsr", "--no-gpu")
        first = self.calls(said)
        self.assertGreater(first, 4)
        again, same, said = self.of_suite("fbcsr", "--no-gpu")
        self.assertEqual(self.calls(said), 0)
        self.assertEqual((again, same), (figures, text))
        results = sorted(glob.glob(self.path("out/results/*/*.json")))
        self.assertEqual(len(results), first)
        os.remove(results[0])
        with open(results[1], "w", encoding="utf-8") as file:
            file.write('{"file": "cut o')
        again, same, said = self.of_suite("fbcsr", "--no-gpu")
        self.assertEqual(self.calls(said), 2)
        self.assertEqual((again, same), (figures, text))

    def test_a_gpu_that_appears_later_is_used(self):
        _, _, said = self.of_suite("fbcsr", "--figures=Gains", **NO_GPU)
        figures, text, said = self.of_suite("fbcsr", "--figures=Gains", "--repeat=1")
        self.assertNotIn("Needs a GPU", text)
        self.assertGreaterEqual(self.calls(said), 2)
        row = figures["Gains"]["rows"][0]
        self.assertGreater(row["slices"], 0)
        self.assertGreater(row["sell"], 0)
        again, _, said = self.of_suite("fbcsr", "--figures=Gains", "--repeat=1", **NO_GPU)
        self.assertEqual(self.calls(said), 0)
        self.assertEqual(again["Gains"], figures["Gains"])


class Matrices(Case):
    def test_those_that_the_paper_names_come_first_and_absent_ones_are_said(self):
        figures, text, _ = self.of_suite("fbcsr", "--figures=Storage", "--no-gpu")
        self.assertEqual([row["matrix"] for row in figures["Storage"]["rows"]], ["lhr10"])  # it names its matrices
        self.assertIn("raefsky3", text.split("## ")[0])
        self.assertIn("Not in", text)
        self.assertIn("the paper's own", text)

    def test_of_a_paper_that_used_the_collection_all_are_taken(self):
        with tarfile.open(self.path("suite/TSOPF_RS_b2383.tar.gz"), "w:gz") as archive:
            archive.add(self.files["lhr10"], "TSOPF_RS_b2383/TSOPF_RS_b2383.mtx")
        os.makedirs(self.path("suite/own"))
        write_matrix(self.path("suite/own/own.mtx"), CORNER, 50, 40)
        write_matrix(self.path("suite/own/own_b.mtx"), {(0, 0)}, 50, 1)  # a right side
        figures, _, _ = self.of_suite("tile", "--figures=10", "--no-gpu")
        self.assertEqual([row["matrix"] for row in figures["Fig. 10"]["rows"]], ["TSOPF_RS_b2383", "corner", "lhr10", "own"])
        figures, text, _ = self.of_suite("tile", "--figures=10", "--no-gpu", "--limit=2")
        self.assertEqual(len(figures["Fig. 10"]["rows"]), 2)
        self.assertIn("The first 2 of 4 matrices", text)

    def test_an_empty_folder_is_no_failure(self):
        os.makedirs(self.path("empty"))
        text, _ = self.paper(0, "fbcsr", f"--suitesparse={self.path('empty')}", "--no-gpu")
        self.assertIn("There is no matrix", text)
        self.assertIn("lhr10, raefsky3", text)

    def test_stand_ins_are_marked(self):
        os.makedirs(self.path("corpus"))
        shutil.copy(self.files["lhr10"], self.path("corpus/wang4.mtx"))
        text, _ = self.paper(0, "fbcsr", "--figures=Storage", "--no-gpu", f"--corpus={self.path('corpus')}", "--limit=9")
        self.assertIn("stand-ins of the same classes, which are not the paper's matrices", text)
        self.assertIn("| wang4 | stand-in: semiconductor |", text)
        self.assertIn("bcsstm27, QP_AUG2DC_A", text)

    def test_arguments(self):
        self.assertIn("is no folder", self.paper(1, "cb", "--suitesparse=/nonexistent")[1])
        self.assertIn("no figure is called 99", self.paper(1, "cb", f"--suitesparse={self.path('suite')}", "--figures=99")[1])
        self.assertIn("invalid choice", self.paper(2, "another")[1])


class OnTheFakeGpu(Case):
    """Times mean nothing there; that all figures come of them does."""

    def test_all_figures_of_all_papers(self):
        for paper in PAPERS:
            with self.subTest(paper=paper):
                figures, text, _ = self.of_suite(paper, "--limit=1", "--repeat=1", CBGEN_CUSPARSE=os.environ["CBGEN_FAKE_CUSPARSE"])
                self.assertNotIn("Needs a GPU", text)
                for figure in figures.values():
                    self.assertTrue(figure["rows"], figure["figure"])
        self.assertGreater(figures["Gains"]["rows"][0]["CSR"], 0)

    def test_coo_is_merbits_baseline(self):
        figures, _, _ = self.of_suite("merbit", "--limit=1", "--repeat=1", "--figures=Products,Iterations",
                                      CBGEN_CUSPARSE=os.environ["CBGEN_FAKE_CUSPARSE"])
        row = figures["Products"]["rows"][0]
        self.assertAlmostEqual(row["COO / merge"], row["COO"] / row["merge"])
        rows = figures["Iterations"]["rows"]
        self.assertEqual([(row["method"], row["iterations"]) for row in rows],
                         [(method, count) for method in ("PageRank", "BiCGSTAB") for count in (50, 100, 150, 200)])
        self.assertAlmostEqual(rows[5]["merge"] - rows[4]["merge"], 2 * 50 * row["merge"] * 1e-3)

    def test_a_plug_in_is_a_column_and_an_absent_one_is_said(self):
        figures, text, _ = self.of_suite("merbit", "--limit=1", "--repeat=1", "--figures=Products",
                                         f"--baseline={os.environ['CBGEN_FAKE_BASELINE']}", "--baseline=/nonexistent/csr5.so")
        self.assertIn("Baselines that had no part in some of this", text)
        self.assertIn("- csr5.so: the baseline is not at '/nonexistent/csr5.so'", text)
        self.assertNotIn("- fake-baseline", text)
        self.assertEqual(figures["Products"]["rows"][0]["best baseline"] is not None, True)


if __name__ == "__main__":
    harness.main(sys.argv[:1])
