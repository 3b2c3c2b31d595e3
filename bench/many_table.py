#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A Markdown table of what `cbgen bench --vectors=K --json` has measured: bench/many_table.py [NAME=]FILE.jsonl …,
where NAME is said of the lines of a file.

Times are µs for all vectors. The speed-up is over the fastest right product of cuSPARSE's SpMM in any order, by the faster
of the two orders of the kernel's own."""
import json
import math
import sys


def fastest(products, order=None):
    """(µs, name, order) of the fastest right one of cuSPARSE's; None without any."""
    right = [(p["us"], p["name"], p["order"]) for p in products
             if p["name"].startswith("spmm") and p.get("us") and not p["wrong"] and order in (None, p["order"])]
    return min(right, default=None)


def own(products, order):
    return next((p["us"] for p in products if p["name"] == "cbgen" and p["order"] == order), 0)


def row(name, result):
    products = result["products"]
    best, rows, columns = fastest(products), own(products, "rows"), own(products, "columns")
    alone = next(p["us"] for p in products if p["name"] == "one by one")
    wrong = sum(p["wrong"] for p in products if not p["name"].startswith("spmm"))
    layout = result["plan"].split("(")[3 if "(vectors" in result["plan"] else 2].split()[0]
    speed_up = best[0] / min(rows, columns) if best and rows and columns else 0
    cells = [result["matrix"] + (f" ({name})" if name else ""), f"{result['nonzeros'] / 1e6:.2f} M", result["vectors"], layout,
             f"{alone / result['vectors']:.2f}", f"{rows:.2f}", f"{columns:.2f}", f"{alone:.2f}",
             f"{result['bound_us']:.2f}", f"{best[0]:.2f} ({best[1]}, {best[2]})" if best else "-",
             f"{speed_up:.2f}" if speed_up else "-", "WRONG" if wrong else "", result["registers"], result["spilled_bytes"]]
    return speed_up, "| " + " | ".join(str(cell) for cell in cells) + " |"


def main():
    speed_ups = {}
    print("| matrix | nonzeros | vectors | layout | one product | by rows | by columns | one by one | bound | best cuSPARSE "
          "| speed-up | | registers | spills |\n| --- | --: | --: | --- | --: | --: | --: | --: | --: | --: | --: | --- | --: | --: |")
    for argument in sys.argv[1:]:
        name, path = argument.rsplit("=", 1) if "=" in argument else ("", argument)
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                result = json.loads(line)
                speed_up, text = row(name, result)
                if speed_up:
                    speed_ups.setdefault(result["vectors"], []).append(speed_up)
                print(text)
    for vectors, found in sorted(speed_ups.items()):
        mean = math.exp(sum(map(math.log, found)) / len(found))
        print(f"\n{vectors} vectors, {len(found)} matrices: geometric mean {mean:.2f}, least {min(found):.2f}, "
              f"{sum(s < 1 for s in found)} below 1")


if __name__ == "__main__":
    main()
