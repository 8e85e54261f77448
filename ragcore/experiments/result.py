"""What a sweep gives: rows beside production, the curve of a threshold, and both as tables."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from ragcore import provenance, schema
from ragcore.errors import UsageError
from ragcore.experiments.judge import whole
from ragcore.experiments.rows import PRODUCTION, anchor_of
from ragcore.summary import WHOLE
from ragcore_kernels.families import holm

SWEEP = pa.schema(
    [
        ("experiment", pa.string()),
        ("row", pa.string()),
        ("anchor", pa.string()),
        ("change", pa.string()),
        ("state", pa.string()),
        ("reason", pa.string()),
        ("measure", pa.string()),
        ("slice", pa.string()),
        ("n_cases", pa.int64()),
        ("n_missing", pa.int64()),
        ("n_matched", pa.int64()),
        ("before", pa.float64()),
        ("value", pa.float64()),
        ("delta", pa.float64()),
        ("delta_low", pa.float64()),
        ("delta_high", pa.float64()),
        ("delta_method", pa.string()),
        ("p_value", pa.float64()),
        ("p_adjusted", pa.float64()),
        ("wins", pa.int64()),
        ("losses", pa.int64()),
        ("ties", pa.int64()),
        ("saturation", pa.string()),
        ("verdict", pa.string()),
        ("single_change", pa.bool_()),
        ("tainted", pa.bool_()),
        ("p50_us", pa.float64()),
        ("p95_us", pa.float64()),
        ("timed", pa.string()),
        ("index_bytes", pa.int64()),
        ("context_tokens", pa.float64()),
        ("threshold_split", pa.string()),
        ("note", pa.string()),
    ]
)
"""One row = row of the sweep x measure x slice; a row that was not evaluated stands there once.

`before` and `value` are means over the matched cases, of the anchor and of the row; for production
`value` alone. Costs repeat in every row.
"""
CURVE = pa.schema(
    [
        ("channel", pa.string()),
        ("threshold", pa.float64()),
        ("split", pa.string()),
        ("slice", pa.string()),
        ("n_cases", pa.int64()),
        ("recall", pa.float64()),
        ("n_recall", pa.int64()),
        ("precision", pa.float64()),
        ("n_precision", pa.int64()),
        ("f1", pa.float64()),
        ("n_f1", pa.int64()),
        ("no_result", pa.float64()),
        ("n_answerable", pa.int64()),
        ("any_result", pa.float64()),
        ("n_unanswerable", pa.int64()),
        ("context_tokens", pa.float64()),
        ("n_tokens", pa.int64()),
        ("chosen", pa.bool_()),
    ]
)
"""One row = threshold (null = off) x slice, on the validation split."""
SWEEP_KEY = b"ragcore.sweep"


@dataclass
class SweepResult:
    """Deviations from production, each beside what it deviates from.

    Attributes
    ----------
    about : the suite, the split, production's settings, what the rows rest on.
    baseline : production's own cells and costs.
    rows : as plain mappings, in the order of the experiments; `state` is ``evaluated``,
        ``unchanged`` (nothing differs from its anchor) or ``not evaluated``, with its reason.
    curve : of the threshold, `CURVE` as mappings; empty without one.
    kept : steps that were there already, by kind.
    notes : what was noticed, for people.
    """

    about: dict[str, Any]
    baseline: dict[str, Any]
    rows: list[dict[str, Any]]
    curve: list[dict[str, Any]]
    kept: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._adjust()

    def _adjust(self) -> None:
        """Holm's p-value of the deciding measure, over all rows that are compared."""
        cells = []
        for row in self.rows:
            cell = whole(row["cells"]).get(self.deciding(row))
            if cell is not None and cell["p_value"] is not None:
                cells.append(cell)
        for cell, p in zip(cells, holm([c["p_value"] for c in cells]), strict=True):
            cell["p_adjusted"] = float(p)

    def deciding(self, row: dict[str, Any]) -> str:
        """The measure that a row is judged by: the one that decided, else the first registered."""
        registered = self.about["plans"][row["experiment"]]["primary"]
        return row.get("primary") or next(iter(registered), "")

    def row(self, name: str) -> dict[str, Any]:
        """A row by its name.

        Raises
        ------
        UsageError
            If there is none.
        """
        for row in self.rows:
            if row["name"] == name:
                return row
        raise UsageError(f"no row {name!r}", f"rows: {', '.join(r['name'] for r in self.rows)}")

    def standing(self, row: dict[str, Any]) -> dict[str, Any]:
        """A row; one that changes nothing is what it stands beside."""
        if row["state"] != "unchanged":
            return row
        name = anchor_of(row["anchor"], [one["name"] for one in self.rows])
        return self.row(name) if name and name != row["name"] else self.baseline

    @property
    def warnings(self) -> list[str]:
        """What makes a row no evidence."""
        return [f"{row['name']}: {row['reasons'][0]}" for row in self.rows if row.get("tainted")]

    def table(self) -> pa.Table:
        """`SWEEP`, with what the sweep is about in its schema metadata."""
        rows = _cells(PRODUCTION, self.baseline | {"state": PRODUCTION})
        for row in self.rows:
            rows += _cells(row["name"], row)
        return self._signed(pa.Table.from_pylist(rows, schema=SWEEP))

    def thresholds(self) -> pa.Table:
        """`CURVE`, with what the sweep is about in its schema metadata."""
        return self._signed(pa.Table.from_pylist(self.curve, schema=CURVE))

    def _signed(self, table: pa.Table) -> pa.Table:
        record = provenance.record(self.about["files"], {}, 1)
        said = json.dumps(self.about, ensure_ascii=False, sort_keys=True)
        return table.replace_schema_metadata(
            {schema.PROVENANCE_KEY: record, SWEEP_KEY: said.encode()}
        )


def _cells(name: str, row: dict[str, Any]) -> list[dict[str, Any]]:
    common = {
        "experiment": row.get("experiment"), "row": name, "anchor": row.get("anchor"),
        "change": "; ".join(row.get("changes", [])) or None, "state": row["state"],
        "reason": row.get("reason") or None, "single_change": row.get("single_change"),
        "tainted": row.get("tainted"), "p50_us": row.get("p50_us"), "p95_us": row.get("p95_us"),
        "timed": timed(row), "index_bytes": row.get("index_bytes"),
        "context_tokens": row.get("context_tokens"),
        "threshold_split": row.get("threshold_split") or None,
    }  # fmt: skip
    out = []
    for cell in row["cells"]:
        decides = cell["slice"] == WHOLE and cell["measure"] == row.get("primary")
        mean = cell["after"] if cell.get("after") is not None else cell["mean"]
        notes = [*(cell.get("remarks") or []), *(row["reasons"] if decides else [])]
        own = {key: cell.get(key) for key in SWEEP.names if key in cell}
        out.append(
            own | common
            | {"value": mean, "verdict": (row["verdict"] or None) if decides else None,
               "p_adjusted": cell.get("p_adjusted"), "note": "; ".join(notes) or None}
        )  # fmt: skip
    return out or [common]


def timed(row: dict[str, Any]) -> str | None:
    """At which depth the stages of a row were timed; None where they were not."""
    return row.get("timed") or None
