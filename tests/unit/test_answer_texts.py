"""The answer's text: matches with references in two scripts, numbers that have a source."""

from __future__ import annotations

from fractions import Fraction

import pyarrow as pa
import pytest

import tables
from ragcore import score
from ragcore.errors import UsageError
from traces import end, got, row, run_of, suite_of

NAMES = [f"answer.{n}" for n in ("exact_match", "exact_match_normalised", "f1", "contains")]
CASES = {
    # references, state, text -> values of NAMES
    "exact": (["Paris"], "answer", "Paris", (1, 1, 1, 1)),
    "form": (["Paris"], "answer", "the PARIS.", (0, 1, 1, 1)),
    "longer": (["Paris", "City of Paris"], "answer", "It is Paris", (0, 0, Fraction(1, 2), 1)),
    "wrong": (["Paris"], "answer", "London", (0, 0, 0, 0)),
    "abstained": (["Paris"], "abstain", None, (0, 0, 0, 0)),
    "no reference": ([], "answer", "Paris", ("na",) * 4),
    "no text": (["Paris"], "answer", None, ("missing",) * 4),
    "failed": (["Paris"], None, None, ("failed",) * 4),
    "invalid": (["Paris"], "yes", None, ("failed",) * 4),
}  # fmt: skip


def references_suite(path, cases, **more):
    return suite_of(path / "s", {
        "case_id": list(cases), "references": [c[0] for c in cases.values()], **more,
    })  # fmt: skip


def test_references__every_kind_of_answer(tmp_path):
    suite = references_suite(tmp_path, CASES)
    run = run_of({
        "case_id": list(CASES), "final": [end(c[1], c[2]) for c in CASES.values()],
        "error": ["x" if n == "failed" else None for n in CASES],
    })  # fmt: skip
    scores = score(run, suite=suite, measures=NAMES)
    for case, (_, _, _, wanted) in CASES.items():
        found = [got(scores, m, case) for m in NAMES]
        assert found == [w if isinstance(w, str) else pytest.approx(float(w)) for w in wanted], case
    assert row(scores, "answer.exact_match")["numerator"] == 1


def test_references__each_language_by_its_own_rules(tmp_path):
    suite = suite_of(tmp_path / "s", {
        "case_id": ["a", "a"], "lang": ["en", "zh"],
        "references": [["the seventh day"], ["第七天"]],
    })  # fmt: skip
    run = run_of({"case_id": ["a", "a"], "lang": ["zh", "en"],
                  "final": [end("answer", "第 七 日"), end("answer", "seventh day")]})  # fmt: skip
    scores = score(run, suite=suite, measures=NAMES)
    values = {r["lang"]: r["value"] for r in scores.table().to_pylist()
              if r["measure"] == "answer.f1"}  # fmt: skip
    assert values == {"en": 1.0, "zh": pytest.approx(float(Fraction(4, 6)))}


def test_references__proposal_counts_where_nothing_else_was_said(tmp_path):
    suite = references_suite(tmp_path, {"a": (["Paris"],), "b": (["Paris"],)})
    run = run_of({
        "case_id": ["a", "b"], "final": [end("answer"), end("abstain")],
        "proposed": [{"state": "answer", "text": "Paris"}] * 2,
    })  # fmt: skip
    scores = score(run, suite=suite, measures=["answer.exact_match"])
    assert [got(scores, "answer.exact_match", c) for c in "ab"] == [1, 0]
    only = score(run.drop_columns(["final"]), suite=suite, measures=["answer.exact_match"])
    assert [got(only, "answer.exact_match", c) for c in "ab"] == [1, 1]


# --- numbers


@pytest.fixture
def sourced(tmp_path):
    names = ["kept", "half", "cut off", "no number", "silent", "no context", "cited only"]
    suite = suite_of(tmp_path / "s", {"case_id": names})
    texts = ["The limit is 1,200 yuan from 1 July 2025.", "Rate 4.5 % applies."]
    chunks = pa.table({
        "chunk_id": ["c1", "c2"], "start": pa.array([100, 0], pa.int32()), "text": texts,
        "text_zh": ["自2025年7月1日起限额为1200元。", "税率4.5%。"],
    })  # fmt: skip
    tables.write_ipc(chunks, suite / "chunks.arrow")
    said = ["１２００ yuan since 2025-07-01", "4.5 or 7", "1200", "It depends.", None, "4.5", "4.5"]
    whole = {"id": "c1", "start": None, "end": None}
    run = run_of({
        "case_id": names, "final": [end("abstain" if t is None else "answer", t) for t in said],
        "context": [[whole], [{"id": "c2"}, {"id": "unknown"}],
                    [{"id": "c1", "start": 100, "end": 113}], [whole], [whole], None, [whole]],
        "citations": [[], [{"claim": 0, "id": "c1"}], [{"claim": 0, "id": "c1", "start": 113,
                       "end": 130}], [], [], [{"claim": 0, "id": "c2"}],
                      [{"claim": 0, "id": "c2"}]],
    })  # fmt: skip
    return suite, run


def test_numbers__come_from_packed_or_from_cited_spans(sourced):
    suite, run = sourced
    names = ["answer.number_consistency", "answer.number_consistency(of=cited)"]
    scores = score(run, suite=suite, measures=names)
    cases = ["kept", "half", "cut off", "no number", "silent", "no context", "cited only"]
    packed = [got(scores, names[0], c) for c in cases]
    assert packed == [1, 0.5, 0, "na", "na", "missing", 0]
    cited = [got(scores, names[1], c) for c in cases]
    assert cited == [0, 0, 1, "na", "na", 1, 1]
    assert row(scores, names[0])["numerator"] == 1.5


def test_numbers__are_those_of_the_traces_language(sourced):
    suite, run = sourced
    zh = run.slice(0, 1).append_column("lang", pa.array(["zh"]))
    zh = zh.set_column(
        zh.column_names.index("final"), "final",
        run_of({"case_id": ["kept"], "final": [end("answer", "2025年7月1日起1200元")]})["final"],
    )  # fmt: skip
    scores = score(zh, suite=suite, measures=["micro(answer.number_consistency)"])
    found = row(scores, "micro(answer.number_consistency)")
    assert (found["numerator"], found["denominator"]) == (2, 2)


def test_numbers__need_texts_of_chunks_and_a_known_side(sourced, tmp_path):
    suite, run = sourced
    with pytest.raises(UsageError, match="of='shown'"):
        score(run, suite=suite, measures=["answer.number_consistency(of=shown)"])
    bare = suite_of(tmp_path / "b", {"case_id": ["kept"]})
    tables.write_ipc(pa.table({"chunk_id": ["c1"]}), bare / "chunks.arrow")
    scores = score(run, suite=bare, measures=["answer.number_consistency"])
    assert scores.state("answer.number_consistency", "kept") == "missing"
