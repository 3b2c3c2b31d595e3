#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The matrices that the predictor is trained with, one a line, as bench_candidates takes them.

    bench/train/matrices.py [FOLDER…] >bench/train/matrices.txt
    bench/train/matrices.py --seed=21 --times=2 [FOLDER…] >bench/train/more.txt     others: no whole files, twice as many

Files of the folders come by name, so that the list is the same wherever they lie; then parts of them; then generated
ones of every shape, with parameters from a fixed seed and numbers of nonzeros that are spread evenly on a logarithmic
scale. Large ones come first, since a process that begins one late is waited for; the others are mixed, so that a list
that is cut off still has all kinds."""
import argparse
import math
import os
import random

LARGE = 4_000_000  # nonzeros
SEED = 20


def log_uniform(rng, least, most):
    return math.exp(rng.uniform(math.log(least), math.log(most)))


def near(value):
    return max(1, round(value))


# ---- generated ones: each gives the keys of a shape for about so many nonzeros

def stencil(points, dimensions):
    def make(rng, nonzeros):
        keys = {"n": max(4, near((nonzeros / points) ** (1 / dimensions)))}
        keys["n"] += rng.choice((0, 0, 1, 3))
        if rng.random() < 0.3:
            keys["periodic"] = 1
        if rng.random() < 0.4:
            keys["extra"] = round(rng.choice((0.02, 0.1, 0.3, 0.7)), 2)
        return keys
    return make


def fe3(rng, nonzeros):
    dof = rng.randint(1, 7)
    return {"n": max(3, near((nonzeros / (27 * dof * dof)) ** (1 / 3))), "dof": dof}


def multiblock(rng, nonzeros):
    dof, blocks = rng.choice((1, 1, 1, 2, 3, 4)), near(log_uniform(rng, 2, 60))
    return {"blocks": blocks, "n": max(3, near((nonzeros / (7 * dof * dof * blocks)) ** (1 / 3))), "dof": dof}


def kkt(rng, nonzeros):
    stages = rng.randint(1, 8)
    return {"n": max(6, near(math.sqrt(nonzeros / (7 * stages)))), "stages": stages}


def road(rng, nonzeros):
    keep = round(rng.uniform(0.3, 1), 2)
    return {"n": max(16, near(math.sqrt(nonzeros / (4 * keep)))), "keep": keep}


def rmat(rng, nonzeros):
    factor = near(log_uniform(rng, 3, 64))
    a = round(rng.uniform(0.3, 0.65), 2)
    b = round((1 - a) * rng.uniform(0.25, 0.42), 2)
    return {"scale": max(8, near(math.log2(nonzeros / factor))), "edge_factor": factor, "a": a, "b": b, "c": b}


def powerlaw(rng, nonzeros):
    least = rng.choice((0, 1, 1, 2, 4))
    most = near(log_uniform(rng, 60, max(80, min(nonzeros / 12, 60000))))
    rows = max(most, near((nonzeros - most * math.log(most)) / max(least, 0.7)))
    return {"rows": max(64, rows), "max": most, "min": least}


def long_row(rng, nonzeros):
    per_row = rng.randint(1, 20)
    rows = max(200, near(nonzeros * rng.uniform(0.3, 0.95) / per_row))
    long_rows = near(log_uniform(rng, 1, 60))
    length = max(2 * per_row, min(rows - 1, near((nonzeros - rows * per_row) / long_rows)))
    return {"rows": rows, "per_row": per_row, "long_rows": long_rows, "long_length": length}


def uniform(rng, nonzeros):
    per_row = near(log_uniform(rng, 2, 150))
    rows = max(64, near(nonzeros / per_row))
    keys = {"n": rows, "per_row": per_row}
    if rng.random() < 0.5:
        keys["cols"] = max(2 * per_row, near(rows * log_uniform(rng, 0.02, 4)))
    return {key: keys[key] for key in ("n", "cols", "per_row") if key in keys}


def random_rows(rng, nonzeros):
    per_row = round(log_uniform(rng, 1.5, 100), 1)
    rows = max(64, near(nonzeros / per_row))
    cols = max(near(2 * per_row) + 8, near(rows * log_uniform(rng, 0.05, 3)))
    return {"rows": rows, "cols": cols, "per_row": per_row}


def band(rng, nonzeros):
    per_row = near(log_uniform(rng, 3, 80))
    return {"n": max(4 * per_row, near(nonzeros / per_row)), "half": near(per_row * log_uniform(rng, 0.7, 200)),
            "per_row": per_row}


def diagonals(rng, nonzeros):
    count, fill = near(log_uniform(rng, 2, 90)), round(rng.uniform(0.2, 1), 2)
    n = max(4 * count, near(nonzeros / (count * fill)))
    return {"n": n, "count": count, "spread": max(count, near(n * log_uniform(rng, 0.002, 0.9))), "fill": fill}


def block(rng, nonzeros):
    r, c = rng.choice(((1, 2), (2, 1), (2, 2), (2, 2), (3, 3), (3, 3), (4, 4), (5, 5), (6, 6), (8, 8), (3, 2), (4, 1), (7, 7),
                       (16, 16), (1, 32), (32, 1), (1, 8)))
    per_row, fill = near(log_uniform(rng, 1, 40)), round(rng.choice((1, 1, 0.95, 0.9, 0.8, 0.6)), 2)
    return {"blocks_r": max(8, per_row, near(nonzeros / (r * c * per_row * fill))), "r": r, "c": c, "per_row": per_row,
            "fill": fill, "scattered": rng.choice((0, 0, 0, 1, 3))}


def exact(rng, nonzeros):
    filled = near(log_uniform(rng, 1, 256))
    return {"blocks_r": max(2, near(math.sqrt(nonzeros / filled))), "block_nnz": filled}


def hypersparse(rng, nonzeros):
    keep, per_row = round(log_uniform(rng, 0.003, 0.5), 3), rng.randint(1, 12)
    return {"rows": max(256, near(nonzeros / (keep * per_row))), "keep": keep, "per_row": per_row}


def arrow(rng, nonzeros):
    width = rng.randint(1, 24)
    return {"n": max(4 * width, near(nonzeros / (1 + 2 * width))), "width": width}


def square(key):
    return lambda rng, nonzeros: {key: max(8, near(math.sqrt(nonzeros)))}


def dense(rng, nonzeros):
    rows = max(2, near(math.sqrt(nonzeros) * log_uniform(rng, 0.05, 20)))
    return {"rows": rows, "cols": max(2, near(nonzeros / rows))}


def triangle(rng, nonzeros):
    return {"n": max(16, near(math.sqrt(2 * nonzeros)))}


def per_n(per_row):
    return lambda rng, nonzeros: {"n": max(16, near(nonzeros / per_row))}


# shape: how many, the most nonzeros, the keys
SHAPES = {
    "stencil5": (8, 3e7, stencil(5, 2)), "stencil9": (7, 2e7, stencil(9, 2)),
    "stencil7": (11, 7e7, stencil(7, 3)), "stencil27": (10, 5e7, stencil(27, 3)),
    "fe3": (20, 6e7, fe3), "multiblock": (14, 2e7, multiblock), "kkt": (12, 2e7, kkt), "road": (12, 2e7, road),
    "rmat": (26, 3e7, rmat), "powerlaw": (20, 8e6, powerlaw), "long_row": (14, 8e6, long_row),
    "uniform": (16, 3e7, uniform), "random": (14, 1e7, random_rows), "band": (16, 6e7, band),
    "diagonals": (14, 2e7, diagonals), "block": (24, 2e7, block), "random_exact": (10, 6e6, exact),
    "hypersparse": (8, 3e6, hypersparse), "arrow": (5, 5e6, arrow), "dense": (6, 1e7, dense),
    "upper": (2, 2e6, triangle), "staircase": (3, 4e6, triangle), "checker": (2, 4e6, square("rows")),
    "tridiagonal": (4, 3e7, per_n(3)), "diagonal": (2, 1e7, per_n(1)),
    "dense_row": (3, 3e6, per_n(2)), "dense_column": (3, 3e6, per_n(2)), "one_column": (0, 1, per_n(1)),
}


def number(value):
    return f"{value:g}" if isinstance(value, float) else str(value)


def generated(rng, times):
    for shape, (count, most, make) in SHAPES.items():
        count *= times
        for i in range(count):
            # one in each part of the range, so that few still cover it
            at = (i + rng.random()) / count
            nonzeros = math.exp(math.log(4000) + at * (math.log(most) - math.log(4000)))
            keys = make(rng, nonzeros)
            text = ",".join(f"{key}={number(value)}" for key, value in keys.items())
            yield nonzeros, f"generate:{shape},{text},seed={rng.randint(1, 999)}"


# ---- files

def files(folders):
    found = {}
    for folder in folders:
        for name in sorted(os.listdir(folder)):
            if ".mtx" in name:
                found.setdefault(name.split(".mtx")[0], os.path.getsize(os.path.join(folder, name)))
    return found


def parts(rng, found):
    """A few parts of the larger files: bands of rows, and diagonal blocks."""
    for name in sorted(found):
        if found[name] < 300_000 or rng.random() < 0.25:
            continue
        of = rng.choice((2, 3, 4, 6, 8))
        kind = rng.choice(("rows", "square", "square"))
        yield found[name], f"{name} {kind}={rng.randrange(of)}/{of}"


# those that other tables of this project show
NAMED = """powerlaw,rows=1500000,max=700
fe3,n=20
fe3,n=48
stencil7,n=160
stencil27,n=100
road,n=2000,keep=0.6
uniform,n=1000000,per_row=16
rmat,scale=20,edge_factor=16""".split()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("folders", nargs="*")
    args = parser.parse_args()
    rng = random.Random(args.seed)
    found = files(args.folders)
    entries = list(parts(rng, found))
    if args.seed == SEED:
        entries = [(size, name) for name, size in found.items()] + entries
        entries += [(LARGE, f"generate:{name}") for name in NAMED]
    entries += list(generated(rng, args.times))
    rng.shuffle(entries)
    large = sorted((entry for entry in entries if entry[0] >= LARGE), reverse=True)
    for _, text in large + [entry for entry in entries if entry[0] < LARGE]:
        print(text)


main()
