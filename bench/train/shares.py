#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The predictor of an extraction's shares (analysis/choose/shares.h): MatXtract's, trained on what search.sh measured.

    bench/train/shares.py --labels=FILE,…                   what the best shares are, and what they gain
    bench/train/shares.py --labels=FILE,… --judge           what models predict of matrices that they were not trained with
    bench/train/shares.py --labels=FILE,… --train           writes the tables of all matrices, analysis/choose/shares_tables.c
    bench/train/shares.py --labels=FILE,… --chosen          pairs to time (search.sh, POINTS): what is predicted of left-out matrices
    bench/train/shares.py --list FOLDER…                    the matrices to search, from matrices.txt and what lies in the folders

The paper's way: 80 % of the matrices train, 20 % test, both with the same share of each fifth by nonzeros; forests, boosted trees and
AdaBoost in five folds. Beside its errors stands what counts: how much longer a product takes by what is predicted than by the best
that was measured, and than without an extraction. scikit-learn is needed for --judge, --train and --chosen; XGBoost is judged if it
is there. The same labels give the same tables."""
import argparse
import collections
import json
import math
import os
import random

import learn
import measured

OUTPUTS = ["cols", "rows", "gain"]
LEAF = 64  # 1/64 of a percent
LEAST_LABEL = 0.01  # an extraction that gains less than noise is none
LEAST_GAINS = [0, 15, 29, 43, 58, 72, 98, 143]  # in 1/1024 of log2: 0, 1, 2, 3, 4, 5, 7, 10 percent
FOREST = {"n_estimators": 8, "max_leaf_nodes": 12, "min_samples_leaf": 2, "max_features": 0.4}
FOLDS = 5
VALUE_BYTES = {"f64": 8, "f32": 4}

Label = collections.namedtuple("Label", "matrix kind model nnz features us cols rows gain")  # us: {(cols, rows): over (0, 0)}


# ---- labels

def ratios(record):
    """{(cols, rows): time over that with nothing hot}: of two times of a pair the one beside it counts."""
    return {(cols, rows): us / base for cols, rows, us, base, _ in record["points"] if us and base}


def best_of(us):
    point = min(us, key=us.get)
    return point if us[point] < 1 - LEAST_LABEL else (0, 0)


def read(paths, choice=None):
    records = list(measured.read(paths).values())
    lines = ["describe " + " ".join(map(str, record["counts"])) for record in records]
    described = learn.ask(choice, lines) if choice else [""] * len(records)
    found = []
    for record, words in zip(records, described):
        us = ratios(record)
        if (0, 0) not in us or len(us) < 2:
            continue
        cols, rows = best_of(us)
        found.append(Label(record["matrix"], record["type"], record["model"], record["nnz"], [int(word) for word in words.split()], us,
                           cols / 100, rows / 100, -math.log2(us[cols, rows] if cols else 1)))
    return sorted(found, key=lambda label: (label.kind, label.matrix))


def show(labels):
    for kind in sorted({label.kind for label in labels}):
        of_kind = [label for label in labels if label.kind == kind]
        none = sum(label.cols == 0 for label in of_kind)
        gains = [2 ** label.gain for label in of_kind]
        mean = math.exp(sum(map(math.log, gains)) / len(gains))
        print(f"{kind}: {len(of_kind)} matrices; nothing is hot in the best of {none} ({100 * none / len(of_kind):.0f} %); without an "
              f"extraction a product takes {mean:.3f} x as long in the geometric mean, {max(gains):.2f} x at most; "
              f"{sum(gain > 1.1 for gain in gains)} above 1.1")
        for label in sorted(of_kind, key=lambda label: -label.gain)[:8]:
            print(f"    {2 ** label.gain:5.2f} x  {label.matrix}: ({label.cols:.2f}, {label.rows:.2f}), {label.nnz} nonzeros")


# ---- groups

def fifths(labels, parts, seed=1):
    """The number of a group, below `parts`, for each label: each group has as many of each fifth by nonzeros."""
    rng, group = random.Random(seed), {}
    ordered = sorted(range(len(labels)), key=lambda i: (labels[i].nnz, labels[i].matrix))
    for fifth in range(5):
        members = ordered[len(ordered) * fifth // 5:len(ordered) * (fifth + 1) // 5]
        rng.shuffle(members)
        group.update((i, n % parts) for n, i in enumerate(members))
    return [group[i] for i in range(len(labels))]


def halves(labels, groups, left_out):
    return ([label for label, group in zip(labels, groups) if group != left_out],
            [label for label, group in zip(labels, groups) if group == left_out])


# ---- forests in integers

def train(labels):
    """[(output, tree)]: each output is a forest of its own."""
    import numpy
    from sklearn.ensemble import RandomForestRegressor
    x = numpy.array([label.features for label in labels], dtype=numpy.float32)
    count, found = FOREST["n_estimators"], []
    for output, (name, scale) in enumerate(zip(OUTPUTS, (100 * LEAF, 100 * LEAF, learn.ONE))):
        y = numpy.array([getattr(label, name) for label in labels])
        forest = RandomForestRegressor(**FOREST, random_state=output).fit(x, y)
        found += [(output, learn.to_integers(one.tree_, scale / count)) for one in forest.estimators_]
    return found


def sums(trees, features):
    total = [0] * len(OUTPUTS)
    for output, tree in trees:
        total[output] += learn.evaluate(tree, features)
    return total


def percent(total):
    return (max(0, min(total, 100 * LEAF)) + LEAF // 2) // LEAF


def predict(trees, least_gain, features):
    """As cb_shares_predict has it."""
    cols, rows, gain = sums(trees, features)
    cols, rows = percent(cols), min(percent(rows), percent(cols))
    return (cols, rows) if rows and gain >= least_gain else (0, 0)


# ---- what a prediction costs

def time_at(label, point):
    """Over that with nothing hot; of a pair that was not timed, that of the nearest one with something hot."""
    if point not in label.us:
        hot = [pair for pair in label.us if pair != (0, 0)]
        point = min(hot, key=lambda pair: (math.dist(pair, point), pair))
    return label.us[point]


def cost(labels, points):
    """(against the best, against nothing hot, worst against the best, worst against nothing hot): geometric means and maxima."""
    best = [time_at(label, point) / min(label.us.values()) for label, point in zip(labels, points)]
    none = [time_at(label, point) for label, point in zip(labels, points)]

    def mean(values):
        return math.exp(sum(map(math.log, values)) / len(values))
    return mean(best), mean(none), max(best), max(none)


def unseen(labels, groups, least_gains):
    """{least gain: predictions} by forests that were trained without the label's group."""
    points = {gain: [None] * len(labels) for gain in least_gains}
    for group in sorted(set(groups)):
        trees = train(halves(labels, groups, group)[0])
        for i, label in enumerate(labels):
            for gain in least_gains:
                if groups[i] == group:
                    points[gain][i] = predict(trees, gain, label.features)
    return points


