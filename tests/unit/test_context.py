"""Measures of the context through `score`: spans, loss, size, budget, sentences."""

from __future__ import annotations

import pyarrow as pa
import pytest

import claim_tables
import tables
from ragcore import schema, score

NA, MISSING = "na", "missing"
ITEM = {"role": "supporting", "required": True}
TEXT = "Leave is twenty days. Interns  have none."


def suite_of(folder, evidence, chunks=None, **columns):
    """A suite: evidence of each case, and chunks as rows."""
    path = tables.write_suite(folder, pa.table({
        "case_id": list(evidence), **columns,
        "evidence": pa.array(list(evidence.values()), pa.list_(schema.EVIDENCE)),
    }))  # fmt: skip
    if chunks is not None:
        names = list(dict.fromkeys(name for chunk in chunks for name in chunk))
        kinds = {n: schema.CHUNKS.field(n).type for n in names if n in schema.CHUNKS.names}
        table = {n: pa.array([c.get(n) for c in chunks], kinds.get(n)) for n in names}
        tables.write_ipc(pa.table(table), path / "chunks.arrow")
    return path


def run_of(contexts, ranked=None, **columns):
    shown = [None if c is None else [{"id": u} if isinstance(u, str) else u for u in c]
             for c in contexts.values()]  # fmt: skip
    return pa.table({
        "case_id": list(contexts), "ranked": ranked or [["z"]] * len(contexts),
        "context": pa.array(shown, schema.RUNS.field("context").type), **columns,
    })  # fmt: skip


def values(scores, name, cases):
    return [scores.value(name, c) if scores.state(name, c) == "ok" else scores.state(name, c)
            for c in cases]  # fmt: skip


def unit(name, start=None, end=None, n_tokens=None):
    return {"id": name, "start": start, "end": end, "n_tokens": n_tokens}


CHUNKS = [
    {"chunk_id": "p", "doc_id": "D", "start": 0, "end": 41, "n_tokens": 8, "text": TEXT},
    {"chunk_id": "q", "doc_id": "D", "start": 41, "end": 60, "n_tokens": 4, "text": "x" * 19},
    {"chunk_id": "r", "doc_id": "E", "n_tokens": None, "text": "short"},
]
EXCEPTION = {"doc_id": "D", "chunk_id": "p", "start": 22, "end": 41, **ITEM}
QUOTED = {"doc_id": "D", "chunk_id": "p", "quote": "Interns have\nnone.", **ITEM}
BARE = {"doc_id": "D", "chunk_id": "p", **ITEM}


@pytest.mark.parametrize(
    ("item", "packed", "wanted"),
    [
        (EXCEPTION, ["p"], 1), (EXCEPTION, [unit("p", 0, 41)], 1),
        (EXCEPTION, [unit("p", 0, 30)], 0),  # cut before the exception
        (EXCEPTION, [unit("p", 0, 30), unit("p", 22, 41)], 1),
        (EXCEPTION, [unit("p", 0, 30), unit("p", 30, 41)], 0),  # in two halves
        (EXCEPTION, ["q"], 0), (EXCEPTION, [unit("q", 10, 60)], 1),  # expanded to its parent
        (EXCEPTION, [unit("r", 0, 60)], 0), (EXCEPTION, [], 0),
        (EXCEPTION, [unit("p", 22)], 1), (EXCEPTION, [unit("p", None, 40)], 0),
        (QUOTED, ["p"], 1), (QUOTED, [unit("p", 20, 41)], 1), (QUOTED, [unit("p", 0, 30)], 0),
        (QUOTED, ["q"], 0), (BARE, ["p"], 1), (BARE, [unit("p", 0, 40)], 0),
        (BARE, [unit("p", 0, 99)], 1),
    ],
)  # fmt: skip
def test_span_intact__only_inside_a_packed_span(tmp_path, item, packed, wanted):
    suite = suite_of(tmp_path / "s", {"a": [item]}, CHUNKS)
    both = ["context.span_intact", "survival.packed"]
    scores = score(run_of({"a": packed}), suite=suite, measures=both)
    assert [scores.value(name, "a") for name in both] == [wanted, wanted]


