#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What blocks of 32 rows save on a set of matrices: stored bytes, computed by planning alone, without a GPU.

    bench/fill_bytes.py CBGEN [--type=f64] [--values=fixed] [--all] FILE…      Markdown, a row for each matrix

Columns `square` to `row`: percentage of the nonzeros in aligned blocks of that shape which are so full that they take fewer
bytes than sliced ELL; each shape on its own, so that they may add up to more than 100. Matrices where no shape but `row`
reaches 30 % are left out, unless --all.

Then bytes for each nonzero. By counting: `ideal sell` has neither padding nor row lengths, and columns of two bytes, and
`ideal slices` has 8 bytes for each block of shape diag, and what is left as ideal sell. What recipes store: `sell`, `slices`,
`fill` and `auto`, padding, records and presence bits included (the last, an eighth of a byte for each slot, are read only
where a sum is not finite). `ideal gain` is of the ideal columns, `gain` of sell over slices as stored."""
import json
import subprocess
import sys

SHAPES = ["square", "diag", "anti", "col", "row"]
VALUE_BYTES = {"f64": 8, "f32": 4, "f16-f32": 2, "bf16-f32": 2, "f32-f64": 4}
LEAST = 30  # percent
COLUMN = 2.2  # bytes of sliced ELL for a nonzero, beside its value


def plan(tool, path, *settings):
    """The plan's JSON, or None where the recipe refuses."""
    done = subprocess.run([tool, "analyze", path, "--json", *settings], capture_output=True, text=True, check=False)
    return json.loads(done.stdout)["plan"] if done.returncode == 0 else None


def stored(planned):
    return planned["stored_bytes"] / planned["nonzeros"] if planned else None


def rate(shape, value):
    """As split `fill` chooses it."""
    places = 1024 if shape == "square" else 32
    return -(-100 * (places * 10 * value + 80) // (places * (10 * value + 22)))


def share(planned):
    """Percentage of the nonzeros in blocks."""
    if not planned:
        return 0
    held = sum(region["nonzeros"] for region in planned["regions"] if region["layout"] in ("slices", "runs"))
    return 100 * held / planned["nonzeros"]


def ideal_slices(strict, value):
    """Bytes for each nonzero without what padding, rows and bits take, as FBCSR counts."""
    blocks = left = 0
    for region in strict["regions"]:
        if region["layout"] == "slices":
            blocks += int(dict(region["facts"])["blocks"])
        else:
            left += region["nonzeros"]
    return (blocks * (32 * value + 8) + left * (value + COLUMN)) / strict["nonzeros"]


def ratio(a, b):
    return "–" if a is None or b is None else f"{a / b:.2f}"


def row(tool, path, settings, value, everything):
    # a rate that is said keeps what is in no full block out
    of_shape = {shape: plan(tool, path, "--recipe=fill", f"--fill-shapes={shape}", f"--fill-rate={rate(shape, value)}",
                            *settings) for shape in SHAPES}
    shares = {shape: share(planned) for shape, planned in of_shape.items()}
    if not everything and max(shares[shape] for shape in SHAPES[:-1]) < LEAST:
        return None
    auto = plan(tool, path, *settings)
    recipes = {recipe: stored(plan(tool, path, f"--recipe={recipe}", *settings)) for recipe in ("sell", "slices", "fill")}
    ideal, blocks = value + COLUMN, of_shape["diag"] and ideal_slices(of_shape["diag"], value)
    figures = [ideal, blocks, recipes["sell"], recipes["slices"], recipes["fill"], stored(auto)]
    name = path.rsplit("/", 1)[-1].split(".mtx")[0]
    cells = [name, f"{auto['nonzeros']}"] + [f"{shares[shape]:.0f}" for shape in SHAPES]
    cells += ["–" if figure is None else f"{figure:.2f}" for figure in figures]
    return cells + [ratio(ideal, blocks), ratio(recipes["sell"], recipes["slices"]), auto["recipe"]]


def main():
    arguments = sys.argv[1:]
    settings = [argument for argument in arguments if argument.startswith("--") and argument != "--all"]
    tool, *paths = [argument for argument in arguments if not argument.startswith("--")]
    kind = next((s.split("=")[1] for s in settings if s.startswith("--type=")), "f64")
    value = 0 if "--values=fixed" in settings else VALUE_BYTES[kind]
    head = ["matrix", "nonzeros", *SHAPES, "ideal sell", "ideal slices", "sell", "slices", "fill",
            "auto", "ideal gain", "gain", "recipe"]
    print("| " + " | ".join(head) + " |")
    print("| --- |" + " --: |" * (len(head) - 2) + " --- |")
    for path in paths:
        cells = row(tool, path, settings, value, "--all" in arguments)
        if cells:
            print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
