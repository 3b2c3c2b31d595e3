# SPDX-License-Identifier: Apache-2.0
"""CB-SpMV (ICS 2025): 16 x 16 sub-blocks, aggregated columns, three formats, balance. cb-i only has a sub-block's data
together, cb-ii aggregates columns and chooses formats, cb-paper balances as well: the paper's method and thresholds."""
from papers.figures import NOT_GIVEN, Claim, Figure, baseline, claim_mean, over, reason, setup_ms, us

TITLE = "CB-SpMV: a data aggregating and balance algorithm for cache-friendly block-based SpMV on GPUs"
STEPS = ["cb-i", "cb-ii", "cb-paper"]
RECIPES = [*STEPS, "cb"]
OTHER_MACHINE = "A100 and RTX 4090 there; their matrices are larger and of the whole collection"


def sub_blocks(run):
    rows = []
    for matrix in run.matrices:
        profile = run.store.analysis(matrix.file, "--recipe=cb").get("profile")
        if not profile:
            rows.append([matrix.name] + [None] * 9)
            continue
        for key in ("plain", "aggregated"):
            blocks = profile["sub_blocks"][key]
            rows.append([matrix.name, key, blocks["total"], blocks["below_8_share"], blocks["below_32_share"]] +
                        [over(one["sub_blocks"], blocks["total"]) or 0.0 for one in blocks["bins"]][2:])
    return rows


def sub_block_claims(_, rows):
    def share(key, column):
        found = [row[column] for row in rows if row[1] == key]
        return f"{min(found):.3f} to {max(found):.3f}" if found else None
    return [Claim("share of super-sparse sub-blocks (under 32 nonzeros)", NOT_GIVEN, share("plain", 4), "other matrices"),
            Claim("share under 8 nonzeros; sme3Da by the authors' code", "0.943", share("plain", 3), "sme3Da alone there"),
            Claim("the same once columns are aggregated", NOT_GIVEN, share("aggregated", 4), "other matrices")]


def loads(recipe, balanced):
    """Rows of nonzeros by thread block."""
    def make(run):
        rows = []
        for matrix in run.matrices:
            options = [f"--recipe={recipe}"] if recipe in run.store.recipes else ["--recipe=cb", "--balance=heap"]
            found = run.store.analysis(matrix.file, *options)
            for key in ("unbalanced", "loads") if balanced else ("unbalanced",):
                one = found.get(key)
                name = {"unbalanced": "before", "loads": "after"}[key]
                rows.append([matrix.name, name] + ([one["thread_blocks"], one["least"], one["mean"], one["most"],
                                                    one["variation"] * one["mean"], one["variation"]] if one else [None] * 6))
        return rows
    return make


LOADS = ["balance", "thread blocks", "least", "mean", "most", "deviation", "variation"]


def load_claims(_, rows):
    def variations(name):
        found = [row[7] for row in rows if row[1] == name and row[7] is not None]
        return f"variation {min(found):.3f} to {max(found):.3f}" if found else None
    claims = [Claim("nonzeros by thread block, eight sub-blocks each", "sme3Da by the authors' code: deviation 32.5",
                    variations("before"), "another matrix, and sub-blocks of aggregated columns where the plan has them")]
    if any(row[1] == "after" for row in rows):
        claims.append(Claim("the same after balancing", "sme3Da by the authors' code: deviation 1.59", variations("after"),
                            "without cb-paper runs of several sub-blocks are dealt, not single ones"))
    return claims


def products(run):
    measured, compared, rows = run.measured(RECIPES), run.compared(), []
    for matrix in run.matrices:
        one, other = measured[matrix.file], compared[matrix.file]
        name, best = baseline(other, "")
        block = baseline(other, "bsr")[1]
        auto = other.get("time") or {}
        times = [us(one[recipe]) for recipe in RECIPES] + [auto.get("us")]
        rows.append([matrix.name, *times, name, best, over(block, us(one["cb-paper"])), over(best, us(one["cb-paper"])),
                     over(best, us(one["cb"])), over(best, auto.get("us")), reason(other, *one.values())])
    return rows


def product_claims(_, rows):
    return [claim_mean("speed-up of cb-paper over cuSPARSE's BSR", "up to 3.95 on average over BSR, TileSpMV and DASP", rows, 8,
                       OTHER_MACHINE + "; BSR only where padding stays below half of the values"),
            claim_mean("speed-up of cb-paper over the best baseline", NOT_GIVEN, rows, 9, "the paper compares with BSR alone"),
            claim_mean("speed-up of cb over the best baseline", NOT_GIVEN, rows, 10, "the same method with other thresholds"),
            claim_mean("speed-up of auto over the best baseline", NOT_GIVEN, rows, 11, "a choice among all layouts")]


def caches(run):
    kernels, rows = ["cb-paper", "tile"], []
    for matrix in run.matrices:
        found = [run.store.hit_rates(matrix.file, ["run", "-q", f"--recipe={recipe}"], "spmv")
                 if recipe in run.store.recipes else {"reason": f"this tool has no recipe '{recipe}'"} for recipe in kernels]
        found.append(run.store.hit_rates(matrix.file, ["bench", "-q", "--repeat=1", "--recipe=sell"], "bsr"))
        rates = [one.get(level) for one in found for level in ("l1", "l2")]
        rows.append([matrix.name, *rates] + [over(rates[level], rates[rival + level]) for rival in (2, 4) for level in (0, 1)] +
                    [reason(*found)])
    return rows


