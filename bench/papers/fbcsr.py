# SPDX-License-Identifier: Apache-2.0
"""FBCSR: blocks of five shapes that are filled to a rate. fill has all of them, slices the diagonals alone."""
from papers.figures import NOT_GIVEN, Claim, Figure, baseline, claim_mean, over, reason, us

TITLE = "FBCSR: filled blocks of five shapes"
RECIPES = ["slices", "fill", "runs", "sell"]
SHAPES = ["square", "diag", "anti", "col", "row"]
RATES = [50, 75, 90]


def rates(run):
    rows = []
    for matrix in run.matrices:
        for rate in RATES:
            found = run.store.analysis(matrix.file, "--recipe=fill", f"--fill-rate={rate}") if "fill" in run.store.recipes \
                else {"reason": "this tool has no recipe 'fill'"}
            shares, nonzeros = dict.fromkeys(SHAPES, 0), found.get("matrix", {}).get("nonzeros")
            for region in found.get("plan", {}).get("regions", []):
                shape = "row" if region["layout"] == "runs" else dict(fact[:2] for fact in region["facts"]).get("shape")
                if shape in shares:
                    shares[shape] += region["nonzeros"]
            cells = [shares[shape] / nonzeros if nonzeros else None for shape in SHAPES]
            rows.append([matrix.name, rate, *cells, sum(cells) if nonzeros else None,
                         over(found.get("stored_bytes"), nonzeros), reason(found)])
    return rows


def rate_claims(_, rows):
    best = {}
    for row in rows:
        if row[7] is not None:
            best[row[0]] = max(best.get(row[0], 0), row[7])
    gain = sum(share >= 0.3 for share in best.values())
    return [Claim("matrices with 30 % of their nonzeros in blocks", "13 of 31 gain", f"{gain} of {len(best)}" if best else None,
                  "the paper names two of its matrices; blocks are aligned to 32 rows here unless --fill-align=off"),
            Claim("fill rate from which a block is taken", NOT_GIVEN, "50, 75 and 90 %", "tried here; 0 takes what saves bytes")]


def gains(run):
    measured, compared, planned, rows = run.measured(RECIPES), run.compared(), run.planned(RECIPES), []
    for matrix in run.matrices:
        one, other = measured[matrix.file], compared[matrix.file]
        times = [us(one[recipe]) for recipe in RECIPES]
        fastest = min((time for time in times[:2] if time), default=None)
        csr = baseline(other, "csr")[1]
        rows.append([matrix.name, *times, csr, baseline(other, "")[1], over(csr, fastest), over(times[3], fastest)] +
                    [planned[matrix.file][recipe].get("bytes_per_nonzero") for recipe in RECIPES] + [reason(other, *one.values())])
    return rows


def gain_claims(_, rows):
    why = "CUSP's CSR on K20c there; cuSPARSE's better CSR here"
    return [claim_mean("over CSR", "lhr10: 1.85 (K20c, FP64), 1.42 (GTX 980)", rows, 7, why),
            claim_mean("over sliced ELL", "up to 10.18 over CUSP's HYB", rows, 8, "HYB pads; this tool's sell does not"),
            Claim("a matrix that loses", "raefsky3", next((f"{row[7]:.2f}" for row in rows if row[0] == "raefsky3" and row[7]), None),
                  "natural dense blocks: blocks serves them")]


def bytes_of(run):
    planned, rows = run.planned(RECIPES), []
    for matrix in run.matrices:
        found = run.store.analysis(matrix.file)
        ours = [planned[matrix.file][recipe].get("bytes_per_nonzero") for recipe in RECIPES]
        csr = over(found.get("csr_bytes"), found["matrix"]["nonzeros"] if "matrix" in found else 0)
        rows.append([matrix.name, *ours, csr, over(ours[3], ours[0]), over(csr, ours[0]), reason(*planned[matrix.file].values())])
    return rows


def bytes_claims(_, rows):
    return [claim_mean("bytes of sell over slices", NOT_GIVEN, rows, 6, "other matrices"),
            claim_mean("bytes of CSR over slices", NOT_GIVEN, rows, 7, "other matrices")]


FIGURES = [
    Figure("Fill rates", "share of the nonzeros in blocks of each shape", ["rate %", *SHAPES, "all", "B/nnz", "remark"], rates, rate_claims,
           False),
    Figure("Storage", "bytes per nonzero", [*RECIPES, "CSR", "sell / slices", "CSR / slices", "remark"], bytes_of, bytes_claims, False),
    Figure("Gains", "products (µs)", [*RECIPES, "CSR", "best baseline", "CSR / best of ours", "sell / best of ours",
           *(f"{recipe} B/nnz" for recipe in RECIPES), "remark"], gains, gain_claims, True),
]
