"""Diagnoses trace by trace: every layer alone, every joint code, replays, states that are open."""

from __future__ import annotations

import pyarrow as pa
import pytest

import diagnosed as traces
import tables
from ragcore.diagnose import diagnose
from ragcore.diagnosis.joint import CODES, MATRIX
from ragcore.diagnosis.layers import LAYERS
from ragcore.errors import UsageError

YES = [
    traces.verdict("covered"), traces.verdict("entailed"),
    traces.verdict("cites", evidence=["rule#1"]),
]  # fmt: skip
WIDE = traces.QUOTE.replace(" ", "  ")
CONTEXT = traces.trace()["context"][0]


def said(state, value=None, text=None):
    answer = {"state": state, "value": value, "text": text}
    return {"proposed": answer, "final": answer, "claims": [], "citations": []}


def only(folder, given=(), world=None, **changed):
    (one,) = traces.found(
        folder, traces.trace(**changed), given=list(given), **(world or {})
    ).traces
    return one


def test_layers__a_good_trace_passes_them_all(tmp_path):
    one = only(tmp_path, YES)
    assert one.layers == "P P P P P P P P"
    assert (one.first, one.served, one.code) == ("passed", "yes", "candidate_pass")
    assert str(one.attribution) == "passed"


def labelled(**changed):
    return {"cases": [traces.case(evidence=[{**traces.case()["evidence"][0], **changed}])]}


