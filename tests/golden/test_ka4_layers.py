"""Every number that KA-4 publishes, by `score`, `compare` and `diagnose`, in both languages."""

from __future__ import annotations

import pyarrow as pa
import pytest

import ka4_rules
import ragcore
import tables
from ka4_rules import CASES, SUITE, TABLES
from ragcore.diagnose import diagnose

MEASURES = [
    "end_to_end", "retrieval.coverage", "context.coverage", "generation.task", "citation.support",
    "abstention.correct",
]  # fmt: skip
PUBLISHED = {
    "end_to_end": ((7, 12), (8, 12)), "retrieval.coverage": ((8, 10), (9, 10)),
    "context.coverage": ((6, 10), (7, 10)), "generation.task": ((8, 12), (9, 12)),
    "citation.support": ((3, 5), (4, 6)), "abstention.correct": ((4, 4), (4, 4)),
}  # fmt: skip
LAYERS = {
    "baseline": {"passed": 7, "retrieval": 2, "context": 1, "generation": 1, "citation": 1},
    "filtered": {"passed": 8, "retrieval": 1, "context": 1, "generation": 1, "citation": 1},
}  # fmt: skip
RUNS = [str(SUITE / "runs" / f"{name}.arrow") for name in LAYERS]


@pytest.mark.parametrize("part", ["all", "lang=en", "lang=zh"])
def test_score__gives_the_published_fractions(part):
    scores = ragcore.score(RUNS, measures=MEASURES)
    rows = {(r["run"], r["measure"]): r for r in scores.rows(by=["lang"]) if r["slice"] == part}
    for name, (before, after) in PUBLISHED.items():
        for run, (top, under) in (("baseline", before), ("filtered", after)):
            row = rows[run, name]
            assert (row["numerator"], row["denominator"]) == (top, under), (run, name)
            assert row["n_na"] == 12 - under
            assert row["n_missing"] == row["n_disputed"] == row["n_failed"] == 0


def test_score__every_case_has_the_declared_cells():
    scores = ragcore.score(RUNS, measures=MEASURES[:5])
    order = ["retrieval.coverage", "context.coverage", "generation.task", "citation.support",
             "end_to_end"]  # fmt: skip
    for name in LAYERS:
        for case, _ in CASES:
            cells, _ = ka4_rules.expected(name, case)
            found = [scores.value(measure, case, name) for measure in order]
            assert found == [None if cell is None else float(cell) for cell in cells], (name, case)


@pytest.mark.parametrize("by", [None, "lang"])
def test_compare__gives_the_published_difference_and_interval(by):
    found = ragcore.compare(*RUNS, measures=MEASURES, by=[by] if by else None)
    rows = {(r["measure"], r["slice"]): r for r in found.summary().to_pylist()
            if r["baseline"] is not None}  # fmt: skip
    for part in ("all", "lang=en", "lang=zh") if by else ("all",):
        row = rows["end_to_end", part]
        assert row["delta"] == pytest.approx(1 / 12, abs=1e-15)
        assert (row["delta_low"], row["delta_high"]) == (0.0, 0.25)
        assert (row["ci_method"], row["p_value"], row["n_matched"]) == ("exact", 1.0, 12)
        cited = rows["citation.support", part]
        assert (cited["delta"], cited["n_matched"]) == (0.0, 5)  # 3/5 and 3/5 on matched cases


def test_diagnose__counts_the_published_layers():
    found = diagnose(RUNS)
    for name, counts in LAYERS.items():
        for part in ("all", "en", "zh"):
            assert found.counts(name)[part] == {**counts, "unknown": 0, "differs": 0}
        assert not found.divergences(name)


def test_abstaining_always__wins_nothing(tmp_path):
    silent = pa.array([{"state": "abstain"}] * 72, pa.struct([
        ("state", pa.string()), ("value", pa.string()), ("text", pa.string()),
    ]))  # fmt: skip
    run = TABLES["runs/baseline.arrow"]
    none = pa.array([[]] * 72, run.schema.field("citations").type)
    for name, column in (("proposed", silent), ("final", silent), ("citations", none)):
        run = run.set_column(run.column_names.index(name), name, column)
    path = tables.write_ipc(run, tmp_path / "silent.arrow")
    scores = ragcore.score(path, suite=SUITE, measures=[*MEASURES, "citation.*"])
    rows = {r["measure"]: r for r in scores.rows()}
    assert (rows["end_to_end"]["numerator"], rows["end_to_end"]["denominator"]) == (4, 12)
    for name in ("citation.support", "citation.precision", "citation.resolution"):
        assert rows[name]["n_na"] == 12
