"""`ragcore.sweep`: the verb."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from ragcore.experiments.config import EXPERIMENTS, Config, read_config
from ragcore.experiments.result import SweepResult
from ragcore.experiments.rows import PRODUCTION, Row
from ragcore.experiments.session import Session
from ragcore.experiments.setups import Setup
from ragcore.experiments.state import State
from ragcore.progress import Progress, no_progress
from ragcore.suites import pool_size

ROWS = "rows"
"""The stage that progress is told of, row by row."""


def sweep(
    source: str | PathLike[str] | Mapping[str, Any],
    *,
    state: str | PathLike[str] | None = None,
    threads: int | None = None,
    progress: Progress = no_progress,
) -> SweepResult:
    """Deviations from production, one at a time, replayed from one recorded wide run.

    Parameters
    ----------
    source : SWEEP.toml, or a mapping with its keys; see docs/experiments.md.
    state : folder that keeps finished steps; default beside the file, with the ending `.sweep`
        (for a mapping, its name with that ending). A sweep that was killed goes on there.
    threads : for scores; no number depends on them.
    progress : called with a stage, what is done of it, and of how many.

    Returns
    -------
    SweepResult

    Raises
    ------
    InputError, UsageError
        For whatever the file says that cannot be done, before anything is; and as
        `ragcore.search` and `ragcore.score` do.

    Examples
    --------
    >>> ragcore.sweep("sweep.toml").table()
    """
    config = read_config(source)
    if state is None:
        own = Path(f"{config.name}.toml") if isinstance(source, Mapping) else Path(source)
        state = own.with_suffix(".sweep")
    held = State(Path(state))
    session = Session(config, held, progress, threads)
    baseline = session.baseline()
    curve, best = session.tuned()
    rows = _ordered([*session.rows, *([best] if best is not None else [])])
    made = []
    for done, row in enumerate(rows):
        progress(ROWS, done, len(rows))
        made.append(session.row(row))
    if curve and best is None:
        made.append(session.untuned())
        made.sort(key=lambda row: EXPERIMENTS.index(row["experiment"]))
    progress(ROWS, len(rows), len(rows))
    notes = list(dict.fromkeys([*session.notes, *baseline["audit"]]))
    about = _about(config, session.production, session) | {"notes": notes}
    return SweepResult(about, baseline, made, curve, dict(held.found), notes)


def _ordered(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: EXPERIMENTS.index(row.experiment))


def _about(config: Config, production: Setup, session: Session) -> dict[str, Any]:
    suite = config.suite
    said = suite.settings.get("cannot_show", [])
    cases = suite.cases
    return {
        "name": config.name, "suite": suite.name, "kind": suite.kind, "split": config.split,
        "cannot_show": [said] if isinstance(said, str) else list(said),
        "n_cases": _n_cases(cases, config.split), "n_run": session.n_run, "pool": pool_size(suite),
        "production": production.manifest(), "baseline": PRODUCTION,
        "plans": {
            name: {"primary": list(one.primary), "guards": dict(one.guards),
                   "p95_ratio": one.p95_ratio, "tokens_ratio": one.tokens_ratio}
            for name, one in config.plans.items()
        },
        "by": list(config.by), "measures": session.judge.measures,
        "run": config.run.name if config.run is not None else None,
        "reranker": session.reranker.name if session.reranker else None,
        "embed": config.embed or None, "level": config.plans["ladder"].level or 0.95,
        "types": _types(cases, config.split),
        "files": [config.where, str(suite.path / "cases.arrow")],
        "choose": config.tuning.choose if config.tuning else None,
    }  # fmt: skip


def _n_cases(cases: Any, split: str) -> int:
    rows = zip(cases["case_id"].to_pylist(), cases["split"].to_pylist(), strict=True)
    return len({case for case, own in rows if own == split})


def _types(cases: Any, split: str) -> dict[str, int]:
    """Semantic cases of the split by query type; one may be of several."""
    if "type" not in cases.column_names:
        return {}
    found: dict[str, set[str]] = {}
    for case, own, types in zip(
        cases["case_id"].to_pylist(), cases["split"].to_pylist(), cases["type"].to_pylist(),
        strict=True,
    ):  # fmt: skip
        if own == split:
            for one in (types or [None]) if isinstance(types, list) else [types]:
                found.setdefault("(none)" if one is None else str(one), set()).add(case)
    return {name: len(members) for name, members in sorted(found.items())}
