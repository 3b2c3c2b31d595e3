#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The predictor's tables: the library evaluates them as the trainer does; profiles that they were trained with are those
that the library makes; the model's times of blocks are near those of plans; and choices by them lose little on the
measurements that are committed, which no single recipe could.

    tests/test_choose_table.py CHOICE       the program of bench/choice.c, in the source directory"""
import math
import os
import random
import re
import subprocess
import sys

sys.path.insert(0, "bench/train")
import learn  # noqa: E402
import measured  # noqa: E402

CHOICE = sys.argv[1]
DATA = "bench/train/data"
MODEL = "NVIDIA H200"
FEATURES = int(re.search(r"CB_CHOICE_FEATURES = (\d+)", open("analysis/choose/predictor.h", encoding="utf-8").read())[1])


def score_line(features, model, gpu=MODEL):
    return f"score {gpu}\t" + " ".join(map(str, [*features, *model]))


def library_scores(samples):
    answers = learn.ask(CHOICE, [score_line(s.features, s.model) for s in samples])
    return [[int(word) for word in answer.split()] for answer in answers]


def read_tables(text):
    """{model: [(recipe, tree)]} from tables.c."""
    def triples(name):
        body = re.search(rf"{name}\[\] = {{(.*?)}};", text, re.S)[1]
        return [tuple(map(int, found)) for found in re.findall(r"\{(-?\d+),(-?\d+),(-?\d+)\}", body)]
    found = {}
    for model, trees, nodes in re.findall(r'\{"([^"]+)", \{(trees_\d+), (nodes_\d+), \d+, \d+\}\}', text):
        all_nodes = triples(nodes)
        found[model] = [(recipe, all_nodes[first:first + count]) for recipe, count, first in triples(trees)]
    return found


def names(end):
    return ",".join(os.path.join(DATA, name) for name in sorted(os.listdir(DATA)) if name.endswith(end)).split(",")


def committed():
    return learn.samples(CHOICE, names("candidates.jsonl.gz"), names("profiles.jsonl.gz"))


def evaluates_as_trained(trees, samples):
    rng = random.Random(1)
    made = [learn.Sample("", "f64", "", [rng.choice((0, 8, 64, 1024, rng.randint(-100, 30000))) for _ in range(FEATURES)],
                         [rng.choice((0, rng.randint(1, 10**7))) for _ in learn.RECIPES], []) for _ in range(2000)]
    for sample, got in zip(samples + made, library_scores(samples + made)):
        wanted = [score or 0 for score in learn.scores(trees, sample)]
        assert got == wanted, (sample.matrix, got, wanted)
    print(f"{len(samples)} committed and {len(made)} random profiles: the library's scores are the trainer's")


def orders_as_trained(samples):
    """Ties and all: scores of committed profiles, and random ones of which many are about as good as the best."""
    rng = random.Random(2)
    cases = [(scores, s.model) for scores, s in zip(library_scores(samples), samples)]
    for _ in range(4000):
        near = rng.choice((1, 2, 40, 3000))
        apart = (0, learn.TIE - 1, learn.TIE, learn.TIE + 1)
        cases.append(([20000 + rng.choice((*apart, rng.randint(0, near))) for _ in learn.RECIPES],
                      [rng.choice((0, 1, 5000)) for _ in learn.RECIPES]))
    answers = learn.ask(CHOICE, ["order " + " ".join(map(str, [*scores, *model])) for scores, model in cases])
    plain = 0
    for (scores, model), answer in zip(cases, answers):
        known = [score if ns else None for score, ns in zip(scores, model)]
        wanted = learn.order(known)
        assert list(map(int, answer.split())) == wanted, (scores, model, answer, wanted)
        plain += bool(wanted) and scores[wanted[0]] > min(score for score in known if score is not None)
    assert plain > 100, "no tie decides anything"
    print(f"{len(cases)} orders of recipes are the trainer's, {plain} of them begin with one that is not quite the best")


def profiles_are_todays():
    found = {matrix: record["counts"] for (matrix, _), record in measured.read(names("profiles.jsonl.gz")).items()}
    small = [matrix for matrix, counts in sorted(found.items())
             if matrix.startswith("generate:") and counts[0] < 30000 and counts[2] < 100000][:60]
    assert len(small) >= 30, "too few small generated matrices are committed"
    for matrix, answer in zip(small, learn.ask(CHOICE, [f"profile {matrix}" for matrix in small])):
        assert answer.split() == list(map(str, found[matrix])), \
            f"{matrix}: the profile has changed; make profiles and tables anew (bench/train/README.md)"
    print(f"{len(small)} profiles are those that were trained with")


def model_is_near_plans(samples):
    """Of blocks, whose lanes the model has to guess: it once took 13.7 us for 2.7 where a node has seven unknowns."""
    records = measured.read(names("candidates.jsonl.gz"))
    recipe, apart = learn.RECIPES.index("blocks"), []
    for s in samples:
        ns = measured.planned(records[s.matrix, s.kind]).get("blocks")
        if ns and s.model[recipe]:
            apart.append(math.log(s.model[recipe] / ns) ** 2)
    deviation = math.sqrt(sum(apart) / len(apart))
    print(f"{len(apart)} times of blocks from profiles deviate from those of plans by {100 * deviation:.0f} %")
    assert len(apart) >= 300 and deviation <= 0.2, "the model's blocks are not the layout's"


def loses_little(samples):
    for kind in sorted({s.kind for s in samples}):
        found = [s for s in samples if s.kind == kind]
        chosen = []
        for sample, scores in zip(found, library_scores(found)):
            order = learn.order([score or None for score in scores])
            chosen.append(next(recipe for recipe in order if sample.us[recipe]))
        mean, worst = learn.summary([learn.loss(s, recipe) for s, recipe in zip(found, chosen)])
        print(f"{kind}: {len(found)} matrices, {100 * mean:.2f} % in the geometric mean, {100 * worst:.1f} % at worst")
        assert len(found) >= 100 and mean <= 0.008 and worst <= 0.5, "choices lose too much"
        for recipe, name in enumerate(learn.RECIPES):
            alone, _ = learn.summary([learn.loss(s, recipe if s.us[recipe] else None) for s in found])
            assert alone > 0.03, f"always {name} would lose {100 * alone:.1f} % alone: these measurements tell nothing"


def main():
    with open("analysis/choose/tables.c", encoding="utf-8") as file:
        tables = read_tables(file.read())
    assert learn.ask(CHOICE, [score_line([0] * FEATURES, [1] * 9, "no such GPU")]) == ["none"]
    if not tables:
        print("skipped: no GPU has a table")
        sys.exit(77)
    samples = committed()
    evaluates_as_trained(tables[MODEL], samples)
    orders_as_trained(samples)
    profiles_are_todays()
    model_is_near_plans(samples)
    loses_little(samples)


main()
