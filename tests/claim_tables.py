"""Suites, runs and judgments of claims, from matrices written as words or digits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

import tables
from ragcore import schema

YES_NO = {"1": "yes", "0": "no", "½": "partial", "x": "contradicts", "?": "unclear", "!": "error"}
"""What a digit of a matrix stands for; a blank is no verdict."""
CLAIM = pa.struct([("text", pa.string())])
REFERENCE = pa.struct(
    [("required", pa.bool_()), ("vital", pa.bool_()), ("high_stakes", pa.bool_())]
)


@dataclass
class Case:
    """One case: how many claims, what was shown, and strings of verdicts.

    Attributes
    ----------
    answers : claims of the answer; None for none recorded.
    references : reference claims, a number or their marks; None for none recorded.
    context : ids of the chunks; None for none recorded.
    correct, entailed, covered : a digit a claim.
    by_answer, by_reference : rows of the matrices, one a claim, separated by commas.
    trace, case : further columns.
    """

    answers: Any = 0
    references: Any = 0
    context: Sequence[Any] | None = ()
    correct: str = ""
    entailed: str = ""
    covered: str = ""
    by_answer: str = ""
    by_reference: str = ""
    trace: dict[str, Any] = field(default_factory=dict)
    case: dict[str, Any] = field(default_factory=dict)

    @property
    def ids(self) -> list[str]:
        return [c if isinstance(c, str) else c["id"] for c in self.context or ()]


def rows_of(name: str, case: Case) -> list[dict[str, Any]]:
    """The verdicts of a case, one a row."""
    rows = []
    for relation in ("correct", "entailed", "covered"):
        for j, digit in enumerate(getattr(case, relation)):
            rows.append({"relation": relation, "claim": j, "verdict": YES_NO.get(digit)})
    for relation, text in (
        ("chunk_entails", case.by_answer), ("chunk_entails_reference", case.by_reference),
    ):  # fmt: skip
        for j, digits in enumerate(text.split(",") if text else ()):
            for chunk, digit in zip(case.ids, digits, strict=True):
                rows.append({"relation": relation, "claim": j, "verdict": YES_NO.get(digit),
                             "evidence": [chunk]})  # fmt: skip
    return [{"case_id": name, **row} for row in rows if row["verdict"] is not None]


def judgments_of(rows: Sequence[dict[str, Any]], **common: Any) -> pa.Table:
    """Rows as a table of judgments by one judge."""
    base = {"case_id": None, "relation": None, "verdict": None, "evidence": None, "claim": None,
            "judge": "j", "rung": "model", **common}  # fmt: skip
    names = list(dict.fromkeys([*base, *(name for row in rows for name in row)]))
    filled = [{**base, **row} for row in rows]
    columns = {
        n: pa.array([row.get(n) for row in filled], schema.JUDGMENTS.field(n).type) for n in names
    }
    return pa.table(columns)


def packed_of(rows: Sequence[dict[str, Any]], kind: Any = None) -> pa.Table:
    """Lists of verdicts, {case_id, relation, verdicts, ...}, as a packed table."""
    kind = pa.list_(pa.dictionary(pa.int8(), pa.string())) if kind is None else kind
    types = {"verdicts": kind, "evidence": pa.list_(pa.string()), "repeat": pa.int16()}
    base = {"judge": "j", "rung": "model"}
    names = list(dict.fromkeys([*base, *(name for row in rows for name in row)]))
    return pa.table({
        n: pa.array([{**base, **row}.get(n) for row in rows], types.get(n, pa.string()))
        for n in names
    })  # fmt: skip


def suite_of(folder: Path, cases: dict[str, Case]) -> Path:
    """A suite with the reference claims of the cases."""
    claims = []
    for case in cases.values():
        marks = case.references
        claims.append([{}] * marks if isinstance(marks, int) else marks)
    columns: dict[str, Any] = {
        "case_id": list(cases),
        "claims": pa.array(claims, pa.list_(REFERENCE)),
    }
    for name in dict.fromkeys(name for case in cases.values() for name in case.case):
        columns[name] = [case.case.get(name) for case in cases.values()]
    return tables.write_suite(folder, pa.table(columns))


def run_of(cases: dict[str, Case]) -> pa.Table:
    """A run with the claims and the context of the cases."""
    kind = schema.RUNS.field("context").type
    answers = [None if c.answers is None else [{"text": ""}] * c.answers for c in cases.values()]
    shown = [
        None if c.context is None else [{"id": x} if isinstance(x, str) else x for x in c.context]
        for c in cases.values()
    ]
    columns = {
        "case_id": list(cases), "ranked": [["d"]] * len(cases),
        "claims": pa.array(answers, pa.list_(CLAIM)),
        "context": pa.array(shown, kind),
    }  # fmt: skip
    for name in dict.fromkeys(name for case in cases.values() for name in case.trace):
        column = [case.trace.get(name) for case in cases.values()]
        own = schema.RUNS.field(name).type if name in schema.RUNS.names else None
        columns[name] = pa.array(column, own)
    return pa.table(columns)


def all_rows(cases: dict[str, Case]) -> list[dict[str, Any]]:
    """The verdicts of all cases."""
    return [row for name, case in cases.items() for row in rows_of(name, case)]