def cache_claims(_, rows):
    why = "another GPU's caches; x of a run is gathered once here, so that fewer reads that would hit are left"
    return [claim_mean("L1 hit rate over TileSpMV's", "1.93", rows, 7, why), claim_mean("L2 hit rate over TileSpMV's", "1.19", rows, 8, why),
            claim_mean("L1 hit rate over BSR's", "14.4", rows, 9, why), claim_mean("L2 hit rate over BSR's", "5.89", rows, 10, why)]


def ablation(run):
    """With sums that meet in y by atomics, as in the paper, and with those in carry slots."""
    rows = []
    for atomics in ("on", "off"):
        options = [f"--atomics={atomics}"]
        measured, planned = run.measured(STEPS, *options), run.planned(STEPS, *options)
        for matrix in run.matrices:
            one = measured[matrix.file]
            first, second, third = (us(one[recipe]) for recipe in STEPS)
            rows.append([matrix.name, atomics, first, second, third, over(first, second), over(second, third),
                         over(first, third)] + [planned[matrix.file][recipe].get("bytes_per_nonzero") for recipe in STEPS] +
                        [reason(*one.values())])
    return rows


def ablation_claims(_, rows):
    why = "other matrices, another GPU; the first step adds up within a warp here, and not each nonzero by an atomic"
    claims = []
    for atomics in ("on", "off"):
        chosen = [row for row in rows if row[1] == atomics]
        claims += [claim_mean(f"II over I: aggregation and formats, atomics {atomics}", "2.22", chosen, 5, why),
                   claim_mean(f"III over II: balance, atomics {atomics}", "1.09", chosen, 6,
                              "the paper's balance scatters a panel, and needs atomics"),
                   claim_mean(f"III over I, atomics {atomics}", "2.37", chosen, 7, why)]
    return claims


def storage(run):
    planned, rows = run.planned(RECIPES), []
    for matrix in run.matrices:
        found = run.store.analysis(matrix.file, "--recipe=cb")
        nonzeros = found["matrix"]["nonzeros"] if "matrix" in found else 0
        formats = [over(found.get(key), nonzeros) for key in ("csr_bytes", "bsr16_bytes", "coo_bytes")]
        ours = [planned[matrix.file][recipe].get("bytes_per_nonzero") for recipe in RECIPES]
        rows.append([matrix.name, *ours, *formats] + [over(ours[2], other) for other in formats] +
                    [reason(*planned[matrix.file].values())])
    return rows


def storage_claims(_, rows):
    why = "the paper's formula leaves out restore_cols, row pointers and padding; all of it is counted here"
    return [claim_mean(f"bytes of cb-paper over {name}", NOT_GIVEN, rows, 8 + i, why) for i, name in enumerate(("CSR", "BSR 16 x 16", "COO"))]


def setup(run):
    measured, compared, rows = run.measured(RECIPES), run.compared(), []
    for matrix in run.matrices:
        one, other = measured[matrix.file]["cb-paper"], compared[matrix.file]
        if "stages_ms" not in one:
            one = measured[matrix.file]["cb"]
        stages = one.get("stages_ms", {})
        steps = [stages.get(step) for step in ("plan", "pack", "upload", "compile")]
        bsr = [two["convert_ms"] + two["prepare_ms"] for two in other.get("baselines", [])
               if two["name"].startswith("bsr") and two["applies"]]
        total = setup_ms(one)
        rows.append([matrix.name, one.get("value"), *steps, total, over(total and 1e3 * total, us(one)), min(bsr) if bsr else None,
                     reason(one)])
    return rows


def setup_claims(_, rows):
    found = [row[7] for row in rows if row[7]]
    return [Claim("set-up in products", NOT_GIVEN, f"{min(found):.0f} to {max(found):.0f}" if found else None,
                  "the paper's hash maps are not here; compiling the text is, and it is cached")]


FIGURES = [
    Figure("Fig. 3", "sub-blocks by nonzeros, before and after aggregating columns",
           ["columns", "sub-blocks", "under 8", "under 32", "17-31", "32-63", "64-128", "129-255", "256"], sub_blocks,
           sub_block_claims, False),
    Figure("Fig. 4", "nonzeros by thread block before balancing", LOADS, loads("cb-paper", False), load_claims, False),
    Figure("Fig. 9", "products (µs) and speed-ups", [*RECIPES, "auto", "best baseline", "its µs", "BSR / cb-paper",
           "best / cb-paper", "best / cb", "best / auto", "remark"], products, product_claims, True),
    Figure("Fig. 10", "hit rates in percent, by Nsight Compute", ["cb-paper L1", "L2", "tile L1", "tile L2", "BSR L1", "BSR L2",
           "L1 / tile", "L2 / tile", "L1 / BSR", "L2 / BSR", "remark"], caches, cache_claims, True),
    Figure("Fig. 11", "step by step (µs, and bytes per nonzero)", ["atomics", *STEPS, "I / II", "II / III", "I / III",
           *(f"{step} B/nnz" for step in STEPS), "remark"], ablation, ablation_claims, True),
    Figure("Fig. 12a", "storage, bytes per nonzero", [*RECIPES, "CSR", "BSR 16x16", "COO", "cb-paper / CSR", "/ BSR", "/ COO", "remark"],
           storage, storage_claims, False),
    Figure("Fig. 12b", "set-up (ms)", ["recipe", "plan", "pack", "upload", "compile", "all", "in products", "BSR", "remark"], setup,
           setup_claims, True),
    Figure("Balance", "nonzeros by thread block before and after balancing", LOADS, loads("cb-paper", True), load_claims, False),
]
