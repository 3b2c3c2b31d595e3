#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Nothing is left out silently: every test has a limit that a loaded machine keeps and can say that it was skipped; what
was skipped is listed with its reason; and CI fails for a skip that is not allowed.

    tests/test_skips.py BUILD SCRATCH       in the source directory
"""
import json
import os
import shutil
import subprocess
import sys
import unittest

import harness

BUILD, SCRATCH = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
REPORT = os.path.abspath("tests/report_skips.py")
RESULTS = os.path.join(SCRATCH, "results.xml")
HARNESS = os.path.abspath("tests")


def run(*command, folder=None, **environment):
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, timeout=harness.LIMIT,
                          env={**os.environ, **environment})


class Registered(unittest.TestCase):
    def test_every_test_has_a_limit_and_can_be_skipped(self):
        tests = json.loads(run("ctest", "--test-dir", BUILD, "--show-only=json-v1").stdout)["tests"]
        self.assertGreater(len(tests), 50)
        for test in tests:
            properties = {each["name"]: each["value"] for each in test["properties"]}
            self.assertGreater(properties.get("TIMEOUT", 0), harness.LIMIT, test["name"])
            self.assertEqual(properties.get("SKIP_RETURN_CODE"), harness.SKIPPED_EXIT, test["name"])

    def test_skips_and_limits_of_the_sources_are_those_of_the_harness(self):
        for name in sorted(os.listdir("tests")):
            if not name.endswith((".c", ".h", ".py")) or name in ("skips.h", os.path.basename(__file__)):
                continue
            with open(os.path.join("tests", name), encoding="utf-8") as file:
                text = file.read()
            self.assertNotRegex(text, r"\bskip\(\)", f"{name}: skip_because of skips.h says why")
            self.assertNotRegex(text, r"\btimeout=\d", f"{name}: harness.LIMIT suits a loaded machine")
            self.assertNotRegex(text, r"unittest\.main\((?!argv=argv)", f"{name}: harness.main tells skips")
            if "skip_because" in text and "int main(" in text:
                self.assertIn("return exit_code_of(", text, f"{name}: its skips do not reach the exit code")

    def test_allowed_skips_have_reasons(self):
        with open(".ci/allowed_skips", encoding="utf-8") as file:
            lines = [line.rstrip("\n") for line in file if line.strip()]
        for before, line in zip([""] + lines, lines):
            if not line.startswith("#"):
                self.assertRegex(line, r"^\S+ \S.*")
                self.assertRegex(before, r"^(#|\S+ )", f"nothing above '{line}' says why")


PROJECT = """
cmake_minimum_required(VERSION 3.22)
project(skips LANGUAGES NONE)
enable_testing()
add_test(NAME good COMMAND {python} good.py)
add_test(NAME partly COMMAND {python} partly.py)
add_test(NAME broken COMMAND {python} broken.py)
add_test(NAME absent COMMAND sh -c "echo 'skipped: no such thing here'; exit 77")
add_test(NAME silent COMMAND sh -c "exit 77")
set_tests_properties(good partly broken absent silent PROPERTIES SKIP_RETURN_CODE 77)
"""
CASES = """
import sys, unittest
sys.path.insert(0, {harness!r})
import harness
class Case(unittest.TestCase):
    def test_done(self):
        self.assertTrue({right})
    @unittest.skipIf({skips}, "no coffee")
    def test_left_out(self):
        pass
harness.main(sys.argv[:1])
"""


class Listed(unittest.TestCase):
    """A small project of its own, run by ctest."""

    @classmethod
    def setUpClass(cls):
        shutil.rmtree(SCRATCH, ignore_errors=True)
        os.makedirs(SCRATCH)
        cls.write("CMakeLists.txt", PROJECT.format(python=sys.executable))
        for name, right, skips in (("good", True, False), ("partly", True, True), ("broken", False, True)):
            cls.write(f"{name}.py", CASES.format(harness=HARNESS, right=right, skips=skips))
        configured = run("cmake", "-S", SCRATCH, "-B", os.path.join(SCRATCH, "build"))
        assert configured.returncode == 0, configured.stderr
        for name in ("good", "partly", "broken"):
            shutil.copy(os.path.join(SCRATCH, f"{name}.py"), os.path.join(SCRATCH, "build"))

    @classmethod
    def write(cls, name, text):
        path = os.path.join(SCRATCH, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def ctest(self, *arguments):
        return run("ctest", "--test-dir", os.path.join(SCRATCH, "build"), "--output-junit", RESULTS, *arguments)

    def report(self, *arguments):
        return run(REPORT, RESULTS, *arguments)

    def test_a_skip_is_named_and_hides_no_failure(self):
        self.assertNotEqual(self.ctest().returncode, 0)
        summary = self.ctest("-E", "broken|silent")
        self.assertEqual(summary.returncode, 0, summary.stdout)
        self.assertRegex(summary.stdout, r"did not run:\s+\d - partly \(Skipped\)\s+\d - absent \(Skipped\)")
        listed = self.report()
        self.assertEqual((listed.returncode, listed.stdout),
                         (0, "\nSkipped: 2\n  absent: no such thing here\n  partly: Case.test_left_out: no coffee\n"))
        self.ctest("-R", "broken")
        self.assertIn("broken: Case.test_left_out: no coffee", self.report().stdout)

    def test_only_what_is_allowed_passes(self):
        self.ctest("-E", "broken|silent")
        allowed = self.write("allowed", "# this machine has none\npartly no coffee\nabsent no such thing\n")
        self.assertEqual(self.report(allowed).returncode, 0)
        for lines in ("absent no such thing\n", "absent no such thing\npartly no tea\n", "absent no such thing\ngood no coffee\n"):
            result = self.report(self.write("allowed", lines))
            self.assertEqual(result.returncode, 1)
            self.assertIn("partly: Case.test_left_out: no coffee   <- not allowed", result.stdout)
            self.assertEqual(result.stdout.count("<- not allowed"), 1)

    def test_a_skip_without_a_reason_is_never_allowed(self):
        self.ctest("-R", "silent")
        result = self.report(self.write("allowed", "silent it does not say why\nsilent \n"))
        self.assertEqual(result.returncode, 1)
        self.assertIn("silent: it does not say why   <- not allowed", result.stdout)

    def test_the_summary_stays_last(self):
        """What scripts/test makes of ctest's output: the list, then the summary, and its exit status."""
        script = f". '{os.path.abspath('scripts/common.sh')}'; run_tests '{SCRATCH}/build' -E 'broken|silent'"
        for allowed, status in (("partly no coffee\nabsent no such\n", 0), ("", 1)):
            result = run("bash", "-c", script, BUILD=os.path.join(SCRATCH, "work"),
                         CBGEN_ALLOWED_SKIPS=self.write("allowed", allowed))
            self.assertEqual(result.returncode, status, result.stdout + result.stderr)
            self.assertRegex(result.stdout, r"(?s)1/3 Test.*\nSkipped: 2.*absent: no such thing here.*"
                                            r"\n100% tests passed, 0 tests failed out of 3\n.*did not run:.*$")
        failing = run("bash", "-c", script.replace("broken|silent", "silent"), BUILD=os.path.join(SCRATCH, "work"))
        self.assertNotEqual(failing.returncode, 0)
        self.assertRegex(failing.stdout, r"(?s)Skipped: 3.*\n\d+% tests passed, 1 tests failed out of 4")


if __name__ == "__main__":
    harness.main([sys.argv[0], *sys.argv[3:]])
