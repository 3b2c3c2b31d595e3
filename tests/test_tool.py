#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command line tool from outside: messages, exit codes, which files appear, and that none is ever half-written.

    tests/test_tool.py TOOL SCRATCH         in the source directory
"""
import glob
import gzip
import json
import os
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import time
import unittest

import harness

TOOL, SCRATCH = os.path.abspath(sys.argv[1]), sys.argv[2]
SMALL = os.path.abspath("examples/bcsstk13.mtx.gz")
NVCC = shutil.which("nvcc", path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/local/cuda/bin"]))


def cbgen(*arguments, **more):
    return subprocess.run([TOOL, *arguments], capture_output=True, text=True, check=False,
                          timeout=harness.LIMIT, **more)


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = harness.fresh_folder(self, SCRATCH)

    def path(self, name):
        return os.path.join(self.folder, name)

    def files(self):
        return sorted(os.listdir(self.folder))

    def check(self, code, message, *arguments, **more):
        """Runs the tool, expects the exit code, and the text in what it says on standard error."""
        result = cbgen(*arguments, **more)
        self.assertEqual(result.returncode, code, f"{arguments}: {result.stderr}")
        self.assertIn(message, result.stderr)
        if code:
            for line in result.stderr.splitlines():
                self.assertTrue(line.startswith("cbgen: "), line)
        return result


class Messages(Case):
    def test_usage(self):
        for message, *arguments in [
            ("no file given",),
            ("'generate' needs a file", "generate"),
            ("needs '-o FILE'", SMALL),
            ("did you mean '--output'", SMALL, "--outptu=x"),
            ("did you mean '--embed'", SMALL, "--embde=auto"),
            ("did you mean 'analyze'", "analyse", SMALL, "more"),
            ("unknown option '--completely-else'", SMALL, "--completely-else"),
            ("unknown option '-z'", SMALL, "-z"),
            ("use recipe 'sell'", SMALL, "-o", "x", "--panel-lanes=4"),
            ("use '--no-baselines'", "bench", SMALL, "--no-rivals"),
            ("use 'dia'", SMALL, "-o", "x", "--recipe=dia-panel"),
            ("'--output' needs a value", SMALL, "--output"),
            ("'-o' needs a value", SMALL, "-o"),
            ("'--json' takes no value", "analyze", SMALL, "--json=yes"),
            ("one file at a time", "analyze", SMALL, SMALL),
            ("'--emit' does not know 'obj'", SMALL, "-o", "x", "--emit=cu,obj"),
            ("'--emit' does not know ''", SMALL, "-o", "x", "--emit="),
            ("sm_90", SMALL, "-o", "x", "--arch=sm_12"),
            ("takes one '--arch'", SMALL, "-o", "x", "--arch=sm_80,sm_90"),
            ("'--embed=maybe'", SMALL, "-o", "x", "--embed=maybe"),
            ("type", SMALL, "-o", "x", "--type=f99"),
            ("th1", SMALL, "-o", "x", "--th1=many"),
            ("'--name='", SMALL, "-o", "x", "--name="),
            ("'-' takes one of the things", SMALL, "-o", "-", "--emit=cu,plan"),
            ("'--output' means nothing to 'analyze'", "analyze", SMALL, "--output=x"),
            ("no help on 'everything'", "help", "everything"),
            ("did you mean 'verify'", "verfy"),
            ("neither a verb nor a file; see 'cbgen --help'", "frobnicate"),
        ]:
            with self.subTest(arguments=arguments):
                self.check(2, message, *arguments)

    def test_refuses_what_has_no_effect(self):
        """Whatever is given changes what the verb does, or is refused before the file is read."""
        kernel, unread = self.path("k.cu"), self.path("unread.mtx")
        with open(unread, "w") as file:
            file.write("who reads this ends with 3\n")
        self.check(0, "", "generate:fe3,n=2", "--embed=always", "-o", kernel)
        for message, *arguments in [
            ("'--recipe' means nothing to 'verify' of a kernel that exists", "verify", kernel, "--recipe=sell"),
            ("'--type' means nothing to 'verify' of a kernel that exists", "verify", kernel, "--type=f32", "--th1=8"),
            ("'--tune' means nothing to 'verify' of a kernel that exists", "verify", kernel, "--tune=model"),
            ("'--tune=measure' means nothing to 'verify'", "verify", unread, "--tune=measure"),
            ("'--tune=measure' means nothing to 'analyze'", "analyze", unread, "--tune=measure"),
            ("'--json' means nothing here: it is for '--emit' with plan", unread, "-o", "x.cu", "--json"),
            ("'--json' means nothing here", unread, "-o", "x.cu", "--emit=cu,data", "--json"),
            ("'--embed' means nothing here: it is for '--emit' with cu", unread, "--emit=plan", "--embed=auto"),
            ("'--selftest' means nothing here", unread, "--emit=cubin", "-o", "x.cubin", "--selftest=off"),
            ("'--name' means nothing here", unread, "--emit=plan", "--name=a"),
            ("'--arch' means nothing to 'run'", "run", unread, "--arch=sm_90"),
            ("'--recipe' means nothing to 'cache'", "cache", "stats", "--recipe=sell"),
            ("'--recipe' means nothing to 'calibrate'", "calibrate", "--recipe=sell"),
            ("'--seed' means nothing to 'analyze'", "analyze", unread, "--seed=2"),
            ("'help' takes no '--json'", "help", "verify", "--json"),
            ("'--version' takes no 'more'", "--version", "more"),
            ("'--limit' means nothing to 'cache stats'", "cache", "stats", "--limit=4G"),
        ]:
            with self.subTest(arguments=arguments):
                self.check(2, message, *arguments)
        self.check(0, "", "verify", kernel, "--seed=3", "--arch=sm_90", "--json")
        self.check(0, "", "generate:fe3,n=2", "--emit=plan,cu", "--json", "--name=a", "--embed=always", "-o", kernel)

    def test_verbose_says_what_is_done_where_there_is_no_terminal(self):
        result = self.check(0, "", "generate:fe3,n=3", "-v", "-o", self.path("k.cu"))
        stages = ["reading 'generate:fe3,n=3'", "analysing 'fe3' for sm_90", "packing 'fe3'",
                  "computing the self-test of 'fe3'", "writing the text for 'fe3'"]
        lines = result.stderr.splitlines()
        self.assertEqual(lines[:len(stages)], [f"cbgen: {stage}" for stage in stages])
        self.assertNotIn("\r", result.stderr)
        self.assertEqual(self.check(0, "", "generate:fe3,n=3", "-vq", "-o", self.path("k.cu")).stderr.count("reading"), 0)
        self.assertEqual(self.check(0, "", "analyze", "generate:fe3,n=3").stderr, "")

    def test_bad_input(self):
        bad = self.path("bad.mtx")
        with open(bad, "w") as file:
            file.write("%%MatrixMarket matrix coordinate real general\n2 2 1\n3 1 1.0\n")
        result = self.check(3, "bad.mtx:3:", bad, "-o", self.path("kernel.cu"))
        self.assertEqual(len(result.stderr.splitlines()), 1)
        self.check(3, "bad.mtx:3:", "analyze", bad)
        self.assertEqual(self.files(), ["bad.mtx"])

    def test_a_file_that_is_missing_is_said_before_an_option_that_is(self):
        for arguments in (["nosuch.mtx"], ["generate", "nosuch.mtx"], ["verify", "nosuch.cu"], ["bench", "@nosuch.list"]):
            name = arguments[-1].lstrip("@")
            self.check(4, f"cannot open '{name}': No such file or directory", *arguments)

    def test_io(self):
        self.check(4, "missing.mtx", "analyze", self.path("missing.mtx"))
        self.check(4, "no-such-folder", SMALL, "-o", self.path("no-such-folder/kernel.cu"))
        with open("/dev/full", "w") as full:
            result = subprocess.run([TOOL, "help"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(result.returncode, 4)
        self.assertIn("standard output", result.stderr)

    def test_help_and_version(self):
        self.assertRegex(cbgen("--version").stdout, r"^cbgen \d+\.\d+\.\d+\n$")
        for arguments in (["--help"], ["-h"], ["help"], ["help", "options"], ["help", "shapes"], ["help", "recipes"]):
            result = self.check(0, "", *arguments)
            self.assertTrue(result.stdout)
            self.assertEqual(result.stderr, "")


class Files(Case):
    def test_short_form_is_generate(self):
        self.check(0, "", SMALL, "-o", self.path("a.cu"))
        self.check(0, "", "generate", f"--output={self.path('b.cu')}", "--", SMALL)
        with open(self.path("a.cu")) as a, open(self.path("b.cu")) as b:
            self.assertEqual(a.read(), b.read())

    def test_silent_in_pipes(self):
        result = self.check(0, "", SMALL, "-o", self.path("a.cu"))
        self.assertEqual((result.stdout, result.stderr), ("", ""))
        self.assertIn("a.cu", cbgen(SMALL, "-v", "-o", self.path("a.cu")).stderr)

    def test_one_product_takes_the_name_given(self):
        self.check(0, "", SMALL, "--emit=plan", "-o", self.path("what.txt"))
        self.assertEqual(self.files(), ["what.txt"])

    def test_several_share_the_stem(self):
        self.check(0, "", SMALL, "--emit=cu,data,plan", "-o", self.path("k.cu"))
        self.assertEqual(self.files(), ["k.cbd", "k.cu", "k.plan"])
        with open(self.path("k.plan")) as plan, open(self.path("k.cu")) as text:
            self.assertIn(plan.read().strip(), text.read())

    def test_data_beside_the_text(self):
        self.check(0, "", SMALL, "--embed=never", "-o", self.path("k.cu"))
        self.assertEqual(self.files(), ["k.cbd", "k.cu"])
        with open(self.path("k.cbd"), "rb") as file:
            magic, version = struct.unpack("<8sI", file.read(12))
        self.assertEqual((magic, version), (b"CBGENDAT", 2))
        self.check(0, "", SMALL, "--embed=always", "-o", self.path("all.cu"))
        self.assertEqual(self.files(), ["all.cu", "k.cbd", "k.cu"])

    def test_standard_output(self):
        self.check(0, "", SMALL, "-o", self.path("k.cu"))
        with open(self.path("k.cu")) as file:
            self.assertEqual(cbgen(SMALL, "-o", "-").stdout, file.read())
        plan = cbgen(SMALL, "--emit=plan").stdout
        self.assertRegex(plan, r"^\(spmv .*\)\n$")
        self.assertIsInstance(json.loads(cbgen(SMALL, "--emit=plan", "--json").stdout), dict)

    def test_a_dash_reads_standard_input(self):
        with open(SMALL, "rb") as file:
            packed = file.read()
        plain = gzip.decompress(packed)
        wanted = json.loads(self.check(0, "", "analyze", SMALL, "--json").stdout)
        for content in (packed, plain):
            result = subprocess.run([TOOL, "analyze", "-", "--json"], input=content, capture_output=True, timeout=harness.LIMIT, check=True)
            got = json.loads(result.stdout)
            self.assertEqual(got["matrix"], dict(wanted["matrix"], name="stdin"))
            self.assertEqual(got["plan"], wanted["plan"])
        with open(SMALL, "rb") as file:  # a file as it is, mapped; and from the middle of one
            self.check(0, "", "-", "-o", self.path("a.cu"), stdin=file)
        both = self.path("both")
        with open(both, "wb") as file:
            file.write(b"skip me\n" + plain)
        with open(both, "rb", buffering=0) as file:
            file.read(8)
            self.check(0, "", "generate", "-o", self.path("b.cu"), "-", stdin=file)
        with open(self.path("a.cu"), "rb") as a, open(self.path("b.cu"), "rb") as b:
            self.assertEqual(a.read(), b.read())
        self.check(3, "standard input:2: ", "analyze", "-", input="1 2\nx y\n")

    def test_name(self):
        text = cbgen("generate:diagonal,n=50", "-o", "-", "--name=my part 7").stdout
        self.assertIn('"my part 7"', text.splitlines()[0])
        self.assertIn("my_part_7_load", text)

    def test_type(self):
        double = cbgen(SMALL, "-o", "-", "--type=f64").stdout
        single = cbgen(SMALL, "-o", "-", "--type", "f32").stdout
        self.assertIn("double", double.splitlines()[0])
        self.assertIn("float", single.splitlines()[0])

    def test_permissions_are_ordinary(self):
        old = os.umask(0o022)
        try:
            self.check(0, "", SMALL, "-o", self.path("k.cu"))
        finally:
            os.umask(old)
        self.assertEqual(os.stat(self.path("k.cu")).st_mode & 0o777, 0o644)


class Names(Case):
    """What a name, an option or a path brings along commands no terminal and makes no second line."""
    def test_control_characters_are_escaped(self):
        bad = "evil\x1b[2J\nname"
        for code, *arguments in [(4, "analyze", self.path(bad)), (2, SMALL, "--recipe=" + bad), (2, SMALL, "--" + bad),
                                 (2, "help", bad), (4, SMALL, "-o", self.path(bad) + "/k.cu"), (2, bad + "x", "--" + bad)]:
            result = self.check(code, "evil\\x1b[2J\\x0aname", *arguments)
            self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        os.mkdir(self.path(bad))
        place = os.path.join(self.path(bad), bad)
        shutil.copy(SMALL, place + ".mtx.gz")
        result = self.check(0, "", place + ".mtx.gz", "-v", "-o", place + ".cu")
        self.assertEqual(re.findall(r"[\x00-\x09\x0b-\x1f\x7f]", result.stderr + result.stdout), [])
        with open(place + ".cu", encoding="utf-8") as file:
            self.assertNotIn("\x1b", file.read())


class Whole(Case):
    """Outputs are whole or absent, whatever happens in between."""

    def test_no_space(self):
        """A limit on the size of files stands for a full disk; the old file survives."""
        with open(self.path("k.cu"), "w") as file:
            file.write("old\n")

        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

        self.check(4, "File too large", SMALL, "-o", self.path("k.cu"), preexec_fn=limit)
        self.assertEqual(self.files(), ["k.cu"])
        with open(self.path("k.cu")) as file:
            self.assertEqual(file.read(), "old\n")

    def test_second_file_fails(self):
        os.mkdir(self.path("k.cu"))  # cannot be replaced by a file
        self.check(4, "k.cu", SMALL, "--embed=never", "-o", self.path("k.cu"))
        self.assertEqual([name for name in self.files() if ".tmp-" in name], [])

    def test_folder_in_the_way_of_the_text(self):
        """The text cannot be written, so its data are not left behind either, nor is the old data file replaced."""
        os.mkdir(self.path("DIR.cu"))
        self.check(4, "it is a directory", SMALL, "--embed=never", "-o", self.path("DIR.cu"))
        self.assertEqual(self.files(), ["DIR.cu"])
        os.mkdir(self.path("k.plan"))
        with open(self.path("k.cbd"), "w") as file:
            file.write("old\n")
        self.check(4, "it is a directory", SMALL, "--emit=cu,data,plan", "-o", self.path("k"))
        self.assertEqual(self.files(), ["DIR.cu", "k.cbd", "k.plan"])
        with open(self.path("k.cbd")) as file:
            self.assertEqual(file.read(), "old\n")

    def test_input_is_never_the_output(self):
        """By its own name, another of its names, a link, and as the data file beside the text."""
        for name in ("k.mtx.gz", "hard", "soft", "k.cbd"):
            shutil.copy(SMALL, self.path("k.mtx.gz"))
            if name != "k.mtx.gz":
                (os.symlink if name == "soft" else os.link)(self.path("k.mtx.gz"), self.path(name))
            output = self.path("k.cu" if name == "k.cbd" else name)
            self.check(2, "is the input", self.path("k.mtx.gz"), "--embed=never", "-o", output)
            with open(SMALL, "rb") as before, open(self.path("k.mtx.gz"), "rb") as after:
                self.assertEqual(before.read(), after.read(), name)
            self.assertFalse(os.path.exists(self.path("k.cu")))
            os.remove(self.path("k.mtx.gz"))

    def test_outputs_that_are_one_file(self):
        os.symlink("k.cu", self.path("k.cbd"))
        self.check(2, "are one file", SMALL, "--embed=never", "-o", self.path("k.cu"))
        self.assertEqual(self.files(), ["k.cbd"])

    def test_permissions_and_links_stay(self):
        self.check(0, "", SMALL, "-o", self.path("k.cu"))
        for mode in (0o644, 0o600, 0o664):
            os.chmod(self.path("k.cu"), mode)
            if not os.path.lexists(self.path("link.cu")):
                os.symlink("k.cu", self.path("link.cu"))
            self.check(0, "", SMALL, "-o", self.path("link.cu"))
            self.assertTrue(os.path.islink(self.path("link.cu")))
            self.assertEqual(os.stat(self.path("k.cu")).st_mode & 0o7777, mode)

    def test_device_and_pipe(self):
        """Written to, and still there; the data have no place then, and no file appears beside the pipe."""
        text = self.check(0, "", SMALL, "-o", "-", "--embed=never", "--quiet").stdout
        os.mkfifo(self.path("pipe"))
        with subprocess.Popen(["cat", self.path("pipe")], stdout=subprocess.PIPE, text=True) as reader:
            self.check(0, "data do not stand in it", SMALL, "-o", self.path("pipe"), "--embed=never")
            self.assertEqual(reader.communicate()[0], text)
        self.assertEqual(self.files(), ["pipe"])
        self.check(4, "No space left", SMALL, "-o", "/dev/full")
        self.check(2, "takes one of the things", SMALL, "-o", self.path("pipe"), "--emit=cu,plan")
        result = cbgen(SMALL, "-o", "/dev/stdout", "--embed=never", "--quiet")
        self.assertEqual((result.returncode, result.stdout), (0, text))

    def test_limit_on_the_size_of_files(self):
        """It raises a signal, which would end the tool; the message is another."""
        self.check(4, "File too large", SMALL, "-o", self.path("k.cu"),
                   preexec_fn=lambda: (signal.signal(signal.SIGXFSZ, signal.SIG_DFL),
                                       resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))))
        self.assertEqual(self.files(), [])

    def test_interrupt_while_a_pipe_has_no_reader(self):
        os.mkfifo(self.path("pipe"))
        with subprocess.Popen([TOOL, SMALL, "-o", self.path("pipe")], stderr=subprocess.PIPE) as child:
            try:
                child.wait(1.5)
                self.fail("the tool did not wait for a reader")
            except subprocess.TimeoutExpired:
                child.send_signal(signal.SIGINT)
            self.assertEqual(child.wait(60), -signal.SIGINT)

    def test_interrupt(self):
        """SIGINT while a temporary file exists removes it and kills the tool; looked for until it was hit. One that comes
        after the file got its name kills the tool as well, and the file is whole then."""
        arguments = ["generate:random,rows=20000,cols=20000,per_row=20", "--embed=always"]
        self.check(0, "", *arguments, "-o", self.path("whole.cu"))
        with open(self.path("whole.cu"), "rb") as file:
            whole = file.read()
        hits = 0
        for attempt in range(100):  # on a loaded machine the tool is often done before this process runs again
            output = self.path(f"k{attempt}.cu")
            with subprocess.Popen([TOOL, *arguments, "-o", output], stderr=subprocess.PIPE) as child:
                while child.poll() is None and not glob.glob(output + ".tmp-*"):
                    time.sleep(0.0002)
                child.send_signal(signal.SIGINT)
                message = child.communicate()[1]
            self.assertEqual(glob.glob(output + ".tmp-*"), [])
            self.assertIn(child.returncode, (0, -signal.SIGINT), message)
            if os.path.exists(output):
                with open(output, "rb") as file:
                    self.assertEqual(file.read(), whole)
            else:
                self.assertEqual(child.returncode, -signal.SIGINT)
                hits += 1
            if hits == 2:
                return
        self.fail("the tool was never interrupted while writing")


class Analyze(Case):
    def test_readable(self):
        text = self.check(0, "", "analyze", SMALL).stdout
        for part in ("2003", "83883", "(spmv ", "bytes per nonzero"):
            self.assertIn(part, text)
        self.assertLessEqual(max(map(len, text.splitlines())), 160)

    def test_json(self):
        document = json.loads(self.check(0, "", "analyze", SMALL, "--json").stdout)
        self.assertEqual(sorted(document),
                         ["because", "bsr16_bytes", "candidates", "coo_bytes", "csr_bytes", "loads", "matrix", "plan", "profile",
                          "stored_bytes", "unbalanced"])
        self.assertEqual(document["matrix"]["nonzeros"], 83883)

    def test_candidates(self):
        """The cheapest is the plan's, and the sentence says so; what does not fit says why."""
        document = json.loads(self.check(0, "", "analyze", SMALL, "--json").stdout)
        fit = [one for one in document["candidates"] if "refusal" not in one]
        self.assertGreaterEqual(len(fit), 3)
        cheapest = min(fit, key=lambda one: one["predicted_ns"])
        self.assertEqual(cheapest["recipe"], document["plan"]["recipe"])
        self.assertEqual(cheapest["plan"], document["plan"]["plan"][:239])
        self.assertEqual(cheapest["stored_bytes"], document["stored_bytes"])
        self.assertTrue(document["because"].startswith(f"{cheapest['recipe']} is predicted to be"))
        for one in fit:
            parts = one["parts"]
            self.assertEqual(sorted(parts), ["chain_ns", "gather_ns", "gpu_ns", "launch_ns", "stream_ns", "tail_ns",
                                             "work_ns"])
            self.assertGreaterEqual(one["predicted_ns"], max(parts.values()))
            self.assertGreaterEqual(parts["gpu_ns"], max(parts["stream_ns"], parts["gather_ns"]) + parts["tail_ns"])
            self.assertIn(one["decides"], ("launch", "stream", "gather", "work", "chain"))
            self.assertEqual(parts["launch_ns"], one["launches"] * document["plan"]["target"]["launch_ns"])

    def test_candidates_readable(self):
        spec = "generate:rmat,scale=10"
        text = self.check(0, "", "analyze", spec).stdout
        document = json.loads(self.check(0, "", "analyze", spec, "--json").stdout)
        refused = {one["recipe"]: one["refusal"] for one in document["candidates"] if "refusal" in one}
        self.assertIn("dia", refused)
        for recipe, refusal in refused.items():
            verdict = "" if refusal.startswith("not tried: ") else "refused: "
            self.assertRegex(text, rf"(?m)^  {recipe} +{verdict}{re.escape(refusal[:20])}")
            self.assertIn(f"{recipe} {verdict}{refusal}", " ".join(text.split()))
        for one in document["candidates"]:
            if one["recipe"] not in refused:
                self.assertRegex(text, rf"(?m)^  {one['recipe']} +{one['predicted_ns'] / 1000:.2f} ")
        self.assertIn(f"because    {document['because']}\n", text)
        self.assertLessEqual(max(map(len, text.splitlines())), 200)

    def test_a_named_recipe(self):
        document = json.loads(self.check(0, "", "analyze", SMALL, "--recipe=cb", "--json").stdout)
        self.assertEqual([one["recipe"] for one in document["candidates"]], ["cb"])
        self.assertIn("recipe 'cb' was asked for", document["because"])
        document = json.loads(self.check(0, "", "analyze", SMALL, "--tune=off", "--json").stdout)
        self.assertEqual(document["plan"]["recipe"], "sell")
        for matrix in ("generate:empty,rows=0,cols=3", "generate:empty,rows=3,cols=0"):
            document = json.loads(self.check(0, "", "analyze", matrix, "--json").stdout)
            self.assertTrue(document["because"])

    def test_measuring_is_for_others(self):
        for verb in ("analyze", "verify"):
            self.check(2, f"'--tune=measure' means nothing to '{verb}'", verb, SMALL, "--tune=measure")
        self.check(2, "'tune' cannot be 'guess'", "analyze", SMALL, "--tune=guess")

    def test_same_for_any_number_of_threads(self):
        outputs = {cbgen(SMALL, "-o", "-", "--embed=always", env={**os.environ, "OMP_NUM_THREADS": str(n)}).stdout
                   for n in (1, 2, 5)}
        self.assertEqual(len(outputs), 1)


