#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The examples in C: their length; how they run on the fake GPU, what their tables say, what they do when something is
wrong; and that they build as examples/README.md says, against the installed library and the real toolkit.

    tests/test_examples.py PROGRAMS FAKE_CUDA SCRATCH BUILD FLAGS
        PROGRAMS: the folder of those linked against tests/fake_toolkit.c; FLAGS: of a sanitized build, or ""
"""
import glob
import os
import re
import shutil
import subprocess
import sys

import harness

PROGRAMS, FAKE_CUDA, SCRATCH, BUILD, FLAGS = sys.argv[1:]
SCRATCH = os.path.abspath(SCRATCH)
CACHE = os.path.join(SCRATCH, "cache")
FAKE = {**os.environ, "CBGEN_FAKE_CUDA": FAKE_CUDA, "CBGEN_LIBCUDA": FAKE_CUDA, "CBGEN_NVRTC": FAKE_CUDA,
        "CBGEN_CACHE_DIR": CACHE, "CBGEN_FAKE_STRICT": "1", "CBGEN_FAMILIES": ""}
MOST_LINES = 149
# each program's small matrix, how many checks it makes, and the products of an iteration
EXAMPLES = {
    "minimal": ("elasticity:3", 1, 1),
    "conjugate_gradient": ("elasticity:3", 3, 1),
    "bicgstab": ("convection:4", 3, 2),
    "pagerank": ("web:6", 4, 1),
    "time_stepping": ("diffusion:4", 2, None),
    "graph_loop": ("diffusion:3", 3, 1),
}
CUSPARSE_MICROSECONDS = 20.0  # of a product by CSR ALG1, in tests/fake_toolkit.c


def expect(condition, what):
    if not condition:
        sys.exit(what)


def run(name, *arguments, **variables):
    return subprocess.run([os.path.join(PROGRAMS, name), *arguments], capture_output=True, text=True, check=False,
                          env={**FAKE, **variables}, timeout=harness.LIMIT)


def run_in_vain(name, *arguments, **variables):
    """A run that cannot end well; what it had is left to the system."""
    return run(name, *arguments, ASAN_OPTIONS="detect_leaks=0", **variables)


def describe(result):
    return f"{' '.join(result.args)}: exit status {result.returncode}\n{result.stdout}{result.stderr}"


def expect_success(result):
    expect(result.returncode == 0 and not result.stderr, describe(result))
    return result.stdout


def expect_failure(result, status, words):
    expect(result.returncode == status and words in result.stdout + result.stderr,
           f"expected exit status {status} and '{words}' of {describe(result)}")


def rows_of(output):
    """{name: (set-up, product, iterations, per iteration, loop, total)} of the table, as numbers."""
    rows = {}
    for line in output.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| c"):
            expect(len(cells) == 7, f"not seven cells: {line}")
            rows[cells[0]] = tuple(float(cell) for cell in cells[1:])
    return rows


def near(value, wanted, digit=0.01):
    """Both were rounded to two digits."""
    return abs(value - wanted) <= digit * 1.5 + 1e-3 * abs(wanted)


def check_row(name, row, products):
    setup, product, iterations, per_iteration, loop, total = row
    expect(iterations > 1 and setup > 0, f"{name}: {row}")
    expect(near(per_iteration * iterations / 1000, loop, 0.01 + 0.01 * iterations / 1000), f"{name}: {row}")
    expect(near(total, setup + loop), f"{name}: {row}")
    if name == "cuSPARSE CSR ALG1":
        expect(product == CUSPARSE_MICROSECONDS, f"{name}: {row}")
    expect(products is None or products * product <= per_iteration + 0.01, f"{name}: {row}")


def check_break_even(output, rows):
    lines = re.findall(r"^(.*) repays its set-up against (.*) after (\d+) iterations: ([\d.]+) ms more to begin with, "
                       r"([\d.]+) us less for each$", output, re.M)
    expect(len(lines) == len(rows) // 2, f"{len(lines)} lines on set-up\n{output}")
    for second, first, after, more, less in lines:
        expect(near(float(more), rows[second][0] - rows[first][0]), output)
        expect(near(float(less), rows[first][3] - rows[second][3]), output)
        wanted = 1000 * float(more) / float(less)
        expect(abs(int(after) - wanted) <= 1 + wanted * (0.01 / float(more) + 0.01 / float(less)), output)


def check_good_runs():
    """Twice each: with an empty cache, and with what the first left there."""
    for name, (matrix, checks, products) in EXAMPLES.items():
        shutil.rmtree(CACHE, ignore_errors=True)
        for cache in ("cache miss", "cache hit"):
            output = expect_success(run(name, matrix))
            rows = rows_of(output)
            expect(len(rows) == {"graph_loop": 4, "conjugate_gradient": 3, "bicgstab": 3}.get(name, 2), output)
            for row in rows:
                check_row(row, rows[row], None if row.endswith("one kernel") else products)
                expect(row != "cbgen, one kernel" or rows[row][0] > rows["cbgen"][0], output)
            check_break_even(output, rows)
            expect(output.count(": passed\n") == checks and "FAILED" not in output, output)
            expect(f"; {cache}, " in output, f"no {cache}\n{output}")
    expect("iteration 10: change " in expect_success(run("pagerank", "web:6")), "pagerank does not show how it converges")


def check_failures():
    """A wrong result, no memory at several places, no driver."""
    for name, (matrix, _, _) in EXAMPLES.items():
        expect_failure(run_in_vain(name, matrix, FAKE_TOOLKIT_LIE="1"), 1, ": FAILED\n")
        for allocation in ("1", "4", "7"):
            expect_failure(run_in_vain(name, matrix, FAKE_TOOLKIT_MEMORY=allocation), 2, "out of memory")
        expect_failure(run_in_vain(name, matrix, CBGEN_LIBCUDA=os.path.join(SCRATCH, "none")), 2, "cbgen: ")


def file_of(text):
    path = os.path.join(SCRATCH, "matrix.mtx")
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
    return path


def check_files():
    head = "%%MatrixMarket matrix coordinate"
    good = {"real general": "3 4 5\n1 1 0.5\n3 4 -2\n3 1 1e-3\n3 4 7\n1 2 1\n",  # twice at (3, 4), nothing in row 2
            "integer symmetric": "3 3 3\n1 1 4\n3 1 -1\n2 2 5\n", "pattern general": "2 5 2\n1 5\n2 1\n"}
    for kind, text in good.items():
        output = expect_success(run("minimal", file_of(f"{head} {kind}\n% a comment\n{text}")))
        expect(re.search(r"^### minimal: matrix.mtx, .*, cuSPARSE 12\.6\.3$", output, re.M), output)
    bad = {f"{head} complex general\n1 1 1\n1 1 1 0\n": "is not read here",
           f"{head} real skew-symmetric\n1 1 0\n": "is not read here",
           "%%MatrixMarket matrix array real general\n1 1\n1\n": "is no Matrix Market file",
           f"{head} real general\n": "ends before its sizes", f"{head} real general\n3 x 1\n": "has no sizes",
           f"{head} real general\n3000000000 1 1\n1 1 1\n": "too large", f"{head} real general\n2 2 2\n1 1 1\n": "entry 2 is none",
           f"{head} real general\n2 2 1\n3 1 1\n": "entry 1 is none", f"{head} real general\n2 2 1\n1 0 1\n": "entry 1 is none"}
    for text, words in bad.items():
        expect_failure(run_in_vain("minimal", file_of(text)), 2, words)
    for spec, words in {"nothing": "cannot be opened", "sphere:4": "is no shape", "elasticity:0": "too small",
                        "web:99": "too large"}.items():
        expect_failure(run_in_vain("minimal", spec), 2, words)
    indefinite = file_of(f"{head} real symmetric\n2 2 2\n1 1 1\n2 2 -1\n")
    expect_failure(run_in_vain("conjugate_gradient", indefinite), 2, "not positive definite")
    expect_failure(run_in_vain("bicgstab", file_of(f"{head} real general\n1 2 1\n1 1 1\n")), 2, "is not square")
    hollow = file_of(f"{head} real general\n2 2 2\n1 2 1\n2 1 1\n")
    for name in ("time_stepping", "graph_loop"):
        expect_failure(run_in_vain(name, hollow), 2, "no diagonal entry in row 1")


def check_lengths():
    names = {os.path.splitext(os.path.basename(path))[0] for path in glob.glob("examples/*.c")}
    expect(names == set(EXAMPLES), f"tested are {sorted(EXAMPLES)}, there are {sorted(names)}")
    with open("examples/README.md", encoding="utf-8") as file:
        text = file.read()
    for name in names:
        path = f"examples/{name}.c"
        with open(path, encoding="utf-8") as file:
            lines = len(file.readlines())
        expect(lines <= MOST_LINES, f"{path} has {lines} lines")
        expect(f"({name}.c)" in text, f"examples/README.md does not name {name}.c")


def run_script(examples):
    """bench/examples.sh with this list: the result, and the Markdown that it wrote."""
    paths = [os.path.join(SCRATCH, name) for name in ("list", "examples.md")]
    with open(paths[0], "w", encoding="ascii") as file:
        file.write(examples)
    result = subprocess.run(["bench/examples.sh", paths[1]], capture_output=True, text=True, check=False, timeout=harness.LIMIT,
                            env={**FAKE, "EXAMPLES": paths[0], "PROGRAMS": os.path.abspath(PROGRAMS),
                                 "ASAN_OPTIONS": "detect_leaks=0"})
    with open(paths[1], encoding="utf-8") as file:
        return result, file.read()


def check_script():
    result, text = run_script("minimal elasticity:3\ngraph_loop diffusion:3\nminimal missing.mtx\n")
    expect_success(result)
    expect("4 tables" in result.stdout and "left out, not packed: missing.mtx" in result.stdout, describe(result))
    for name in ("minimal: elasticity:3", "graph_loop: diffusion:3"):
        for title in ("first run, cache empty", "second run"):
            expect(re.search(rf"^### {name}, .*, {title}$", text, re.M), text)
    expect(text.count("; cache miss, ") == 2 and text.count("; cache hit, ") == 2, text)
    result, text = run_script("conjugate_gradient diffusion:3\n")
    expect(result.returncode == 1 and text.count("ended with status 2") == 2, describe(result) + text)


def command(*words):
    result = subprocess.run(words, capture_output=True, text=True, check=False)
    expect(result.returncode == 0, describe(result))
    return result.stdout


def check_user_build():
    """As README says, from the installed copy. Without a GPU, programs can only say so."""
    prefix, folder = os.path.join(SCRATCH, "prefix"), os.path.join(SCRATCH, "build")
    shutil.rmtree(prefix, ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)
    command("cmake", "--install", BUILD, "--prefix", prefix)
    said = command("cmake", "-S", os.path.join(prefix, "share", "doc", "cbgen", "examples"), "-B", folder,
                   f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_C_FLAGS={FLAGS} -Wall -Wextra -Wpedantic -Werror")
    if "The examples are left out" in said:
        harness.skip("the examples as a user builds them: there is no CUDA toolkit with cuBLAS and cuSPARSE")
        return "not built against the toolkit"
    command("cmake", "--build", folder, "-j", "2")
    for name in EXAMPLES:
        expect(os.access(os.path.join(folder, name), os.X_OK), f"'{name}' was not built")
    result = subprocess.run([os.path.join(folder, "minimal"), "elasticity:2"], capture_output=True, text=True,
                            check=False, env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"})
    if result.returncode != 0:
        expect_failure(result, 2, "cudaStreamCreate(&stream): ")
    return "built against the toolkit"


os.makedirs(SCRATCH, exist_ok=True)
check_lengths()
check_good_runs()
check_failures()
check_files()
check_script()
print("the examples run on the fake GPU;", check_user_build())
harness.finish()
