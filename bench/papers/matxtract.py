# SPDX-License-Identifier: Apache-2.0
"""MatXtract (TACO 2026): the matrix cut into a hot part for tensor cores (du: dense unfolding, se: sparse encoding) and a cold
part. hotcold is the whole method, with 66 % of the nonzeros in hot columns and 42 % in their hot rows; x and y stay in the
caller's order here, which the paper's times leave out."""
from papers.figures import NOT_GIVEN, Claim, Figure, baseline, claim_mean, over, reason, setup_ms, us

TITLE = "MatXtract: sparsity-aware matrix transformation for SpMV on tensor cores"
RECIPES = ["hotcold", "du", "se", "sell", "merge"]
SHARES = ["--crux-cols=66", "--crux-rows=42"]  # of the nonzeros: the pair that recurs among the authors' labels
ORDER = "A100 there; the paper permutes x and y outside of the timed part and adds up two kernels that were timed alone"


def chunks(run):
    rows = []
    for matrix in run.matrices:
        found = run.store.analysis(matrix.file)
        one = found.get("profile", {}).get("row_chunks", {})
        rows.append([matrix.name, one.get("rows"), one.get("columns"), one.get("empty_share"), one.get("density"), reason(found)])
    return rows


def chunk_claims(_, rows):
    empty, density = ([row[column] for row in rows if row[column] is not None] for column in (3, 4))
    return [Claim("columns without a nonzero in a chunk of 8 rows", "92.6 %",
                  f"{100 * sum(empty) / len(empty):.1f} % (mean of {len(empty)} matrices)" if empty else None,
                  "of all rows and columns here; the paper counts after extraction, of other matrices"),
            Claim("density of a chunk once these are dropped", "6.1 to 99.3 %",
                  f"{100 * min(density):.1f} to {100 * max(density):.1f} %" if density else None, "mean over a matrix's chunks here")]


def crux_options(run):
    """Left to itself, hotcold refuses where no share is predicted to save bytes, which is nearly everywhere."""
    return SHARES if "hotcold" in run.store.recipes else []


def half(run):
    """The option for half precision throughout, or what is nearest."""
    names = run.store.types.split("--type=", 1)[-1].split(" ", 1)[0].split("|")
    return "--type=f16" if "f16" in names else "--type=f16-f32"


def products(type_of):
    def make(run):
        options = type_of(run)
        measured, compared, rows = run.measured(RECIPES, *crux_options(run), *options), run.compared(*options), []
        for matrix in run.matrices:
            one, other = measured[matrix.file], compared[matrix.file]
            times = [us(one[recipe]) for recipe in RECIPES]
            csr, best = baseline(other, "csr")[1], baseline(other, "")[1]
            setup, prepared = setup_ms(one["hotcold"]), min([two["prepare_ms"] for two in other.get("baselines", [])
                                                             if two["name"].startswith("csr") and two["applies"]], default=None)
            whole = over(csr and prepared is not None and prepared * 1e3 + csr, setup and times[0] and setup * 1e3 + times[0])
            saved = csr - times[0] if csr and times[0] and csr > times[0] else None
            rows.append([matrix.name, *times, csr, best, over(csr, times[0]), over(best, times[0]), whole,
                         over(setup and 1e3 * setup, saved), reason(other, *one.values())])
        return rows
    return make


def product_claims(type_words, average, whole, most):
    def claims(_, rows):
        why = ORDER + "; one vector gives a tensor core nothing that fma does not"
        return [claim_mean(f"{type_words}: speed-up over cuSPARSE CSR", f"{average} on average, at most {most}", rows, 8, why),
                claim_mean(f"{type_words}: over the best baseline", NOT_GIVEN, rows, 9, "SELL and SpMVOp are not in the paper"),
                claim_mean(f"{type_words}: with set-up, one product", f"{whole} (its number of products is not given)", rows, 10,
                           "set-up here compiles the kernel, unless it is cached"),
                claim_mean(f"{type_words}: products until set-up is repaid", "15 to 48", rows, 11, "the same")]
    return claims


def forms(run):
    """The same data by tensor cores and by fused multiply-adds."""
    columns = [(recipe, form) for recipe in ("du", "se") for form in ("mma", "fma")]
    measured = [run.measured([recipe], f"--du-form={form}") for recipe, form in columns]
    rows = []
    for matrix in run.matrices:
        found = [one[matrix.file][recipe] for one, (recipe, _) in zip(measured, columns)]
        times = [us(one) for one in found]
        rows.append([matrix.name, *times, over(times[0], times[1]), over(times[2], times[3]), reason(*found)])
    return rows


def form_claims(_, rows):
    why = "the paper compares with other formats alone; one vector uses an eighth of what a tensor core multiplies"
    return [claim_mean("dense unfolding: mma over fma, in time", NOT_GIVEN, rows, 5, why),
            claim_mean("sparse encoding: mma over fma, in time", NOT_GIVEN, rows, 6, why)]


def stages(run):
    measured, rows = run.measured(RECIPES, *crux_options(run)), []
    for matrix in run.matrices:
        one = measured[matrix.file]["hotcold"]
        steps = one.get("stages_ms", {})
        rows.append([matrix.name, *(steps.get(step) for step in ("plan", "pack", "emit", "compile", "load", "upload")), setup_ms(one),
                     over(1e3 * (setup_ms(one) or 0), us(one)), reason(one)])
    return rows


def bandwidth(run):
    measured, compared, rows = run.measured(RECIPES, *crux_options(run)), run.compared(), []
    for matrix in run.matrices:
        ceilings = compared[matrix.file].get("ceilings") or {}
        shares = []
        for recipe in RECIPES:
            one = measured[matrix.file][recipe]
            shares.append(over(1e-3 * one.get("moved_bytes", 0), (us(one) or 0) * ceilings.get("read_gb_per_s", 0)))
        rows.append([matrix.name, *shares, reason(compared[matrix.file], *measured[matrix.file].values())])
    return rows


def bandwidth_claims(_, rows):
    return [claim_mean("share of the memory's rate, FP64", "69.4 % and 58.4 % (FP64 and FP16)", rows, 1,
                       "stored bytes, x and y over the time, of a read ceiling measured here; over 1 where the matrix lies in L2")]


HEAD = [*RECIPES, "CSR", "best baseline", "CSR / hotcold", "best / hotcold", "the same with set-up", "products to repay", "remark"]
FIGURES = [
    Figure("Fig. 4", "chunks of 8 rows", ["rows of a chunk", "columns, all chunks", "empty columns", "density", "remark"], chunks,
           chunk_claims, False),
    Figure("Fig. 9", "products in FP64 (µs)", HEAD, products(lambda run: ()), product_claims("FP64", "2.06", "1.38", "7.64"), True),
    Figure("Fig. 12", "products in FP16 (µs)", HEAD, products(lambda run: (half(run),)),
           product_claims("FP16", "2.24", "1.6", NOT_GIVEN), True),
    Figure("Tensor cores", "the same data by mma and by fma (µs)", ["du mma", "du fma", "se mma", "se fma", "du mma / fma",
           "se mma / fma", "remark"], forms, form_claims, True),
    Figure("Fig. 15", "stages of the set-up (ms)", ["plan", "pack", "emit", "compile", "load", "upload", "all", "in products", "remark"],
           stages, None, True),
    Figure("Table 4", "share of the read rate", [*RECIPES, "remark"], bandwidth, bandwidth_claims, True),
]
