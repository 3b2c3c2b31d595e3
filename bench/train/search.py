#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The best shares of hot columns and rows for recipe hotcold, matrix by matrix: labels that shares.py trains with.

    bench/train/search.py PROGRAM LIST OUT [--types=f64,f32] [--processes=N] [--seconds=S] [--folders=A:B] [--evaluations=12]
                          [--points=FILE] [--no-gpu]

As MatXtract does it: of each matrix 12 products are timed, the first two with nothing hot, (0, 0), and with all, (1, 1); the
others are where a Gaussian process through the times so far expects the most improvement, over all pairs of whole percents with
0 < rows <= cols. PROGRAM is bench_shares, which times a product beside one with nothing hot; the search looks at the logarithm of
their ratio, so that a drift of the clock meets both. Equal times give equal searches: seeds come from the matrix's name.

LIST has one matrix a line, as bench_shares takes them; all are searched in the first of the types, then in the next one. OUT gets
a line of JSON for each that is searched to its end. N processes plan and compile side by side. After S seconds no further product
is begun, and what is unfinished is left out. --points: no search, but the pairs of FILE (a line of JSON {"matrix", "type",
"points": [[cols, rows], …]} each) are timed, with (0, 0) first. --no-gpu searches the cost model's times. Needs scikit-learn."""
import argparse
import json
import math
import multiprocessing
import os
import signal
import subprocess
import sys
import time
import warnings
import zlib

GRID = [(cols, rows) for cols in range(1, 101) for rows in range(1, cols + 1)]
FIRST = [(0, 0), (100, 100)]
MARGIN = 0.002  # of the logarithm: what improves by less than noise is nothing to look for
REFUSED = 0.1  # a point that cannot be planned counts as this much slower than the slowest


def next_point(tried, seed):
    """The pair of the greatest expected improvement. tried: {(cols, rows): logarithm of a time, or None if it was refused}."""
    import numpy
    from scipy.stats import norm
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
    known = [value for value in tried.values() if value is not None]
    slow = max(known, default=0.0) + REFUSED
    x = numpy.array(list(tried), dtype=float) / 100
    y = numpy.array([slow if value is None else value for value in tried.values()])
    kernel = ConstantKernel(1.0, (1e-2, 1e2)) * Matern([0.5, 0.5], (0.05, 5.0), nu=2.5) + WhiteKernel(1e-3, (1e-6, 1e-1))
    process = GaussianProcessRegressor(kernel, normalize_y=True, n_restarts_optimizer=1, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        process.fit(x, y)
    left = [point for point in GRID if point not in tried]
    mean, deviation = process.predict(numpy.array(left, dtype=float) / 100, return_std=True)
    better = y.min() - mean - MARGIN
    deviation = numpy.maximum(deviation, 1e-12)
    gain = better * norm.cdf(better / deviation) + deviation * norm.pdf(better / deviation)
    return left[int(numpy.argmax(gain))]


def time_of(answer):
    """Logarithm against the product with nothing hot; None: refused."""
    if "refusal" in answer:
        return None
    return math.log(answer["us"] / answer["base_us"] if "us" in answer else answer["ns"] / answer["base_ns"])


class Program:
    """bench_shares, asked line by line."""

    def __init__(self, args):
        command = [args.program, args.out + ".lock", f"--folders={args.folders}"] + (["--no-gpu"] if args.no_gpu else [])
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        said = self.process.stdout.readline()
        if not said:
            raise EOFError(f"{line}: the program ended")
        return json.loads(said)

    def close(self):
        self.process.kill()
        self.process.wait()


def search(program, matrix, kind, args, wanted):
    """A record; None: the time is over, or the matrix is refused."""
    record = program.ask(f"matrix {kind} {matrix}")
    if "refusal" in record:
        print(f"left out: {matrix}: {record['refusal']}", file=sys.stderr)
        return None
    seed = zlib.crc32(f"{kind} {matrix}".encode())
    tried, record["points"] = {}, []
    count = len(wanted) if wanted else args.evaluations
    while len(tried) < count:
        if time.monotonic() > args.end:
            return None
        point = wanted[len(tried)] if wanted else FIRST[len(tried)] if len(tried) < len(FIRST) else next_point(tried, seed)
        answer = program.ask(f"try {point[0]} {point[1]}")
        tried[point] = time_of(answer)
        record["points"].append([*point, answer.get("us"), answer.get("base_us"), answer["ns"]])
    return record


def work(jobs, following, args, points):
    out = os.open(args.out, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    program = Program(args)
    try:
        while time.monotonic() < args.end:
            with following.get_lock():
                number = following.value
                following.value += 1
            if number >= len(jobs):
                break
            kind, matrix = jobs[number]
            try:
                record = search(program, matrix, kind, args, points.get((matrix, kind)))
            except (EOFError, BrokenPipeError, ValueError) as error:
                print(f"{matrix}: {error}", file=sys.stderr)
                program.close()
                program = Program(args)
                continue
            if record:
                os.write(out, (json.dumps(record, separators=(",", ":")) + "\n").encode())
    finally:
        program.close()


def read_points(path):
    """{(matrix, type): [(0, 0), (cols, rows), …]}"""
    found = {}
    with open(path, encoding="utf-8") as file:
        for record in map(json.loads, file):
            pairs = [(0, 0)] + [tuple(pair) for pair in record["points"]]
            found[record["matrix"], record["type"]] = list(dict.fromkeys(pairs))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("program", "list", "out"):
        parser.add_argument(name)
    parser.add_argument("--types", default="f64,f32")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--folders", default="")
    parser.add_argument("--evaluations", type=int, default=12)
    parser.add_argument("--points")
    parser.add_argument("--no-gpu", action="store_true")
    args = parser.parse_args()
    args.end = time.monotonic() + args.seconds
    with open(args.list, encoding="utf-8") as file:
        matrices = [line.strip() for line in file if line.strip() and not line.startswith("#")]
    points = read_points(args.points) if args.points else {}
    jobs = [(kind, matrix) for kind in args.types.split(",") for matrix in matrices if not points or (matrix, kind) in points]
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):  # before libraries begin their threads
        os.environ[name] = "1"
    if not points:
        next_point({(0, 0): 0.0, (100, 100): 0.1}, 0)  # loads, once for all processes, what it needs
    following = multiprocessing.Value("i", 0)
    processes = [multiprocessing.Process(target=work, args=(jobs, following, args, points)) for _ in range(args.processes)]
    for process in processes:
        process.start()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    for process in processes:
        process.join()
    return int(any(process.exitcode for process in processes))


if __name__ == "__main__":
    sys.exit(main())
