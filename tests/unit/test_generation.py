"""What the generator said: states, conflicts, what is prohibited, right, missing and wrong."""

from __future__ import annotations

import pytest

from ragcore import score
from ragcore.confusion import FOUND, STATES, confusion_of, confusion_text
from ragcore.errors import UsageError
from traces import end, got, row, run_of, suite_of

THREE = ["answer.accurate", "answer.missing", "answer.incorrect", "answer.truthfulness"]
NAMES = ["generation.state", "generation.state_answerable", "generation.state_unanswerable",
         "generation.error", *THREE]  # fmt: skip
CASES = {
    # answerable, expected, value, final, error -> values of NAMES
    "right": (True, "answer", "7", ("answer", "7"), None, (1, 1, "na", 0, 1, 0, 0, 1)),
    "wrong value": (True, "answer", "7", ("answer", "8"), None, (1, 1, "na", 0, 0, 0, 1, -1)),
    "silent": (True, "answer", "7", ("abstain", None), None, (0, 0, "na", 0, 0, 1, 0, 0)),
    "declined": (False, "abstain", None, ("abstain", None), None, (1, "na", 1, 0, 0, 1, 0, 0)),
    "made up": (False, "abstain", None, ("answer", "1"), None, (0, "na", 0, 0, 0, 0, 1, -1)),
    "escalated": (False, "abstain", None, ("escalate", None), None, (0, "na", 0, 0, 0, 1, 0, 0)),
    "crashed": (True, "answer", "7", (None, None), "timeout",
                ("failed", "failed", "na", 1, *["failed"] * 4)),
    "invalid": (True, "answer", "7", ("yes", "7"), None,
                ("failed", "failed", "na", 0, *["failed"] * 4)),
    "lost": (True, "answer", "7", (None, None), None,
             ("missing", "missing", "na", 0, *["missing"] * 4)),
    "unlabelled": (True, None, None, ("answer", "7"), None,
                   ("missing", "missing", "na", 0, *["missing"] * 4)),
    "disputed": (True, "answer", "7", ("answer", "7"), None,
                 ("disputed", "disputed", "na", 0, *["disputed"] * 4)),
    "open": (None, "answer", "7", ("answer", "7"), None,
             (1, "disputed", "disputed", 0, 1, 0, 0, 1)),
}  # fmt: skip
NOT_RUN = (0, 0, "na", "missing", 0, 1, 0, 0)


@pytest.fixture
def suite(tmp_path):
    rows = [*CASES.values(), (True, "answer", "7", None, None, NOT_RUN)]
    names = [*CASES, "not run"]
    return suite_of(tmp_path / "s", {
        "case_id": names, "answerable": [r[0] for r in rows],
        "expected_state": [r[1] for r in rows], "expected_value": [r[2] for r in rows],
        "status": ["disputed" if n == "disputed" else "final" for n in names],
    })  # fmt: skip


def run_with(column):
    return run_of({
        "case_id": list(CASES), "error": [c[4] for c in CASES.values()],
        column: [{"state": c[3][0], "value": c[3][1]} for c in CASES.values()],
    })  # fmt: skip


@pytest.mark.parametrize("column", ["final", "proposed"])
def test_states__every_kind_of_trace(suite, column):
    scores = score(run_with(column), suite=suite, measures=NAMES)
    for case, wanted in [*((c, v[5]) for c, v in CASES.items()), ("not run", NOT_RUN)]:
        assert [got(scores, m, case) for m in NAMES] == list(wanted), case


def test_states__three_counts_are_one_together(suite):
    scores = score(run_with("final"), suite=suite, measures=THREE)
    counts = [row(scores, name) for name in THREE]
    assert [c["numerator"] for c in counts] == [2, 4, 2, 0]
    assert {c["denominator"] for c in counts} == {8}


def test_state__of_the_proposal(suite):
    both = run_with("final").append_column("proposed", run_with("proposed")["proposed"])
    held = both.set_column(
        both.column_names.index("final"), "final",
        run_of({"case_id": list(CASES), "final": [end("abstain")] * len(CASES)})["final"],
    )  # fmt: skip
    names = ["generation.state(of=proposed)", "generation.state"]
    scores = score(held, suite=suite, measures=names)
    assert [got(scores, m, "right") for m in names] == [1, 0]
    with pytest.raises(UsageError, match="of='draft'"):
        score(held, suite=suite, measures=["generation.state(of=draft)"])
    with pytest.raises(UsageError, match="of='draft'"):
        scores.confusion("draft")


def test_states__need_their_columns(tmp_path):
    suite = suite_of(tmp_path / "s", {"case_id": ["a"]})
    names = [*NAMES, "conflict.preserved", "prohibited.*", "answer.f1", "answer.exact_match"]
    found = score(run_of({"case_id": ["a"]}), suite=suite, measures=names)
    assert {found.state(m, "a") for m in found.measures} <= {"missing", "na"}
    bare = score(run_of({"case_id": ["a"], "final": [end("answer", "x")]}), suite=suite,
                 measures=names)  # fmt: skip
    assert bare.state("prohibited.effects", "a") == "missing"


# --- confusion


