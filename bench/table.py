#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tables from the JSON lines of `cbgen bench --json`.

    bench/table.py FILE            Markdown: everything that is worth keeping, one row per matrix
    bench/table.py --short FILE    plain text of 80 columns, and the geometric means
    bench/table.py --setup FILE    Markdown: the way to the first product, step by step
"""
import json
import math
import sys


def read(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.startswith("{") and line.rstrip().endswith("}")]


def microseconds(time):
    return "–" if not time else f"{time['us']:.2f}"


def worst(result, key):
    return max((kernel[key] for kernel in result["kernels"]), default=0)


def rival_time(result, name):
    for rival in result["rivals"]:
        if rival["name"] == name and rival["applies"]:
            return rival["time"]
    return None


def mean(numbers):
    numbers = [number for number in numbers if number]
    return math.exp(sum(map(math.log, numbers)) / len(numbers)) if numbers else 0


def conditions(result):
    device, ceilings, protocol = result["device"], result["ceilings"], result["protocol"]
    text = (f"{device['model']} ({device['arch']}, {device['multiprocessors']} SMs), driver for CUDA "
            f"{device['driver_cuda']}, NVRTC {device['nvrtc']}, cuSPARSE {device['cusparse']}.")
    if ceilings:
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


def markdown(results):
    names = ["csr-alg1", "csr-alg2", "coo-alg1", "coo-alg2", "sell-16", "sell-32", "sell-64", "sell-128"]
    head = (["matrix", "rows", "nonzeros", "type", "recipe", "µs", "GFLOP/s", "B/nnz", "GB/s", "of read", "bound µs",
             "reached", "predicted µs", "registers", "stack", "launches", "NVRTC ms", "set-up ms", "wrong rows"] + names +
            ["best block CSR", "best cuSPARSE", "speed-up", "over CSR"])
    print(conditions(results[0]))
    print("\nGB/s counts stored bytes, x and y; set-up is plan, pack, emit, NVRTC, load and upload; columns named after "
          "cuSPARSE's algorithms are their µs.\n")
    print("| " + " | ".join(head) + " |")
    print("| --- |" + " --: |" * (len(head) - 1))
    for result in results:
        blocks = [rival["time"]["us"] for rival in result["rivals"]
                  if rival["name"].startswith("bsr") and rival["applies"] and rival["time"]]
        row = [result["matrix"], result["rows"], result["nnz"], result["type"], result["recipe"],
               microseconds(result["time"]), f"{result['gflops']:.1f}", f"{result['bytes_per_nonzero']:.2f}",
               f"{result['moved_gb_per_s']:.0f}", f"{100 * result['share_of_read']:.0f} %", f"{result['bound_us']:.2f}",
               f"{reached(result):.0f} %", f"{result['predicted_us']:.2f}", worst(result, "registers"),
               worst(result, "stack_bytes"), result["launches"], f"{result['stages_ms']['compile']:.0f}",
               f"{result['stages_ms']['all']:.0f}", result["check"]["wrong"]]
        row += [microseconds(rival_time(result, name)) for name in names]
        row += [f"{min(blocks):.2f}" if blocks else "–", result["best_rival"] or "–", f"{result['speed_up']:.2f}",
                f"{result['csr_speed_up']:.2f}"]
        print("| " + " | ".join(map(str, row)) + " |")
    wrong = sum(1 for result in results for rival in result["rivals"] if rival["applies"] and rival["wrong"])
    print(f"\n{len(results)} matrices; geometric mean of the speed-ups {mean(r['speed_up'] for r in results):.2f} over the "
          f"best of cuSPARSE, {mean(r['csr_speed_up'] for r in results):.2f} over CSR; {wrong} wrong results of cuSPARSE.")
    model(results)
    tuning(results)


def short(results):
    print(f"{'matrix':22} {'nonzeros':>10} {'µs':>9} {'GFLOP/s':>8} {'B/nnz':>6} {'read':>5} {'best rival':>10} {'µs':>9} "
          f"{'speed-up':>8} {'CSR':>5}")
    for result in sorted(results, key=lambda r: r["speed_up"]):
        best = rival_time(result, result["best_rival"]) if result["best_rival"] else None
        mark = " WRONG" if result["check"]["wrong"] else ""
        print(f"{result['matrix'][:22]:22} {result['nnz']:10} {microseconds(result['time']):>9} {result['gflops']:8.1f} "
              f"{result['bytes_per_nonzero']:6.2f} {100 * result['share_of_read']:4.0f}% {result['best_rival'] or '–':>10} "
              f"{microseconds(best):>9} {result['speed_up']:8.2f} {result['csr_speed_up']:5.2f}{mark}")
    print(f"geometric mean of {len(results)}: {mean(r['speed_up'] for r in results):.3f} over the best, "
          f"{mean(r['csr_speed_up'] for r in results):.3f} over CSR; worst first")
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


def main():
    forms = {"--short": short, "--setup": setup}
    form = forms.get(sys.argv[1]) if len(sys.argv) > 1 else None
    results = read(sys.argv[2 if form else 1])
    if not results:
        print("no results")
        return 1
    (form or markdown)(results)
    return 0


sys.exit(main())
