"""Where the shared material lies, and small readers of its files for the tests."""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path

import pyarrow.parquet as pq

SHARED = Path(
    os.environ.get("RAGCORE_SHARED") or Path(__file__).resolve().parents[2] / "shared"
).resolve()
"""Environment ``RAGCORE_SHARED``, else the folder ``shared`` beside the repository."""

Run = dict[str, list[tuple[str, float]]]
Qrels = dict[str, dict[str, int]]


def folder_or_reason(*parts: str) -> tuple[Path, str]:
    """A folder of the shared material, and why it cannot be used ("" if it can)."""
    path = SHARED.joinpath(*parts)
    if path.is_dir():
        return path, ""
    return path, f"{path} is missing; set RAGCORE_SHARED to the folder of shared material"


def required() -> bool:
    """Whether the absence of the shared material is a failure: in CI it is."""
    return os.environ.get("CI", "").lower() not in ("", "0", "false", "no")


def text_lines(path: Path) -> list[str]:
    """Lines that say something: neither blank nor a comment."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.strip() and not line.lstrip().startswith("#")]


def read_run_text(path: Path) -> Run:
    run: Run = defaultdict(list)
    for line in text_lines(path):
        topic, _, doc, _, value = line.split()[:5]
        run[topic].append((doc, float(value)))
    return dict(run)


def read_qrels_text(path: Path) -> Qrels:
    qrels: Qrels = defaultdict(dict)
    for line in text_lines(path):
        topic, _, doc, grade = line.split()[:4]
        qrels[topic][doc] = int(grade)
    return dict(qrels)


def read_runs(path: Path) -> dict[str, Run]:
    """System -> its run, from a table of shared data."""
    columns = ["system", "query_id", "doc_id", "score"]
    table = pq.read_table(path, columns=columns).to_pydict()
    runs: dict[str, Run] = defaultdict(lambda: defaultdict(list))
    for system, topic, doc, value in zip(*(table[name] for name in columns), strict=True):
        runs[system][topic].append((doc, value))
    return {system: dict(run) for system, run in runs.items()}


def read_qrels(path: Path) -> Qrels:
    columns = ["query_id", "doc_id", "relevance"]
    table = pq.read_table(path, columns=columns).to_pydict()
    qrels: Qrels = defaultdict(dict)
    for topic, doc, grade in zip(*(table[name] for name in columns), strict=True):
        qrels[topic][doc] = grade
    return dict(qrels)