class Trace(Case):
    MATRIX = ("generate:band,n=64,half=20,per_row=5", "--recipe=sell", "--form=ax")

    def test_row(self):
        """The golden: CBGEN_UPDATE_GOLDENS=1 writes it anew."""
        text, path = self.check(0, "", "trace", *self.MATRIX, "--row=9").stdout, "tests/data/traces/band.txt"
        if os.environ.get("CBGEN_UPDATE_GOLDENS") == "1":
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        with open(path, encoding="utf-8") as file:
            self.assertEqual(text, file.read())

    def test_block_as_json(self):
        document = json.loads(self.check(0, "", "trace", *self.MATRIX, "--block=0", "--json").stdout)
        self.assertEqual([row["row"] for row in document["rows"]], list(range(64)))
        for row in document["rows"]:
            self.assertTrue(row["right"])
            self.assertEqual(row["findings"], [])
            self.assertEqual(sum("nonzero" in step for step in row["steps"]), row["nonzeros"])

    def test_edited_kernel(self):
        kernel = self.path("k.cu")
        self.check(0, "", *self.MATRIX, "-o", kernel)
        with open(kernel, encoding="utf-8") as file:
            text = file.read()
        self.assertIn("* 32 + lane;", text)
        with open(kernel, "w", encoding="utf-8") as file:
            file.write(text.replace("* 32 + lane;", "* 32 + (lane ^ 2);"))
        text = self.check(1, "1 of 1 traced rows are wrong", "trace", *self.MATRIX, f"--kernel={kernel}", "--row=9").stdout
        self.assertIn("multiplies nonzero (8, 4), in slot 16, for row 9", text)
        self.check(2, "its plan is another", "trace", self.MATRIX[0], "--recipe=merge", f"--kernel={kernel}", "--row=9")

    def test_what_cannot_be_traced(self):
        for message, *arguments in [
            ("there is no row 64: the matrix has 64, from 0", *self.MATRIX, "--row=64"),
            ("there is no thread block 1: the kernel has 1, from 0", *self.MATRIX, "--block=1"),
            ("'--row=-1': it takes a number from 0", *self.MATRIX, "--row=-1"),
            ("takes a row or a thread block", *self.MATRIX),
            ("takes a row or a thread block", *self.MATRIX, "--row=1", "--block=0"),
            ("a trace needs the matrix too", "k.cu", "--row=1"),
            ("has no matrix, which a trace needs", 8 * "0f1e", "--row=1"),
        ]:
            with self.subTest(arguments=arguments):
                self.check(2, message, "trace", *arguments)