@pytest.mark.parametrize(
    ("item", "packed", "wanted"),
    [
        (BARE, unit("p", 0, 12), 1), (BARE, unit("p", 0, 11), 0), (BARE, unit("p", 0, 41), 1),
        ({**BARE, "start": 7, "end": 12}, unit("p", 0, 12), 1),
        ({**BARE, "start": 7, "end": 12}, unit("p", 0, 11), 0),
        ({**BARE, "quote": "没有。"}, unit("p", 6, 12), 1),
    ],
)  # fmt: skip
def test_span_intact__counts_in_the_text_of_the_language(tmp_path, item, packed, wanted):
    chunks = [{**CHUNKS[0], "text_zh": "假期二十天。实习生没有。"}]
    suite = suite_of(tmp_path / "s", {"a": [item]}, chunks, lang=["zh"])
    scores = score(
        run_of({"a": [packed]}, lang=["zh"]), suite=suite, measures=["context.span_intact"]
    )
    assert scores.value("context.span_intact", "a") == wanted


def test_span_intact__without_chunks_of_the_suite(tmp_path):
    items = {
        "placed": [{"doc_id": "p", "start": 5, "end": 9, **ITEM}], "quoted": [QUOTED],
        "free": [{**BARE, "required": False}], "refused": [BARE], "unrecorded": [BARE],
        "whole": [{**QUOTED, "quote": "no longer there"}],
    }  # fmt: skip
    shown = {"placed": [unit("p", 0, 9)], "quoted": [unit("p", 3, 99)], "free": ["p"],
             "refused": ["p"], "unrecorded": None, "whole": ["p"]}  # fmt: skip
    refused = [None if c != "refused" else "budget_refused" for c in items]
    scores = score(
        run_of(shown, context_state=refused), suite=suite_of(tmp_path / "s", items),
        measures=["context.span_intact"],
    )  # fmt: skip
    assert values(scores, "context.span_intact", items) == [1, 0, NA, 0, MISSING, 1]


def need(*names):
    return [{"doc_id": name, **ITEM} for name in names]


def test_packing_loss__of_the_exercise(tmp_path):
    evidence = {"a": need("1", "2", "3"), "more": need("1", "2"), "none": [], "off": need("1"),
                "open": need("1"), "lost": need("1")}  # fmt: skip
    shown = {"a": ["2"], "more": ["1", "2"], "none": ["1"], "off": [], "open": None}
    ranked = [["1", "2"], ["1"], ["1"], ["1"], ["1"]]
    state = [None, None, None, "budget_refused", None]
    names = ["retrieval.coverage", "context.coverage", "context.packing_loss"]
    scores = score(
        run_of(shown, ranked, context_state=state), suite=suite_of(tmp_path / "s", evidence),
        measures=names,
    )  # fmt: skip
    cases = list(evidence)
    found = [values(scores, name, cases) for name in names]
    third = pytest.approx(1 / 3)
    assert found[0] == [pytest.approx(2 / 3), 0.5, NA, 1, 1, 0]
    assert found[1] == [third, 1, NA, 0, MISSING, 0]
    assert found[2] == [third, -0.5, NA, 1, MISSING, 0]


def test_packing_loss__from_the_last_stage_without_a_ranking(tmp_path):
    stage = pa.array([[("bm25", [{"id": "1"}]), ("fused", [{"id": "1"}, {"id": "2"}])]],
                     schema.RUNS.field("stages").type)  # fmt: skip
    run = run_of({"a": ["1"]}, stages=stage).drop_columns(["ranked"])
    suite = suite_of(tmp_path / "s", {"a": need("1", "2")})
    scores = score(run, suite=suite, measures=["context.packing_loss"])
    assert scores.value("context.packing_loss", "a") == 0.5


def test_tokens__as_recorded(tmp_path):
    shown = {
        "a": [unit("p", n_tokens=5), unit("q", n_tokens=2)], "chunk": ["p", unit("q", n_tokens=1)],
        "cut": [unit("p", 0, 9)], "unknown": ["r"], "empty": [], "none": None,
        "refused": [unit("p", n_tokens=5)],
    }  # fmt: skip
    state = [None] * 6 + ["budget_refused"]
    suite = suite_of(tmp_path / "s", {case: [] for case in (*shown, "lost")}, CHUNKS)
    scores = score(run_of(shown, context_state=state), suite=suite, measures=["context.tokens"])
    found = values(scores, "context.tokens", [*shown, "lost"])
    assert found == [7, 9, MISSING, MISSING, 0, MISSING, 0, MISSING]
    assert scores.mean("context.tokens") == 4


