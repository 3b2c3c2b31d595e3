# SPDX-License-Identifier: Apache-2.0
"""What notebooks show of operators and kernels: a small drawing of `cbgen report`'s page. It takes the notebook's own
colours (currentColor), so it is legible in light and dark."""
from __future__ import annotations

from html import escape
from typing import Any, Dict, List, Optional, Tuple

import numpy

from . import _abi
from ._matrix import Matrix, on_host

CELLS = 48  # on the longer side of the drawing
SAMPLED = 200_000  # entries that are looked at
STRENGTHS = (0.35, 0.6, 1.0)
PLAN_SHOWN = 240  # characters


def count_text(number: int) -> str:
    return f"{number:,}".replace(",", "\u202f")


def time_text(seconds: float) -> str:
    return f"{1e6 * seconds:.2f} µs" if seconds < 1e-3 else f"{1e3 * seconds:.3g} ms"


# ---- where the nonzeros are


def positions(matrix: Matrix) -> Optional[Tuple[Any, Any]]:
    """Rows and columns of the matrix's entries, or of evenly spaced ones where there are many; of blocks, of all that they
    hold. None: its arrays are not in host memory."""
    if not (on_host(matrix.indices) and on_host(matrix.indptr)):
        return None
    minor, major = numpy.asarray(matrix.indices), numpy.asarray(matrix.indptr)
    block_rows, block_cols = matrix.block if matrix.format == _abi.Format.BSR else (1, 1)
    inside = numpy.arange(block_rows * block_cols)
    chosen = numpy.arange(0, len(minor), max(1, len(minor) * len(inside) // SAMPLED))
    if matrix.format == _abi.Format.COO:
        return major[chosen], minor[chosen]
    outer, inner = numpy.searchsorted(major, chosen, side="right") - 1, minor[chosen]
    if matrix.format == _abi.Format.CSC:
        return inner, outer
    rows = numpy.add.outer(outer * block_rows, inside // block_cols)
    return rows.ravel(), numpy.add.outer(inner * block_cols, inside % block_cols).ravel()


def cell_counts(shape: Tuple[int, int], rows: Any, cols: Any) -> Any:
    """Entries by cell of a drawing whose longer side has CELLS of them."""
    longest = max(*shape, 1)
    height, width = (max(1, min(extent, max(CELLS * extent // longest, CELLS // 4))) for extent in shape)
    down = rows.astype(numpy.int64) * height // max(shape[0], 1)
    right = cols.astype(numpy.int64) * width // max(shape[1], 1)
    return numpy.bincount(down * width + right, minlength=height * width).reshape(height, width)


def paths(counts: Any) -> str:
    """A path for each strength, of runs of cells."""
    strength = numpy.where(counts == 0, 0, 1 + (counts * 8 >= counts.max()) + (counts * 2 >= counts.max()))
    drawn: List[List[str]] = [[] for _ in STRENGTHS]
    for row, line in enumerate(strength.tolist()):
        col = 0
        while col < len(line):
            end = col + 1
            while end < len(line) and line[end] == line[col]:
                end += 1
            if line[col]:
                drawn[line[col] - 1].append(f"M{col} {row}h{end - col}")
            col = end
    return "".join(f'<path d="{"".join(runs)}" stroke="currentColor" opacity="{opacity}"/>'
                   for runs, opacity in zip(drawn, STRENGTHS) if runs)


def spy(matrix: Optional[Matrix], transposed: bool) -> str:
    """A drawing of the matrix, "" where its entries are not at hand."""
    found = positions(matrix) if matrix is not None else None
    if matrix is None or found is None:
        return ""
    shape, (rows, cols) = matrix.shape, found
    if transposed:
        shape, rows, cols = (shape[1], shape[0]), cols, rows
    counts = cell_counts(shape, rows, cols)
    height, width = counts.shape
    return (f'<svg role="img" aria-label="where the nonzeros are" viewBox="-0.5 -1 {width + 1} {height + 1}" width="{3 * width + 3}" '
            f'height="{3 * height + 3}" shape-rendering="crispEdges" style="border:1px solid currentColor;flex:none">'
            f'<g fill="none">{paths(counts) if counts.any() else ""}</g></svg>')


# ---- what the plan says


def share_bars(regions: List[Dict[str, Any]], nonzeros: int) -> str:
    """A bar for each region: its share of the nonzeros."""
    rows = []
    for region in regions:
        share = region["nonzeros"] / nonzeros if nonzeros else 0.0
        rows.append(f'<tr><td><code>{escape(region["name"])}</code></td><td><svg aria-hidden="true" width="80" height="9">'
                    f'<rect width="80" height="9" fill="currentColor" opacity="0.15"/><rect width="{80 * share:.1f}" height="9" '
                    f'fill="currentColor" opacity="0.7"/></svg></td><td>{100 * share:.1f} % of the nonzeros, '
                    f'{region["bytes"] / max(region["nonzeros"], 1):.2f} bytes each</td></tr>')
    return f'<table style="margin:.3em 0;color:inherit">{"".join(rows)}</table>'


def plan_text(line: str) -> str:
    short = line if len(line) <= PLAN_SHOWN else line[:PLAN_SHOWN].rsplit(" ", 1)[0] + " …"
    return f'<code style="overflow-wrap:anywhere">{escape(short)}</code>'


def describe(head: str, plan: Dict[str, Any], facts: Dict[str, str], drawing: str) -> str:
    """`facts`: by name, in the order shown. All but the drawing is escaped here."""
    listed = " · ".join(f"{escape(name)} <b>{escape(value)}</b>" for name, value in facts.items())
    return (f'<div style="display:flex;gap:1em;align-items:flex-start;flex-wrap:wrap">{drawing}<div style="flex:1;min-width:18em">'
            f'<div><b>{escape(head)}</b></div><div>{count_text(plan["rows"])} × {count_text(plan["cols"])}, '
            f'{count_text(plan["nonzeros"])} nonzeros, {escape(plan["type"])}</div><div>{listed}</div>'
            f'{share_bars(plan["regions"], plan["nonzeros"])}<div>{plan_text(plan["plan"])}</div></div></div>')


def plan_facts(plan: Dict[str, Any]) -> Dict[str, str]:
    each = plan["stored_bytes"] / max(plan["nonzeros"], 1)
    return {"recipe": plan["recipe"], "stored": f"{each:.2f} bytes per nonzero",
            "launches": str(len(plan["launches"])), "predicted": time_text(1e-9 * plan["cost"]["ns"])}
