#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Expected plans, texts and errors, as files. For every NAME.mtx in tests/data/plans:

    NAME.plan   the line that `cbgen NAME.mtx --emit=plan` prints
    NAME.cu     the text of `cbgen NAME.mtx -o - --embed=never`
    NAME.err    the message that it ends with instead

A line "% options: --th1=8 …" in NAME.mtx adds options. With CBGEN_UPDATE_GOLDENS=1 in the environment the expected
files that exist are written anew: read the difference before committing it.

README.md shows the kernel of examples/bcsstk13.mtx.gz between "<!-- head -->" and "<!-- end -->", and the report of
`cbgen verify` on it behind "<!-- verify -->": these are goldens, too, but for times. The registers, spills and bytes of
the report are those of one version of NVRTC, which it names; with another they are not compared.

    tests/test_goldens.py TOOL          in the source directory
"""
import difflib
import os
import re
import subprocess
import sys

import harness

TOOL = os.path.abspath(sys.argv[1])
FOLDER = "tests/data/plans"
UPDATE = os.environ.get("CBGEN_UPDATE_GOLDENS") == "1"
EXAMPLE = "examples/bcsstk13.mtx.gz"
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
    actual = result.stderr if fails else result.stdout
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


def run(*arguments):
    return subprocess.run([TOOL, *arguments], capture_output=True, text=True, check=True).stdout


def shown_kernel():
    """The first lines of the kernel and of its first region."""
    kernel = run(EXAMPLE, "-o", "-").splitlines()
    region = next(i for i, line in enumerate(kernel) if line.startswith("// ---- region"))
    head = next(i for i, line in enumerate(kernel) if line.startswith("//   use"))
    return "\n".join([*kernel[:head + 1], "…", *kernel[region:region + 16], "…"])


def without_times(report):
    """What of a report the machine and its load do not change."""
    return re.sub(r" +\d+ ms$", " … ms", re.sub(r"\d+\.\d s\b", "… s", report), flags=re.M)


def nvrtc_of(report):
    found = re.search(r"^GPUs     NVRTC (\d+\.\d+) ", report, re.M)
    return found[1] if found else "none"


def shown_report(shown):
    """What README.md should show of verify: what it shows, where only times differ or NVRTC is another one."""
    report = run("verify", EXAMPLE).rstrip()
    if without_times(report) == without_times(shown):
        return shown
    if nvrtc_of(report) != nvrtc_of(shown) and not UPDATE:
        harness.skip(f"the registers in README.md are by NVRTC {nvrtc_of(shown)}; here it is {nvrtc_of(report)}")
        gpus = shown[shown.index("\nGPUs "):]
        report = report[:report.index("\nGPUs ")] + gpus
        return shown if without_times(report) == without_times(shown) else report
    return report


def check_readme():
    with open("README.md", encoding="utf-8") as file:
        readme = file.read()
    shown = re.search(r"<!-- verify -->\n```\n(.*?)\n```\n<!-- end -->", readme, re.S)[1]
    now = readme.replace(shown, shown_report(shown))
    block = f"<!-- head -->\n```cpp\n{shown_kernel()}\n```\n<!-- end -->"
    now = re.sub(r"<!-- head -->.*?<!-- end -->", lambda _: block, now, flags=re.S)
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
if not failures:
    print(f"{len(matrices)} matrices as expected")
harness.finish(failures)
