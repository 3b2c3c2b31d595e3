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
        self.folder = harness.fresh_folder(self, SCRATCH)

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


class OnTheFakeGpu(Case):
    """Calls of `cbgen bench` and `cbgen analyze`."""
    matrix = "generate:uniform,n=40,per_row=3"

    def tool(self, code, *arguments, **variables):
        environment = {**os.environ, "CBGEN_CUSPARSE": "/nonexistent.so", "CBGEN_CALIBRATION": "",
                       "CBGEN_FAKE_SET": "memory=67108864,unrun=1", **variables}
        result = subprocess.run([TOOL, *arguments], capture_output=True, text=True, timeout=harness.LIMIT, check=False,
                                env=environment)
        self.assertEqual(result.returncode, code, result.stderr)
        return result.stdout if code == 0 else result.stderr

    def bench(self, *arguments, **variables):
        return json.loads(self.tool(0, "bench", "-q", "--json", "--repeat=1", "--recipe=sell", self.matrix, *arguments,
                                    **variables))


class Kernels(OnTheFakeGpu):
    """`run` and `bench` of a kernel.cu."""
    def kernel(self, *options, name="k.cu"):
        self.tool(0, self.matrix, "--recipe=sell", "-q", *options, "-o", self.path(name))
        return self.path(name)

    def edit(self, path, before, after):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.assertIn(before, text)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace(before, after, 1))

    def test_a_kernel_is_run_and_timed(self):
        for options in ([], ["--form=ax", "--embed=never"], ["--form=add", "--type=f32"], ["--type=f16"],
                        ["--semiring=or-and", "--form=add"], ["--semiring=min-plus"]):
            with self.subTest(options=options):
                path = self.kernel(*options)
                result = json.loads(self.tool(0, "run", path, "--json", "--repeat=1"))
                self.assertEqual((result["check"]["rows"], result["check"]["wrong"]), (40, 0))
                self.assertGreater(result["time"]["us"], 0)
                text = self.tool(0, "run", path, "--repeat=1")
                self.assertIn("check     right: 40 rows", text)
                self.assertRegex(text, r"stages +NVRTC [0-9.]+, load [0-9.]+, upload [0-9.]+ ms")
        result = json.loads(self.tool(0, "bench", self.kernel(), "--json", "--repeat=1"))
        self.assertEqual((result["baselines"], result["nnz"], result["check"]["wrong"]), ([], 120, 0))
        self.assertIn("a kernel.cu brings no matrix", result["no_baselines"])

    def test_an_edited_kernel_is_found_wrong(self):
        path = self.kernel("--form=ax")
        self.edit(path, "vectors.y[row] = vector_t(sum)", "vectors.y[row] = vector_t(row == 7 ? sum + sum : sum)")
        self.assertIn("row 7 is ", self.tool(1, "run", path, "--repeat=1"))
        self.edit(path, "constexpr unsigned kGrid = ", "constexpr unsigned kGrid = many ")
        self.assertIn("does not say how its kernels are launched", self.tool(3, "run", path))

    def test_without_a_self_test_nothing_is_compared(self):
        path = self.kernel("--selftest=off")
        self.assertIn("check     none: the data have no self-test part", self.tool(0, "run", path, "--repeat=1"))
        self.assertIsNone(json.loads(self.tool(0, "run", path, "--json", "--repeat=1"))["check"])

    def test_what_cannot_be_run_is_told(self):
        path = self.kernel("--embed=never")
        os.remove(path[:-3] + ".cbd")
        self.assertIn("cannot be read from", self.tool(4, "run", path))
        self.assertIn("'--recipe' means nothing to 'run' of a kernel that exists", self.tool(2, "run", path, "--recipe=cb"))
        self.assertIn("'--emulate' means nothing to 'run'", self.tool(2, "run", path, "--emulate"))
        self.assertIn("'--candidates' means nothing to 'bench'", self.tool(2, "bench", path, "--candidates"))
        self.assertIn("nope.cu", self.tool(4, "run", self.path("nope.cu")))

    def test_products_may_be_captured(self):
        for options, launched in ([[], "one by one"], [["--graphs"], "as graphs"]):
            result = self.bench(*options)
            self.assertEqual((result["check"]["wrong"], result["protocol"]["launched"]), (0, launched))
            self.assertGreater(result["time"]["us"], 0)
        self.assertIn("too old to capture", self.tool(5, "bench", "-q", self.matrix, "--graphs", "--repeat=1", CBGEN_FAKE_SET=
                                                      "memory=67108864,unrun=1,version=12030"))

    def test_a_list_may_have_kernels(self):
        with open(self.path("list"), "w", encoding="utf-8") as file:
            file.write(f"{self.matrix}\n{self.kernel()}\n{self.path('nope.cu')}\n")
        said = self.tool(4, "bench", "@" + self.path("list"), "--no-baselines", "--repeat=1")
        self.assertIn("1 of the 3 matrices in ", said)


