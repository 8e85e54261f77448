"""What a diagnosis found as tables: traces, counts, hard gates, an isolation."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from ragcore.diagnosis.isolation import DELTAS, SHORT
from ragcore.diagnosis.layers import LAYERS

TRACES = pa.schema(
    [
        ("run", pa.string()),
        ("case_id", pa.string()),
        ("lang", pa.string()),
        ("repeat", pa.int16()),
        ("fault", pa.string()),
        ("first_failing", pa.string()),
        *((layer, pa.string()) for layer in LAYERS),
        ("retrieval_state", pa.string()),
        ("assembly_state", pa.string()),
        ("generation_state", pa.string()),
        ("joint", pa.string()),
        ("served", pa.string()),
        ("oracle_context", pa.string()),
        ("frozen_context", pa.string()),
        ("frozen_output", pa.string()),
        ("layer", pa.string()),
        ("status", pa.string()),
    ]
)
"""One row = one observed trace; the eight layers hold P, F, G, N or ?."""
COUNTS = pa.schema(
    [
        ("run", pa.string()),
        ("slice", pa.string()),
        ("first_failing", pa.string()),
        ("n_cases", pa.int64()),
    ]
)
"""One row = cases of one run and language by first failing layer."""
VIOLATIONS = pa.schema(
    [
        ("run", pa.string()),
        ("gate", pa.string()),
        ("case_id", pa.string()),
        ("lang", pa.string()),
        ("repeat", pa.int16()),
        ("degraded", pa.bool_()),
        ("what", pa.string()),
        ("checked", pa.int64()),
        ("traces", pa.int64()),
        ("reason", pa.string()),
    ]
)
"""One row = one violation of a hard gate; a gate without any has one row without a case."""
ISOLATION = pa.schema(
    [
        ("case_id", pa.string()),
        *((short, pa.float64()) for short in SHORT),
        *((name.replace(" ", "_"), pa.float64()) for name in DELTAS),
        ("class", pa.string()),
        ("interaction", pa.float64()),
    ]
)
"""One row = one case in four conditions."""
TABLES = ("traces", "counts", "hard", "isolation")


def table(found: Any, what: str) -> pa.Table:
    """One of `TABLES` of a `Diagnosis`, with the record of what it rests on."""
    made = {"traces": _traces, "counts": _counts, "hard": _hard, "isolation": _isolation}[what]
    rows, schema = made(found)
    return found.scores.signed(pa.Table.from_pylist(rows, schema=schema))


def _traces(found: Any) -> tuple[list[dict[str, Any]], pa.Schema]:
    rows = [
        {
            "run": one.run, "case_id": one.case, "lang": one.lang, "repeat": one.repeat,
            "fault": one.fault, "first_failing": one.first,
            **dict(zip(LAYERS, one.layers.split(), strict=True)),
            "retrieval_state": one.retrieval, "assembly_state": one.assembly,
            "generation_state": one.generation, "joint": one.code, "served": one.served,
            "oracle_context": one.interventions.oracle or None,
            "frozen_context": one.interventions.frozen or None,
            "frozen_output": one.interventions.output or None,
            "layer": one.attribution.layer or None, "status": one.attribution.status,
        }
        for one in found.traces
    ]  # fmt: skip
    return rows, TRACES


def _counts(found: Any) -> tuple[list[dict[str, Any]], pa.Schema]:
    rows = [
        {"run": run.name, "slice": part, "first_failing": label, "n_cases": n}
        for run in found.observed
        for part, own in _parts(found.counts(run.name))
        for label, n in own.items()
    ]
    return rows, COUNTS


def _parts(counts: dict[str, Any]) -> list[tuple[str, Any]]:
    return [(name if name == "all" else f"lang={name}", own) for name, own in counts.items()]


def _hard(found: Any) -> tuple[list[dict[str, Any]], pa.Schema]:
    rows: list[dict[str, Any]] = []
    for gates in found.hard.values():
        for gate in gates:
            own = {
                "run": gate.run, "gate": gate.name, "checked": gate.checked, "traces": gate.of,
                "reason": gate.why or None,
            }  # fmt: skip
            rows += [
                {
                    **own, "case_id": one.case, "lang": one.lang, "repeat": one.repeat,
                    "degraded": one.degraded, "what": one.what,
                }
                for one in gate.violations
            ] or [own]  # fmt: skip
    return rows, VIOLATIONS


def _isolation(found: Any) -> tuple[list[dict[str, Any]], pa.Schema]:
    crossed = found.crossed.interaction if found.crossed is not None else {}
    four = found.isolation
    cases = dict.fromkeys([*(four.values if four is not None else ()), *crossed])
    rows = []
    for case in cases:
        row: dict[str, Any] = {"case_id": case, "interaction": crossed.get(case)}
        if four is not None and case in four.values:
            row |= dict(zip(SHORT, four.values[case], strict=True))
            row |= {name.replace(" ", "_"): v for name, v in four.deltas(case).items()}
            row["class"] = four.classes[case]
        rows.append(row)
    return rows, ISOLATION
