# SPDX-License-Identifier: Apache-2.0
"""TileSpMV (IPDPS 2021): 16 x 16 tiles in seven formats. tile-csr has CSR alone, tile the paper's selection (ADPT), tile-defer
takes the sparsest tiles out (DeferredCOO)."""
from papers.figures import NOT_GIVEN, Claim, Figure, baseline, claim_mean, over, reason, setup_ms, us

TITLE = "TileSpMV: a tiled algorithm for sparse matrix-vector multiplication on GPUs"
RECIPES = ["tile-csr", "tile", "tile-defer", "merge"]
FORMATS = ["csr", "coo", "ell", "hyb", "dns", "dnsrow", "dnscol"]
OTHER_MACHINE = "Titan RTX and A100 there, 2757 matrices"


def steps(run):
    measured, planned, rows = run.measured(RECIPES), run.planned(RECIPES), []
    for matrix in run.matrices:
        one = measured[matrix.file]
        csr, adpt, defer = (us(one[recipe]) for recipe in RECIPES[:3])
        predicted = [planned[matrix.file][recipe].get("predicted_us") for recipe in RECIPES[:3]]
        rows.append([matrix.name, csr, adpt, defer, over(csr, adpt), over(adpt, defer), *predicted, reason(*one.values())])
    return rows


def step_claims(_, rows):
    why = OTHER_MACHINE + "; our CSR tiles share the others' kernel, without atomics"
    return [claim_mean("ADPT over CSR tiles", "at most 6.75", rows, 4, why),
            claim_mean("deferred over ADPT", "at most 7.02", rows, 5, why + "; what is deferred is multiplied by merge, not CSR5")]


def facts_of(found):
    """Of the tile region: {format: (tiles, nonzeros)}."""
    for region in found.get("plan", {}).get("regions", []):
        if region["layout"] == "tile":
            pairs = [(fact[0], fact[1].split()) for fact in region["facts"]]
            return {name: tuple(map(int, numbers)) for name, numbers in pairs
                    if len(numbers) == 2 and all(number.isdigit() for number in numbers)}
    return {}


def formats(run):
    rows = []
    for matrix in run.matrices:
        if "tile" not in run.store.recipes:
            rows.append([matrix.name] + [None] * 14 + ["this tool has no recipe 'tile'"])
            continue
        found = run.store.analysis(matrix.file, "--recipe=tile")
        facts = facts_of(found)
        tiles, nonzeros = (sum(pair[i] for pair in facts.values()) for i in (0, 1))
        rows.append([matrix.name] + [over(facts.get(name, (0, 0))[i], whole) if facts.get(name) else 0.0 if facts else None
                                     for i, whole in ((0, tiles), (1, nonzeros)) for name in FORMATS] + [reason(found)])
    return rows


def format_claims(_, rows):
    def greatest(at):
        shares = {name: [row[at + i] for row in rows if row[at + i] is not None] for i, name in enumerate(FORMATS)}
        return ", ".join(f"{name} {sum(found) / len(found):.2f}" for name, found in shares.items() if found) or None
    return [Claim("share of tiles by format, mean of the matrices", NOT_GIVEN, greatest(1), "other matrices"),
            Claim("share of nonzeros by format", NOT_GIVEN, greatest(8), "other matrices; DnsRow and DnsCol only of full rows and columns")]


def rivals(run):
    measured, compared, rows = run.measured(RECIPES), run.compared(), []
    for matrix in run.matrices:
        one, other = measured[matrix.file], compared[matrix.file]
        ours = us(one["tile"])
        csr5, bsr, best = (baseline(other, name)[1] for name in ("csr5", "bsr", ""))
        merge = baseline(other, "merge")[1]
        rows.append([matrix.name, ours, us(one["merge"]), merge, csr5, bsr, best] +
                    [over(time, ours) for time in (us(one["merge"]), merge, csr5, bsr, best)] + [reason(other, one["tile"])])
    return rows


def rival_claims(_, rows):
    def faster(column, quantity, paper, why):
        found = [row[column] for row in rows if row[column]]
        ours = f"{sum(number > 1 for number in found)} of {len(found)}, at most {max(found):.2f}" if found else None
        return Claim(quantity, paper, ours, why)
    plug_in = "needs a plug-in of that name (--baseline)"
    return [faster(7, "faster than this tool's merge", "of 2757: 1813, at most 2.61 (Merrill's)", OTHER_MACHINE + "; this tool's merge has fewer bytes"),
            faster(8, "faster than Merrill's merge", "of 2757: 1813, at most 2.61", plug_in),
            faster(9, "faster than CSR5", "of 2757: 2040, at most 3.96", plug_in),
            faster(10, "faster than BSR", "of 2757: 1638, at most 426.6", "BSR only where padding stays below half of the values"),
            faster(11, "faster than the best baseline", NOT_GIVEN, "the paper compares with three methods")]