class Verify(Case):
    def test_matrix_and_kernel(self):
        self.check(0, "", "verify", SMALL)
        self.check(0, "", SMALL, "-o", self.path("k.cu"))
        self.check(0, "", "verify", self.path("k.cu"))
        self.check(0, "", SMALL, "--embed=never", "--type=f32", "-o", self.path("n.cu"))
        self.check(0, "", "verify", self.path("n.cu"))

    def test_every_type(self):
        for number, name in enumerate(("f64", "f32", "f32-f64", "f16-f32", "bf16-f32", "f16", "bf16", "split-f64")):
            values = ("data", "fixed")[number % 2]
            self.check(0, "", "generate:fe3,n=3", f"--type={name}", f"--values={values}", "-o", self.path("k.cu"))
            self.check(0, "", "verify", self.path("k.cu"), "--arch=sm_90")

    def test_values_beyond_a_type(self):
        with open(self.path("large.mtx"), "w", encoding="ascii") as file:
            file.write("%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n2 2 65520\n")
        for values in ("data", "fixed"):
            self.check(3, "nonzero 1 (counted from 0) is 65520", self.path("large.mtx"), "--type=f16-f32",
                       f"--values={values}", "-o", self.path("l.cu"))
        self.check(0, "", self.path("large.mtx"), "--type=bf16-f32", "-o", self.path("l.cu"))

    def test_finds_a_wrong_kernel(self):
        """A value changed in the data must be found."""
        self.check(0, "", SMALL, "--embed=never", "-o", self.path("k.cu"))
        with open(self.path("k.cbd"), "r+b") as file:
            file.seek(4096)
            byte = file.read(1)
            file.seek(4096)
            file.write(bytes([byte[0] ^ 0x40]))
        self.assertIn(cbgen("verify", self.path("k.cu")).returncode, (1, 3))

    def test_clang_finds_what_compilers_do_not(self):
        """A y that is written past commit, with what commit wrote, is right in all rows; it is found, in its line."""
        self.check(0, "", SMALL, "--form=ax", "--recipe=sell", "-o", self.path("k.cu"))
        report = cbgen("verify", self.path("k.cu"), "--clang").stdout
        if "libclang ('" in report:
            harness.skip("there is no libclang")
        self.assertIn("nothing to object to", report)
        with open(self.path("k.cu"), encoding="utf-8") as file:
            text = file.read()
        self.assertEqual(text.count("commit(vectors, row, sum);"), 1)
        with open(self.path("k.cu"), "w", encoding="utf-8") as file:
            file.write(text.replace("commit(vectors, row, sum);", "{ commit(vectors, row, sum); vectors.y[row] = sum; }"))
        line = text[:text.index("commit(vectors, row, sum);")].count("\n") + 1
        result = self.check(1, f"in line {line}", "verify", self.path("k.cu"), "--clang")
        self.assertIn("y: 'multiply' reaches y", result.stdout)
        document = json.loads(cbgen("verify", self.path("k.cu"), "--clang", "--json").stdout)["clang"]
        self.assertEqual((document["status"], document["findings"][0]["line"]), ("wrong", line))
        self.check(2, "--clang", "analyze", SMALL, "--clang")

    def test_checks_of_indices(self):
        result = self.check(0, "", "verify", SMALL, "--check", "--arch=sm_90")
        self.assertIn("every index was checked before it was used\n", result.stdout)
        self.assertTrue(json.loads(cbgen("verify", SMALL, "--check", "--json", "--arch=sm_90").stdout)["checked"])
        self.assertNotIn("every index", self.check(0, "", "verify", SMALL, "--arch=sm_90").stdout)
        self.check(0, "", SMALL, "-o", self.path("k.cu"))
        self.check(2, "'--check' means nothing to 'verify' of a kernel that exists", "verify", self.path("k.cu"), "--check")
        self.check(2, "--check", "analyze", SMALL, "--check")

    def test_data_that_are_missing_are_no_wrong_kernel(self):
        self.check(0, "", "generate:fe3,n=3", "--embed=never", "-o", self.path("k.cu"))
        os.remove(self.path("k.cbd"))
        result = self.check(4, f"cannot be read from '{self.path('k.cbd')}'", "verify", self.path("k.cu"))
        self.assertNotIn("WRONG", result.stdout)


