"""Measures of judges: the verdicts that a run needs, and what became of them, counted by hand."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

import reference_items as plain
import tables
from ragcore import schema, score
from ragcore.errors import UsageError

NAMES = ("coverage", "disputed", "below_rung", "errors", "missing")


def trace(case, claims=(), context=(), cited=(), **more):
    return {
        "case_id": case, "lang": "en", "repeat": 0,
        "claims": None if claims is None else [{"text": c} for c in claims],
        "context": None if context is None else [{"id": c} for c in context],
        "citations": None if cited is None else [{"claim": k, "id": c} for k, c in cited],
        **more,
    }  # fmt: skip


def case(name, claims=(), **more):
    return {"case_id": name, "lang": "en", "claims": [{"text": c} for c in claims], **more}


def made(tmp_path, traces, cases, verdicts, *measures):
    names = ("case_id", "lang", "claims", "judge_required", "status")
    wanted = pa.schema([schema.CASES.field(n) for n in names])
    suite = tables.write_suite(tmp_path / "s", pa.Table.from_pylist(cases, schema=wanted))
    columns = ("case_id", "lang", "repeat", "claims", "context", "citations", "error")
    run = pa.Table.from_pylist(
        traces, schema=pa.schema([schema.RUNS.field(n) for n in columns])
    ).replace_schema_metadata({schema.MANIFEST_KEY: b'{"run": "r"}'})
    judgments = None if verdicts is None else plain.table(*verdicts)
    return score(run, suite=suite, judgments=judgments, measures=list(measures))


def parts(scores, name, of="a"):
    """Numerator and denominator of one case."""
    rows = {(r["measure"], r["case_id"]): r for r in scores.table().to_pylist()}
    row = rows[name, of]
    return row["state"], row["numerator"], row["denominator"], row["rung"]


def each(relation):
    return [f"judge.{name}(relation={relation})" for name in NAMES]


def test_measures__part_what_is_needed(tmp_path):
    verdicts = [
        {"claim": 0, "rung": "domain"}, {"claim": 1, **{"verdict": "no", "rung": "human"}},
        {"claim": 2, "rung": "human"}, {"claim": 2, "rung": "human", "verdict": "no"},
        {"claim": 3}, {"claim": 4, "verdict": "error"},
    ]  # fmt: skip
    found = made(
        tmp_path, [trace("a", "abcdef")], [case("a", judge_required="human")], verdicts,
        *each("entailed"),
    )  # fmt: skip
    shown = {name: parts(found, f"judge.{name}(relation=entailed)") for name in NAMES}
    assert shown == {
        "coverage": ("ok", 2.0, 6.0, "human"), "disputed": ("ok", 1.0, 6.0, "human"),
        "below_rung": ("ok", 1.0, 6.0, "human"), "errors": ("ok", 1.0, 6.0, "human"),
        "missing": ("ok", 1.0, 6.0, "human"),
    }  # fmt: skip


NEEDED = {
    "entailed": 2, "covered": 3, "chunk_entails": 2 * 3, "chunk_entails_reference": 3 * 3,
    "relevance": 3, "conflict_shown": 1, "cites": 3, "correct": 2,
}  # fmt: skip


@pytest.mark.parametrize("relation", NEEDED)
def test_measures__know_what_each_relation_needs(tmp_path, relation):
    cited = [(0, "x"), (0, "x"), (1, "x"), (1, "z"), (7, "x"), (-1, "y"), (1, None)]
    chunk = {"evidence": ["x"]} if relation in plain.BY_CHUNK else {}
    claim = None if relation in ("relevance", "conflict_shown") else 1
    found = made(
        tmp_path, [trace("a", "ab", "xyz", cited)], [case("a", "pqr")],
        [{"relation": relation, "claim": claim, **chunk}], *each(relation), "judge.coverage",
    )  # fmt: skip
    n = float(NEEDED[relation])
    assert parts(found, f"judge.coverage(relation={relation})") == ("ok", 1.0, n, "model")
    assert parts(found, f"judge.missing(relation={relation})")[1:3] == (n - 1, n)
    assert parts(found, "judge.coverage") == ("ok", 1.0, n, "model")


def test_measures__answers_judged_as_a_whole(tmp_path):
    rows = [{"relation": "correct", "claim": None}]
    found = made(tmp_path, [trace("a", "ab")], [case("a")], rows, *each("correct"))
    assert parts(found, "judge.coverage(relation=correct)") == ("ok", 1.0, 1.0, "model")


@pytest.mark.parametrize("seed", range(5))
def test_measures__add_up_to_one(tmp_path, seed):
    rng = random.Random(seed)
    verdicts = [
        {"relation": rng.choice(["entailed", "chunk_entails", "covered"]),
         "claim": rng.randrange(2), "evidence": [rng.choice("xy")],
         "verdict": rng.choice(schema.VERDICTS), "rung": rng.choice(["model", "human"])}
        for _ in range(12)
    ]  # fmt: skip
    suite = [case("a", "pq", judge_required=rng.choice(["human", "rule"]))]
    asked = [f"judge.{name}" for name in NAMES]
    found = made(tmp_path, [trace("a", "ab", "xy")], suite, verdicts, *asked)
    shown = [parts(found, name) for name in asked]
    assert {row[0] for row in shown} == {"ok"}
    assert len({row[2] for row in shown}) == 1
    assert sum(row[1] for row in shown) == shown[0][2]


def test_measures__states(tmp_path):
    traces = [
        trace("a", "ab"), trace("b", ()), trace("c", None), trace("d", None, error="lost"),
        trace("f", "ab"),
    ]  # fmt: skip
    cases = [case(c, "p" if c == "e" else "") for c in "abcde"]
    cases.append(case("f", status="disputed"))
    found = made(
        tmp_path, traces, cases, [{}], "judge.coverage", "judge.coverage(relation=covered)"
    )
    states = {c: found.state("judge.coverage", c) for c in "abcdef"}
    assert states == {
        "a": "ok", "b": "na", "c": "missing", "d": "failed", "e": "na", "f": "disputed",
    }  # fmt: skip
    # What was not run needs verdicts on its reference claims alone.
    assert parts(found, "judge.coverage(relation=covered)", "e")[:3] == ("ok", 0.0, 1.0)


def test_measures__without_judgments_are_missing(tmp_path):
    found = made(tmp_path, [trace("a", "ab")], [case("a")], None, "judge.coverage")
    assert found.state("judge.coverage", "a") == "missing"


def test_measures__an_unknown_relation(tmp_path):
    with pytest.raises(UsageError, match="relation='sentence_used'"):
        made(
            tmp_path, [trace("a", "ab")], [case("a")], [{}], "judge.errors(relation=sentence_used)"
        )


def test_measures__pool_over_cases(tmp_path):
    traces, cases = [trace("a", "ab"), trace("b", "abcdef")], [case("a"), case("b")]
    verdicts = [{"claim": 0}, {"claim": 1}, {"case_id": "b", "claim": 5}]
    found = made(tmp_path, traces, cases, verdicts, "judge.coverage", "micro(judge.coverage)")
    assert found.mean("judge.coverage") == (1.0 + 1 / 6) / 2
    assert found.mean("micro(judge.coverage)") == 3 / 8
