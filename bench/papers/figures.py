# SPDX-License-Identifier: Apache-2.0
"""What the five papers' modules share: a figure, its table, and the numbers that several of them ask for.

A module has TITLE, and FIGURES: a list of Figure. A figure's `make(run)` gives rows for its table; `claims(run, rows)`
gives what the paper states beside what is found here.
"""
import collections
import math

NOT_GIVEN = "not given"

# quantity, the paper's number, ours (None: not found out), why they differ
Claim = collections.namedtuple("Claim", "quantity paper ours why")
# head: of the columns behind "matrix"; gpu: whether it needs one
Figure = collections.namedtuple("Figure", "name title head make claims gpu")


class Run:
    """One paper's matrices, and what is known of them."""

    def __init__(self, store, matrices):
        self.store, self.matrices = store, matrices
        self.files = [matrix.file for matrix in matrices]

    def planned(self, recipes, *options):
        return self.store.planned(self.files, recipes, *options)

    def measured(self, recipes, *options):
        return self.store.measured(self.files, recipes, *options)

    def compared(self, *options):
        return self.store.compared(self.files, *options)


def mean(numbers):
    """Geometric; None of nothing."""
    numbers = [number for number in numbers if number]
    return math.exp(sum(map(math.log, numbers)) / len(numbers)) if numbers else None


def us(row):
    """Microseconds of a row of a sweep; None where it was not timed, or was wrong."""
    return row.get("us") if not row.get("wrong") else None


def over(one, other):
    """How many times `one` is of `other`; None where one of them is not known."""
    return one / other if one and other else None


def baseline(result, prefix):
    """The fastest right baseline whose name begins so: (name, µs); (None, None)."""
    times = [(one["time"]["us"], one["name"]) for one in result.get("baselines", [])
             if one["name"].startswith(prefix) and one["applies"] and not one["wrong"] and one["time"]]
    return tuple(reversed(min(times))) if times else (None, None)


def setup_ms(row):
    """All that comes before the first product."""
    return sum(row["stages_ms"].values()) if "stages_ms" in row else None


def reason(*rows):
    """Why numbers are missing."""
    return next((row["reason"] for row in rows if row.get("reason")), "")


def claim_mean(quantity, paper, rows, column, why):
    """A claim about the geometric mean of a column, with its greatest number."""
    numbers = [row[column] for row in rows if row[column]]
    ours = f"{mean(numbers):.2f} (greatest {max(numbers):.2f}, least {min(numbers):.2f}, {len(numbers)} matrices)" if numbers else None
    return Claim(quantity, paper, ours, why)


def text_of(cell):
    if cell is None:
        return "–"
    if isinstance(cell, float):
        return f"{cell:.3f}" if abs(cell) < 1 else f"{cell:.2f}" if abs(cell) < 1000 else f"{cell:.0f}"
    return str(cell).replace("|", "\\|")


def table(head, rows):
    """Markdown."""
    lines = ["| " + " | ".join(head) + " |", "| --- |" + " --: |" * (len(head) - 1)]
    return lines + ["| " + " | ".join(map(text_of, row)) + " |" for row in rows]


def claims_table(claims):
    lines = ["| quantity | the paper | here | why they differ |", "| --- | --- | --- | --- |"]
    for claim in claims:
        ours = claim.ours if claim.ours is not None else "not found out: see the table"
        lines.append("| " + " | ".join(text_of(cell) for cell in (claim.quantity, claim.paper, ours, claim.why)) + " |")
    return lines


def render(figure, run):
    """(lines of Markdown, the same as JSON)."""
    rows = figure.make(run)
    claims = figure.claims(run, rows) if figure.claims else []
    lines = [f"## {figure.name}: {figure.title}", ""]
    if figure.gpu and run.store.no_gpu:
        lines += [f"Needs a GPU, and there is none here: {run.store.no_gpu}", ""]
    lines += claims_table(claims) + [""] if claims else []
    lines += table(["matrix", *figure.head], rows) + [""]
    facts = {"figure": figure.name, "title": figure.title, "needs_gpu": figure.gpu,
             "claims": [claim._asdict() for claim in claims],
             "rows": [dict(zip(["matrix", *figure.head], row)) for row in rows]}
    return lines, facts