def best_gain(labels):
    """The least gain that loses least on matrices left out, in five groups; of equals the greater one."""
    points = unseen(labels, fifths(labels, FOLDS, seed=2), LEAST_GAINS)
    return min(LEAST_GAINS, key=lambda gain: (cost(labels, points[gain])[0], -gain))


# ---- the paper's judgement

def models():
    from sklearn.ensemble import AdaBoostRegressor, GradientBoostingRegressor, RandomForestRegressor
    from sklearn.multioutput import MultiOutputRegressor
    from sklearn.tree import DecisionTreeRegressor
    found = {
        "random forest": RandomForestRegressor(n_estimators=200, min_samples_leaf=2, max_features=0.4, random_state=0),
        "boosted trees": MultiOutputRegressor(GradientBoostingRegressor(n_estimators=100, max_depth=3, learning_rate=0.05,
                                                                        subsample=0.7, random_state=0)),
        "AdaBoost": MultiOutputRegressor(AdaBoostRegressor(DecisionTreeRegressor(max_depth=4), n_estimators=100, random_state=0)),
    }
    try:
        from xgboost import XGBRegressor
        found["XGBoost"] = XGBRegressor(n_estimators=100, max_depth=3, learning_rate=0.05, subsample=0.7, random_state=0, n_jobs=1)
    except ImportError:
        pass
    return found


def judge(labels):
    import numpy
    from sklearn.base import clone
    from sklearn.metrics import mean_squared_error, r2_score

    def arrays(some):
        return (numpy.array([label.features for label in some], dtype=numpy.float32),
                numpy.array([(label.cols, label.rows) for label in some]))

    def points_of(predicted):
        pairs = [(round(100 * min(1, max(0, cols))), round(100 * min(1, max(0, rows)))) for cols, rows in predicted]
        return [(cols, min(rows, cols)) if min(rows, cols) else (0, 0) for cols, rows in pairs]

    def line(name, points, errors="", of=None):
        best, none, worst, worst_none = cost(of or testing, points)
        print(f"  {name:28} {100 * (best - 1):6.2f} % {100 * (worst - 1):7.1f} %   {100 * (none - 1):+6.2f} % "
              f"{100 * (worst_none - 1):+7.1f} %   {sum(point != (0, 0) for point in points):4}   {errors}")

    training, testing = halves(labels, fifths(labels, 5), 0)
    folds = fifths(training, FOLDS)
    x_test, y_test = arrays(testing)
    print(f"{labels[0].kind}: {len(training)} matrices train, {len(testing)} test")
    print(f"  {'':28} over the best, worst  over nothing hot, worst  extractions  squared error in folds, test; R² of cols, rows")
    line("nothing hot", [(0, 0)] * len(testing))
    line("all hot", [(100, 100)] * len(testing))
    for name, model in models().items():
        in_folds = [mean_squared_error(arrays(halves(training, folds, fold)[1])[1],
                                       clone(model).fit(*arrays(halves(training, folds, fold)[0])).predict(
                                           arrays(halves(training, folds, fold)[1])[0])) for fold in range(FOLDS)]
        predicted = clone(model).fit(*arrays(training)).predict(x_test)
        r2 = [r2_score(y_test[:, i], predicted[:, i]) for i in range(2)]
        line(name, points_of(predicted), f"{sum(in_folds) / FOLDS:.5f}, {mean_squared_error(y_test, predicted):.5f}; "
                                         f"{r2[0]:.2f}, {r2[1]:.2f}")
    trees, least_gain = train(training), best_gain(training)
    line("small forests alone", [predict(trees, -10**6, label.features) for label in testing])
    line(f"and a gain of {100 * (2 ** (least_gain / learn.ONE) - 1):.0f} %",
         [predict(trees, least_gain, label.features) for label in testing])
    everything = unseen(labels, fifths(labels, FOLDS), [least_gain])[least_gain]
    line("the same, all in five groups", everything, of=labels)


