#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A chart of the speed-ups over cuSPARSE, as SVG, from the JSON lines of `cbgen bench --json`.

    bench/chart.py FILE… >chart.svg     a point per matrix: nonzeros against speed-up, the recipe by colour
"""
import math
import sys

from records import read

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 900, 480, 60, 20, 48, 48
COLOURS = ["#1b6ca8", "#d1495b", "#2e933c", "#edae49", "#6a4c93", "#00798c", "#8d6e63", "#555555"]


def escape(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def axes(results):
    nonzeros = [math.log10(result["nnz"]) for result in results]
    least, most = math.floor(min(nonzeros)), math.ceil(max(nonzeros))
    top = max(2.0, math.ceil(2 * max(result["speed_up"] for result in results)) / 2)

    def x(nnz):
        return LEFT + (math.log10(nnz) - least) / (most - least) * (WIDTH - LEFT - RIGHT)

    def y(speed_up):
        return HEIGHT - BOTTOM - speed_up / top * (HEIGHT - TOP - BOTTOM)

    lines = []
    for decade in range(least, most + 1):
        at = x(10.0 ** decade)
        lines.append(f'<line x1="{at:.1f}" y1="{TOP}" x2="{at:.1f}" y2="{HEIGHT - BOTTOM}" stroke="#eee"/>'
                     f'<text x="{at:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">10<tspan dy="-5" font-size="9">'
                     f'{decade}</tspan></text>')
    for half in range(0, int(2 * top) + 1):
        at = y(half / 2)
        lines.append(f'<line x1="{LEFT}" y1="{at:.1f}" x2="{WIDTH - RIGHT}" y2="{at:.1f}" '
                     f'stroke="{"#444" if half == 2 else "#eee"}"/><text x="{LEFT - 8}" y="{at + 4:.1f}" '
                     f'text-anchor="end">{half / 2:g}</text>')
    return x, y, lines


def main():
    results = [result for path in sys.argv[1:] for result in read(path) if result["speed_up"] and result["nnz"]]
    if not results:
        print("no results", file=sys.stderr)
        return 1
    x, y, lines = axes(results)
    recipes = sorted({result["recipe"] for result in results})
    colour = {recipe: COLOURS[i % len(COLOURS)] for i, recipe in enumerate(recipes)}
    mean = math.exp(sum(math.log(result["speed_up"]) for result in results) / len(results))
    device = results[0]["device"]
    versions = " and ".join(sorted({result["device"]["cusparse"] for result in results}))
    print(f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
          f'font-family="sans-serif" font-size="12"><rect width="100%" height="100%" fill="white"/>')
    print(f'<text x="{LEFT}" y="18">Speed-up over the best of all algorithms of cuSPARSE {versions}, {escape(device["model"])}, '
          f'{escape(results[0]["type"])}: {len(results)} matrices, geometric mean {mean:.2f}</text>')
    for i, recipe in enumerate(recipes):
        print(f'<circle cx="{LEFT + 6 + 90 * i}" cy="32" r="4" fill="{colour[recipe]}"/>'
              f'<text x="{LEFT + 14 + 90 * i}" y="36">{escape(recipe)}</text>')
    print("\n".join(lines))
    for result in results:
        print(f'<circle cx="{x(result["nnz"]):.1f}" cy="{y(result["speed_up"]):.1f}" r="4" fill-opacity="0.8" '
              f'fill="{colour[result["recipe"]]}"><title>{escape(result["matrix"])}: {result["speed_up"]:.2f} '
              f'({result["time"]["us"]:.2f} µs, {escape(str(result["best_baseline"]))})</title></circle>')
    print(f'<text x="{(LEFT + WIDTH) / 2:.0f}" y="{HEIGHT - 10}" text-anchor="middle">nonzeros</text></svg>')
    return 0


sys.exit(main())
