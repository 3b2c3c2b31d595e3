#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tables from the JSON lines of `cbgen bench --json`.

    bench/table.py FILE…               Markdown: everything that is worth keeping, one row per matrix
    bench/table.py --short FILE…       plain text of 80 columns, and the geometric means
    bench/table.py --setup FILE…       Markdown: the way to the first product, step by step
    bench/table.py --summary FILE…     Markdown: the figures of a run as bench/results/README.md gives them
    bench/table.py --conditions FILE…  what was measured on, and against which cuSPARSE
    bench/table.py --recipes FILE…     Markdown: every recipe on every matrix, of bench.jsonl with its candidates and of
                                       recipes.jsonl (the step recipes of bench/gpu.sh) together

A name that ends in .gz is unpacked.
"""
import math
import statistics
import sys

from records import read

# What bench/results/README.md gives by itself: (words, the generated matrix, its nonzeros)
CLASSES = [("3-D finite elements, 3 unknowns, 80³ nodes", "fe3", 121331448), ("the same, 20³", "fe3", 1756008),
           ("7-point stencil 220³", "stencil7", 74245600), ("27-point stencil 140³", "stencil27", 73034632),
           ("random band ±2000", "band", 64000000), ("road-like grid 3000²", "road", 21598572),
           ("R-MAT scale 20", "rmat", 16084237), ("R-MAT scale 22", "rmat", 65243974),
           ("uniform random", "uniform", 32000000)]


def microseconds(time):
    return "–" if not time else f"{time['us']:.2f}"


def worst(result, key):
    return max((kernel[key] for kernel in result["kernels"]), default=0)


def baseline_time(result, name):
    for baseline in result["baselines"]:
        if baseline["name"] == name and baseline["applies"]:
            return baseline["time"]
    return None


def mean(numbers):
    numbers = [number for number in numbers if number]
    return math.exp(sum(map(math.log, numbers)) / len(numbers)) if numbers else 0


def machine(result):
    """What a figure depends on; speed-ups over different versions of cuSPARSE are different figures."""
    device = result["device"]
    library = f"cuSPARSE {device['cusparse']}" if device["cusparse"] else "no cuSPARSE to compare with"
    return (f"{device['model']} ({device['arch']}, {device['multiprocessors']} SMs), driver for CUDA "
            f"{device['driver_cuda']}, NVRTC {device['nvrtc']}, {library}")


def versions_of(results):
    """The versions of cuSPARSE measured against, in words."""
    versions = sorted({result["device"]["cusparse"] for result in results if result["device"]["cusparse"]})
    return "cuSPARSE " + " and ".join(versions) if versions else "no cuSPARSE"


def conditions(results):
    machines = {}
    for result in results:
        machines.setdefault(machine(result), []).append(result)
    text = "; ".join(name if len(machines) == 1 else f"{name}: {len(of)} matrices" for name, of in machines.items())
    text += "."
    ceilings, protocol = results[0]["ceilings"], results[0]["protocol"]
    if ceilings and len(machines) == 1:
        text += (f" Ceilings of the same run: copy {ceilings['copy_gb_per_s'] / 1e3:.2f} TB/s, read "
                 f"{ceilings['read_gb_per_s'] / 1e3:.2f} TB/s, empty kernel {ceilings['launch_us']:.2f} µs.")
    return text + (f" Times are medians of {protocol['repetitions']} interleaved repetitions of the median of "
                   f"{protocol['batches']} batches of products back to back; caches are not flushed.")


def reached(result):
    return 100 * result["bound_us"] / result["time"]["us"] if result["time"]["us"] else 0


def timed(result):
    """(recipe, predicted µs, measured µs) of every candidate that was timed, without cuSPARSE in between."""
    return [(one["recipe"], one["cost"]["ns"] / 1e3, one["us"]) for one in result["candidates"] if one.get("us")]


def model(results):
    """How far the cost model is from measurement, and what choosing by it costs."""
    by_recipe, losses = {}, []
    for result in results:
        for recipe, predicted, us in timed(result):
            by_recipe.setdefault(recipe, []).append(predicted / us)
        alone = [us for recipe, _, us in timed(result) if recipe == result["recipe"]]
        if alone and len(timed(result)) > 1:
            losses.append((alone[0] / min(us for _, _, us in timed(result)), result))
    if not losses:
        return
    print("\nCost model: predicted over measured time, by recipe, over all matrices that it fits.\n")
    print("| recipe | matrices | geometric mean | least | greatest |\n| --- | --: | --: | --: | --: |")
    for recipe, ratios in by_recipe.items():
        print(f"| {recipe} | {len(ratios)} | {mean(ratios):.2f} | {min(ratios):.2f} | {max(ratios):.2f} |")
    print(f"\nLoss of choosing by the model against the fastest recipe measured: geometric mean "
          f"{100 * (mean(loss for loss, _ in losses) - 1):.1f} % over {len(losses)} matrices; the worst:\n")
    for loss, result in sorted(losses, key=lambda pair: -pair[0])[:8]:
        tried = ", ".join(f"{recipe} {us:.2f} (predicted {predicted:.2f})" for recipe, predicted, us in timed(result))
        print(f"- {result['matrix']}: {loss:.2f} times; chosen {result['recipe']}; {tried}")


def raced(result):
    """(name, µs) of every variant that tuning timed, the model's choice first."""
    return [(f"{one['recipe']} {one['settings']}".rstrip(), one["settings"], one["us"])
            for one in result.get("tuning", []) if one["us"]]