def table_two(run):
    measured, rows = run.measured(RECIPES), []
    for matrix in run.matrices:
        one = measured[matrix.file]
        found = run.store.analysis(matrix.file, "--recipe=merge").get("matrix", {})
        nonzeros = found.get("nonzeros")
        rows.append([matrix.name, found.get("rows"), nonzeros] + [over(2e-3 * (nonzeros or 0), us(one[recipe])) for recipe in RECIPES] +
                    [reason(*one.values())])
    return rows


def table_two_claims(_, rows):
    own = next((row for row in rows if row[0] == "TSOPF_RS_b2383"), None)
    return [Claim("GFLOP/s of TSOPF_RS_b2383", "288 on A100", own and own[4] and f"{own[4]:.0f}",
                  "another GPU" if own else "not among these matrices: --suitesparse")]


def space(run):
    planned, rows = run.planned(RECIPES), []
    for matrix in run.matrices:
        found = run.store.analysis(matrix.file, "--recipe=merge")
        nonzeros = found["matrix"]["nonzeros"] if "matrix" in found else 0
        ours = [planned[matrix.file][recipe].get("bytes_per_nonzero") for recipe in RECIPES]
        other = [over(found.get(key), nonzeros) for key in ("csr_bytes", "bsr16_bytes", "coo_bytes")]
        rows.append([matrix.name, *ours, *other, over(ours[1], other[0]), over(ours[1], other[1]), reason(*planned[matrix.file].values())])
    return rows


def space_claims(_, rows):
    return [claim_mean("bytes of tile over CSR", NOT_GIVEN, rows, 8, "other matrices; FP64"),
            claim_mean("bytes of tile over BSR 16 x 16", NOT_GIVEN, rows, 9, "other matrices; FP64")]


def setup(run):
    measured, rows = run.measured(RECIPES), []
    for matrix in run.matrices:
        one = measured[matrix.file]["tile"]
        stages = one.get("stages_ms", {})
        convert = sum(stages.get(step, 0) for step in ("plan", "pack", "upload")) or None
        rows.append([matrix.name] + [stages.get(step) for step in ("plan", "pack", "upload", "compile")] +
                    [setup_ms(one), over(convert and 1e3 * convert, us(one)), reason(one)])
    return rows


def setup_claims(_, rows):
    found = [row[6] for row in rows if row[6]]
    return [Claim("conversion (plan, pack, upload)", "under 10 serial products on the CPU",
                  f"{min(found):.0f} to {max(found):.0f} products on the GPU" if found else None,
                  "no serial product is timed here; conversion runs on the CPU, the paper's on the GPU")]


FIGURES = [
    Figure("Fig. 6", "formats step by step (µs; predicted ones need no GPU)", ["tile-csr", "tile", "tile-defer", "ADPT / CSR",
           "deferred / ADPT", "predicted tile-csr", "predicted tile", "predicted tile-defer", "remark"], steps, step_claims, True),
    Figure("Fig. 7", "share of tiles and of nonzeros by format", [*(f"tiles {name}" for name in FORMATS),
           *(f"nonzeros {name}" for name in FORMATS), "remark"], formats, format_claims, False),
    Figure("Fig. 8", "against others (µs, and their time over tile's)", ["tile", "merge here", "Merrill's", "CSR5", "BSR", "best baseline",
           "merge here / tile", "Merrill's / tile", "CSR5 / tile", "BSR / tile", "best / tile", "remark"], rivals, rival_claims, True),
    Figure("Fig. 10", "space, bytes per nonzero", [*RECIPES, "CSR", "BSR 16x16", "COO", "tile / CSR", "tile / BSR", "remark"], space,
           space_claims, False),
    Figure("Fig. 11", "set-up (ms)", ["plan", "pack", "upload", "compile", "all", "conversion in products", "remark"], setup, setup_claims, True),
    Figure("Table II", "GFLOP/s", ["rows", "nonzeros", *RECIPES, "remark"], table_two, table_two_claims, True),
]