# ---- tables

HEAD = """// SPDX-License-Identifier: Apache-2.0
/* The tables of the extraction's shares: written by bench/train/shares.py, do not edit. */
#include "analysis/choose/shares.h"

"""


def write_tables(labels, path):
    import train as tables
    text, entries = HEAD, []
    keys = sorted({(label.model, label.kind) for label in labels})
    for number, (model, kind) in enumerate(keys):
        found = [label for label in labels if (label.model, label.kind) == (model, kind)]
        trees, least_gain = train(found), best_gain(found)
        points = [predict(trees, least_gain, label.features) for label in found]
        nodes = sum(len(tree) for _, tree in trees)
        best, none, worst, _ = cost(found, points)
        print(f"{model}, {kind}: {len(found)} matrices, {len(trees)} trees, {nodes} nodes, {6 * nodes + 8 * len(trees)} bytes; on what it "
              f"was trained with it takes {100 * (best - 1):.2f} % over the best, {100 * (worst - 1):.1f} % at worst, "
              f"{100 * (none - 1):+.2f} % over nothing hot")
        text += tables.table_text(number, trees)
        entries.append(f'    {{"{model}", {VALUE_BYTES[kind]}, {least_gain}, {{trees_{number}, nodes_{number}, {len(trees)}, {nodes}}}}},\n')
    text += "const struct cb_shares_table cb_shares_tables[] = {\n" + "".join(entries) + "    {0},\n};\n"
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def print_chosen(labels):
    for kind in sorted({label.kind for label in labels}):
        found = [label for label in labels if label.kind == kind]
        groups, least_gain = fifths(found, FOLDS), best_gain(found)
        points = unseen(found, groups, [least_gain, -10**6])
        for i, label in enumerate(found):
            pairs = {points[least_gain][i], points[-10**6][i], best_of(label.us)}
            print(json.dumps({"matrix": label.matrix, "type": kind, "points": sorted(pairs)}))


# ---- the list

def print_list(folders, profiles, each, least=30_000, most=12_000_000):
    """As many matrices of each fifth of the range of nonzeros, on a logarithmic scale; the largest first, then the others mixed."""
    rng = random.Random(3)
    there = {name.split(".mtx")[0] for folder in folders for name in os.listdir(folder)}
    nnz = {matrix: record["nnz"] for (matrix, _), record in measured.read(profiles).items()}
    fifth_of = collections.defaultdict(list)
    for matrix in sorted(nnz):
        if least <= nnz[matrix] < most and (matrix.startswith("generate:") or matrix.split(" ")[0] in there):
            fifth_of[int(5 * math.log(nnz[matrix] / least) / math.log(most / least))].append(matrix)
    chosen = []
    for members in fifth_of.values():
        rng.shuffle(members)
        chosen += members[:each]
    rng.shuffle(chosen)
    large = sorted((matrix for matrix in chosen if nnz[matrix] > 3_000_000), key=nnz.get, reverse=True)
    for matrix in large + [matrix for matrix in chosen if nnz[matrix] <= 3_000_000]:
        print(matrix)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labels")
    parser.add_argument("--choice", default="build/bench/bench_choice")
    parser.add_argument("--out", default="analysis/choose/shares_tables.c")
    parser.add_argument("--profiles", default="bench/train/data/profiles.jsonl.gz")
    parser.add_argument("--each", type=int, default=48)
    parser.add_argument("folders", nargs="*")
    for name in ("judge", "train", "chosen", "list"):
        parser.add_argument(f"--{name}", action="store_true")
    args = parser.parse_args()
    if args.list:
        print_list(args.folders, args.profiles.split(","), args.each)
        return
    needs_features = args.judge or args.train or args.chosen
    labels = read(args.labels.split(","), args.choice if needs_features else None)
    if args.judge:
        for kind in sorted({label.kind for label in labels}):
            judge([label for label in labels if label.kind == kind])
    if args.train:
        write_tables(labels, args.out)
    if args.chosen:
        print_chosen(labels)
    if not needs_features:
        show(labels)


if __name__ == "__main__":
    main()
