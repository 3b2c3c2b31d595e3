#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What bench_candidates measured, read and summed up.

    bench/train/measured.py FILE…       by type: matrices, how often each recipe is the fastest, and what it costs to
                                        take the one that the cost model predicts from plans
"""
import collections
import gzip
import json
import math
import os
import sys


def is_again(path):
    """Whether the file repeats measurements: its name says so."""
    return os.path.basename(path).startswith("again")


def lines_of(path):
    with (gzip.open(path, "rt") if path.endswith(".gz") else open(path, encoding="utf-8")) as file:
        return [json.loads(line) for line in file]


def read(paths):
    """Records by (matrix, type); later ones replace earlier ones. Those of files that repeat measurements are joined to them:
    entries get what each call found ("calls")."""
    records = {}
    for path in sorted(paths, key=is_again):
        for record in lines_of(path):
            key = record["matrix"], record["type"]
            if not is_again(path):
                records[key] = record
            elif key in records:
                join(records[key], record)
    return records


def of_call(entry):
    """Of one call. What disturbs a measurement makes it longer: of two halves the shorter counts."""
    return min(entry.get("halves", [entry["us"]]))


def join(record, again):
    found = {entry["recipe"]: of_call(entry) for entry in again["recipes"] if entry.get("us")}
    for entry in record["recipes"]:
        if entry.get("us") and entry["recipe"] in found:
            entry.setdefault("calls", [of_call(entry)]).append(found[entry["recipe"]])


def mean(times_of_calls):
    return math.exp(sum(map(math.log, times_of_calls)) / len(times_of_calls))


def times(record):
    """{recipe: microseconds} of those that were timed: what a call found, or the mean of several calls."""
    return {entry["recipe"]: mean(entry.get("calls", [of_call(entry)])) for entry in record["recipes"] if entry.get("us")}


def halves(record):
    """{recipe: [microseconds, microseconds]}, which share no measurement: of every other call; of one call the medians of every
    other repetition. Empty where there are none."""
    def of(entry):
        calls = entry.get("calls")
        return [mean(calls[0::2]), mean(calls[1::2])] if calls else entry["halves"]
    return {entry["recipe"]: of(entry) for entry in record["recipes"] if entry.get("us") and ("calls" in entry or "halves" in entry)}


def luck(record):
    """What the fastest recipe of one half of the measurements loses in the other half, as a logarithm: no choice can be
    judged more finely than that. None where there are no halves."""
    known = list(halves(record).values())
    if len(known) < 2:
        return None
    return sum(math.log(min(known, key=lambda h: h[a])[b] / min(h[b] for h in known)) for a, b in ((0, 1), (1, 0))) / 2


def loss_by_halves(record, recipe):
    """What a recipe loses against the fastest of one half, both timed by the other half, as a logarithm: the fastest of several
    times is too fast by luck, and this one's luck is not in the comparison. None where there are no halves of it."""
    known = halves(record)
    if recipe not in known:
        return None
    return sum(math.log(known[recipe][b] / min(known.values(), key=lambda h: h[a])[b]) for a, b in ((0, 1), (1, 0))) / 2


def planned(record):
    """{recipe: nanoseconds} as predicted from plans."""
    return {entry["recipe"]: entry["ns"] for entry in record["recipes"] if "ns" in entry}


def losses(records, choose):
    """(loss, matrix, chosen, fastest) by matrix; choose(record) names a recipe, which was timed."""
    found = []
    for (matrix, _), record in sorted(records.items()):
        us = times(record)
        if len(us) < 2:
            continue
        best, chosen = min(us, key=us.get), choose(record)
        found.append((us[chosen] / us[best] - 1 if chosen in us else math.inf, matrix, chosen, best))
    return found


def mean_and_worst(found):
    known = [loss for loss, *_ in found if loss < math.inf]
    if not known:
        return 0.0, 0.0
    return math.exp(sum(math.log1p(loss) for loss in known) / len(known)) - 1, max(known)


def main():
    by_type = collections.defaultdict(dict)
    for (matrix, kind), record in read(sys.argv[1:]).items():
        by_type[kind][matrix, kind] = record
    for kind, records in sorted(by_type.items()):
        def by_model(record):
            us, ns = times(record), planned(record)
            return min(us, key=lambda recipe: ns[recipe])
        fastest = collections.Counter(min(us, key=us.get) for us in map(times, records.values()) if us)
        timed = collections.Counter(recipe for record in records.values() for recipe in times(record))
        found = losses(records, by_model)
        mean, worst = mean_and_worst(found)
        print(f"{kind}: {len(records)} matrices, {sum(timed.values())} products timed")
        print("  fastest of timed: " + ", ".join(f"{name} {fastest[name]} of {timed[name]}" for name, _ in timed.most_common()))
        print(f"  the model from plans: loss {100 * mean:.2f} % in the geometric mean, {100 * worst:.1f} % at worst")
        for loss, matrix, chosen, best in sorted(found, reverse=True)[:6]:
            print(f"    {100 * loss:6.1f} %  {matrix}: {chosen} for {best}")


if __name__ == "__main__":
    main()
