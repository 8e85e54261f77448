"""What KA-4 publishes of citations, by the engine, in both languages; and end to end with them."""

from __future__ import annotations

from fractions import Fraction

import pyarrow as pa
import pytest

import ragcore
from ka4_rules import CASE_IDS, CONDITIONS, SUITE, TABLES, column, each_condition, each_lang, judge

RUNS = {name: SUITE / "runs" / f"{name}.arrow" for name in CONDITIONS}
PUBLISHED = {"baseline": (3, 5, 7), "filtered": (4, 6, 8)}
NAMES = ["citation.support", "answer.supported", "end_to_end", "citation.fabricated"]


@pytest.fixture(scope="module")
def found() -> ragcore.Comparison:
    return ragcore.compare(*RUNS.values(), measures=NAMES, by=["lang"])


def of_lang(table: pa.Table, lang: str) -> pa.Table:
    """The rows of one language."""
    keep = [row == lang for row in table["lang"].to_pylist()]
    return table.filter(pa.array(keep))


def changed(table: pa.Table, name: str, values: list) -> pa.Table:
    """A table with other values in one column."""
    field = table.schema.field(name)
    return table.set_column(table.column_names.index(name), field, pa.array(values, field.type))


@each_lang
@each_condition
def test_support__of_every_case_and_language(name: str, lang: str) -> None:
    scores = ragcore.score(of_lang(TABLES[f"runs/{name}.arrow"], lang), suite=SUITE, measures=NAMES)
    cells = column(name, 3, lang)
    for case in CASE_IDS:
        state = scores.state("citation.support", case)
        assert state == ("ok" if case in cells else "na"), case
        if case in cells:
            assert scores.value("citation.support", case) == float(cells[case]), case
        assert scores.value("end_to_end", case) == float(judge(name, case, lang)[0][4]), case
    over, under, right = PUBLISHED[name]
    assert scores.mean("citation.support") == over / under == scores.mean("answer.supported")
    assert scores.mean("end_to_end") == right / 12


@pytest.mark.parametrize("part", ["all", "lang=en", "lang=zh"])
def test_comparison__three_in_five_where_both_cite(found: ragcore.Comparison, part: str) -> None:
    one = found.cell("citation.support", part).paired
    assert (one.n, one.before, one.after, one.delta) == (5, 3 / 5, 3 / 5, 0.0)
    rows = {(r["run"], r["measure"]): r for r in found.summary().to_pylist() if r["slice"] == part}
    got = [rows[name, "citation.support"] for name in CONDITIONS]
    assert [(r["numerator"], r["denominator"]) for r in got] == [(3, 5), (4, 6)]
    assert got[1]["n_matched"] == 5
    assert found.cell("end_to_end", part).paired.delta == 1 / 12


def test_citation__of_a_version_that_was_not_shown_is_fabricated() -> None:
    scores = ragcore.score(RUNS["baseline"], suite=SUITE, measures=["citation.*"])
    assert scores.mean("citation.fabricated") == 1
    assert scores.value("citation.fabricated", "wrong-citation") == 1.0
    assert scores.mean("citation.supplied") == float(Fraction(4, 5))
    for stage in ("version", "quote", "accessible", "in_scope", "span_inside"):
        assert scores.mean(f"citation.{stage}") == 1.0, stage
    assert any("'wrong-citation'" in said for said in scores.audits[0].warnings)


@pytest.mark.parametrize("case", ["cancellation", "current", "historical"])
def test_end_to_end__fails_without_its_citation(case: str) -> None:
    table = TABLES["runs/baseline.arrow"]
    rows = table["citations"].to_pylist()
    ids = table["case_id"].to_pylist()
    bare = changed(
        table, "citations", [[] if i == case else r for i, r in zip(ids, rows, strict=True)]
    )
    scores = ragcore.score(bare, suite=SUITE, measures=["end_to_end"])
    assert scores.value("end_to_end", case) == 0.0
    assert scores.mean("end_to_end") == 6 / 12
    assert not any("state and value alone" in said for said in scores.audits[0].warnings)


def test_end_to_end__without_recorded_citations_rests_on_state_and_value() -> None:
    bare = TABLES["runs/baseline.arrow"].drop_columns(["citations"])
    scores = ragcore.score(bare, suite=SUITE, measures=["end_to_end", "citation.support"])
    assert scores.mean("end_to_end") == 7 / 12
    assert scores.state("citation.support", "current") == "missing"
    assert any("state and value alone" in said for said in scores.audits[0].warnings)


def test_control__always_abstaining_cites_nothing() -> None:
    table = TABLES["runs/baseline.arrow"]
    silent = {"state": "abstain", "value": None, "text": None}
    n = table.num_rows
    always = changed(table, "final", [silent] * n)
    always = changed(always, "proposed", [{**silent, "confidence": None}] * n)
    always = changed(changed(always, "citations", [[]] * n), "claims", [[]] * n)
    scores = ragcore.score(always, suite=SUITE, measures=NAMES)
    assert scores.mean("end_to_end") == 4 / 12
    assert {scores.state("citation.support", case) for case in CASE_IDS} == {"na"}


def test_citations__are_the_same_beside_every_other_measure() -> None:
    alone = ragcore.score(RUNS["baseline"], suite=SUITE, measures=["citation.*", "alce.*"])
    every = ragcore.score(RUNS["baseline"], suite=SUITE, measures=["*.*", "alce.*"])
    for one in alone.runs[0].measures:
        for case in CASE_IDS:
            assert every.state(one.text, case) == alone.state(one.text, case), one.text
            if alone.state(one.text, case) == "ok":
                assert every.value(one.text, case) == alone.value(one.text, case), one.text
