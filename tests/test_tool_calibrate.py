#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cbgen calibrate` and --tune=measure from outside, on the fake GPU: what they print, write and refuse, and that
products follow them.

    tests/test_tool_calibrate.py TOOL SCRATCH         in the source directory; the environment names the fake
"""
import json
import os
import subprocess
import sys
import unittest

import harness

TOOL, SCRATCH = os.path.abspath(sys.argv[1]), sys.argv[2]
CLOCK = "memory=4194304,scalar_ns=100"  # little memory: the fake executes every thread
FIGURES = {"l2_gb_per_s": 9175, "sectors_g_per_s": 573, "latency_ns": 100, "launch_ns": 5001}


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = harness.fresh_folder(self, SCRATCH)
        self.directory = os.path.join(self.folder, "calibrations")
        self.file = os.path.join(self.directory, "fake-gpu.json")
        self.environment = {**os.environ, "CBGEN_CALIBRATION": self.directory, "CBGEN_FAKE_SET": CLOCK,
                            "CBGEN_FAKE_STRICT": "1"}

    def check(self, code, message, *arguments, **variables):
        """Runs `cbgen …`, expects the exit code, and the text in what it says on standard error."""
        environment = {**self.environment, **variables}
        result = subprocess.run([TOOL, *arguments], capture_output=True, text=True, timeout=harness.LIMIT, check=False,
                                env={name: value for name, value in environment.items() if value is not None})
        self.assertEqual(result.returncode, code, f"{arguments}: {result.stderr}")
        self.assertIn(message, result.stderr)
        if not message:
            self.assertEqual(result.stderr, "")
        return result


class Calibrate(Case):
    def setUp(self):
        super().setUp()
        plan = json.loads(self.check(0, "", "analyze", "generate:fe3,n=2", "--arch=sm_90", "--json").stdout)["plan"]
        self.shipped = plan["target"]

    def test_to_the_directory(self):
        text = self.check(0, "", "calibrate", "--repeat=1").stdout
        self.assertIn("Fake GPU, sm_90, 7 multiprocessors", text)
        self.assertRegex(text, rf"(?m)^load that hits L2 .* ns +100 +{self.shipped['latency_ns']}$")
        self.assertIn(f"written to '{self.file}'; plans for this GPU follow it", text)
        with open(self.file, encoding="utf-8") as file:
            kept = json.load(file)
        self.assertEqual({name: kept[name] for name in FIGURES}, FIGURES)
        self.assertEqual(os.listdir(self.directory), ["fake-gpu.json"])
        # again: the figures that ship stay beside it, and the old file is named on request
        text = self.check(0, f"calibration '{self.file}' is in use", "calibrate", "--repeat=1", "-v").stdout
        self.assertRegex(text, rf"(?m)^load that hits L2 .* ns +100 +{self.shipped['latency_ns']}$")

    def test_to_a_file(self):
        path = os.path.join(self.folder, "elsewhere.json")
        text = self.check(0, "", "calibrate", "--repeat=1", "-o", path).stdout
        self.assertTrue(text.endswith(f"written to '{path}'\n"))
        self.assertFalse(os.path.exists(self.directory))
        with open(path, encoding="utf-8") as file:
            kept = file.read()
        self.assertEqual(self.check(0, "", "calibrate", "--repeat=1", "-o", "-").stdout, kept)
        self.assertEqual(self.check(0, "", "calibrate", "--repeat=1", "-q", "-o", path).stdout, "")

    def test_products_follow_it(self):
        before = json.loads(self.check(0, "", "run", "generate:fe3,n=2", "--json", "--recipe=sell").stdout)
        self.check(0, "", "calibrate", "--repeat=1", "-q")
        after = json.loads(self.check(0, "", "run", "generate:fe3,n=2", "--json", "--recipe=sell").stdout)
        self.assertEqual(before["device"]["calibration"], "")
        self.assertIn("is in use", after["device"]["calibration"])
        self.assertEqual({name: after["device"]["figures"][name] for name in FIGURES}, FIGURES)
        self.assertEqual(before["device"]["figures"]["launch_ns"], self.shipped["launch_ns"])
        self.assertGreater(after["predicted_us"], before["predicted_us"] + 2)

    def test_a_broken_one_is_ignored(self):
        os.makedirs(self.directory)
        with open(self.file, "w", encoding="utf-8") as file:
            file.write("{")
        result = json.loads(self.check(0, "", "run", "generate:fe3,n=2", "--json", "--recipe=sell").stdout)
        self.assertIn("is ignored: line 1", result["device"]["calibration"])
        self.assertEqual(result["device"]["figures"]["launch_ns"], self.shipped["launch_ns"])
        self.check(0, "is ignored", "calibrate", "--repeat=1", "-v")  # and replaced
        result = json.loads(self.check(0, "", "run", "generate:fe3,n=2", "--json", "--recipe=sell").stdout)
        self.assertEqual(result["device"]["figures"]["launch_ns"], 5001)

    def test_refused(self):
        for code, message, *arguments in [
            (2, "'calibrate' takes no 'a.mtx'", "a.mtx"),
            (2, "'--type' means nothing to 'calibrate'", "--type=f32"),
            (2, "'--json' means nothing to 'calibrate'", "--json"),
            (2, "did you mean '--device'", "--devise=1"),
            (2, "there is no GPU '3'", "--device=3"),
            (2, "'--repeat=0'", "--repeat=0"),
            (4, "cannot create", "-o", "/proc/none/c.json"),
        ]:
            with self.subTest(arguments=arguments):
                self.assertEqual(self.check(code, message, "calibrate", *arguments).stdout, "")
        self.check(5, "'CBGEN_CALIBRATION' is empty", "calibrate", "--repeat=1", CBGEN_CALIBRATION="")
        self.check(8, "'l2_gb_per_s' is 0 GB/s; 10 to 1000000 are plausible", "calibrate", "--repeat=1",
                   CBGEN_FAKE_SET="memory=4194304")
        self.check(5, "GPU", "calibrate", CBGEN_FAKE_SET="devices=0")
        self.check(5, "CUDA driver", "calibrate", CBGEN_LIBCUDA="/nonexistent.so")
        self.assertFalse(os.path.exists(self.file))

    def test_help(self):
        text = self.check(0, "", "help", "calibrate").stdout
        for word in ("CBGEN_CALIBRATION", "--device", "--repeat", "--output"):
            self.assertIn(word, text)
        self.assertNotIn("help options", text)


class Tune(Case):
    def setUp(self):
        super().setUp()
        self.environment.update(CBGEN_CALIBRATION="", CBGEN_FAKE_SET="memory=67108864")

    def test_run(self):
        result = json.loads(self.check(0, "", "run", "generate:fe3,n=2", "--tune=measure", "--json").stdout)
        variants = result["tuning"]
        self.assertGreaterEqual(len(variants), 3)
        self.assertEqual(sum(one["fastest"] for one in variants), 1)
        fastest = min(one["us"] for one in variants)
        self.assertGreater(fastest, 0)
        self.assertEqual([one["us"] for one in variants if one["fastest"]], [fastest])
        self.assertEqual(result["check"]["wrong"], 0)
        self.assertGreater(result["stages_ms"]["tune"], 0)
        text = self.check(0, "", "run", "generate:fe3,n=2", "--tune=measure").stdout
        self.assertRegex(text, r"(?m)^          \* \S.*: [0-9.]+ µs, predicted [0-9.]+$")
        self.assertEqual(json.loads(self.check(0, "", "run", "generate:fe3,n=2", "--json").stdout)["tuning"], [])

    def test_generate(self):
        path = os.path.join(self.folder, "k.cu")
        said = self.check(0, "predicted", "generate", "generate:fe3,n=2", "--tune=measure", "-o", path, "-v").stderr
        self.assertRegex(said, r"(?m)^cbgen: sell: [0-9.]+ us, predicted [0-9.]+$")
        with open(path, encoding="utf-8") as file:
            self.assertIn("target  sm_90, 7 SMs", file.read())
        self.check(2, "the GPU that would measure is 'sm_90'", "generate", "generate:fe3,n=2", "--tune=measure",
                   "--arch=sm_80", "-o", path)
        self.check(5, "CUDA driver", "generate", "generate:fe3,n=2", "--tune=measure", "-o", path,
                   CBGEN_LIBCUDA="/nonexistent.so")
        self.check(5, "NVRTC", "generate", "generate:fe3,n=2", "--tune=measure", "-o", path,
                   CBGEN_NVRTC="/nonexistent.so")
        self.assertEqual(os.listdir(self.folder), ["k.cu"])


if __name__ == "__main__":
    harness.main(sys.argv[:1])
