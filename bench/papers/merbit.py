# SPDX-License-Identifier: Apache-2.0
"""MERBIT: equal shares of nonzeros, descriptors of bits. merge is the method; COO of cuSPARSE is the papers' baseline."""
from papers.figures import NOT_GIVEN, Claim, Figure, baseline, claim_mean, over, reason, setup_ms, us

TITLE = "MERBIT: merge-based SpMV with bit-field descriptors"
RECIPES = ["merge", "hot", "phases", "sell"]
ITERATIONS = [50, 100, 150, 200]
EXAMPLES = {"pagerank": ["web:16", "web:20"], "bicgstab": ["convection:64", "convection:128"]}
PRODUCTS = {"PageRank": 1, "BiCGSTAB": 2}  # of an iteration
WHY = "another GPU; the paper's 50 matrices are not named in what is known of it"


def prepared(result, prefix):
    """Conversion and preparation of the fastest baseline of that name, in milliseconds."""
    name, _ = baseline(result, prefix)
    return next((one["convert_ms"] + one["prepare_ms"] for one in result.get("baselines", []) if one["name"] == name), None)


def products(run):
    measured, compared, rows = run.measured(RECIPES), run.compared(), []
    for matrix in run.matrices:
        one, other = measured[matrix.file], compared[matrix.file]
        merge, auto = us(one["merge"]), (other.get("time") or {}).get("us")
        coo, csr, best = (baseline(other, prefix)[1] for prefix in ("coo", "csr", ""))
        ginkgo, cub = baseline(other, "ginkgo")[1], baseline(other, "cub")[1]
        rows.append([matrix.name, merge, auto, coo, csr, ginkgo, cub, best, over(coo, merge), over(csr, merge), over(best, merge),
                     over(coo, auto), over(2e-3 * other.get("nnz", 0), merge), reason(other, one["merge"])])
    return rows


def product_claims(_, rows):
    return [claim_mean("merge over COO", NOT_GIVEN, rows, 8, WHY), claim_mean("merge over CSR", NOT_GIVEN, rows, 9, WHY),
            claim_mean("merge over the best baseline", NOT_GIVEN, rows, 10, "SpMVOp and SELL are not in the paper"),
            claim_mean("auto over COO", NOT_GIVEN, rows, 11, "a choice among all layouts"),
            Claim("Ginkgo, CUB", NOT_GIVEN, "plug-ins" if any(row[5] or row[6] for row in rows) else None,
                  "columns of plug-ins of these names (--baseline)")]


def iterations(run):
    """Set-up and products alone, which is all that differs between contenders: computed from what was measured."""
    measured, compared, rows = run.measured(RECIPES), run.compared(), []
    for matrix in run.matrices:
        one, other = measured[matrix.file]["merge"], compared[matrix.file]
        merge, coo, csr = us(one), baseline(other, "coo")[1], baseline(other, "csr")[1]
        setups = [setup_ms(one), prepared(other, "coo"), prepared(other, "csr")]
        for method, each in PRODUCTS.items():
            for count in ITERATIONS:
                totals = [setup + 1e-3 * each * count * time if time and setup is not None else None
                          for setup, time in zip(setups, (merge, coo, csr))]
                warm = 1e-3 * each * count * merge if merge else None
                rows.append([matrix.name, method, count, *totals, over(totals[1], totals[0]), over(totals[1], warm),
                             reason(other, one)])
    return rows


def iteration_claims(_, rows):
    claims = []
    for method in PRODUCTS:
        for count in ITERATIONS:
            chosen = [row for row in rows if row[1] == method and row[2] == count]
            claims.append(claim_mean(f"{method}, {count} iterations: COO over merge, kernel at hand", NOT_GIVEN, chosen, 7,
                                     "set-up (planning, compiling) is cached here; with it: see the table"))
    return claims


def solvers(run):
    """Whole loops, vector work included, by the programs of examples/."""
    rows = []
    for program, matrices in EXAMPLES.items():
        for matrix in matrices:
            found = run.store.example(program, matrix)
            contenders = [(name, one) for name, one in found.items() if name != "reason"]
            if not contenders:
                rows.append([f"{program} {matrix}"] + [None] * (4 + len(ITERATIONS)) + [reason(found)])
            for name, one in contenders:
                rows.append([f"{program} {matrix}", name, one["setup_ms"], one["product_us"], one["iteration_us"]] +
                            [one["setup_ms"] + 1e-3 * count * one["iteration_us"] for count in ITERATIONS] + [""])
    return rows


def setup(run):
    measured, rows = run.measured(RECIPES), []
    for matrix in run.matrices:
        one = measured[matrix.file]["merge"]
        stages = one.get("stages_ms", {})
        convert = sum(stages.get(step, 0) for step in ("plan", "pack", "upload")) or None
        rows.append([matrix.name] + [stages.get(step) for step in ("plan", "pack", "upload", "compile")] +
                    [convert, over(convert and 1e3 * convert, us(one)), over(1e3 * (setup_ms(one) or 0), us(one)), reason(one)])
    return rows


def setup_claims(_, rows):
    found, counts = ([row[column] for row in rows if row[column]] for column in (5, 6))
    return [Claim("conversion (ms)", "0.3 to 5.4, graphs of up to 640 M nonzeros",
                  f"{min(found):.2f} to {max(found):.2f}" if found else None, "planned on the host here, on the GPU in the paper"),
            Claim("conversion in products", "the factor is not given in what is known",
                  f"{min(counts):.0f} to {max(counts):.0f}" if counts else None, "the same")]


def storage(run):
    planned, rows = run.planned(RECIPES), []
    for matrix in run.matrices:
        found, one = run.store.analysis(matrix.file, "--recipe=merge"), planned[matrix.file]
        nonzeros = found["matrix"]["nonzeros"] if "matrix" in found else 0
        loads = found.get("loads") or {}
        rows.append([matrix.name, *(one[recipe].get("bytes_per_nonzero") for recipe in RECIPES),
                     over(found.get("csr_bytes"), nonzeros), over(found.get("coo_bytes"), nonzeros),
                     loads.get("thread_blocks"), loads.get("variation"), reason(one["merge"])])
    return rows


FIGURES = [
    Figure("Storage", "bytes per nonzero, and how nonzeros are spread over thread blocks",
           [*RECIPES, "CSR", "COO", "thread blocks", "variation", "remark"], storage, None, False),
    Figure("Products", "products (µs) and speed-ups", ["merge", "auto", "COO", "CSR", "Ginkgo", "CUB", "best baseline", "COO / merge",
           "CSR / merge", "best / merge", "COO / auto", "GFLOP/s", "remark"], products, product_claims, True),
    Figure("Iterations", "set-up and the products of so many iterations (ms), computed from times of products",
           ["method", "iterations", "merge", "COO", "CSR", "COO / merge", "COO / merge at hand", "remark"], iterations,
           iteration_claims, True),
    Figure("Solvers", "whole loops: set-up and so many iterations (ms)", ["contender", "set-up ms", "product µs", "iteration µs",
           *map(str, ITERATIONS), "remark"], solvers, None, True),
    Figure("Table 6", "set-up of merge (ms)", ["plan", "pack", "upload", "compile", "conversion", "in products", "all in products",
           "remark"], setup, setup_claims, True),
]
