"""Turns the input of a case into what a user would have: files, tables, mappings, a command."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

import ragcore
import ragcore_kernels
import reference
from reference_data import SHARED, Qrels, Run

Case = dict[str, Any]


def load(name: str) -> list[Case]:
    """The records of a file of cases; none when the shared material is missing."""
    path = SHARED / "conformance" / name
    if not path.is_file():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


# --- reading a case


def run_of(raw: Any) -> Run:
    """Run lines, or a mapping of lists, as a mapping of (id, score)."""
    if isinstance(raw, Mapping):
        return {topic: [(doc, float(value)) for doc, value in rows] for topic, rows in raw.items()}
    run: Run = defaultdict(list)
    for line in raw:
        topic, _, doc, _, value = line.split()[:5]
        run[topic].append((doc, float(value)))
    return dict(run)


def qrels_of(raw: Any) -> Qrels:
    if isinstance(raw, Mapping):
        return {topic: dict(grades) for topic, grades in raw.items()}
    qrels: Qrels = defaultdict(dict)
    for line in raw:
        topic, _, doc, grade = line.split()
        qrels[topic][doc] = int(grade)
    return dict(qrels)


# --- writing it


def write_text(path: Path, text: str) -> Path:
    path.write_bytes(text.encode("utf-8"))
    return path


def run_text(run: Run) -> str:
    return "".join(
        f"{topic} Q0 {doc} {rank} {value!r} sys\n"
        for topic, rows in run.items()
        for rank, (doc, value) in enumerate(rows, start=1)
    )


def qrels_text(qrels: Qrels) -> str:
    return "".join(
        f"{topic} 0 {doc} {grade}\n" for topic, docs in qrels.items() for doc, grade in docs.items()
    )


def table_of(rows: Sequence[Sequence[Any]], names: Sequence[str], types: Sequence[Any]) -> pa.Table:
    columns = [pa.array([row[i] for row in rows], kind) for i, kind in enumerate(types)]
    return pa.table(columns, names=list(names))


def run_rows(rows: Sequence[Sequence[Any]]) -> pa.Table:
    """Flat rows (topic, id, score)."""
    return table_of(rows, ["query_id", "doc_id", "score"], [pa.string(), pa.string(), pa.float64()])


def qrels_rows(rows: Sequence[Sequence[Any]]) -> pa.Table:
    """Flat rows (topic, id, grade)."""
    return table_of(
        rows, ["query_id", "doc_id", "relevance"], [pa.string(), pa.string(), pa.int64()]
    )


def run_table(run: Run) -> pa.Table:
    return run_rows([(topic, *row) for topic, rows in run.items() for row in rows])


def qrels_table(qrels: Qrels) -> pa.Table:
    return qrels_rows([(t, doc, grade) for t, docs in qrels.items() for doc, grade in docs.items()])


def nested_table(run: Run) -> pa.Table:
    """One row a topic, its list recorded in the order of the ranking."""
    kind = pa.list_(pa.struct([("id", pa.string()), ("score", pa.float64())]))
    lists = []
    for rows in run.values():
        values = dict(rows)
        lists.append([{"id": doc, "score": values[doc]} for doc in reference.order(rows)])
    return pa.table({"case_id": pa.array(list(run), pa.string()), "ranked": pa.array(lists, kind)})


def run_mapping(run: Run) -> dict[str, dict[str, float]]:
    return {topic: dict(rows) for topic, rows in run.items()}


class Way(NamedTuple):
    """A run and its judgements in one of the forms that the interface takes."""

    name: str
    run: Any
    qrels: Any
    options: dict[str, Any]


def ways(run: Run, qrels: Qrels, folder: Path) -> Iterator[Way]:
    """The same data as text on disk, as tables and as mappings."""
    empty = {} if any(run.values()) else {"allow_empty": True}
    yield Way("mappings", run_mapping(run), qrels, {})
    yield Way("nested", nested_table(run), qrels_table(qrels), {})
    yield Way("flat", run_table(run), qrels_table(qrels), empty)
    yield Way(
        "text",
        write_text(folder / "run.trec", run_text(run)),
        write_text(folder / "qrels.trec", qrels_text(qrels)),
        empty,
    )


# --- comparing


def near(value: float | None, expected: float, tolerance: float = 1e-9) -> bool:
    return value is not None and math.isclose(value, expected, rel_tol=0.0, abs_tol=tolerance)


def n_ok(scores: Any, measure: str) -> int:
    """Cases of a measure with a value, as the summary counts them."""
    table = scores.summary().to_pydict()
    rows = zip(table["measure"], table["slice"], table["n_ok"], strict=True)
    (count,) = [n for name, part, n in rows if name == measure and part in ("all", None)]
    return count


def bits(scores: Any) -> list[tuple[Any, ...]]:
    """Every value of every case, to the last bit, in an order of its own."""
    table = scores.table().to_pydict()
    rows = zip(table["run"], table["measure"], table["case_id"], table["value"], strict=True)
    return sorted(
        (run, name, case, value is not None and value.hex()) for run, name, case, value in rows
    )


# --- processes


def environment(**extra: str) -> dict[str, str]:
    """The environment of a child that imports these very packages."""
    homes = {str(Path(module.__path__[0]).parent) for module in (ragcore, ragcore_kernels)}
    path = os.pathsep.join([*sorted(homes), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path.rstrip(os.pathsep), **extra}


def cli(*arguments: Any, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ragcore", *map(str, arguments)]
    return subprocess.run(
        command, env=environment(), cwd=cwd, capture_output=True, text=True, check=False
    )


def python(
    code: str, folder: Path, *arguments: Any, name: str = "script.py", **extra: str
) -> subprocess.CompletedProcess[str]:
    """Run a script of its own, in a process of its own."""
    script = write_text(folder / name, code)
    command = [sys.executable, str(script), *map(str, arguments)]
    return subprocess.run(
        command, env=environment(**extra), cwd=folder, capture_output=True, text=True, check=False
    )


def _no_constant(text: str) -> float:
    raise ValueError(f"{text} is not JSON")


def json_lines(text: str) -> list[dict[str, Any]]:
    """Lines of strict JSON: NaN and Infinity are refused."""
    return [json.loads(line, parse_constant=_no_constant) for line in text.splitlines()]