class Selftest(Case):
    """-DCBGEN_SELFTEST makes a program of the text, which finds its data beside the text whatever the matrix is called."""

    def setUp(self):
        super().setUp()
        self.check(0, "", "generate:fe3,n=3", "--embed=never", "-o", self.path("k.cu"))

    def test_finds_its_data_beside_the_text_on_the_host(self):
        """Under a name of its own nothing tells the program where its data are but the text."""
        shutil.copy(self.path("k.cu"), self.path("link.cu"))
        os.rename(self.path("k.cbd"), self.path("link.cbd"))
        os.symlink(self.path("link.cu"), self.path("other.cu"))  # beside which there is no other.cbd
        self.check(0, "", "verify", self.path("other.cu"), "--arch=sm_90")

    @unittest.skipUnless(NVCC, "there is no nvcc")
    def test_finds_its_data_beside_the_text_with_nvcc(self):
        """From another folder, too, and where it was not compiled; without a GPU it comes as far as looking for one."""
        work, away = self.path("work"), self.path("away")
        os.makedirs(away)
        shutil.copytree(self.folder, work, ignore=shutil.ignore_patterns("work", "away"))
        subprocess.run([NVCC, "-arch=sm_90", "-DCBGEN_SELFTEST", "work/k.cu", "-o", self.path("program")], check=True,
                       cwd=self.folder)
        for folder in (self.folder, work):
            self.check_program(folder, "work/k.cbd" if folder != work else "k.cbd")
        result = subprocess.run([self.path("program")], capture_output=True, text=True, check=False, cwd=away)
        self.assertEqual(result.returncode, 4)
        self.assertIn("k.cbd: the data file cannot be read: name it as the argument", result.stderr)
        self.check_program(away, "../k.cbd", "../k.cbd")

    def check_program(self, folder, data, *arguments):
        result = subprocess.run([self.path("program"), *arguments], capture_output=True, text=True, check=False, cwd=folder)
        if result.returncode:
            self.assertEqual((result.returncode, result.stderr),
                             (1, f"fe3: {data}: no GPU is there, or no driver for it\n"))
        else:
            self.assertIn(": ok: 81 rows", result.stdout)


