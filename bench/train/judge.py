#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How well recipes are chosen: matrices and shape families that the trees have not seen.

    bench/train/judge.py --measured=FILE,… --profiles=FILE,… [--choice=PROGRAM] [--folds=N]

Prints, by type, what choices lose against the fastest recipe that was measured: of one recipe for all, of the model from
the profile, of the model from plans, of what the other half of the measurements says (by which nothing can be judged more finely),
and of trees trained without the matrix (ten groups), or without its family (each shape of generated matrices
alone; files, with their parts, in ten groups). Then the families and the matrices that lose most. Of each choice: the geometric
mean and the worst against the shortest time of all; the same against the fastest of one half of the measurements, both
timed by the other half, which is free of the luck of the shortest; and how many lose more than 10 % by that."""
import argparse
import collections
import math

import learn
import measured


def line(name, losses, fair):
    mean, worst = learn.summary(losses)
    print(f"  {name:34} {100 * mean:6.2f} % {100 * worst:7.1f} %", end="")
    if fair:
        mean, worst = learn.summary(fair)
        print(f"   {100 * mean:6.2f} % {100 * worst:7.1f} %   {sum(loss > 0.1 for loss in fair)} of {len(fair)} above 10 %", end="")
    print()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measured", required=True)
    parser.add_argument("--profiles", required=True)
    parser.add_argument("--choice", default="build/bench/bench_choice")
    parser.add_argument("--folds", type=int)
    args = parser.parse_args()
    found = learn.samples(args.choice, args.measured.split(","), args.profiles.split(","))
    records = measured.read(args.measured.split(","))
    planned = {key: measured.planned(record) for key, record in records.items()}
    luck = {key: measured.luck(record) for key, record in records.items()}
    unseen = learn.left_out(found, args.folds)
    alone = learn.left_out(found, args.folds or 10, by_matrix=True)

    def fair(samples, choose):
        losses = []
        for sample in samples:
            record, recipe = records[sample.matrix, sample.kind], choose(sample)
            loss = measured.loss_by_halves(record, learn.RECIPES[recipe]) if recipe is not None else None
            if measured.halves(record):
                losses.append(math.expm1(loss) if loss is not None else learn.HOPELESS - 1)
        return losses

    def by_plans(sample):
        ns = planned[sample.matrix, sample.kind]
        return min((ns[name], i) for i, name in enumerate(learn.RECIPES) if name in ns and sample.us[i])[1]

    for kind in sorted({s.kind for s in found}):
        of_kind = [s for s in found if s.kind == kind]
        print(f"{kind}: {len(of_kind)} matrices           mean   worst        fair mean   worst")

        def judge(name, choose):
            line(name, [learn.loss(s, choose(s)) for s in of_kind], fair(of_kind, choose))

        known = [math.expm1(luck[s.matrix, s.kind]) for s in of_kind if luck[s.matrix, s.kind] is not None]
        if known:
            line("the fastest of other measurements", known, [])
        for name in ("sell", "merge"):
            recipe = learn.RECIPES.index(name)
            judge(f"always {name}", lambda s, recipe=recipe: recipe if s.us[recipe] else None)
        judge("model from plans", by_plans)
        judge("model from the profile", lambda s: learn.choose([], s))
        judge("trees, matrix left out", lambda s: alone[s.matrix, s.kind])
        judge("trees, family left out", lambda s: unseen[s.matrix, s.kind])
        losses = {s.matrix: learn.loss(s, unseen[s.matrix, s.kind]) for s in of_kind}
        families = collections.defaultdict(list)
        for s in of_kind:
            families[s.family if s.family.startswith("generate:") else "files"].append(losses[s.matrix])
        worst = sorted(((*learn.summary(values), name) for name, values in families.items()), reverse=True)[:8]
        print("  families: " + ", ".join(f"{name.removeprefix('generate:')} {100 * mean:.1f}" for mean, _, name in worst))
        for s in sorted(of_kind, key=lambda s: -losses[s.matrix])[:10]:
            best = min((us, i) for i, us in enumerate(s.us) if us)[1]
            chosen = unseen[s.matrix, s.kind]
            print(f"    {100 * losses[s.matrix]:6.1f} %  {s.matrix}: {learn.RECIPES[chosen] if chosen is not None else 'none'}"
                  f" for {learn.RECIPES[best]}, {s.us[best]:.2f} us")


if __name__ == "__main__":
    main()
