#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the predictor of analysis/choose on measured times, and writes its tables.

    bench/train/train.py --measured=FILE,… --profiles=FILE,… [--choice=PROGRAM] [--out=analysis/choose/tables.c]

`measured` is what measure.sh wrote, `profiles` what `bench_candidates LIST OUT --profile` says of the same matrices. All
samples train; judge.py says what to expect of matrices that are not among them. scikit-learn is needed here, and nowhere
else. The same data give the same table."""
import argparse
import collections

import learn
import measured

HEAD = """// SPDX-License-Identifier: Apache-2.0
/* The tables of the predictor: written by bench/train/train.py, do not edit. */
#include "analysis/choose/predictor.h"

"""


def rows(texts, width=118):
    line, found = "   ", []
    for text in texts:
        if len(line) + len(text) + 2 > width:
            found.append(line)
            line = "   "
        line += f" {text},"
    return "\n".join(found + [line])


def table_text(number, trees):
    nodes = [node for _, tree in trees for node in tree]
    heads, first = [], 0
    for recipe, tree in trees:
        heads.append(f"{{{recipe},{len(tree)},{first}}}")
        first += len(tree)
    return (f"static const struct cb_tree_node nodes_{number}[] = {{\n"
            + rows(f"{{{feature},{value},{following}}}" for feature, value, following in nodes) + "};\n"
            f"static const struct cb_tree trees_{number}[] = {{\n" + rows(heads) + "};\n\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measured", required=True)
    parser.add_argument("--profiles", required=True)
    parser.add_argument("--choice", default="build/bench/bench_choice")
    parser.add_argument("--out", default="analysis/choose/tables.c")
    args = parser.parse_args()
    paths = args.measured.split(",")
    models = {key: record["model"] for key, record in measured.read(paths).items()}
    by_model = collections.defaultdict(list)
    for sample in learn.samples(args.choice, paths, args.profiles.split(",")):
        by_model[models[sample.matrix, sample.kind]].append(sample)
    text, entries = HEAD, []
    for number, (model, found) in enumerate(sorted(by_model.items())):
        trees = learn.train(found)
        nodes = sum(len(tree) for _, tree in trees)
        losses = [learn.loss(s, learn.choose(trees, s)) for s in found]
        mean, worst = learn.summary(losses)
        print(f"{model}: {len(found)} samples, {len(trees)} trees, {nodes} nodes, {6 * nodes + 8 * len(trees)} bytes; on what it "
              f"was trained with it loses {100 * mean:.2f} %, {100 * worst:.1f} % at worst")
        text += table_text(number, trees)
        entries.append(f'    {{"{model}", {{trees_{number}, nodes_{number}, {len(trees)}, {nodes}}}}},\n')
    text += "const struct cb_choice_table cb_choice_tables[] = {\n" + "".join(entries) + "    {0},\n};\n"
    with open(args.out, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main()
