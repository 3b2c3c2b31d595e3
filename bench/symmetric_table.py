#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A Markdown table of what `cbgen bench --json` has measured of symmetric matrices, first each as it is and then with
half of it stored: bench/symmetric_table.py NAME=FILE.jsonl …, where NAME is said of the lines of a file.

Speed-ups are over cuSPARSE's best of the first line of the matrix, and over what that line's kernel takes. Memory is the
stored bytes over those of CSR with 32-bit indices."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import records  # noqa: E402


def best(result):
    right = [b["time"]["us"] for b in result["baselines"] if b["applies"] and not b["wrong"] and b["time"]["us"]]
    return min(right, default=0)


def csr_bytes(result):
    return 12 * result["nnz"] + 4 * (result["rows"] + 1)


def row(name, result, first):
    us, opponent = result["time"]["us"], best(first)
    layout = result["plan"].split("(")[2].split()[0]
    kernels = result["kernels"]
    registers = max((k.get("registers", 0) for k in kernels), default=0)
    spills = sum(k.get("spilled_bytes", 0) for k in kernels)
    cells = [result["matrix"], name, layout, f"{us:.1f}", f"{result['predicted_us']:.1f}", f"{result['bound_us']:.1f}",
             f"{opponent / us:.2f}" if opponent and us else "-", f"{first['time']['us'] / us:.2f}" if us else "-",
             f"{result['stored_bytes'] / csr_bytes(result):.2f}", registers, spills]
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def main():
    first = {}
    print("| matrix | storage | layout | µs | predicted | bound | over cuSPARSE's best | over the whole matrix | memory | "
          "registers | spills |\n| --- | --- | --- | --: | --: | --: | --: | --: | --: | --: | --: |")
    for argument in sys.argv[1:]:
        name, path = argument.split("=", 1)
        for result in records.read(path):
            print(row(name, result, first.setdefault(result["matrix"], result)))


if __name__ == "__main__":
    main()
