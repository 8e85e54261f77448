"""Small suites and runs whose traces end, cost and take time as a test says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

import tables
from ragcore import schema


def _column(name: str, values: Sequence[Any], known: pa.Schema) -> pa.Array:
    kind = known.field(name).type if name in known.names else None
    if kind is not None and pa.types.is_dictionary(kind):
        return pa.array(list(values), pa.string()).dictionary_encode()
    return pa.array(list(values), _plain(kind) if kind is not None else None)


def _plain(kind: pa.DataType) -> pa.DataType:
    """A type without dictionaries, which Python values do not fill."""
    if pa.types.is_dictionary(kind):
        return pa.string()
    if pa.types.is_list(kind):
        return pa.list_(_plain(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(f.name, _plain(f.type)) for f in kind])
    return kind


def suite_of(folder: Path, cases: Mapping[str, Sequence[Any]], toml: str = "") -> Path:
    """A suite of cases by column; each has one document as evidence unless it says otherwise."""
    columns = dict(cases)
    n = len(columns["case_id"])
    columns.setdefault("evidence", [tables.evidence(("d", 1))] * n)
    table = {
        name: pa.array(list(values)) if name == "evidence" and _loose(values)
        else _column(name, values, schema.CASES)
        for name, values in columns.items()
    }  # fmt: skip
    return tables.write_suite(folder, pa.table(table), toml or 'name = "little"\n')


def _loose(values: Sequence[Any]) -> bool:
    return all(set(item) <= {"doc_id", "relevance", "required"} for row in values for item in row)


def run_of(columns: Mapping[str, Sequence[Any]]) -> pa.Table:
    """A case batch by column; every trace ranks one document unless it says otherwise."""
    given = dict(columns)
    given.setdefault("ranked", [[{"id": "d", "score": 1.0}]] * len(given["case_id"]))
    return pa.table({name: _column(name, values, schema.RUNS) for name, values in given.items()})


def end(state: str | None, text: str | None = None, value: str | None = None) -> dict[str, Any]:
    """A final state."""
    return {"state": state, "value": value, "text": text}


def got(scores: Any, measure: str, case: str) -> float | str | None:
    """Value of a case, or its state where it has none."""
    state = scores.state(measure, case)
    return scores.value(measure, case) if state == "ok" else state


def row(scores: Any, measure: str, part: str = "all", by: Sequence[str] = ()) -> dict[str, Any]:
    """The summary row of a measure."""
    rows = scores.summary(by).to_pylist()
    return next(r for r in rows if r["measure"] == measure and r["slice"] == part)
