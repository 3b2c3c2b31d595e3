#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One real matrix through `cbgen verify`, as FP64 and as FP32, with the recipe that the tool chooses and with CB-SpMV;
and with narrower values, and fixed ones.

    tests/test_tool_corpus.py TOOL MATRIX
"""
import subprocess
import sys

TOOL, MATRIX = sys.argv[1:3]


def verify(*options):
    result = subprocess.run([TOOL, "verify", MATRIX, *options], capture_output=True, text=True, check=False)
    print(f"== {' '.join(options)}\n{result.stdout}{result.stderr}", flush=True)
    if result.returncode:
        sys.exit(f"cbgen verify {' '.join(options)} {MATRIX}: exit code {result.returncode}")
    return result.stdout


for value_type in ("f64", "f32"):
    if "(spmv (cb (" not in verify(f"--type={value_type}"):
        verify(f"--type={value_type}", "--recipe=cb")
verify("--type=f32-f64", "--values=fixed")
verify("--type=bf16-f32")