class Evidence(Case):
    """A kernel.cu is verified when its kernel has computed y, not when its program says so."""
    def setUp(self):
        super().setUp()
        self.check(0, "", "generate:random,rows=40,cols=30,density=0.2", "--embed=always", "-q", "-o", self.path("k.cu"))
        with open(self.path("k.cu"), encoding="utf-8") as file:
            self.text = file.read()

    def verify(self, code, message, text):
        with open(self.path("k.cu"), "w", encoding="utf-8") as file:
            file.write(text)
        return self.check(code, message, "verify", self.path("k.cu"), env={**os.environ, "CBGEN_NVRTC": "/nonexistent"})

    def test_program_without_a_kernel(self):
        lies = '#include <cstdio>\nint main() { printf("m: ok: 3 rows, largest error 0 of its tolerance\\n"); }\n'
        result = self.verify(3, "no kernel of cbgen's", lies)
        self.assertNotIn("ok: 3 rows", result.stdout)

    def test_program_that_runs_no_kernel(self):
        main = self.text.replace("int main() {", 'int main() { printf("random: ok: 40 rows\\n"); return 0;')
        self.assertNotEqual(main, self.text)
        self.verify(1, "no kernel ran", main)

    def test_program_that_calls_a_wrong_product_right(self):
        wrong = self.text.replace("error <= tolerance[i]", "error <= 1e300")
        self.assertNotEqual(wrong, self.text)
        self.verify(0, "", wrong)  # it is the comparison that is wrong, not y
        worse = wrong.replace("host[i] = vector_t(", "host[i] = vector_t(1.0 + ")
        self.assertNotEqual(worse, wrong)
        self.verify(1, "the self-test calls the product right, and row", worse)


