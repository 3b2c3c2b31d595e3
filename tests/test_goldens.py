#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Expected plans, texts and errors, as files. For every NAME.mtx in tests/data/plans:

    NAME.plan   the line that `cbgen NAME.mtx --emit=plan` prints
    NAME.cu     the text of `cbgen NAME.mtx -o - --embed=never`, but for the shims, which are the same in all
    NAME.err    the message that it ends with instead

A line "% options: --th1=8 …" in NAME.mtx adds options. With CBGEN_UPDATE_GOLDENS=1 in the environment the expected
files that exist are written anew: read the difference before committing it.

README.md shows the kernel of examples/bcsstk13.mtx.gz between "<!-- head -->" and "<!-- end -->": that is a golden, too.

    tests/test_goldens.py TOOL          in the source directory
"""
import difflib
import os
import re
import subprocess
import sys

TOOL = os.path.abspath(sys.argv[1])
FOLDER = "tests/data/plans"
UPDATE = os.environ.get("CBGEN_UPDATE_GOLDENS") == "1"
SHIMS = "// ---- the shims are left out of this golden"
failures = []


def options_of(name):
    with open(name, encoding="utf-8") as file:
        marked = [line for line in file if line.startswith("% options:")]
    return [option for line in marked for option in line.split(":", 1)[1].split()]


def check(matrix, suffix, arguments):
    """Returns 1 when there is such an expectation."""
    path = os.path.join(FOLDER, matrix[:-4] + suffix)
    if not os.path.exists(path):
        return 0
    command = [TOOL, matrix, *arguments, *options_of(os.path.join(FOLDER, matrix))]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=FOLDER)
    fails = suffix == ".err"
    actual = result.stderr if fails else re.sub(r"(?ms)^// ---- shims.*?^// ---- end of the shims", SHIMS, result.stdout)
    if bool(result.returncode) != fails:
        failures.append(f"{path}: exit code {result.returncode}\n{result.stderr}")
    elif UPDATE:
        with open(path, "w", encoding="utf-8") as file:
            file.write(actual)
    else:
        with open(path, encoding="utf-8") as file:
            expected = file.read()
        compare(path, expected, actual)
    return 1


def compare(path, expected, actual):
    if expected != actual:
        difference = difflib.unified_diff(expected.splitlines(), actual.splitlines(), path, "now", lineterm="", n=1)
        failures.append("\n".join(list(difference)[:60]))


def check_readme():
    """The first lines of the kernel and of its first region; and the plan in the report of verify, whose other lines
    vary with the machine."""
    example = "examples/bcsstk13.mtx.gz"
    kernel = subprocess.run([TOOL, example, "-o", "-"], capture_output=True, text=True, check=True).stdout.splitlines()
    plan = subprocess.run([TOOL, example, "--emit=plan"], capture_output=True, text=True, check=True).stdout.strip()
    region = next(i for i, line in enumerate(kernel) if line.startswith("// ---- region"))
    shown = "\n".join([*kernel[:5], "…", *kernel[region:region + 16], "…"])
    with open("README.md", encoding="utf-8") as file:
        readme = file.read()
    block = f"<!-- head -->\n```cpp\n{shown}\n```\n<!-- end -->"
    now = re.sub(r"<!-- head -->.*?<!-- end -->", lambda _: block, readme, flags=re.S)
    if f"\nplan     {plan}\n" not in readme:
        failures.extend([] if UPDATE else [f"README.md: the report of verify is of another plan than {plan}"])
        report = subprocess.run([TOOL, "verify", example], capture_output=True, text=True, check=True).stdout.rstrip()
        block = f"<!-- verify -->\n```\n{report}\n```\n<!-- end -->"
        now = re.sub(r"<!-- verify -->.*?<!-- end -->", lambda _: block, now, flags=re.S)
    if UPDATE:
        with open("README.md", "w", encoding="utf-8") as file:
            file.write(now)
    else:
        compare("README.md", readme, now)


matrices = sorted(name for name in os.listdir(FOLDER) if name.endswith(".mtx"))
for matrix in matrices:
    checked = check(matrix, ".plan", ["--emit=plan"]) + check(matrix, ".err", ["--emit=plan"])
    checked += check(matrix, ".cu", ["-o", "-", "--embed=never", "-q"])
    if not checked:
        failures.append(f"{matrix}: expects nothing: add a .plan, a .cu or an .err")
check_readme()
if len(matrices) < 8:
    failures.append(f"only {len(matrices)} matrices found in {FOLDER}")
print("\n".join(failures) or f"{len(matrices)} matrices as expected")
sys.exit(1 if failures else 0)