def tuning(results):
    """What choosing by measurement brings over the model's choice, and what it takes."""
    gains, among_recipes, seconds = [], [], []
    for result in results:
        times = raced(result)
        if not times:
            continue
        fastest = min(times, key=lambda one: one[2])
        gains.append((times[0][2] / fastest[2], result, times[0], fastest))
        among_recipes.append(times[0][2] / min(us for _, settings, us in times if not settings))
        seconds.append(result["stages_ms"]["tune"] / 1e3)
    if not gains:
        return
    print(f"\nLoss of choosing by the model against the fastest variant timed, in the same tuning: geometric mean "
          f"{100 * (mean(gain for gain, *_ in gains) - 1):.1f} % over {len(gains)} matrices; against the recipes as they "
          f"are, without other lanes or items, {100 * (mean(among_recipes) - 1):.1f} %. Tuning took "
          f"{sorted(seconds)[len(seconds) // 2]:.2f} s in the median, {max(seconds):.2f} s at most. The worst:\n")
    for gain, result, model_choice, fastest in sorted(gains, key=lambda one: -one[0])[:12]:
        print(f"- {result['matrix']}: {gain:.2f} times; {model_choice[0]} {model_choice[2]:.2f} µs, "
              f"{fastest[0]} {fastest[2]:.2f} µs")


def setup_ms(baseline):
    """Conversion and preparation."""
    return baseline["convert_ms"] + baseline["prepare_ms"]


def best_setup(result):
    times = [setup_ms(baseline) for baseline in result["baselines"] if baseline["name"] == result["best_baseline"]]
    return f"{times[0]:.2f}" if times else "–"


def baselines(results):
    """One row for each algorithm: how it does over all matrices that it multiplies rightly."""
    of = {}
    for result in results:
        for baseline in result["baselines"]:
            if baseline["applies"] and baseline["time"] and not baseline["wrong"] and result["time"]:
                of.setdefault(baseline["name"], []).append((result, baseline))
    if not of:
        return
    print(f"\nThe algorithms of {versions_of(results)}: on how many matrices each applies and is the fastest of them; its "
          "time over ours; milliseconds to convert CSR on the host and to prepare (buffer and preprocessing, or buffer, "
          "descriptor and plan), median and greatest.\n")
    print("| algorithm | matrices | fastest | our speed-up | least | convert | most | prepare | most |\n"
          "| --- |" + " --: |" * 8)
    for name, pairs in of.items():
        ratios = [baseline["time"]["us"] / result["time"]["us"] for result, baseline in pairs]
        convert = [baseline["convert_ms"] for _, baseline in pairs]
        prepare = [setup_ms(baseline) - baseline["convert_ms"] for _, baseline in pairs]
        best = sum(result["best_baseline"] == name for result, _ in pairs)
        print(f"| {name} | {len(pairs)} | {best} | {mean(ratios):.2f} | {min(ratios):.2f} | "
              f"{statistics.median(convert):.1f} | {max(convert):.1f} | {statistics.median(prepare):.2f} | "
              f"{max(prepare):.2f} |")


