# SPDX-License-Identifier: Apache-2.0
"""What train.py and judge.py share: samples from measured times and profiles, boosted trees in integers, and what a choice
loses against the fastest recipe measured."""
import collections
import math

import measured

RECIPES = ["dia", "blocks", "patterns", "sell", "merge", "hot", "phases", "cb", "slices"]
ONE = 1024
HOPELESS = 6.0  # what was not worth timing counts as so many times the fastest

Sample = collections.namedtuple("Sample", "matrix kind family features model us")  # model, us: by recipe number


def log2(number):
    """In steps of 1/1024, linear between powers of two, as analysis/choose/features.c has it."""
    if number < 2:
        return 0
    power = number.bit_length() - 1
    rest = number - (1 << power)
    return power * ONE + (rest >> (power - 10) if power >= 10 else rest << (10 - power))


def family_of(matrix):
    """The shape of generated matrices; a file and its parts are a family of their own."""
    name = matrix.split(" ")[0]
    return name.split(",")[0] if name.startswith("generate:") else name


def samples(measured_paths, profile_paths):
    profiles = measured.read(profile_paths)
    found = []
    for key, record in sorted(measured.read(measured_paths).items()):
        if key not in profiles or len(measured.times(record)) < 2:
            continue
        us, planned = measured.times(record), measured.planned(record)
        worst = HOPELESS * min(us.values())
        times = [us.get(name, worst if name in planned else None) for name in RECIPES]
        profile = profiles[key]
        found.append(Sample(*key, family_of(key[0]), profile["features"], profile["model_ns"], times))
    return found


# ---- trees: [(feature, threshold, next)] with leaves (-1, value, 0); `next` is where feature <= threshold leads

def evaluate(tree, features):
    at = 0
    while tree[at][0] >= 0:
        feature, threshold, following = tree[at]
        at = following + (features[feature] > threshold)
    return tree[at][1]


def to_integers(tree, scale):
    """A tree of scikit-learn, breadth first, so that both children of a node stand behind each other."""
    nodes, queue = [], [0]
    while queue:
        at = queue.pop(0)
        if tree.children_left[at] < 0:
            nodes.append((-1, max(-32000, min(32000, round(float(tree.value[at].ravel()[0]) * scale))), 0))
            continue
        nodes.append((int(tree.feature[at]), math.floor(tree.threshold[at]), len(nodes) + len(queue) + 1))
        queue += [int(tree.children_left[at]), int(tree.children_right[at])]
    return nodes


def fit(features, targets, weights, trees, depth, rate, leaf, seed):
    """Boosted trees as integers, the first a leaf alone."""
    import numpy
    from sklearn.ensemble import GradientBoostingRegressor
    x = numpy.array(features, dtype=numpy.float32)
    y, w = numpy.array(targets, dtype=float), numpy.array(weights, dtype=float)
    start = float(numpy.average(y, weights=w))
    boosted = GradientBoostingRegressor(n_estimators=trees, max_depth=depth, learning_rate=rate, subsample=0.6,
                                        max_features=0.4, min_samples_leaf=leaf, random_state=seed, init="zero",
                                        loss="huber", alpha=0.9)
    boosted.fit(x, y - start, sample_weight=w)
    return [[(-1, round(start), 0)]] + [to_integers(one[0].tree_, rate) for one in boosted.estimators_]


SETTINGS = {"trees": 60, "depth": 3, "rate": 0.1, "leaf": 3}


def train(training, settings=None, seed=1):
    """[(recipe, tree)]; recipe -1: of all, which learn what sell differs from its model by."""
    settings = settings or SETTINGS
    sell = RECIPES.index("sell")

    def error(sample, recipe):
        return log2(round(sample.us[recipe] * 1000)) - log2(sample.model[recipe])

    def weight(sample, recipe):  # what is far from the fastest need not be known well
        best = min(us for us in sample.us if us)
        return 1 / (0.3 + (sample.us[recipe] / best - 1))

    found = []
    base = [s for s in training if s.us[sell] and s.model[sell]]
    common = fit([s.features for s in base], [error(s, sell) for s in base], [1] * len(base), seed=seed, **settings)
    found += [(-1, tree) for tree in common]
    for recipe in range(len(RECIPES)):
        rows = [s for s in base if s.us[recipe] and s.model[recipe]]
        if recipe == sell or len(rows) < 12:
            continue
        rest = [error(s, recipe) - error(s, sell) for s in rows]
        own = fit([s.features for s in rows], rest, [weight(s, recipe) for s in rows], seed=seed, **settings)
        found += [(recipe, tree) for tree in own]
    return found


# ---- choices

def scores(trees, sample):
    """By recipe; None without a time in the model."""
    sums = collections.Counter()
    for recipe, tree in trees:
        sums[recipe] += evaluate(tree, sample.features)
    return [log2(ns) + sums[-1] + sums[recipe] if ns else None for recipe, ns in enumerate(sample.model)]


def choose(trees, sample):
    """The best recipe that plans; refused ones give way to the next, as in the library."""
    ranked = sorted((score, recipe) for recipe, score in enumerate(scores(trees, sample)) if score is not None)
    return next((recipe for _, recipe in ranked if sample.us[recipe]), None)


def loss(sample, recipe):
    best = min(us for us in sample.us if us)
    return (sample.us[recipe] if recipe is not None else HOPELESS * best) / best - 1


def summary(losses):
    """(geometric mean, worst)"""
    return math.exp(sum(map(math.log1p, losses)) / len(losses)) - 1, max(losses)


def left_out(all_samples, folds=None, settings=None):
    """Choices for each sample by trees that know nothing of its family: {(matrix, kind): recipe}. `folds`: as many groups
    of families at a time; None: each family alone, but files in ten groups."""
    families = sorted({s.family for s in all_samples})
    if folds:
        number = {family: i % folds for i, family in enumerate(families)}
    else:
        number, files = {}, 0
        for family in families:
            number[family] = family if family.startswith("generate:") else f"files {files % 10}"
            files += not family.startswith("generate:")
    chosen = {}
    for fold in sorted(set(number.values()), key=str):
        trees = train([s for s in all_samples if number[s.family] != fold], settings)
        for sample in all_samples:
            if number[sample.family] == fold:
                chosen[sample.matrix, sample.kind] = choose(trees, sample)
    return chosen
