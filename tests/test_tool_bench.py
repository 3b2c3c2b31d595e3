#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The scripts of bench/: what bench/keep_arch.py leaves of a library, and that tables and chart made of `cbgen bench
--json` name the cuSPARSE that was measured against. Measuring is done on the fake GPU, where the kernels that
measure ceilings do nothing.

    tests/test_tool_bench.py TOOL SCRATCH         in the source directory; the environment names the fakes
"""
import functools
import gzip
import json
import os
import shutil
import struct
import subprocess
import sys
import unittest

import harness

TOOL, SCRATCH = os.path.abspath(sys.argv[1]), sys.argv[2]
PTX, CODE, LINKED_LATER = 1, 2, 8


def entry(kind, arch, code):
    """As fatbinary writes it: 64 bytes of header, the architecture at byte 28."""
    return struct.pack("<HHIQIIHHIIIQQQ", kind, 0x101, 64, len(code), len(code), 0, 0, 0, arch, 0, 0, 0, 0, 0) + code


def container(*entries):
    inside = b"".join(entries)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(inside)) + inside


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = os.path.abspath(os.path.join(SCRATCH, self.id().split(".")[-1]))
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def script(self, code, name, *arguments):
        result = subprocess.run([sys.executable, f"bench/{name}", *arguments], capture_output=True, text=True, timeout=harness.LIMIT,
                                check=False)
        self.assertEqual(result.returncode, code, result.stderr)
        return result.stdout if code == 0 else result.stderr


class KeepArch(Case):
    def kept(self, library, code=0):
        with open(self.path("in.so"), "wb") as file:
            file.write(library)
        said = self.script(code, "keep_arch.py", self.path("in.so"), self.path("out.so"), "90")
        if code:
            self.assertFalse(os.path.exists(self.path("out.so")))
            return said
        with open(self.path("out.so"), "rb") as file:
            return file.read()

    def test_other_gpus_code_becomes_zeros_in_place(self):
        def library(gone):
            return (b"\x7fELF host code " + container(entry(CODE, 80, gone or b"C80" * 9), entry(CODE, 90, b"C90" * 5),
                                                      entry(PTX, 120, gone or b"P12" * 9))
                    + b"data between" + container(entry(LINKED_LATER, 90, b"L90" * 4), entry(CODE, 90, b"c90"),
                                                  entry(LINKED_LATER, 70, gone or b"L70" * 9)) + b"the end")
        self.assertEqual(self.kept(library(None)), library(bytes(27)))

    def test_a_container_without_this_gpus_code_stays_whole(self):
        only_ptx = container(entry(PTX, 75, b"P75" * 9), entry(PTX, 90, b"P90"))
        library = container(entry(CODE, 90, b"C90")) + only_ptx
        self.assertEqual(self.kept(library), library)

    def test_bytes_that_only_look_like_a_container_stay(self):
        chance = struct.pack("<IHHQ", 0xBA55ED50, 1, 16, 200) + bytes(range(100))
        inside = struct.pack("<IHHQ", 0xBA55ED50, 0, 0, 1 << 60)
        library = chance + container(entry(CODE, 90, inside)) + struct.pack("<I", 0xBA55ED50)
        self.assertEqual(self.kept(library), library)

    def test_a_library_without_this_gpus_code_is_refused(self):
        self.assertIn("no machine code for sm_90", self.kept(b"\x7fELF" + container(entry(CODE, 80, b"C80")), 1))
        self.assertIn("no machine code for sm_90", self.kept(b"", 1))
        self.assertIn("No such file", self.script(1, "keep_arch.py", self.path("none"), self.path("out.so"), "90"))
        self.script(2, "keep_arch.py", self.path("none"), self.path("out.so"), "sm_90")


@functools.cache
def measured(version):
    """Results of two tiny matrices, against the fake cuSPARSE of this version (None: none)."""
    variable = {"12.9.4": "CBGEN_FAKE_CUSPARSE", "12.6.3": "CBGEN_FAKE_CUSPARSE_120603"}.get(version)
    matrices = os.path.join(SCRATCH, "matrices.txt")
    with open(matrices, "w", encoding="utf-8") as file:
        file.write("generate:uniform,n=9,per_row=2\ngenerate:uniform,n=12,per_row=1\n")
    environment = {**os.environ, "CBGEN_CUSPARSE": os.environ[variable] if variable else "/nonexistent.so",
                   "CBGEN_CALIBRATION": "", "CBGEN_FAKE_SET": "memory=67108864,unrun=1"}
    result = subprocess.run([TOOL, "bench", "-q", "--json", "--repeat=1", "--recipe=sell", "@" + matrices],
                            capture_output=True, text=True, timeout=harness.LIMIT, check=False, env=environment)
    if result.returncode:
        raise AssertionError(result.stderr)
    return result.stdout


class Tables(Case):
    def measure(self, version):
        with open(self.path(f"{version}.jsonl"), "w", encoding="utf-8") as file:
            file.write(measured(version))
        return file.name

    def test_every_table_names_the_version_measured_against(self):
        newest, older, none = self.measure("12.9.4"), self.measure("12.6.3"), self.measure(None)
        for form in ([], ["--short"], ["--summary"], ["--conditions"]):
            with self.subTest(form=form):
                text = self.script(0, "table.py", *form, newest)
                self.assertIn("cuSPARSE 12.9.4", text)
                self.assertNotIn("12.6.3", text)
                text = self.script(0, "table.py", *form, newest, older)
                self.assertIn("12.9.4", text)
                self.assertIn("cuSPARSE 12.6.3", text)
                self.assertIn("no cuSPARSE", self.script(0, "table.py", *form, none))
        self.assertIn("cuSPARSE 12.6.3 and 12.9.4", self.script(0, "chart.py", newest, older))

    def test_spmvop_has_its_columns_and_its_preparation(self):
        path = self.measure("12.9.4")
        with open(path, encoding="utf-8") as file:
            first = json.loads(file.readline())
        baseline = {one["name"]: one for one in first["baselines"]}["spmvop-alg2"]
        self.assertEqual((baseline["applies"], baseline["wrong"]), (1, 0))
        self.assertGreater(baseline["prepare_ms"], 0)
        text = self.script(0, "table.py", path)
        head, row = [line.split(" | ") for line in text.splitlines() if line.startswith(("| matrix ", "| uniform | 9 "))]
        self.assertEqual(row[head.index("spmvop-alg2")], f"{baseline['time']['us']:.2f}")
        self.assertRegex(text, r"(?m)^\| spmvop-alg1 \| 2 \| \d \| [0-9.]+ \| [0-9.]+ \| 0.0 \| 0.0 \| \d+\.\d\d \| \d+\.\d\d \|$")

    def test_calls_are_joined_into_one_folder_of_results(self):
        for version in ("12.9.4", "12.6.3"):
            os.makedirs(self.path(version))
            for name, text in (("bench.jsonl", measured(version)), ("device.txt", f"device of {version}\n"),
                               ("opponent.txt", f"cuSPARSE {version}\n"), ("summary.txt", f"all of {version}\n")):
                with open(os.path.join(self.path(version), name), "w", encoding="utf-8") as file:
                    file.write(text)
        subprocess.run(["tar", "-C", self.path("12.6.3"), "-cJf", self.path("second.tar.xz"), "."], check=True)
        command = ["bench/collect.sh", self.path("results"), self.path("12.9.4"), self.path("second.tar.xz")]
        said = subprocess.run(command, capture_output=True, text=True, timeout=harness.LIMIT, check=True).stdout
        self.assertIn("4 matrices against the **best** of all algorithms of cuSPARSE 12.6.3 and 12.9.4", said)
        self.assertEqual(sorted(os.listdir(self.path("results"))), ["bench.jsonl.gz", "bench.md", "bench.svg", "device.txt",
                                                                    "opponent.txt", "summary.txt"])
        with gzip.open(self.path("results/bench.jsonl.gz"), "rt", encoding="utf-8") as file:
            self.assertEqual(file.read(), measured("12.9.4") + measured("12.6.3"))
        with open(self.path("results/opponent.txt"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "cuSPARSE 12.9.4\ncuSPARSE 12.6.3\n")

    def test_results_of_older_versions_can_be_read(self):
        with open(self.measure("12.6.3"), encoding="utf-8") as file:
            results = [json.loads(line) for line in file]
        for result in results:
            for baseline in result["baselines"]:
                if baseline["applies"]:
                    baseline["preprocess_ms"] = baseline.pop("prepare_ms")
            for old, new in (("rivals", "baselines"), ("best_rival", "best_baseline"), ("rival_types", "baseline_types")):
                result[old] = result.pop(new)
        with open(self.path("old.jsonl"), "w", encoding="utf-8") as file:
            file.writelines(json.dumps(result) + "\n" for result in results)
        for form in ([], ["--short"], ["--summary"]):
            self.assertEqual(self.script(0, "table.py", *form, self.path("old.jsonl")),
                             self.script(0, "table.py", *form, self.path("12.6.3.jsonl")))
        self.assertIn("<svg", self.script(0, "chart.py", self.path("old.jsonl")))
        text = self.script(0, "table.py", self.path("old.jsonl"))
        self.assertRegex(text, r"(?m)^\| csr-alg1 \| 2 \|")
        self.assertNotIn("spmvop-alg1 |", text.split("The algorithms of")[1])


if __name__ == "__main__":
    harness.main(sys.argv[:1])