class Plugins(OnTheFakeGpu):
    def baselines(self, *plugins, options=(), **variables):
        result = self.bench(*options, *(f"--baseline={plugin}" for plugin in plugins), **variables)
        return result, {one["name"]: one for one in result["baselines"]}

    def test_a_plug_in_is_checked_and_timed_in_turn(self):
        for options in ([], ["--type=f32"], ["--form=add"]):
            with self.subTest(options=options):
                log = self.path("log" + "".join(options))
                result, named = self.baselines(os.environ["CBGEN_FAKE_BASELINE"], options=options, FAKE_BASELINE_LOG=log)
                self.assertEqual(list(named), ["fake-baseline"])
                one = named["fake-baseline"]
                self.assertEqual((one["applies"], one["wrong"]), (1, 0))
                self.assertGreaterEqual(one["time"]["us"], 0)
                width = 4 if "f32" in "".join(options) else 8
                self.assertEqual(one["stored_bytes"], 4 * 41 + (4 + width) * result["nnz"])
                with open(log, encoding="utf-8") as file:
                    self.assertEqual(file.read().split(), ["prepared", "destroyed"])

    def test_beside_cusparse(self):
        _, named = self.baselines(os.environ["CBGEN_FAKE_BASELINE"], CBGEN_CUSPARSE=os.environ["CBGEN_FAKE_CUSPARSE"])
        self.assertEqual(list(named)[-1], "fake-baseline")
        for name in ("csr-alg1", "coo-alg1", "coo-alg2", "fake-baseline"):
            self.assertEqual((named[name]["applies"], named[name]["wrong"]), (1, 0), name)

    def test_a_wrong_product_is_said_and_never_the_best(self):
        result, named = self.baselines(os.environ["CBGEN_FAKE_BASELINE"], FAKE_BASELINE="wrong")
        self.assertEqual(named["fake-baseline"]["wrong"], 1)
        self.assertIsNone(result["best_baseline"])

    def test_what_is_absent_or_broken_is_said_and_the_rest_goes_on(self):
        with open(self.path("text.so"), "w", encoding="utf-8") as file:
            file.write("no library")
        good = os.environ["CBGEN_FAKE_BASELINE"]
        result, named = self.baselines("/nonexistent/gone.so", self.path("text.so"), os.environ["CBGEN_FAKE_CUSPARSE"], good)
        self.assertEqual(len(result["baselines"]), 4)
        self.assertEqual([one["applies"] for one in result["baselines"]], [0, 0, 0, 1])
        self.assertIn("is not at '/nonexistent/gone.so'", named["gone.so"]["reason"])
        self.assertIn("cbgen_baseline_name", result["baselines"][2]["reason"])
        for how, words in (("refuse", "it likes no matrix of 40 rows"), ("fail", "cannot multiply (7)"),
                           ("version", "was built for version 2 of cbgen_baseline.h, and this is version 1")):
            with self.subTest(how=how):
                log = self.path("log-" + how)
                result, _ = self.baselines(good, FAKE_BASELINE=how, FAKE_BASELINE_LOG=log)
                one = result["baselines"][0]
                self.assertEqual(one["applies"], 0)
                self.assertIn(words, one["reason"])
                self.assertEqual(result["check"]["wrong"], 0)
                prepared = open(log, encoding="utf-8").read().split() if os.path.exists(log) else []
                self.assertEqual(prepared, ["prepared", "destroyed"] if how == "fail" else [])

    def test_types_that_plug_ins_do_not_have(self):
        _, named = self.baselines(os.environ["CBGEN_FAKE_BASELINE"], options=["--type=f32-f64"])
        self.assertIn("f64 or f32 throughout", named["fake-baseline"]["reason"])

    def test_arguments(self):
        self.assertIn("needs the file", self.tool(2, "bench", self.matrix, "--baseline="))
        self.assertIn("means nothing to 'analyze'", self.tool(2, "analyze", self.matrix, "--baseline=x.so"))
        self.assertIn("at most", self.tool(2, "bench", self.matrix, *["--baseline=x.so"] * 17))


