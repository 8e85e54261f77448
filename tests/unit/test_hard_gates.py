"""Hard gates: each with a trace that breaks it and one that keeps it; what cannot be checked."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

import diagnosed as traces
import tables
from ragcore import compare, score
from ragcore.cli import main
from ragcore.errors import UsageError
from ragcore.gatekeeper import Gatekeeper
from ragcore.gates import FAIL, INCONCLUSIVE, NOT_CHECKED, PASS, parse_gates
from ragcore.hard_gates import NAMES, degraded, hard_gates, observed, replays
from ragcore.measures.violations import PREDICATES
from ragcore.plan import Plan

GOOD = traces.trace()
HIDDEN = traces.units("rule#1", "board#1")
SUPPORT = [traces.verdict("covered"), traces.verdict("entailed")]


def cited(**changed):
    return [{**GOOD["citations"][0], **changed}]


def ended(state, text=traces.QUOTE):
    return {"state": state, "value": "750", "text": text}


FORBIDDEN = [
    *traces.case()["evidence"],
    {"doc_id": "old", "chunk_id": "old#1", "role": "forbidden"},
]
# name: (changes of the trace, changes of the case, verdicts, what is said)
BREAKS = {
    "acl": ({"ranked": HIDDEN}, {}, [], "'board#1' in ranked"),
    "acl in a stage": ({"stages": [("dense", HIDDEN)]}, {}, [], "'board#1' in stage dense"),
    "acl in a citation": ({"citations": cited(id="board#1")}, {}, [], "'board#1' in citations"),
    "acl of nobody": ({"ranked": HIDDEN}, {"principals": []}, [], "'board#1' in ranked"),
    "forbidden": ({}, {"evidence": FORBIDDEN}, [], "'old#1' in stage bm25, ranked"),
    "deleted": ({"ranked": traces.units("gone#1")}, {}, [], "'gone#1' in ranked (deleted)"),
    "effect": ({"effects": ["look", "book_room"]}, {}, [], "'book_room'"),
    "claim": ({"final": ended("answer", "It costs nothing.")}, {}, [], "'costs nothing'"),
    "fabricated": ({"citations": cited(id="old#1")}, {}, [], "'old#1'"),
    "fabricated out of nothing": ({"citations": cited(id="none")}, {}, [], "'none'"),
    "fabricated after a refusal": (
        {"context": None, "context_state": "budget_refused"}, {}, [], "'rule#1'",
    ),
    "fabricated and withheld": (
        {"citations": cited(id="old#1"), "final": ended("abstain", None)}, {}, [],
        "'old#1'; withheld, as the trace ends in 'abstain'",
    ),
    "invalid unit": ({"citations": cited(id="none")}, {}, [], "'none' (not in the corpus)"),
    "invalid null": (
        {"citations": cited(id=None, doc_id=None)}, {}, [], "None (not in the corpus)",
    ),
    "invalid version": (
        {"citations": cited(doc_version="v2")}, {}, [], "(another version or document)",
    ),
    "invalid document": (
        {"citations": cited(doc_id="old")}, {}, [], "(another version or document)",
    ),
    "invalid, deleted since": (
        {"citations": cited(id="gone#1", doc_id=None)}, {}, [], "'gone#1' (not there for the case)",
    ),
    "invalid place without a quote": (
        {"citations": cited(quote=None, end=99)}, {}, [], "(the quote is not there)",
    ),
    "invalid order": (
        {"citations": cited(quote=None, start=9, end=3)}, {}, [], "(the quote is not there)",
    ),
    "invalid whatever the claim": (
        {"citations": cited(claim=7, quote="750 euro")}, {}, [], "(the quote is not there)",
    ),
    "invalid quote": ({"citations": cited(quote="750 euro")}, {}, [], "(the quote is not there)"),
    "invalid place": ({"citations": cited(start=1)}, {}, [], "(the quote is not there)"),
    "answered": ({}, {"expected_state": "abstain"}, [], "ends in 'answer', expected 'abstain'"),
    "answered in part": (
        {"final": ended("partial")}, {"expected_state": "fail_closed"}, [], "ends in 'partial'",
    ),
    "high_stakes": (
        {}, {}, [SUPPORT[0], traces.verdict("entailed", "no")],
        "reference claim 0 stated; answer claim 0 not supported by the context",
    ),
}  # fmt: skip


def gates_of(folder, *rows, given=(), cases=None, chunks=None, drop=()):
    where = traces.suite(folder, cases, chunks)
    judged = traces.verdicts(*given) if given else None
    scores = score(traces.run(*rows, drop=drop), suite=where, judgments=judged,
                   measures=["end_to_end"])  # fmt: skip
    return {gate.name: gate for gate in hard_gates(scores.runs[0])}, scores


@pytest.mark.parametrize("name", BREAKS)
def test_gate__one_violating_trace_beside_a_clean_one(name, tmp_path):
    changes, of_case, given, said = BREAKS[name]
    cases = [traces.case(**of_case), traces.case(case_id="good")]
    rows = [traces.trace(**changes), traces.trace(case_id="good", trace="u")]
    more = [{**row, "case_id": "good"} for row in SUPPORT]
    gates, _ = gates_of(tmp_path, *rows, given=[*(given or SUPPORT), *more], cases=cases)
    gate = gates[name.split()[0].strip(",")]
    assert [v.case for v in gate.violations] == ["c"]
    assert said in gate.violations[0].what
    assert (gate.checked, gate.of, gate.why) == (2, 2, "")
    others = {n for n, g in gates.items() if g.violations} - {gate.name}
    allowed = {
        "fabricated": {"invalid", "claim"}, "invalid": {"fabricated", "deleted"},
        "acl": {"fabricated", "invalid"},
    }  # fmt: skip
    assert others <= allowed.get(gate.name, set())


def test_gates__a_citation_of_a_document_means_its_unit(tmp_path):
    gates, _ = gates_of(tmp_path, traces.trace(citations=cited(id=None)))
    assert not gates["fabricated"].violations + gates["invalid"].violations


@pytest.mark.parametrize(
    ("text", "broken"), [("It costs 1750 yuan.", False), ("It Costs NOTHING!", True)]
)
def test_gates__prohibited_claims_are_those_of_the_measure(text, broken, tmp_path):
    cases = [traces.case(prohibited=["750", "costs nothing"])]
    where = traces.suite(tmp_path, cases)
    rows = traces.run(traces.trace(final=ended("answer", text)))
    scores = score(rows, suite=where, measures=["prohibited.claims"])
    (gate,) = hard_gates(scores.runs[0], ["claim"])
    assert len(gate.violations) == scores.mean("prohibited.claims") == broken


def test_gates__an_answer_without_its_text_is_not_checked(tmp_path):
    silent = ended("answer", None)
    gates, _ = gates_of(tmp_path, GOOD, traces.trace(repeat=1, trace="u", final=silent,
                                                     proposed=silent))  # fmt: skip
    assert (gates["claim"].checked, gates["claim"].of) == (1, 2)


def test_gates__a_name_that_is_null_lets_nobody_in(tmp_path):
    chunks = traces.corpus(board={"acl": [None]})
    cases = [traces.case(principals=[None])]
    row = traces.trace(ranked=HIDDEN, citations=cited(id="board#1", doc_id="board"))
    gates, _ = gates_of(tmp_path, row, cases=cases, chunks=chunks)
    assert gates["acl"].violations[0].what == "'board#1' in ranked, citations"


def test_gates__a_clean_trace_keeps_them_all(tmp_path):
    gates, _ = gates_of(tmp_path, GOOD, given=SUPPORT)
    assert tuple(gates) == NAMES
    assert len(PREDICATES) == len(NAMES)
    for gate in gates.values():
        assert (gate.checked, gate.of, gate.violations, gate.why) == (1, 1, (), "")
        assert gate.sentence() == "checked 1 of 1 traces"


def test_gates__any_trace_in_any_repeat(tmp_path):
    rows = [traces.trace(repeat=i, trace=f"t{i}") for i in range(5)]
    rows[3] |= {"citations": cited(id="old#1"), "fallback": "no reranker"}
    gates, _ = gates_of(tmp_path, *rows)
    (one,) = gates["fabricated"].violations
    assert (one.case, one.lang, one.repeat, one.degraded) == ("c", "en", 3, True)
    assert (
        "5 of 5 traces, 1 of them degraded; 1 break it, for example c en 3"
        in gates["fabricated"].sentence()
    )


@pytest.mark.parametrize("how", [{"fallback": "bm25 only"}, {"missing_shards": ["s1"]}])
def test_gates__degraded_traces_must_hold_them_too(how, tmp_path):
    rows = [traces.trace(), traces.trace(repeat=1, trace="u", ranked=HIDDEN, **how)]
    gates, scores = gates_of(tmp_path, *rows)
    assert degraded(scores.runs[0].inputs).tolist() == [False, True]
    assert (gates["acl"].degraded, gates["acl"].degraded_bad) == (1, 1)
    assert gates["acl"].violations[0].degraded


@pytest.mark.parametrize(
    ("drop", "gate", "why"),
    [
        (("effects",), "effect", "the run records no effects"),
        (("citations",), "fabricated", "the run records no citations"),
        (("context",), "fabricated", "the run records no context"),
        (("citations",), "invalid", "the run records no citations"),
        (("final", "proposed"), "answered", "the run records no final state"),
        (("final", "proposed"), "claim", "the run records no text"),
    ],
)
def test_gates__what_the_run_does_not_record_is_not_checkable(drop, gate, why, tmp_path):
    gates, _ = gates_of(tmp_path, GOOD, drop=drop)
    assert (gates[gate].checked, gates[gate].why, gates[gate].violations) == (0, why, ())
    assert gates[gate].sentence() == f"not checkable: {why}"


def test_gates__what_the_suite_does_not_say_is_not_checkable(tmp_path):
    bare = dict.fromkeys(("acl", "deleted"))
    gates, _ = gates_of(
        tmp_path, GOOD, chunks=traces.corpus(board=bare, gone=bare, rule=bare, old=bare)
    )
    assert "no acl" in gates["acl"].why
    assert "neither deletions nor snapshots" in gates["deleted"].why
    assert "no verdict says covered" in gates["high_stakes"].why
    cases = [traces.case(principals=None, expected_state=None, claims=[])]
    gates, _ = gates_of(tmp_path / "more", GOOD, cases=cases)
    assert gates["acl"].why == gates["answered"].why == "no trace records what it needs"
    assert "no reference claim is marked" in gates["high_stakes"].why


def test_gates__a_trace_without_the_column_is_not_counted_as_checked(tmp_path):
    gates, scores = gates_of(
        tmp_path, GOOD, traces.trace(repeat=1, trace="u", citations=None, error="timeout")
    )
    assert (gates["fabricated"].checked, gates["fabricated"].of) == (1, 2)
    keeper = Gatekeeper(scores.runs)
    (named,) = keeper.check(parse_gates(["hard.fabricated == 0"]))
    assert (named.status, named.value) == (INCONCLUSIVE, 0.0)


def test_gates__disputed_verdicts_leave_high_stakes_open(tmp_path):
    given = [
        traces.verdict("covered"),
        traces.verdict("entailed", "no"),
        traces.verdict("entailed"),
    ]
    gates, _ = gates_of(tmp_path, GOOD, given=given)
    assert (gates["high_stakes"].checked, gates["high_stakes"].why != "") == (0, True)


def test_gates__replays_are_left_out_and_counted(tmp_path):
    bad = {"ranked": HIDDEN}
    rows = [
        traces.trace(),
        traces.trace(repeat=1, trace="o", condition="oracle_context", pair="t", **bad),
        traces.trace(repeat=2, trace="g", condition="gold_context", **bad),
        traces.trace(repeat=3, trace="d", condition="retrieved_distractors", **bad),
    ]
    gates, scores = gates_of(tmp_path, *rows)
    assert observed(scores.runs[0].inputs).tolist() == [True, False, False, True]
    assert replays(scores.runs[0]) == 2
    assert [v.repeat for v in gates["acl"].violations] == [3]


def test_deleted__a_unit_outside_of_the_snapshot(tmp_path):
    where = traces.suite(tmp_path, [traces.case(snapshot="s2")])
    path = where / "chunks.arrow"
    import pyarrow as pa

    table = pa.ipc.open_file(str(path)).read_all()
    meta = {b"snapshots": b'{"s1": ["rule#1", "old#1"], "s2": ["rule#1"]}'}
    path.unlink()
    tables.write_ipc(table.replace_schema_metadata(meta), path)
    scores = score(traces.run(GOOD), suite=where, measures=["end_to_end"])
    (gate,) = hard_gates(scores.runs[0], ["deleted"])
    (one,) = gate.violations
    assert one.what == "'old#1' in stage bm25, ranked (not in the case's snapshot)"


# --- expressions


def checked(folder, texts, *rows, by=(), given=()):
    _, scores = gates_of(folder, *rows, given=given)
    return Gatekeeper(scores.runs).check(parse_gates(texts), by)


def test_expression__bare_checks_all_and_passes_over_what_it_cannot(tmp_path):
    rows = checked(tmp_path, ["hard"], GOOD)
    assert [r.gate.text for r in rows] == [f"hard.{name} == 0" for name in NAMES]
    assert {r.status for r in rows} == {PASS, NOT_CHECKED}
    assert all(r.met for r in rows)
    assert all(r.gate.hard for r in rows)


def test_expression__named_must_be_checkable(tmp_path):
    (row,) = checked(tmp_path, ["hard.high_stakes == 0"], GOOD)
    assert (row.status, row.value, row.met) == (FAIL, None, False)
    assert "not checkable" in row.reason
    (row,) = checked(tmp_path, ["hard.acl <= 1"], traces.trace(ranked=HIDDEN))
    assert (row.status, row.value) == (PASS, 1.0)


def test_expression__slices(tmp_path):
    rows = [traces.trace(), traces.trace(repeat=1, trace="u", ranked=HIDDEN)]
    found = checked(tmp_path, ["hard.acl[repeat=0] == 0", "hard.acl[repeat=1] == 0"], *rows)
    assert [(r.slice, r.status) for r in found] == [("repeat=0", PASS), ("repeat=1", FAIL)]


def test_expression__qrels_have_no_traces_to_check():
    scores = score({"q": {"a": 1.0}}, qrels={"q": {"a": 1}}, measures=["RR", "end_to_end"])
    (row,) = Gatekeeper(scores.runs).check(parse_gates(["hard"]))
    assert (row.status, row.reason) == (FAIL, "no hard condition can be checked")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("hard.nosuch == 0", "no hard condition 'nosuch'"),
        ("hard.acl", "says no number"),
        ("hard == 0", "'hard' alone allows nothing"),
        ("hard.acl == none", "cannot be read|not a number|unknown"),
    ],
)
def test_expression__what_cannot_be_read(text, wanted):
    with pytest.raises(UsageError, match=wanted):
        parse_gates([text])


def test_command__exit_status(tmp_path):
    where = traces.suite(tmp_path)
    good = tables.write_ipc(traces.run(GOOD), tmp_path / "good.arrow")
    bad = tables.write_ipc(traces.run(traces.trace(ranked=HIDDEN)), tmp_path / "bad.arrow")
    for path, status in ((good, 0), (bad, 1)):
        words = ["score", str(path), "--suite", str(where), "-m", "R@5", "--gate", "hard"]
        result = CliRunner().invoke(main, words)
        assert result.exit_code == status, result.output
    assert "'board#1' in ranked" in result.stdout


def test_compare__a_violation_blocks_whatever_is_gained(tmp_path):
    where = traces.suite(tmp_path)
    found = compare(
        traces.run(GOOD), traces.run(traces.trace(ranked=HIDDEN)), suite=where,
        measures=["end_to_end"], plan=Plan(primary=("end_to_end",), hard=("hard",), source="here"),
    )  # fmt: skip
    assert found.verdict().verdict == "blocked"
    clean = compare(
        traces.run(GOOD), traces.run(GOOD), suite=where, measures=["end_to_end"],
        plan=Plan(primary=("end_to_end",), hard=("hard",), source="here"), names=["a", "b"],
    )  # fmt: skip
    assert clean.verdict().verdict != "blocked"


def test_gates__count_the_traces_that_nothing_can_be_held_to(tmp_path):
    rows = [traces.trace(), traces.trace(case_id="nobody", trace="u")]
    gates, _ = gates_of(tmp_path, *rows)
    assert (gates["fabricated"].checked, gates["fabricated"].of) == (1, 2)
    assert gates["fabricated"].sentence().startswith("checked 1 of 2 traces")
