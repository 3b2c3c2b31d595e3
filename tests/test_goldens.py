#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Expected plans, texts and errors, as files. For every NAME.mtx in tests/data/plans:

    NAME.plan   the line that `cbgen NAME.mtx --emit=plan` prints
    NAME.cu     the text of `cbgen NAME.mtx -o - --embed=never`
    NAME.err    the message that it ends with instead

A line "% options: --th1=8 …" in NAME.mtx adds options. With CBGEN_UPDATE_GOLDENS=1 in the environment the expected
files that exist are written anew: read the difference before committing it.

README.md shows the kernel of examples/bcsstk13.mtx.gz between "<!-- head -->" and "<!-- end -->", two recipes of one
matrix behind "<!-- beside -->", and the report of `cbgen verify` on the first matrix behind "<!-- verify -->": these are
goldens, too, but for times. The registers, spills and bytes of the report are those of one version of NVRTC, which it
names; with another they are not compared. docs/cb-spmv.md shows a table of column lists behind "<!-- lists -->".

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
BESIDE = "generate:fe3,n=20"
LISTED = ["s2rmq4m1_pat", "bcsstk29_pat", "wang4", "smallLQCD_A1", "nasa4704", "lnsp3937", "delaunay_n13", "road_USA-NY"]
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


def shown_recipe(recipe):
    """Of a kernel for BESIDE: why it is as it is, counts, what it stores, and the first lines of tables."""
    kernel = run(BESIDE, f"--recipe={recipe}", "-o", "-", "--embed=never", "-q").splitlines()
    starts = [i for i, line in enumerate(kernel) if line.startswith(("//   plan", "//   use", "struct Arrays"))]
    plan, use, arrays = starts[:3]
    shown = [f"// --recipe={recipe}", *[line for line in kernel[plan:use] if "target" not in line]]
    shown += [line for line in kernel if re.match(r"constexpr int k(Panels|Lists|(Coo|Csr|Dense)(Blocks|Runs)) = ", line)]
    shown += kernel[arrays:kernel.index("};", arrays) + 1]
    tables = [i for i, line in enumerate(kernel) if line.startswith("__device__ const")]
    for table in tables:
        shown += [*kernel[table:table + 3], "    …"]
    return shown


def shown_beside():
    return "\n".join([*shown_recipe("auto"), "", *shown_recipe("cb")])


def stored_bytes(matrix, lists):
    report = run("analyze", matrix, "--recipe=cb", f"--bake-lists={lists}")
    return re.search(r"^stored +([\d.]+)", report, re.M)[1]


def shown_lists():
    """What column lists of cb cover and save on matrices of the corpus."""
    rows = ["| matrix | sub-blocks | lists | that have one of them | `bake-lists=off` | `auto` |",
            "| --- | --: | --: | --: | --: | --: |"]
    for name in LISTED:
        matrix = f"tests/data/corpus/{name}.mtx.zst"
        plan = run(matrix, "--recipe=cb", "--emit=plan")
        facts = dict(re.findall(r"\((lists|coo|csr|dense) ([^)]*)\)", plan))
        blocks = sum(int(facts.get(key, 0)) for key in ("coo", "csr", "dense"))
        lists, covered = facts.get("lists", "none 0").split()
        rows.append(f"| {name} | {blocks} | {lists} | {covered} | {stored_bytes(matrix, 'off')} | "
                    f"{stored_bytes(matrix, 'auto')} |")
    return "\n".join(rows)


def check_lists():
    with open("docs/cb-spmv.md", encoding="utf-8") as file:
        page = file.read()
    if "<!-- lists -->" not in page:
        failures.append("docs/cb-spmv.md: shows no column lists")
    now = re.sub(r"<!-- lists -->.*?<!-- end -->", lambda _: f"<!-- lists -->\n{shown_lists()}\n<!-- end -->", page,
                 flags=re.S)
    if UPDATE:
        with open("docs/cb-spmv.md", "w", encoding="utf-8") as file:
            file.write(now)
    else:
        compare("docs/cb-spmv.md", page, now)


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
    beside = f"<!-- beside -->\n```cpp\n{shown_beside()}\n```\n<!-- end -->"
    if "<!-- beside -->" not in now:
        failures.append("README.md: shows no two recipes beside each other")
    now = re.sub(r"<!-- beside -->.*?<!-- end -->", lambda _: beside, now, flags=re.S)
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
check_lists()
if len(matrices) < 8:
    failures.append(f"only {len(matrices)} matrices found in {FOLDER}")
if not failures:
    print(f"{len(matrices)} matrices as expected")
harness.finish(failures)