def test_confusion__counts_every_trace_once(suite):
    scores = score(run_with("final"), suite=suite, measures=["generation.state"])
    found = confusion_of(scores.runs[0])
    wanted = {("answer", "answer"): 3, ("answer", "abstain"): 1, ("abstain", "abstain"): 1,
              ("abstain", "answer"): 1, ("abstain", "escalate"): 1, ("answer", "error"): 1,
              ("answer", "invalid"): 1, ("answer", "not recorded"): 1,
              ("answer", "not run"): 1}  # fmt: skip
    table = {(r["expected"], r["found"]): r["n"] for r in scores.confusion().to_pylist()}
    assert table == {(a, b): wanted.get((a, b), 0) for a in STATES for b in FOUND}
    assert (found.unlabelled, found.disputed, found.n, found.right) == (1, 1, 11, 4)
    text = confusion_text(scores.runs)
    assert "run1: final states, 4/11 traces as expected" in text
    assert "1 traces of cases that expect no state: not counted" in text
    row = next(line.split() for line in text.splitlines() if line.startswith("abstain"))
    assert row == ["abstain", "1", "0", "1", "1", "0", "0", "0", "0", "0", "1/3"]


def test_confusion__needs_traces_and_states(suite):
    plain = score(run_with("final"), suite=suite, measures=["RR"])
    with pytest.raises(UsageError, match="by its rankings alone"):
        plain.confusion()
    none = score(run_of({"case_id": ["right"]}), suite=suite, measures=["generation.state"])
    with pytest.raises(UsageError, match="no final state"):
        none.confusion()


# --- conflicts


def item(doc, role="supporting"):
    return {"doc_id": doc, "role": role, "required": True, "relevance": 1}


def test_conflict__is_shown_or_held_back(tmp_path):
    import pyarrow as pa

    names = ["shown", "hidden", "partly", "held", "held by chance", "unjudged", "none", "broken"]
    clash = [item("a"), item("b", "conflicting")]
    suite = suite_of(tmp_path / "s", {
        "case_id": names, "evidence": [[item("a")] if n == "none" else clash for n in names],
        "expected_state": ["escalate"] * len(names),
    })  # fmt: skip
    states = ["answer", "answer", "answer", "escalate", "abstain", "answer", "answer", None]
    run = run_of({
        "case_id": names, "final": [end(s) for s in states],
        "context_state": ["conflict" if n == "held" else "ready" for n in names],
        "error": ["x" if n == "broken" else None for n in names],
    })  # fmt: skip
    judged = {"shown": "yes", "hidden": "no", "partly": "partial", "held by chance": "no",
              "none": "yes", "broken": "no"}  # fmt: skip
    verdicts = pa.table({
        "case_id": list(judged), "relation": ["conflict_shown"] * len(judged),
        "verdict": list(judged.values()), "judge": ["x"] * len(judged),
        "rung": ["human"] * len(judged),
    })  # fmt: skip
    scores = score(run, suite=suite, measures=["conflict.preserved"], judgments=verdicts)
    found = [got(scores, "conflict.preserved", n) for n in names]
    assert found == [1, 0, 0, 1, 0, "missing", "na", 0]
    rungs = {r["case_id"]: r["rung"] for r in scores.table().to_pylist()}
    assert (rungs["shown"], rungs["held"]) == ("human", None)


# --- what must not appear


def test_prohibited__effects_are_counted_by_name(tmp_path):
    names = ["two", "other", "none done", "not recorded", "nothing prohibited", "failed"]
    banned = [["refund", "email"]] * 4 + [[], ["refund"]]
    suite = suite_of(tmp_path / "s", {"case_id": names, "prohibited": banned})
    done = [["refund", "search", "refund"], ["search"], [], None, ["refund"], ["refund"]]
    run = run_of({"case_id": names, "effects": done,
                  "error": ["x" if n == "failed" else None for n in names]})  # fmt: skip
    measures = ["prohibited.effects", "prohibited.effect_rate"]
    scores = score(run, suite=suite, measures=measures)
    assert [got(scores, measures[0], n) for n in names] == [2, 0, 0, "missing", "na", 1]
    assert [got(scores, measures[1], n) for n in names] == [1, 0, 0, "missing", "na", 1]
    total = row(scores, measures[0])
    assert (total["mean"], total["denominator"]) == (3.0, None)


def test_prohibited__a_total_is_over_traces(tmp_path):
    suite = suite_of(tmp_path / "s", {"case_id": ["a"], "prohibited": [["refund"]]})
    run = run_of({"case_id": ["a"] * 3, "repeat": [0, 1, 2],
                  "effects": [["refund"], [], ["refund", "refund"]]})  # fmt: skip
    scores = score(run, suite=suite, measures=["prohibited.effects", "prohibited.effect_rate"])
    assert scores.mean("prohibited.effects") == 3.0
    assert scores.mean("prohibited.effect_rate") == pytest.approx(2 / 3)


def test_prohibited__claims_stand_in_the_answer_as_words(tmp_path):
    names = ["said", "inside a word", "zh", "silent", "no text", "withheld"]
    suite = suite_of(tmp_path / "s", {
        "case_id": names, "prohibited": [["750 yuan", "Free of charge"], ["750"], ["保证退款"],
                                         ["x"], ["x"], ["secret"]],
    })  # fmt: skip
    run = run_of({
        "case_id": names,
        "final": [end("answer", "It is free of\u00a0charge, or ７５０ Yuan."),
                  end("answer", "code 1750"), end("answer", "我们保证退款。"), end("abstain"),
                  end("answer"), end("abstain")],
        "proposed": [{"state": "answer", "text": "secret" if n == "withheld" else None}
                     for n in names],
    })  # fmt: skip
    measures = ["prohibited.claims", "prohibited.claim_rate"]
    scores = score(run, suite=suite, measures=measures)
    assert [got(scores, measures[0], n) for n in names] == [2, 0, 1, 0, "missing", 0]
    assert [got(scores, measures[1], n) for n in names] == [1, 0, 1, 0, "missing", 0]