FORBIDS = [
    *traces.case()["evidence"],
    {"doc_id": "old", "chunk_id": "old#1", "role": "forbidden"},
]
# what goes wrong: (layer, state, changes of the trace, the world)
WRONG = {
    "nothing required": ("corpus", "N", {}, labelled(required=False)),
    "not in the snapshot by label": ("corpus", "G", {}, labelled(in_snapshot=False)),
    "no such document": ("corpus", "G", {}, labelled(doc_id="new", chunk_id="new#1")),
    "deleted": ("corpus", "G", {}, {"chunks": traces.corpus(rule={"deleted": True})}),
    "text lost by the parser": (
        "corpus", "F", {}, {"chunks": traces.corpus(rule={"text": "Rooms cost at most"})},
    ),
    "white space is no loss": (
        "corpus", "P", {}, {"chunks": traces.corpus(rule={"text": WIDE})},
    ),
    "quoted by another chunk than the label says": ("corpus", "P", {}, labelled(chunk_id="rule#2")),
    "number lost": ("query", "F", {"query": "rooms cost"}, {}),
    "no query recorded": ("query", "N", {"query": None}, {}),
    "no question": ("query", "?", {}, {"cases": [traces.case(question=None)]}),
    "beyond the candidates": (
        "retrieval", "F",
        {"stages": [("bm25", traces.units("old#1", "gone#1", "rule#1"))],
         "ranked": traces.units("old#1")},
        {},
    ),
    "forbidden candidate": ("retrieval", "F", {}, {"cases": [traces.case(evidence=FORBIDS)]}),
    "no list": ("retrieval", "?", {"ranked": None, "stages": None}, {}),
    "displaced": ("ranking", "F", {"ranked": traces.units("old#1", "gone#1", "rule#1")}, {}),
    "not reranked into the list": (
        "ranking", "F", {"ranked": traces.units("old#1"),
                         "stages": [("bm25", traces.units("rule#1"))]}, {},
    ),
    "dropped": ("context", "F", {"context": []}, {}),
    "cut": ("context", "F", {"context": [{**CONTEXT, "end": 10}]}, {}),
    "cut, and the label has no place": (
        "context", "F", {"context": [{**CONTEXT, "end": 10}]}, labelled(start=None, end=None),
    ),
    "cut, and the quote is left": (
        "context", "P", {"context": [{**CONTEXT, "end": 30}]},
        labelled(start=None, end=None, quote="at most 750 yuan."),
    ),
    "refused": ("context", "F", {"context": None, "context_state": "budget_refused"}, {}),
    "not recorded": ("context", "?", {"context": None}, {}),
    "a stretch without ends is the whole": (
        "context", "P", {"context": [{"id": "rule#1"}]}, {},
    ),
    "wrong value": ("generation", "F", said("answer", "600"), {}),
    "silent in spite of evidence": ("generation", "F", said("abstain"), {}),
    "silent without evidence": ("generation", "P", {**said("abstain"), "context": []}, {}),
    "no proposal": ("generation", "?", {"proposed": None, "final": None}, {}),
    "no citation": ("citation", "F", {"citations": []}, {}),
    "of a claim that is not there": (
        "citation", "F", {"citations": [{**traces.trace()["citations"][0], "claim": 7}]}, {},
    ),
    "of another unit": (
        "citation", "F",
        {"citations": [{"claim": 0, "id": "old#1"}], "context": [CONTEXT, {"id": "old#1"}]}, {},
    ),
    "citations not recorded": ("citation", "?", {"citations": None}, {}),
    "no factual claim": (
        "citation", "N", {"claims": [{"text": "Hello.", "factual": False}], "citations": []}, {},
    ),
    "no claims recorded": ("citation", "P", {"claims": None}, {}),
    "nothing judged": ("evaluation", "N", {}, {}),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_layers__one_thing_at_a_time(name, tmp_path):
    layer, state, changes, world = WRONG[name]
    one = only(tmp_path, **changes, world=world)
    got = dict(zip(LAYERS, one.layers.split(), strict=True))
    assert got[layer] == state
    if state in "FG" and layer != "corpus":
        before = [got[name] for name in LAYERS[: LAYERS.index(layer)]]
        assert not set(before) & set("FG")


VERDICTS = {
    "claim not entailed": ("generation", "F", [YES[0], traces.verdict("entailed", "no")]),
    "partial is not entailed": ("generation", "F", [traces.verdict("entailed", "partial")]),
    "entailment disputed": (
        "generation", "?", [traces.verdict("entailed", "no"), traces.verdict("entailed")],
    ),
    "judge failed": ("generation", "?", [traces.verdict("entailed", "error")]),
    "citation does not hold": (
        "citation", "F", [traces.verdict("cites", "no", evidence=["rule#1"])],
    ),
    "citation disputed": (
        "citation", "?",
        [traces.verdict("cites", x, evidence=["rule#1"]) for x in ("yes", "no")],
    ),
    "disputed": ("evaluation", "F", [traces.verdict("covered"), traces.verdict("covered", "no")]),
    "unclear": ("evaluation", "F", [traces.verdict("covered", "unclear")]),
    "adjudicated": (
        "evaluation", "P",
        [traces.verdict("covered"), traces.verdict("covered", "no", adjudicated=True)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", VERDICTS)
def test_layers__by_verdicts(name, tmp_path):
    layer, state, given = VERDICTS[name]
    got = dict(zip(LAYERS, only(tmp_path, given).layers.split(), strict=True))
    assert got[layer] == state


def test_layers__packed_verdicts_on_claims_are_none_on_the_answer(tmp_path):
    row = {"case_id": "c", "relation": "correct", "verdicts": ["yes", "no"], "judge": "j",
           "rung": "human"}  # fmt: skip
    plain = traces.verdicts(traces.verdict("correct"), traces.verdict("correct", "no", 1))
    run = traces.run(traces.trace(claims=[{"text": "600"}, {"text": "700"}]))
    suite = traces.suite(tmp_path)
    packed, one_by_one = (
        diagnose(run, suite=suite, judgments=given).traces
        for given in (pa.Table.from_pylist([row]), plain)
    )
    assert packed == one_by_one


CONFLICT = [
    *traces.case()["evidence"],
    {"doc_id": "old", "chunk_id": "old#1", "role": "conflicting", "required": True},
]
BOTH = [CONTEXT, {"id": "old#1"}]
JOINT = {
    "candidate_pass": ({}, {}, YES),
    "generation_use_failure": ({}, {}, [traces.verdict("entailed", "no")]),
    "assembly_failure": (
        {"context": [{**CONTEXT, "end": 10}]}, {}, [traces.verdict("entailed", "no")],
    ),
    "retrieval_gap_correct_abstention": (
        {**said("abstain"), "ranked": [], "stages": [], "context": []}, {}, [],
    ),
    "bounded_pass_adjudicate": (
        {**said("escalate"), "context": BOTH, "context_state": "conflict"},
        {"cases": [traces.case(evidence=CONFLICT)],
         "chunks": traces.corpus(old={"valid_until": None})}, [],
    ),
    "authorization_failure": ({"ranked": traces.units("board#1", "rule#1")}, {}, YES),
    "label_or_authority_failure": (
        {}, {"cases": [traces.case(as_of=traces.datetime.date(2024, 1, 1))]}, YES,
    ),
    "unclassified": (said("abstain"), {}, []),
}  # fmt: skip


@pytest.mark.parametrize("code", CODES)
def test_joint__every_code(code, tmp_path):
    changes, world, given = JOINT[code]
    one = only(tmp_path, given, world, **changes)
    assert one.code == code
    if code in MATRIX.values():
        assert MATRIX[one.retrieval, one.assembly, one.generation] == code


def test_joint__what_is_not_recorded_is_not_guessed(tmp_path):
    one = only(tmp_path, ranked=None, stages=None, context=None, proposed=None, final=None)
    assert (one.retrieval, one.assembly, one.generation) == ("not known",) * 3
    assert one.code == "unclassified"


# --- replays


def replayed(folder, observed, *replays, given=()):
    """An observed run and one run a replay, named r0, r1, ..."""
    runs = [traces.run(traces.trace(**observed), run="seen")]
    runs += [
        traces.run(traces.trace(pair="t", **{"trace": f"r{i}", **one}), **manifest)
        for i, (one, manifest) in enumerate(replays)
    ]
    names = ["seen", *(f"r{i}" for i in range(len(replays)))]
    judged = traces.verdicts(*given) if given else None
    return diagnose(runs, suite=traces.suite(folder), names=names, judgments=judged)


LOST = {**said("abstain"), "context": [], "context_state": "no_evidence"}


def test_replays__recover_by_outcome_where_nothing_is_judged(tmp_path):
    (one,) = replayed(tmp_path, LOST, ({"condition": "oracle_context"}, {})).traces
    assert (one.interventions.oracle, str(one.attribution)) == ("recovers", "context attributed")


def test_replays__of_several_one_that_recovers_decides(tmp_path):
    wrong = said("answer", "600")
    found = replayed(
        tmp_path, wrong, ({"condition": "oracle_context", **wrong}, {}),
        ({"condition": "frozen_context", **wrong}, {}), ({"condition": "frozen_context"}, {}),
    )  # fmt: skip
    (one,) = found.traces
    assert (one.interventions.oracle, one.interventions.frozen) == ("fails", "recovers")
    assert str(one.attribution) == "generation attributed"


def test_replays__in_the_same_file_count_as_well(tmp_path):
    rows = [
        traces.trace(**LOST),
        traces.trace(trace="o", pair="t", repeat=1, condition="oracle_context"),
    ]
    found = traces.found(tmp_path, *rows)
    (one,) = found.traces
    assert str(one.attribution) == "context attributed"


def test_replays__that_changed_something_else_prove_nothing(tmp_path):
    ids = {"assembler": "a", "model": "m"}
    runs = [traces.run(traces.trace(**LOST), identities=ids)]
    other = {"assembler": "b", "model": "n"}
    runs.append(
        traces.run(traces.trace(trace="o", pair="t", condition="oracle_context"), identities=other)
    )
    found = diagnose(runs, suite=traces.suite(tmp_path), names=["seen", "oracle"])
    (one,) = found.traces
    assert (one.interventions.oracle, one.attribution.status) == ("", "hypothesis")
    assert "oracle: 1 replay(s) that changed what one of oracle_context must not" in found.notes


def test_replays__without_their_pair_are_counted(tmp_path):
    found = replayed(tmp_path, {"trace": "other"}, ({"condition": "oracle_context"}, {}))
    assert len(found.traces) == 1
    assert found.notes == ["r0: 1 replay(s) whose pair is no trace of these runs"]


def test_replays__of_the_output_flip_or_do_not(tmp_path):
    for said_again, wanted in (("no", "flips"), ("yes", "same")):
        given = [
            traces.verdict("covered", run="seen"), traces.verdict("covered", said_again, run="r0"),
        ]  # fmt: skip
        found = replayed(tmp_path / wanted, {}, ({"condition": "frozen_output"}, {}), given=given)
        (one,) = found.traces
        assert one.interventions.output == wanted
        assert one.layers.split()[7] == ("F" if wanted == "flips" else "P")
        assert (one.attribution.status == "disputed") is (wanted == "flips")
    (one,) = replayed(tmp_path / "none", {}, ({"condition": "frozen_output"}, {})).traces
    assert one.interventions.output == "not judged"


# --- at the border


def test_diagnose__needs_a_suite():
    with pytest.raises(UsageError, match="a diagnosis needs a suite"):
        diagnose({"q": {"a": 1.0}}, qrels={"q": {"a": 1}})


def test_diagnose__a_plain_ranking_is_no_trace(tmp_path):
    table = pa.table({"case_id": ["c"], "doc_id": ["rule#1"], "score": [1.0]})
    with pytest.raises(UsageError, match="a plain ranking"):
        diagnose(table, suite=unspoken(tmp_path))


def unspoken(folder):
    cases = [{k: v for k, v in traces.case().items() if k != "lang"}]
    return traces.suite(folder, cases)


def test_diagnose__states_that_are_open_are_never_passed(tmp_path):
    failed = only(tmp_path, final=None, proposed=None, error="timeout")
    assert (failed.first, failed.served) == ("unknown", "not judged")
    disputed = traces.found(
        tmp_path / "d", traces.trace(), cases=[traces.case(status="disputed")]
    ).traces[0]
    assert disputed.first == "unknown"


def test_diagnose__confusion_counts_what_is_not_recorded(tmp_path):
    rows = [
        traces.trace(), traces.trace(repeat=1, trace="u", final=None, proposed=None),
        traces.trace(repeat=2, trace="v", final=None, proposed=None, error="x"),
    ]  # fmt: skip
    found = traces.found(tmp_path, *rows)
    (one,) = found.confusion.values()
    assert {row["found"]: row["n"] for row in one.rows() if row["n"]} == {
        "answer": 1, "error": 1, "not recorded": 1,
    }  # fmt: skip


def test_written__run_names_do_not_break_lines(tmp_path):
    where = traces.suite(tmp_path)
    tables.write_ipc(traces.run(traces.trace()), tmp_path / "r.arrow")
    from ragcore.report.diagnosis import page

    found = diagnose(tmp_path / "r.arrow", suite=where, names=["a\nb"])
    assert b"a\\nb" in page(found, "table")


# --- contracts

CITED = traces.trace()["citations"]
CONTRACTS = {
    "all hold": ({}, ("holds", "holds", "holds")),
    "not delivered": ({"ranked": [], "stages": [], "context": []}, ("fails", "holds", "fails")),
    "not packed": ({**LOST}, ("fails", "holds", "na")),
    "a state that nobody knows": (said("perhaps"), ("holds", "fails", "na")),
    "a citation of no claim": (
        {"citations": [*CITED, {**CITED[0], "claim": 3}]}, ("holds", "fails", "holds"),
    ),
    "a citation of nothing": (
        {"citations": [{**CITED[0], "id": None, "doc_id": None}]}, ("holds", "fails", "fails"),
    ),
    "support alone fails": ({"citations": []}, ("holds", "holds", "fails")),
    "nothing recorded": (
        {"proposed": None, "final": None, "claims": None, "citations": None, "context": None},
        ("not known", "not known", "not known"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CONTRACTS)
def test_contracts__hold_and_fail_apart(name, tmp_path):
    changes, wanted = CONTRACTS[name]
    ((tally,),) = traces.found(tmp_path, traces.trace(**changes)).contracts.values()
    assert (tally.states, tally.traces, tally.cases) == (wanted, 1, ("c",))


def test_contracts__are_na_where_nothing_is_required(tmp_path):
    found = traces.found(tmp_path, traces.trace(), **labelled(required=False))
    ((tally,),) = found.contracts.values()
    assert tally.states == ("na", "holds", "holds")
