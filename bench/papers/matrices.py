# SPDX-License-Identifier: Apache-2.0
"""The matrices of a paper: its own where the caller has them, else stand-ins of the same class (matrices.tsv)."""
import collections
import csv
import os

Matrix = collections.namedtuple("Matrix", "name file origin")
TABLE = os.path.join(os.path.dirname(__file__), "matrices.tsv")
PACKED = (".gz", ".zst", ".xz", ".bz2")


def rows_of(paper):
    with open(TABLE, encoding="utf-8", newline="") as file:
        lines = [line for line in file if not line.startswith("#")]
    return [row for row in csv.DictReader(lines, delimiter="\t") if paper in row["papers"].split(",")]


def stem(name):
    for end in (*PACKED, ".tar", ".mtx"):
        name = name.removesuffix(end)
    return name


def files_in(folder):
    """{name: path} of all matrix files below a folder, the way SuiteSparse packs them or unpacked. A folder NAME that
    holds NAME.mtx holds other files of that matrix (right sides), which are no matrices to multiply."""
    found = {}
    for inside, _, names in os.walk(folder):
        own = os.path.basename(inside)
        alone = f"{own}.mtx" in names
        for name in sorted(names):
            plain = name
            for end in PACKED:
                plain = plain.removesuffix(end)
            if plain.endswith((".mtx", ".tar")) and (not alone or name == f"{own}.mtx"):
                found.setdefault(stem(name), os.path.join(inside, name))
    return found


def from_suitesparse(paper, folder):
    """Those that the paper names come first; where it used the whole collection ('*'), all that are there follow."""
    there, rows = files_in(folder), [row for row in rows_of(paper) if row["source"] == "suitesparse"]
    named = [row["name"] for row in rows if row["name"] != "*"]
    matrices = [Matrix(name, there[name], "the paper's own") for name in named if name in there]
    if any(row["name"] == "*" for row in rows):
        matrices += [Matrix(name, path, "of the paper's collection") for name, path in sorted(there.items())
                     if name not in named]
    return matrices, [name for name in named if name not in there]


def stand_ins(paper, corpus, quick):
    matrices, absent = [], []
    for row in rows_of(paper):
        if row["source"] == "suitesparse" or (quick and row["quick"] != "yes"):
            continue
        origin = f"stand-in: {row['class']}"
        if row["source"] != "corpus":
            matrices.append(Matrix(row["name"], row["source"], origin))
            continue
        path = next((path for end in ("", *PACKED)
                     if os.path.exists(path := os.path.join(corpus, f"{row['name']}.mtx{end}"))), None)
        if path:
            matrices.append(Matrix(row["name"], path, origin))
        else:
            absent.append(row["name"])
    return matrices, absent


def matrices_of(paper, suitesparse=None, corpus="tests/data/corpus", quick=False, limit=None):
    """(matrices, sentences about what is not there)."""
    said = []
    if suitesparse:
        matrices, absent = from_suitesparse(paper, suitesparse)
        if absent:
            said.append(f"Not in {suitesparse}: {', '.join(absent)}.")
    else:
        said.append("No --suitesparse=DIR: stand-ins of the same classes, which are not the paper's matrices.")
        matrices, absent = stand_ins(paper, corpus, quick)
        if absent:
            said.append(f"Not in {corpus}: {', '.join(absent)}.")
    if limit and len(matrices) > limit:
        said.append(f"The first {limit} of {len(matrices)} matrices.")
        matrices = matrices[:limit]
    return matrices, said
