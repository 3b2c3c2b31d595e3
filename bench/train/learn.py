# SPDX-License-Identifier: Apache-2.0
"""What train.py and judge.py share: samples from measured times and profiles, boosted trees in integers, and what a choice
loses against the fastest recipe measured."""
import collections
import math
import random
import subprocess

import measured

RECIPES = ["dia", "blocks", "patterns", "sell", "merge", "hot", "phases", "cb", "slices"]
ONE = 1024
HOPELESS = 6.0  # what was not worth timing counts as so many times the fastest

# model, us: by recipe number; alike: the same number for all matrices of one profile
Sample = collections.namedtuple("Sample", "matrix kind family features model us alike", defaults=[0])


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


def ask(choice, lines):
    """What the program bench_choice (bench/choice.c) answers to each line: numbers."""
    done = subprocess.run([choice], input="".join(line + "\n" for line in lines), capture_output=True, text=True, check=True)
    answers = done.stdout.splitlines()
    assert len(answers) == len(lines), f"{len(answers)} answers to {len(lines)} lines"
    return answers


def samples(choice, measured_paths, profile_paths):
    """Features and the model's times are those of today's library, from the profiles' counts."""
    counts = {matrix: record["counts"] for (matrix, _), record in measured.read(profile_paths).items()}
    records = [(key, record) for key, record in sorted(measured.read(measured_paths).items())
               if key[0] in counts and len(measured.times(record)) >= 2]
    described = ask(choice, [f"features {kind} " + " ".join(map(str, counts[matrix])) for (matrix, kind), _ in records])
    found, profiles = [], {}
    for (key, record), words in zip(records, described):
        us, planned = measured.times(record), measured.planned(record)
        worst = HOPELESS * min(us.values())
        times = [us.get(name, worst if name in planned else None) for name in RECIPES]
        numbers = [int(word) for word in words.split()]
        alike = profiles.setdefault(tuple(counts[key[0]]), len(profiles))
        found.append(Sample(*key, family_of(key[0]), numbers[:-len(RECIPES)], numbers[-len(RECIPES):], times, alike))
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
                                        max_features=0.3, min_samples_leaf=leaf, random_state=seed, init="zero",
                                        loss="squared_error")
    boosted.fit(x, y - start, sample_weight=w)
    return [[(-1, round(start), 0)]] + [to_integers(one[0].tree_, rate) for one in boosted.estimators_]


SETTINGS = {"trees": 70, "depth": 5, "rate": 0.12, "leaf": 4}
COMMON = {"trees": 30, "depth": 4, "rate": 0.2, "leaf": 6}
CLEARLY = ONE  # slower than this by a logarithm is slow, whatever it takes
FAR = 900  # as in analysis/choose/trees.c


def near(sample):
    """Recipes whose time in the model is not far from its least one; and cb, of which the model knows least."""
    least = min((log2(ns) for ns in sample.model if ns), default=0)
    return [recipe for recipe, ns in enumerate(sample.model)
            if ns and (log2(ns) <= least + FAR or RECIPES[recipe] == "cb")]


def train(training, seed=1):
    """[(recipe, tree)]; recipe -1: of all, which learn what the fastest takes against the model's least."""
    def time(us):
        return log2(round(us * 1000))

    def least(sample):
        return min(time(us) for us in sample.us if us)

    def weight(sample, recipe):  # what is far from the fastest need not be known well
        return 1 / (0.3 + loss(sample, recipe))

    features = [s.features for s in training]
    errors = [least(s) - log2(min(ns for ns in s.model if ns)) for s in training]
    found = [(-1, tree) for tree in fit(features, errors, [1] * len(training), seed=seed, **COMMON)]
    for recipe in range(len(RECIPES)):
        rows = [s for s in training if s.us[recipe] and s.model[recipe]]
        if len(rows) < 12:
            continue
        slower = [min(CLEARLY, time(s.us[recipe]) - least(s)) for s in rows]
        own = fit([s.features for s in rows], slower, [weight(s, recipe) for s in rows], seed=seed, **SETTINGS)
        found += [(recipe, tree) for tree in own]
    return found


# ---- choices

def scores(trees, sample):
    """By recipe; None without a time in the model."""
    least = min(log2(ns) for ns in sample.model if ns) if any(sample.model) else 0
    trained = {recipe for recipe, _ in trees} & set(near(sample))
    sums = collections.Counter()
    for recipe, tree in trees:
        if recipe < 0 or recipe in trained:
            sums[recipe] += evaluate(tree, sample.features)
    return [(least if recipe in trained else log2(ns)) + sums[-1] + sums[recipe] if ns else None
            for recipe, ns in enumerate(sample.model)]


TIE, PLAIN = 8, ("dia", "blocks", "sell")  # as in analysis/choose/choose.c


def order(scored):
    """Recipes, the best first; of those that are as good as the best the first plain one before all. `scored`: by recipe; None:
    the model has no time."""
    ranked = sorted((score, recipe) for recipe, score in enumerate(scored) if score is not None)
    tied = {recipe for score, recipe in ranked if score <= ranked[0][0] + TIE}
    first = next((RECIPES.index(name) for name in PLAIN if RECIPES.index(name) in tied), None)
    return sorted((recipe for _, recipe in ranked), key=lambda recipe: recipe != first)


def choose(trees, sample):
    """The best recipe that plans; refused ones give way to the next, as in the library."""
    return next((recipe for recipe in order(scores(trees, sample)) if sample.us[recipe]), None)


def loss(sample, recipe):
    best = min(us for us in sample.us if us)
    return (sample.us[recipe] if recipe is not None else HOPELESS * best) / best - 1


def summary(losses):
    """(geometric mean, worst)"""
    return math.exp(sum(map(math.log1p, losses)) / len(losses)) - 1, max(losses)


def left_out(all_samples, folds=None, by_matrix=False):
    """Choices for each sample by trees that know nothing of its family: {(matrix, kind): recipe}. `folds`: as many groups
    of families at a time; None: each family alone, but files in ten groups. `by_matrix`: other matrices of its family
    may be known, but none of its profile, as matrices of some shapes differ in nothing but their values."""
    def key(sample):
        return sample.alike if by_matrix else sample.family
    families = sorted({key(s) for s in all_samples})
    if by_matrix:
        random.Random(1).shuffle(families)
    if folds:
        number = {family: i % folds for i, family in enumerate(families)}
    else:
        number, files = {}, 0
        for family in families:
            number[family] = family if family.startswith("generate:") else f"files {files % 10}"
            files += not family.startswith("generate:")
    chosen = {}
    for fold in sorted(set(number.values()), key=str):
        trees = train([s for s in all_samples if number[key(s)] != fold])
        for sample in all_samples:
            if number[key(sample)] == fold:
                chosen[sample.matrix, sample.kind] = choose(trees, sample)
    return chosen
