#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A Markdown table of what `cbgen bench --vectors=K --json` has measured: bench/many_table.py [NAME=]FILE.jsonl …,
where NAME is said of the lines of a file.

Times are µs for all vectors. The speed-up is over the fastest right product of cuSPARSE's SpMM in any order, by the faster
of the two orders of the kernel's own.

--worst=N          of the first file, the N matrices of the least speed-up, with their plans; a column for each of the other
                   files, which have the same matrices by other recipes
--worst=N --files  the names of these matrices' files, one a line"""
import argparse
import json
import math


def fastest(products, order=None):
    """(µs, name, order) of the fastest right one of cuSPARSE's; None without any."""
    right = [(p["us"], p["name"], p["order"]) for p in products
             if p["name"].startswith("spmm") and p.get("us") and not p["wrong"] and order in (None, p["order"])]
    return min(right, default=None)


def own(products, order):
    return next((p["us"] for p in products if p["name"] == "cbgen" and p["order"] == order), 0)


def own_best(products):
    return min((us for us in (own(products, "rows"), own(products, "columns")) if us), default=0)


def speed_up(result):
    """By the faster of the two orders, over the fastest of cuSPARSE's; 0 without one of them."""
    best, mine = fastest(result["products"]), own_best(result["products"])
    return best[0] / mine if best and mine else 0


def layout(plan):
    return plan.split("(")[3 if "(vectors" in plan else 2].split()[0]


def row(name, result):
    products = result["products"]
    best = fastest(products)
    alone = next(p["us"] for p in products if p["name"] == "one by one")
    wrong = sum(p["wrong"] for p in products if not p["name"].startswith("spmm"))
    cells = [result["matrix"] + (f" ({name})" if name else ""), f"{result['nonzeros'] / 1e6:.2f} M", result["vectors"],
             layout(result["plan"]), f"{alone / result['vectors']:.2f}", f"{own(products, 'rows'):.2f}",
             f"{own(products, 'columns'):.2f}", f"{alone:.2f}", f"{result['bound_us']:.2f}",
             f"{best[0]:.2f} ({best[1]}, {best[2]})" if best else "-", f"{speed_up(result):.2f}" if best else "-",
             "WRONG" if wrong else "", result["registers"], result["spilled_bytes"]]
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def read(argument):
    """The name and the results of an argument."""
    name, path = argument.rsplit("=", 1) if "=" in argument else ("", argument)
    with open(path, encoding="utf-8") as lines:
        return name, [json.loads(line) for line in lines]


def print_all(tables):
    print("| matrix | nonzeros | vectors | layout | one product | by rows | by columns | one by one | bound | best cuSPARSE "
          "| speed-up | | registers | spills |\n| --- | --: | --: | --- | --: | --: | --: | --: | --: | --: | --: | --- | --: | --: |")
    found = {}
    for name, results in tables:
        for result in results:
            print(row(name, result))
            if speed_up(result):
                found.setdefault(result["vectors"], []).append(speed_up(result))
    for vectors, of in sorted(found.items()):
        mean = math.exp(sum(map(math.log, of)) / len(of))
        print(f"\n{vectors} vectors, {len(of)} matrices: geometric mean {mean:.2f}, least {min(of):.2f}, "
              f"{sum(s < 1 for s in of)} below 1")


def print_worst(worst, others):
    """And what other recipes took."""
    print("| matrix | nonzeros | vectors | best cuSPARSE | by rows | by columns | predicted | speed-up |",
          "".join(f" {name} |" for name, _ in others), " plan |\n| --- |", " --: |" * (7 + len(others)), " --- |", sep="")
    for result in worst:
        best = fastest(result["products"])
        cells = [result["matrix"], f"{result['nonzeros'] / 1e6:.2f} M", result["vectors"], f"{best[0]:.2f} ({best[1]}, {best[2]})",
                 f"{own(result['products'], 'rows'):.2f}", f"{own(result['products'], 'columns'):.2f}",
                 f"{result['predicted_us']:.2f}", f"{speed_up(result):.2f}"]
        for _, results in others:
            same = [other for other in results if other["file"] == result["file"]]
            cells.append(f"{own(same[0]['products'], 'rows'):.2f} ({same[0]['predicted_us']:.1f})" if same else "-")
        print("| " + " | ".join(str(cell) for cell in cells + [result["plan"]]) + " |")
    if others:
        print("\nOf other recipes: µs by rows, and in brackets what was predicted.")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worst", type=int, help="only so many of the first file")
    parser.add_argument("--files", action="store_true", help="the names of their files")
    parser.add_argument("tables", nargs="+", metavar="[NAME=]FILE.jsonl")
    arguments = parser.parse_args()
    tables = [read(argument) for argument in arguments.tables]
    if arguments.worst is None:
        print_all(tables)
        return
    worst = sorted((r for r in tables[0][1] if speed_up(r)), key=speed_up)[:arguments.worst]
    if arguments.files:
        for result in worst:
            print(result["file"])
    else:
        print_worst(worst, tables[1:])


if __name__ == "__main__":
    main()
