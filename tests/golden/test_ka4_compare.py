"""The published comparison of KA-4, by the engine: interval, p-value, controls, and its traps."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest

import ragcore
import tables
from ragcore_kernels.bca import bca_interval
from ragcore_kernels.resample import mean_interval
from ragcore_kernels.tails import mean_cdf, mean_tails

SUITE = Path(__file__).resolve().parents[2] / "data" / "ka4"
RUNS = [SUITE / "runs" / f"{name}.arrow" for name in ("baseline", "filtered")]
DELTAS = [1.0] + [0.0] * 11


@pytest.fixture(scope="module")
def found() -> ragcore.Comparison:
    return ragcore.compare(*RUNS, measures=["end_to_end"], by=["lang"])


@pytest.mark.parametrize("part", ["all", "lang=en", "lang=zh"])
def test_difference__is_one_case_in_twelve(found: ragcore.Comparison, part: str) -> None:
    one = found.cell("end_to_end", part).paired
    assert (one.n, one.wins, one.losses, one.ties) == (12, 1, 0, 11)
    assert one.delta == 1 / 12
    assert (one.low, one.high, one.method) == (0.0, 0.25, "exact")
    assert (one.p_value, one.p_method) == (1.0, "exact")
    assert (one.before, one.after) == (7 / 12, 8 / 12)


def test_difference__names_the_case_and_says_that_it_may_be_none(
    found: ragcore.Comparison,
) -> None:
    assert found.changed("end_to_end") == (["stale-premise"], [])
    rows = {(r["run"], r["slice"]): r for r in found.summary().to_pylist()}
    assert "interval includes 0" in rows["filtered", "all"]["note"]
    assert found.verdict().verdict == "inconclusive: noise"
    assert "a development suite: it bears no claim" in found.verdict().reasons[-1]
    assert found.contrasts[0].manifest.single


def test_distribution__cumulated_probabilities() -> None:
    points = [k / 12 for k in range(5)]
    shares = mean_cdf(DELTAS, points).probabilities
    assert [round(float(p), 6) for p in shares[:4]] == [0.351996, 0.735991, 0.927988, 0.986170]
    assert float(shares[0]) == pytest.approx(float(Fraction(11, 12) ** 12), rel=1e-14)
    tails = mean_tails(DELTAS)
    assert (tails.below, tails.equal) == (0.0, pytest.approx(float(Fraction(11, 12) ** 12)))


def test_bca__from_the_exact_distribution() -> None:
    found = bca_interval(DELTAS)
    assert (found.low, found.high) == (0.0, pytest.approx(5 / 12))
    assert found.z0 == pytest.approx(0.1105, abs=5e-5)
    assert found.acceleration == pytest.approx(0.1451, abs=5e-5)


def test_control__always_abstaining() -> None:
    table = tables.read_ipc(RUNS[0])
    silent = [{"state": "abstain", "value": None, "text": None}] * table.num_rows
    column = pa.array(silent, table.schema.field("final").type)
    place = table.column_names.index("final")
    always = table.set_column(place, table.schema.field("final"), column)
    found = ragcore.compare(
        RUNS[0], always, suite=SUITE, measures=["end_to_end", "abstention.correct"],
        names=["baseline", "silent"],
    )  # fmt: skip
    got = {
        (r["run"], r["measure"]): (r["numerator"], r["denominator"])
        for r in found.summary().to_pylist()
    }
    assert got == {
        ("baseline", "end_to_end"): (7, 12), ("silent", "end_to_end"): (4, 12),
        ("baseline", "abstention.correct"): (4, 4), ("silent", "abstention.correct"): (4, 4),
    }  # fmt: skip


def translated(table: pa.Table, case: str, times: int) -> pa.Table:
    """A table with one case in so many more languages."""
    ids = table["case_id"].to_pylist()
    langs = table["lang"].to_pylist()
    rows = [
        i for i, (c, lang) in enumerate(zip(ids, langs, strict=True)) if (c, lang) == (case, "en")
    ]
    parts = [table]
    for k in range(times):
        part = table.take(rows)
        place = part.column_names.index("lang")
        kind = table.schema.field("lang").type
        lang = pa.array([f"x{k}"] * len(rows)).dictionary_encode().cast(kind)
        parts.append(part.set_column(place, table.schema.field("lang"), lang))
    return pa.concat_tables(parts).unify_dictionaries()


def test_unit__ten_more_translations_change_nothing(tmp_path: Path) -> None:
    cases = translated(tables.read_ipc(SUITE / "cases.arrow"), "stale-premise", 10)
    with pa.ipc.new_file(tmp_path / "cases.arrow", cases.schema) as writer:
        writer.write_table(cases.combine_chunks())
    (tmp_path / "suite.toml").write_text('name = "ka4"\n')
    runs = [translated(tables.read_ipc(path), "stale-premise", 10) for path in RUNS]
    found = ragcore.compare(*runs, suite=tmp_path, measures=["end_to_end", "retrieval.coverage"])
    plain = ragcore.compare(*RUNS, measures=["end_to_end", "retrieval.coverage"])
    for name in ("end_to_end", "retrieval.coverage"):
        assert found.cell(name).paired == plain.cell(name).paired
    assert found.contrasts[0].before.case_of.size == 72 + 30


def test_unit__traces_taken_for_cases_are_never_printed(found: ragcore.Comparison) -> None:
    """72 traces, or 144 with ten more translations, would exclude 0."""
    naive = mean_interval(DELTAS * 6)
    assert (round(naive.low, 4), round(naive.high, 4)) == (0.0278, 0.1528)
    wider = mean_interval(DELTAS * 12)
    assert (round(wider.low, 4), round(wider.high, 4)) == (0.0417, 0.1319)
    printed = {(r["delta_low"], r["delta_high"]) for r in found.summary().to_pylist()}
    assert printed == {(None, None), (0.0, 0.25)}