def markdown(results):
    names = ["csr-alg1", "csr-alg2", "spmvop-alg1", "spmvop-alg2", "coo-alg1", "coo-alg2", "sell-16", "sell-32",
             "sell-64", "sell-128"]
    head = (["matrix", "rows", "nonzeros", "type", "recipe", "µs", "GFLOP/s", "B/nnz", "GB/s", "of read", "bound µs",
             "reached", "predicted µs", "registers", "stack", "launches", "NVRTC ms", "set-up ms", "wrong rows"] + names +
            ["best block CSR", "best cuSPARSE", "its set-up ms", "speed-up", "over CSR"])
    print(conditions(results))
    print("\nGB/s counts stored bytes, x and y; set-up is plan, pack, emit, NVRTC, load and upload; columns named after "
          "cuSPARSE's algorithms are their µs; its set-up is conversion on the host and preparation, without uploads.\n")
    print("| " + " | ".join(head) + " |")
    print("| --- |" + " --: |" * (len(head) - 1))
    for result in results:
        blocks = [baseline["time"]["us"] for baseline in result["baselines"]
                  if baseline["name"].startswith("bsr") and baseline["applies"] and baseline["time"]]
        row = [result["matrix"], result["rows"], result["nnz"], result["type"], result["recipe"],
               microseconds(result["time"]), f"{result['gflops']:.1f}", f"{result['bytes_per_nonzero']:.2f}",
               f"{result['moved_gb_per_s']:.0f}", f"{100 * result['share_of_read']:.0f} %", f"{result['bound_us']:.2f}",
               f"{reached(result):.0f} %", f"{result['predicted_us']:.2f}", worst(result, "registers"),
               worst(result, "stack_bytes"), result["launches"], f"{result['stages_ms']['compile']:.0f}",
               f"{result['stages_ms']['all']:.0f}", result["check"]["wrong"]]
        row += [microseconds(baseline_time(result, name)) for name in names]
        row += [f"{min(blocks):.2f}" if blocks else "–", result["best_baseline"] or "–", best_setup(result),
                f"{result['speed_up']:.2f}", f"{result['csr_speed_up']:.2f}"]
        print("| " + " | ".join(map(str, row)) + " |")
    wrong = sum(1 for result in results for baseline in result["baselines"] if baseline["applies"] and baseline["wrong"])
    print(f"\n{len(results)} matrices; geometric mean of the speed-ups {mean(r['speed_up'] for r in results):.2f} over the "
          f"best of {versions_of(results)}, {mean(r['csr_speed_up'] for r in results):.2f} over CSR; {wrong} wrong results "
          f"of cuSPARSE.")
    baselines(results)
    model(results)
    tuning(results)


def short(results):
    print(f"{'matrix':22} {'nonzeros':>10} {'µs':>9} {'GFLOP/s':>8} {'B/nnz':>6} {'read':>5} {'baseline':>10} {'µs':>9} "
          f"{'speed-up':>8} {'CSR':>5}")
    for result in sorted(results, key=lambda r: r["speed_up"]):
        best = baseline_time(result, result["best_baseline"]) if result["best_baseline"] else None
        mark = " WRONG" if result["check"]["wrong"] else ""
        print(f"{result['matrix'][:22]:22} {result['nnz']:10} {microseconds(result['time']):>9} {result['gflops']:8.1f} "
              f"{result['bytes_per_nonzero']:6.2f} {100 * result['share_of_read']:4.0f}% {result['best_baseline'] or '–':>10} "
              f"{microseconds(best):>9} {result['speed_up']:8.2f} {result['csr_speed_up']:5.2f}{mark}")
    print(f"geometric mean of {len(results)}: {mean(r['speed_up'] for r in results):.3f} over the best of "
          f"{versions_of(results)}, {mean(r['csr_speed_up'] for r in results):.3f} over CSR; worst first")
    model(results)
    tuning(results)


def setup(results):
    steps = ["plan", "pack", "emit", "compile", "load", "upload", "all"]
    print("Milliseconds; the last column: plan, pack and upload of 100 M nonzeros.\n")
    print("| matrix | nonzeros | recipe | " + " | ".join(steps) + " | 100 M |\n| --- |" + " --: |" * (len(steps) + 3))
    for result in results:
        stages = result["stages_ms"]
        share = (stages["plan"] + stages["pack"] + stages["upload"]) * 1e8 / result["nnz"]
        print(f"| {result['matrix']} | {result['nnz']} | {result['recipe']} | " +
              " | ".join(f"{stages[step]:.1f}" for step in steps) + f" | {share:.0f} |")


