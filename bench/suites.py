"""The tables of docs/suites.md and tests/golden/suites.toml: every suite, run.

python -m bench.suites --data DIR
python -m bench.suites --data DIR --update docs/suites.md --golden tests/golden/suites.toml
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from ragcore.catalogue import reading
from ragcore.catalogue.entries import Entry, entries
from ragcore.catalogue.ladder import SuiteRun, Wanted, run_suite
from ragcore.report.table import decimal

from .peers.report import machine, publish, table

TOLERANCE = 0.005
"""By how much a golden value may move: other versions of tokenisers and processors differ."""
SHOWN = 4
"""Measures of a suite that the page shows; the command shows them all."""


def run(entry: Entry, data: Path | None, out: Path) -> SuiteRun:
    """A suite, with what vectors came with it; nothing is embedded here."""
    return run_suite(entry, out / entry.name, data=data, wanted=Wanted(embed="none"))


def ladder(found: SuiteRun) -> list[str]:
    """Values of the first measures, with their denominators and the room that is left."""
    assert found.scores is not None
    measures = found.scores.measures[:SHOWN]
    rows = {(row["run"], row["measure"]): row for row in found.scores.rows(())}
    head = [
        "run",
        *measures,
        f"{measures[0]} leaves",
        f"random R@{found.cutoff}",
        "context",
        "index MB",
    ]
    body = []
    for one in found.rungs:
        if one.skipped:
            body.append([one.name, *["not evaluated"] * SHOWN, *[""] * 4][: len(head)])
            continue
        cells = [_cell(rows[one.name, measure]) for measure in measures]
        room = one.room.get(measures[0])
        body.append([
            one.name, *cells, "" if room is None else str(room),
            f"{one.random(found.cutoff):.4f}" if one.pools else "",
            "" if one.tokens != one.tokens else f"{one.tokens:.0f}",
            f"{one.size / 1e6:.1f}" if one.size else "",
        ])  # fmt: skip
    return table(head, body, True)


def _cell(row: dict) -> str:
    if row["mean"] is None:
        return "-"
    low, high = row["ci_low"], row["ci_high"]
    ends = "" if low is None or high is None else f" [{low:.3f}, {high:.3f}]"
    n = row["denominator"]
    return f"{row['mean']:.4f}{ends}" + ("" if n is None else f" n {n:g}")


def types(found: SuiteRun) -> list[str]:
    """The primary measure by query type; nothing where there is one type or none."""
    assert found.scores is not None
    kinds = [k for k in reading.types_of(found, found.scores.measures[0]) if max(k.n)]
    if len(kinds) < 2:
        return []
    names = [one.name for one in found.scores.runs]
    body = [[k.name, str(max(k.n)), *map(decimal, k.means), ", ".join(k.best)] for k in kinds]
    return ["", *table([f"{found.scores.measures[0]} by type", "n", *names, "best"], body, True)]


def block(found: SuiteRun) -> list[str]:
    """Everything that the page says of one suite, but its times."""
    said, kind = found.entry.settings, found.entry.kind
    lines = [f"**{said.get('title', found.entry.name)}**: {kind}. Licence: {said['licence']}."]
    lines += [f"Scored is: {said['subset']}."] if said.get("subset") else []
    lines += ["", *ladder(found), *types(found), ""]
    lines += [f"- {sentence}" for sentence in reading.sentences(found)]
    return lines + [f"- cannot show: {limit}" for limit in found.entry.limits]


def times(runs: list[SuiteRun]) -> list[str]:
    """How long each step of each suite took, in seconds."""
    steps = ("importing", "indexing", "searching", "scoring")
    head = ["suite", "questions", "chunks", *steps, "p50, p95 ms by run"]
    body = []
    for one in runs:
        spent = [f"{one.times[step]:.2f}" if step in one.times else "" for step in steps]
        latency = "; ".join(
            f"{r.name} {r.p50 / 1e3:.2f}, {r.p95 / 1e3:.2f}" for r in one.rungs if r.strategy
            and not r.skipped
        )  # fmt: skip
        chunks = max((round(r.pool) for r in one.rungs if r.pools), default=0)
        n = one.suite.cases.num_rows
        body.append([one.entry.name, f"{n:,}", f"{chunks:,}" if chunks else "", *spent, latency])
    return [f"{machine()}", "", *table(head, body, True)]


def golden(runs: list[SuiteRun]) -> str:
    """Every value of every run, as TOML."""
    lines = [
        "# Written by bench/suites.py: values of every suite over its pinned data.",
        f"tolerance = {TOLERANCE}",
    ]
    for one in runs:
        assert one.scores is not None
        for run in one.scores.runs:
            lines.append(f"\n[{json.dumps(one.entry.name)}.{json.dumps(run.name)}]")
            for measure, value in one.scores.means(run.name).items():
                if value == value:
                    lines.append(f"{json.dumps(measure)} = {value:.6f}")
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> None:
    """Run the suites, print their tables, and put these into a page if one is named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder of public data")
    parser.add_argument("--update", type=Path, help="page whose tables are replaced")
    parser.add_argument("--golden", type=Path, help="file of values to write")
    parser.add_argument("--only", nargs="*", default=[], help="names of suites")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as out:
        runs = [
            run(one, chosen.data, Path(out)) for one in entries()
            if not chosen.only or one.name in chosen.only
        ]  # fmt: skip
        for one in runs:
            publish(one.entry.name, block(one), chosen.update)
        publish("times", times(runs), chosen.update)
        if chosen.golden is not None:
            chosen.golden.write_text(golden(runs), "utf-8")


if __name__ == "__main__":
    main()