def test_budget__is_input_and_reserve_in_the_window(tmp_path):
    refused = "budget_refused"
    sizes = {
        "fits": (6, 2, 8, None), "over": (7, 2, 8, None), "refused": (6, 2, 8, refused),
        "no reserve": (6, None, 8, None), "only refused": (None, None, None, refused),
    }  # fmt: skip
    columns = dict(zip(("input_size", "reserve", "window", "context_state"),
                       map(list, zip(*sizes.values(), strict=True)), strict=True))  # fmt: skip
    suite = suite_of(tmp_path / "s", {case: [] for case in sizes})
    run = run_of({case: [] for case in sizes}, **columns)
    scores = score(run, suite=suite, measures=["context.budget"])
    assert values(scores, "context.budget", sizes) == [1, 0, 0, MISSING, 0]
    bare = score(run.drop_columns(["window"]), suite=suite, measures=["context.budget"])
    assert values(bare, "context.budget", sizes) == [MISSING, MISSING, 0, MISSING, 0]


# --- TRACe


def sentence_rows(case, relation, chunks):
    """Verdicts on sentences: {chunk: digits}."""
    return [
        {"case_id": case, "relation": relation, "claim": s, "evidence": [chunk],
         "verdict": claim_tables.YES_NO[digit]}
        for chunk, digits in chunks.items() for s, digit in enumerate(digits) if digit != " "
    ]  # fmt: skip


TRACE = ["trace.relevance", "trace.utilization", "trace.completeness"]
RELEVANT = {"p": "1100", "q": "01"}
USED = {"p": "1000", "q": "11"}


def traced(folder, relevant, used, chunks=None, context=("p", "q")):
    rows = sentence_rows("a", "sentence_relevant", relevant)
    rows += sentence_rows("a", "sentence_used", used)
    scores = score(
        run_of({"a": list(context)}), suite=suite_of(folder, {"a": []}, chunks), measures=TRACE,
        judgments=claim_tables.judgments_of(rows),
    )  # fmt: skip
    return [values(scores, name, ["a"])[0] for name in TRACE]


def test_trace__each_sentence_counts_1_without_lengths(tmp_path):
    half, two_thirds = pytest.approx(3 / 6), pytest.approx(2 / 3)
    assert traced(tmp_path / "s", RELEVANT, USED) == [half, half, two_thirds]
    assert traced(tmp_path / "t", {"p": "00"}, {"p": "00"}, context=("p",)) == [0, 0, NA]


def test_trace__weighs_sentences_by_their_recorded_tokens(tmp_path):
    lengths = [{**CHUNKS[0], "sentence_tokens": [1, 2, 3, 4]},
               {**CHUNKS[1], "sentence_tokens": [10, 20]}]  # fmt: skip
    found = traced(tmp_path / "s", RELEVANT, USED, lengths)
    assert found == [23 / 40, 31 / 40, 21 / 23]
    part = [lengths[0], {**lengths[1], "sentence_tokens": None}]  # then no length counts
    assert traced(tmp_path / "t", RELEVANT, USED, part)[0] == 0.5


def test_trace__is_missing_where_a_sentence_is_not_judged(tmp_path):
    assert traced(tmp_path / "s", {"p": "1 0", "q": "1"}, {"p": "111", "q": "1"}) == [
        MISSING, 1, MISSING,
    ]  # fmt: skip
    lengths = [{**CHUNKS[0], "sentence_tokens": [1, 2, 3]}, {**CHUNKS[1], "sentence_tokens": [1]}]
    all_used = {"p": "111", "q": "1"}
    found = traced(tmp_path / "t", {"p": "11", "q": "1"}, all_used, lengths)
    assert found == [MISSING, 1, MISSING]
    assert traced(tmp_path / "u", {"p": "?1", "q": "1"}, {"p": "!1", "q": "1"}) == [
        "disputed", "failed", "failed",
    ]  # fmt: skip
    assert traced(tmp_path / "v", {}, {}) == [MISSING] * 3
    assert traced(tmp_path / "w", {}, {}, context=()) == [NA] * 3


def test_trace__adherence(tmp_path):
    cases = {
        "all": claim_tables.Case(2, entailed="11"), "some": claim_tables.Case(2, entailed="10"),
        "none": claim_tables.Case(0), "open": claim_tables.Case(2, entailed="1 "),
    }  # fmt: skip
    scores = score(
        claim_tables.run_of(cases), suite=claim_tables.suite_of(tmp_path / "s", cases),
        judgments=claim_tables.judgments_of(claim_tables.all_rows(cases)),
        measures=["trace.adherence"],
    )  # fmt: skip
    assert values(scores, "trace.adherence", cases) == [1, 0, NA, MISSING]