class Missing(Case):
    """A machine that lacks something: what needs it says so, the rest works."""

    def without(self, **variables):
        return {**os.environ, **variables}

    def test_no_nvrtc(self):
        environment = self.without(CBGEN_NVRTC="/nonexistent")
        self.check(5, "NVRTC", SMALL, "--emit=cu,ptx", "-o", self.path("k.cu"), env=environment)
        self.assertEqual(self.files(), [])
        result = self.check(0, "", "verify", "generate:diagonal,n=20", env=environment)
        self.assertIn("not compiled: NVRTC", result.stdout)
        document = json.loads(cbgen("verify", "generate:diagonal,n=20", "--json", env=environment).stdout)
        self.assertEqual((document["host"]["status"], document["nvrtc"]["status"]), ("ok", "missing"))

    def test_no_libclang(self):
        environment = self.without(CBGEN_LIBCLANG="/nonexistent")
        result = self.check(0, "", "verify", "generate:diagonal,n=20", "--clang", "--arch=sm_90", env=environment)
        self.assertIn("clang    not checked: libclang is not at '/nonexistent', which CBGEN_LIBCLANG names", result.stdout)

    def test_no_driver(self):
        environment = self.without(CBGEN_LIBCUDA="/nonexistent")
        self.check(5, "driver", "run", SMALL, env=environment)
        self.check(5, "driver", "bench", SMALL, env=environment)

    def test_no_host_compiler(self):
        environment = self.without(CXX="/nonexistent/c++")
        result = self.check(5, "/nonexistent/c++", "verify", "generate:diagonal,n=20", env=environment)
        self.assertIn("host     not executed", result.stdout)

    def test_text_that_does_not_compile(self):
        whole, broken = self.path("whole.cu"), self.path("broken.cu")
        self.check(0, "", "generate:tridiagonal,n=9", "-q", "-o", whole)
        with open(whole) as file:
            text = file.read()
        self.assertIn("\nnamespace ", text)
        with open(broken, "w") as file:
            file.write(text.replace("\nnamespace ", "\nthis is no CUDA ", 1))
        result = cbgen("verify", broken)
        self.assertEqual(result.returncode, 7, result.stderr)
        self.assertIn("broken.cu", result.stderr)

    def test_text_that_is_no_kernel(self):
        with open(self.path("other.cu"), "w") as file:
            file.write("this is no CUDA\n")
        self.check(3, "no kernel of cbgen's", "verify", self.path("other.cu"))


if __name__ == "__main__":
    harness.main([sys.argv[0], *sys.argv[3:]])