class Sweep(OnTheFakeGpu):
    def test_each_value_is_measured(self):
        result = self.bench("--sweep=sell-lanes=1,4,32")
        self.assertEqual([row["value"] for row in result["values"]], ["1", "4", "32"])
        self.assertEqual(result["file"], self.matrix)
        for row in result["values"]:
            self.assertIn(f"(lanes {row['value']})", row["plan"])
            self.assertEqual(row["wrong"], 0)
            self.assertTrue(row["repeatable"])
            self.assertGreaterEqual(row["us"], 0)
            self.assertAlmostEqual(row["bytes_per_nonzero"] * result["nnz"], row["stored_bytes"], places=3)
        text = self.tool(0, "bench", "-q", "--repeat=1", "--recipe=sell", self.matrix, "--sweep=sell-lanes=1,4,32")
        self.assertEqual(len(text.splitlines()), 5)

    def test_analyze_predicts_the_same_without_a_gpu(self):
        said = self.tool(0, "analyze", "--json", "--recipe=sell", self.matrix, "--sweep=sell-lanes=1,4,32",
                         CBGEN_LIBCUDA="/nonexistent", CBGEN_NVRTC="/nonexistent")
        measured = {row["value"]: row for row in self.bench("--sweep=sell-lanes=1,4,32")["values"]}
        for row in json.loads(said)["values"]:
            for key in ("plan", "stored_bytes"):
                self.assertEqual(row[key], measured[row["value"]][key])

    def test_a_refused_value_is_a_row(self):
        for verb in ("bench", "analyze"):
            result = json.loads(self.tool(0, verb, "-q", "--json", "--recipe=cb", "generate:random,rows=60,cols=60,density=0.2",
                                          "--sweep=th1=32,250,64"))
            self.assertIn("th1 may be at most", result["values"][1]["reason"])
            self.assertNotIn("recipe", result["values"][1])
            self.assertEqual([row["recipe"] for row in result["values"][::2]], ["cb", "cb"])
        result = self.bench("--sweep=recipe=hot,sell")
        self.assertIn("hot", result["values"][0]["reason"])
        self.assertEqual(result["values"][1]["recipe"], "sell")

    def test_another_order(self):
        graph = "generate:rmat,scale=11,edge_factor=12"
        plain = json.loads(self.tool(0, "analyze", "-q", "--json", "--recipe=sell", graph))
        ordered = json.loads(self.tool(0, "analyze", "-q", "--json", "--recipe=sell", graph, "--reorder=symmetric"))
        self.assertEqual(plain["matrix"]["nonzeros"], ordered["matrix"]["nonzeros"])
        self.assertLess(ordered["plan"]["cost"]["sectors"], 0.9 * plain["plan"]["cost"]["sectors"])
        for matrix, kind, words in ((graph, "unsymmetric", "rows and columns by their lengths"),
                                    ("generate:stencil5,n=20", "symmetric", "as it is")):
            result = subprocess.run([TOOL, "analyze", matrix, f"--reorder={kind}"], capture_output=True, text=True,
                                    timeout=harness.LIMIT, check=True)
            self.assertIn(words, result.stderr)
        self.assertIn("symmetric, unsymmetric or none", self.tool(2, "bench", graph, "--reorder=rcm"))
        self.assertIn("60 rows and 50 columns",
                      self.tool(2, "analyze", "generate:random,rows=60,cols=50,density=0.2", "--reorder=symmetric"))

    def test_every_option_can_be_swept(self):
        for line in self.tool(0, "help", "options").splitlines():
            name = line.strip().removeprefix("--").split("=")[0] if line.strip().startswith("--") else None
            if not name:
                continue
            said = self.tool(2, "analyze", self.matrix, f"--sweep={name}=nonsense")
            self.assertRegex(said, r"takes|recipe|must|cannot", name)

    def test_a_list_gives_a_line_for_each_matrix(self):
        with open(self.path("list"), "w", encoding="utf-8") as file:
            file.write(f"{self.matrix}\n/nonexistent.mtx\ngenerate:uniform,n=9,per_row=2\n")
        environment = {**os.environ, "CBGEN_CALIBRATION": "", "CBGEN_FAKE_SET": "memory=67108864,unrun=1"}
        result = subprocess.run([TOOL, "bench", "-q", "--json", "--repeat=1", "--sweep=recipe=sell,merge", "@" + self.path("list")],
                                capture_output=True, text=True, timeout=harness.LIMIT, check=False, env=environment)
        self.assertEqual([json.loads(line)["rows"] for line in result.stdout.splitlines()], [40, 9])
        self.assertIn("'/nonexistent.mtx'", result.stderr)
        self.assertEqual(result.returncode, 4)

    def test_arguments(self):
        for sweep, words in (("th1", "--sweep=OPTION=V,W"), ("=3", "--sweep=OPTION=V,W"), ("th1=", "--sweep=OPTION=V,W"),
                             ("th9=3", "th0"), ("th1=999", "a number from 0 to 257"), ("th1=3,", "a number from 0 to 257"),
                             ("recipe=nonsense", "nonsense"), ("th1=" + ",".join(["3"] * 65), "at most 64 values")):
            with self.subTest(sweep=sweep):
                self.assertIn(words, self.tool(2, "bench", self.matrix, f"--sweep={sweep}"))
        self.assertIn("given twice", self.tool(2, "bench", self.matrix, "--sweep=th1=3", "--sweep=th2=3"))
        self.assertIn("has no effect with '--sweep'", self.tool(2, "bench", self.matrix, "--sweep=th1=3", "--candidates"))
        self.assertIn("means nothing to 'run'", self.tool(2, "run", self.matrix, "--sweep=th1=3"))


