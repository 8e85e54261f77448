"""Outcome measures: states and values of every kind of trace."""

from __future__ import annotations

import pyarrow as pa
import pytest

import published
import tables
from ragcore import score

NAMES = ["end_to_end", "generation.task", "abstention.correct"]
EXPECTED = [
    ("right", "answer", "7"), ("wrong value", "answer", "7"), ("wrong state", "abstain", None),
    ("silent", "abstain", None), ("lost", "answer", "7"), ("failed", "answer", "7"),
    ("unlabelled", None, None), ("disputed", "answer", "7"), ("not run", "answer", "7"),
    ("no value wanted", "answer", None),
]  # fmt: skip
GIVEN = {
    "right": ("answer", "7"), "wrong value": ("answer", "8"), "wrong state": ("answer", None),
    "silent": ("abstain", None), "lost": None, "failed": None, "unlabelled": ("answer", "7"),
    "disputed": ("answer", "7"), "no value wanted": ("answer", "9"),
}  # fmt: skip
WANTED = {
    "right": (1.0, "na"), "wrong value": (0.0, "na"), "wrong state": (0.0, 0.0),
    "silent": (1.0, 1.0), "lost": ("missing", "na"), "failed": ("failed", "na"),
    "unlabelled": ("missing", "missing"), "disputed": ("disputed", "na"), "not run": (0.0, "na"),
    "no value wanted": (0.0, "na"),
}  # fmt: skip


@pytest.fixture
def suite(tmp_path):
    columns = {
        "case_id": [e[0] for e in EXPECTED], "expected_state": [e[1] for e in EXPECTED],
        "expected_value": [e[2] for e in EXPECTED], "evidence": [tables.evidence(("d", 1))] * 10,
        "status": ["disputed" if e[0] == "disputed" else "final" for e in EXPECTED],
    }  # fmt: skip
    return tables.write_suite(tmp_path / "s", pa.table(columns))


def run_of(column, **others):
    answers = [None if g is None else dict(zip(("state", "value"), g, strict=True))
               for g in GIVEN.values()]  # fmt: skip
    kind = pa.struct([("state", pa.string()), ("value", pa.string())])
    return pa.table({
        "case_id": list(GIVEN), "ranked": [["d"]] * len(GIVEN), column: pa.array(answers, kind),
        "error": ["timeout" if case == "failed" else None for case in GIVEN], **others,
    })  # fmt: skip


def got(scores, measure, case):
    state = scores.state(measure, case)
    return scores.value(measure, case) if state == "ok" else state


@pytest.mark.parametrize("column", ["final", "proposed"])
def test_outcomes__every_state(suite, column):
    scores = score(run_of(column), suite=suite, measures=NAMES)
    for case, (answered, abstained) in WANTED.items():
        assert got(scores, "end_to_end", case) == answered, case
        assert got(scores, "abstention.correct", case) == abstained, case
        task = answered if column == "proposed" else "missing"
        assert got(scores, "generation.task", case) == task, case


def test_outcomes__need_their_columns(suite, tmp_path):
    plain = run_of("final").drop_columns(["final", "error"])
    scores = score(plain, suite=suite, measures=NAMES)
    assert {r["n_ok"] for r in scores.summary().to_pylist()} == {0}
    bare = tables.write_suite(
        tmp_path / "b", pa.table({"case_id": ["right"], "evidence": [tables.evidence(("d", 1))]})
    )
    scores = score(run_of("final"), suite=bare, measures=["end_to_end"])
    assert scores.state("end_to_end", "right") == "missing"
    states = score({"q": {"d": 1.0}}, qrels={"q": {"d": 1}}, measures=NAMES)
    assert states.state("end_to_end", "q") == "missing"


def test_outcomes__without_expected_values_the_state_decides(suite, tmp_path):
    cases = pa.table({"case_id": ["wrong value"], "expected_state": ["answer"],
                      "evidence": [tables.evidence(("d", 1))]})  # fmt: skip
    only = tables.write_suite(tmp_path / "o", cases)
    assert score(run_of("final"), suite=only, measures=NAMES).mean("end_to_end") == 1.0


UNITS = [{"chunk_id": "u", "doc_id": "u", "text": "Rooms cost 7 yuan. Breakfast is free."}]
QUOTE = "Rooms cost 7 yuan."


def judged(tmp_path, text, verdicts=(), toml="", **citation):
    """End to end of one answer that cites the unit `u`, whose label is its first sentence."""
    end = len(QUOTE)
    item = {"doc_id": "u", "chunk_id": "u", "quote": QUOTE, "start": 0, "end": end,
            "required": True, "relevance": 1}  # fmt: skip
    folder = published.suite(
        tmp_path / "s", [{"case_id": "q", "expected_state": "answer", "evidence": [item]}],
        "expected_state", "evidence", chunks=UNITS,
    )  # fmt: skip
    (folder / "suite.toml").write_text(f'name = "s"\n{toml}\n', encoding="utf-8")
    cited = {"claim": 0, "id": "u", "start": 0, "end": end, "quote": QUOTE} | citation
    row = {"case_id": "q", "final": {"state": "answer", "text": text}, "citations": [cited],
           "claims": [{"text": text, "sentence": 0, "factual": True}],
           "context": [{"id": "u"}]}  # fmt: skip
    run = published.run([row], "final", "citations", "claims", "context")
    rows = [{"case_id": "q", "relation": "cites", "claim": 0, "evidence": ["u"], "verdict": word,
             "judge": "j", "rung": "model"} for word in verdicts]  # fmt: skip
    given = published.judgments(rows) if rows else None
    scores = score(run, suite=folder, measures=["end_to_end"], judgments=given)
    return got(scores, "end_to_end", "q")


@pytest.mark.parametrize(
    ("text", "verdicts", "toml", "citation", "expected"),
    [
        (QUOTE, (), "", {}, 1.0),
        ("A room is seven yuan.", (), "", {}, "missing"),  # a paraphrase that nobody judged
        ("A room is seven yuan.", ("yes",), "", {}, 1.0),
        ("A room is ten yuan.", ("no",), "", {}, 0.0),
        ("A room is seven yuan.", (), "extractive = true", {}, 0.0),
        (QUOTE, (), "", {"id": "nowhere"}, 0.0),
        (QUOTE, (), "", {"quote": "Rooms cost 8 yuan."}, 0.0),
        ("A room is seven yuan.", ("yes",), "", {"quote": "Rooms cost 8 yuan."}, 0.0),
        ("Breakfast is free.", (), "", {"start": 19, "end": 37, "quote": "Breakfast is free."},
         "missing"),
        ("A room is seven yuan.", ("error",), "", {}, "failed"),
        ("A room is seven yuan.", ("unclear",), "", {}, "disputed"),
        ("A room is seven yuan.", ("error", "yes"), "", {}, 1.0),
    ],
)  # fmt: skip
def test_support__is_settled_by_verdicts_then_by_words(
    tmp_path, text, verdicts, toml, citation, expected
):
    assert judged(tmp_path, text, verdicts, toml, **citation) == expected
