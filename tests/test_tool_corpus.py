#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One real matrix through `cbgen verify`, as FP64 and as FP32.

    tests/test_tool_corpus.py TOOL MATRIX
"""
import subprocess
import sys

for value_type in ("f64", "f32"):
    result = subprocess.run([sys.argv[1], "verify", sys.argv[2], f"--type={value_type}"],
                            capture_output=True, text=True, check=False)
    print(f"== {value_type}\n{result.stdout}{result.stderr}")
    if result.returncode:
        sys.exit(f"cbgen verify --type={value_type} {sys.argv[2]}: exit code {result.returncode}")