class Loads(OnTheFakeGpu):
    """Nonzeros by thread block."""

    def analysis(self, matrix, *options):
        return json.loads(self.tool(0, "analyze", "--json", matrix, *options))

    def test_they_add_up_to_the_matrix(self):
        for matrix in ("generate:fe3,n=6", "generate:random,rows=500,cols=400,density=0.05", "generate:stencil7,n=12",
                       "generate:long_row,rows=2000,per_row=4,long_rows=3,long_length=1900", "generate:kkt,n=30"):
            for recipe in ("cb", "sell", "merge", "dia", "slices", "sell-long", "blocks", "runs"):
                with self.subTest(matrix=matrix, recipe=recipe):
                    options = [f"--recipe={recipe}"]
                    rows = json.loads(self.tool(0, "analyze", "--json", matrix, *options, f"--sweep=recipe={recipe}"))
                    row = rows["values"][0]
                    if "reason" in row and recipe not in ("cb", "sell", "merge"):
                        continue
                    loads = row["loads"]
                    self.assertAlmostEqual(loads["mean"] * loads["thread_blocks"], rows["nnz"], places=3)
                    self.assertLessEqual(loads["least"], loads["mean"])
                    self.assertLessEqual(loads["mean"], loads["most"])

    def test_balancing_levels_them(self):
        found = self.analysis("examples/bcsstk13.mtx.gz", "--recipe=cb", "--balance=heap")
        before, after = found["unbalanced"], found["loads"]
        self.assertAlmostEqual(before["mean"] * before["thread_blocks"], found["matrix"]["nonzeros"], places=3)
        self.assertLess(after["variation"], before["variation"] / 2)
        text = self.tool(0, "analyze", "examples/bcsstk13.mtx.gz", "--recipe=cb")
        self.assertRegex(text, r"(?m)^loads      \d+ to \d+ nonzeros per thread block")
        self.assertRegex(text, r"(?m)^unbalanced \d+ to \d+ nonzeros per thread block")

    def test_where_nothing_is_balanced_nothing_is_said(self):
        self.assertIsNone(self.analysis("generate:fe3,n=6", "--recipe=sell")["unbalanced"])

    def test_other_formats_bytes(self):
        """Against a count by hand: a matrix whose entries are known."""
        entries = {(0, 0), (15, 15), (16, 0), (33, 40), (7, 3), (8, 3)}
        with open(self.path("known.mtx"), "w", encoding="utf-8") as file:
            file.write(f"%%MatrixMarket matrix coordinate real general\n40 50 {len(entries)}\n")
            file.writelines(f"{row + 1} {column + 1} 1.5\n" for row, column in sorted(entries))
        found = self.analysis(self.path("known.mtx"), "--recipe=sell")
        blocks = {(row // 16, column // 16) for row, column in entries}
        chunks = {(row // 8, column) for row, column in entries}
        self.assertEqual(found["bsr16_bytes"], len(blocks) * (256 * 8 + 4) + 4 * (3 + 1))
        self.assertEqual(found["coo_bytes"], len(entries) * 16)
        census = found["profile"]["row_chunks"]
        self.assertEqual(census["columns"], len(chunks))
        self.assertAlmostEqual(census["empty_share"], 1 - len(chunks) / (5 * 50))
        self.assertAlmostEqual(census["density"], len(entries) / (8 * len(chunks)))


if __name__ == "__main__":
    harness.main(sys.argv[:1])
