"""Why a case got its scores: the arithmetic of every measure, layer by layer."""

from __future__ import annotations

import difflib
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore import schema
from ragcore.diagnosis.first import FIRST, MEASURES, by_rule
from ragcore.errors import InputError, UsageError
from ragcore.formats import arrow
from ragcore.formats.compute import pc
from ragcore.measures import registry
from ragcore.measures.definitions import Definition
from ragcore.report.table import aligned, count, plain

ORDER = (
    "corpus", "retrieval", "ranked", "context", "claims", "generation", "citation", "abstention",
    "outcome", "judging", "resources",
)  # fmt: skip
"""Layers as they are told; others come after them."""
_HINT = "write one with: ragcore score RUN --per-case -f arrow -o scores.arrow"
Row = dict[str, Any]


def explain_case(path: str | PathLike[str], case: str) -> str:
    """The page of one case: run by run, layer by layer, with numerators and denominators.

    Parameters
    ----------
    path : a file of `schema.SCORES`.
    case : its id.

    Raises
    ------
    InputError
        If the file is no table of scores.
    UsageError
        If it has no such case; the message names those that look alike.
    """
    table = _scores(Path(path))
    own = table.filter(pc.equal(table["case_id"], case)).to_pylist()
    if not own:
        raise _unknown(table, case, path)
    lines = [f"case {plain(case)}"]
    for run in dict.fromkeys(row["run"] for row in own):
        lines += ["", *_of_run([row for row in own if row["run"] == run], run)]
    names = dict.fromkeys(row["measure"] for row in own)
    lines += ["", "what the numbers are", *_formulas(list(names))]
    lines += [
        "", "A first failing layer is where to look first: the layers after it may fail too, and "
        "all are shown.",
    ]  # fmt: skip
    return "\n".join(line.rstrip() for line in lines)


def _scores(path: Path) -> pa.Table:
    table = arrow.read_checked(path, "a table of scores", _HINT)
    absent = [name for name in schema.SCORES.names if name not in table.column_names]
    if absent:
        raise InputError(
            path, f"columns {', '.join(table.column_names[:12])}",
            f"a table of scores, with {', '.join(absent)}", _HINT,
        )  # fmt: skip
    kinds = [
        field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        for field in schema.SCORES
    ]
    try:
        columns = [
            table[name].cast(kind)
            for name, kind in zip(schema.SCORES.names, kinds, strict=True)
        ]  # fmt: skip
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InputError(
            path, str(error).splitlines()[0], "a table of scores as the engine writes it", _HINT
        ) from None
    return pa.table(columns, schema.SCORES.names)


def _unknown(table: pa.Table, case: str, path: Any) -> UsageError:
    cases = [name for name in table["case_id"].unique().to_pylist() if name is not None]
    near = difflib.get_close_matches(case, cases[:100_000], n=3, cutoff=0.5)
    alike = f"it has {', '.join(map(repr, near))}" if near else ""
    few = ", ".join(map(repr, cases[:3])) or "none"
    return UsageError(f"no case {case!r} in {path}", alike or f"cases are like {few}")


def _definition(measure: str) -> Definition | None:
    try:
        return registry.parse([measure])[0].definition
    except UsageError:
        return None


def _of_run(rows: list[Row], run: str) -> list[str]:
    lines = [f"run {plain(run)}: first failing layer: {_first(rows)}"]
    by_measure: dict[str, list[Row]] = {}
    for row in rows:
        by_measure.setdefault(row["measure"], []).append(row)
    placed = []
    for at, (name, own) in enumerate(by_measure.items()):
        found = _definition(name)
        layer = found.layer if found is not None else "other"
        place = ORDER.index(layer) if layer in ORDER else len(ORDER)
        placed.append((place, at, layer, name, own))
    head = ["layer", "measure", "value", "arithmetic", "state", "why", "rung", "of"]
    body, last = [], ""
    for _, _, layer, name, own in sorted(placed, key=lambda one: one[:2]):
        for shown, variants in _alike(own):
            said = layer if layer != last else ""
            last = layer
            body.append([said, plain(name), *shown, variants])
            name = ""
    rung = head.index("rung")
    if not any(line[rung] for line in body):
        head = head[:rung] + head[rung + 1 :]
        body = [line[:rung] + line[rung + 1 :] for line in body]
    return [*lines, *(f"  {line}" for line in aligned(head, body))]


def _alike(rows: list[Row]) -> list[tuple[list[str], str]]:
    """Rows that read the same, once, with the languages and repeats that they are of."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(_shown(row)), []).append(row)
    return [(list(key), _variants(own, len(groups) == 1)) for key, own in groups.items()]


def _shown(row: Row) -> list[str]:
    over, under = row["numerator"], row["denominator"]
    value = "-" if row["value"] is None else f"{row['value']:.4f}"
    told = over is not None and under is not None and row["state"] == "ok"
    fraction = f"{count(over)}/{count(under)}" if told else ""
    return [value, fraction, row["state"] or "", plain(row["reason"] or ""), row["rung"] or ""]


def _variants(rows: list[Row], whole: bool) -> str:
    """Languages with their repeats; repeats of all are counted, those of some named."""
    repeats: dict[str, list[int | None]] = {}
    for row in rows:
        repeats.setdefault(row["lang"] or "", []).append(row["repeat"])
    out = []
    for lang, own in repeats.items():
        named = [str(r) for r in own if r is not None]
        if len(own) > 1 and whole:
            out.append(f"{plain(lang)} x{len(own)}".strip())
        elif named and (not whole or not lang):
            out.append(f"{plain(lang)} repeat {', '.join(named)}".strip())
        else:
            out.append(plain(lang))
    return "; ".join(one for one in out if one)


def _first(rows: list[Row]) -> str:
    """The label of each variant by the rule; one word where all have it."""
    given = {row["measure"] for row in rows}
    absent = [name for name in MEASURES if name not in given]
    if absent:
        return f"not told, as {', '.join(absent)} is not in the file"
    variants: dict[tuple[Any, Any], dict[str, Row]] = {}
    for row in rows:
        variants.setdefault((row["lang"], row["repeat"]), {})[row["measure"]] = row
    words: dict[str, list[Row]] = {}
    for own in variants.values():
        if any(name not in own for name in MEASURES):
            continue
        values = [np.array([_number(own[name]["value"])]) for name in MEASURES]
        states = [np.array([schema.STATES.index(own[name]["state"])]) for name in MEASURES]
        words.setdefault(FIRST[by_rule(values, states)[0]], []).append(own[MEASURES[0]])
    if len(words) == 1:
        return next(iter(words))
    return "; ".join(f"{word} ({_variants(own, False)})" for word, own in words.items())


def _number(value: float | None) -> float:
    return np.nan if value is None else value


def _formulas(names: list[str]) -> list[str]:
    lines = []
    for name in names:
        found = _definition(name)
        if found is not None:
            lines.append(f"  {plain(name)}: {found.formula}; na: {found.na}")
    return lines