def recipe_rows(results):
    """(matrix, nonzeros) → recipe → (µs, stored bytes per nonzero)"""
    rows = {}
    for result in results:
        row = rows.setdefault((result["matrix"], result["nnz"]), {})
        for one in result.get("candidates", []):
            if one.get("us"):
                row[one["recipe"]] = (one["us"], one["stored_bytes"] / result["nnz"])
        for one in result.get("values", []):
            if one.get("us") and not one["wrong"]:
                row[one["value"]] = (one["us"], one["bytes_per_nonzero"])
    return rows


def recipes(results):
    rows = recipe_rows(results)
    names = list(dict.fromkeys(name for row in rows.values() for name in row))
    print("µs and stored bytes per nonzero; –: refused. The fastest is bold. The last row: geometric mean of the time over "
          "the fastest recipe's, on the matrices that the recipe takes.\n")
    print("| matrix | nonzeros | " + " | ".join(names) + " |\n| --- |" + " --: |" * (len(names) + 1))
    slower = {name: [] for name in names}
    for (matrix, nonzeros), row in sorted(rows.items(), key=lambda pair: pair[0][1]):
        fastest = min(us for us, _ in row.values())
        cells = []
        for name in names:
            us, stored = row.get(name, (0, 0))
            if us:
                slower[name].append(us / fastest)
            mark = "**" if us == fastest else ""
            cells.append(f"{mark}{us:.2f}{mark} ({stored:.1f})" if us else "–")
        print(f"| {matrix} | {nonzeros} | " + " | ".join(cells) + " |")
    print("| over the fastest | | " + " | ".join(f"{mean(slower[name]):.2f} ({len(slower[name])})" for name in names) + " |")


def summary(results):
    """The paragraph and the table that bench/results/README.md gives for a run."""
    compared = [result for result in results if result["speed_up"]]
    wrong = sum(result["check"]["wrong"] for result in results)
    below = [result["matrix"] for result in compared if result["speed_up"] < 1]
    print(f"{len(compared)} matrices against the **best** of all algorithms of {versions_of(results)} in the same run: geometric "
          f"mean **{mean(r['speed_up'] for r in compared):.2f}** (over its better CSR "
          f"{mean(r['csr_speed_up'] for r in compared):.2f}); {len(below)} below 1.0"
          f"{': ' + ', '.join(below) if below else ''}; wrong rows: {wrong}.\n")
    print("| nonzeros | matrices | geometric mean | least |\n| --- | --: | --: | --: |")
    for least, most, name in [(0, 1e5, "under 0.1 M"), (1e5, 1e6, "to 1 M"), (1e6, 1e7, "to 10 M"),
                              (1e7, math.inf, "above")]:
        inside = [result["speed_up"] for result in compared if least <= result["nnz"] < most]
        if inside:
            print(f"| {name} | {len(inside)} | {mean(inside):.2f} | {min(inside):.2f} |")
    print("\n| class | µs | GFLOP/s | of read | recipe | best of cuSPARSE | speed-up |\n"
          "| --- | --: | --: | --: | --- | --- | --: |")
    for words, *key in CLASSES:
        for result in compared:
            if [result["matrix"], result["nnz"]] == key:
                best = baseline_time(result, result["best_baseline"])
                print(f"| {words} | {microseconds(result['time'])} | {result['gflops']:.0f} | "
                      f"{100 * result['share_of_read']:.0f} % | `{result['recipe']}` | {result['best_baseline']}, "
                      f"{microseconds(best)} µs | {result['speed_up']:.2f} |")
    baselines(compared)


def main():
    forms = {"--short": short, "--setup": setup, "--summary": summary, "--recipes": recipes,
             "--conditions": lambda results: print(conditions(results))}
    form = forms.get(sys.argv[1]) if len(sys.argv) > 1 else None
    results = [result for path in sys.argv[2 if form else 1:] for result in read(path)]
    if not results:
        print("no results")
        return 1
    (form or markdown)(results)
    return 0


sys.exit(main())
