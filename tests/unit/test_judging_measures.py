"""Measures of judges: the verdicts that a run needs, and what became of them, counted by hand."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

import reference_items as plain
import tables
from ragcore import schema, score
from ragcore.errors import UsageError
from ragcore.judges.review import review

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
    judgments = plain.table(*verdicts) if isinstance(verdicts, list) else verdicts
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


# --- the corrected share


def few_labels():
    """Traces of whole answers and the verdicts of `ragcore.judges.estimates`' golden values."""
    words = {"1": "yes", "0": "no"}
    base = {"relation": "correct", "claim": None}
    rows = []
    for i, (y, f) in enumerate(zip("1011011011", "1111010011", strict=True)):
        own = {**base, "case_id": f"l{i}"}
        rows.append({**own, "judge": "h", "rung": "human", "verdict": words[y]})
        rows.append({**own, "judge": "m", "verdict": words[f]})
    rows += [
        {**base, "case_id": f"u{i}", "judge": "m", "verdict": "yes" if i < 68 else "no"}
        for i in range(100)
    ]
    return rows


def test_ppi__golden(tmp_path):
    rows = few_labels()
    names = list(dict.fromkeys(r["case_id"] for r in rows))
    found = made(tmp_path, [trace(c) for c in names], [case(c) for c in names], rows, "judge.ppi")
    (row,) = found.rows()
    assert round(row["mean"], 4) == 0.6909
    assert [round(row[end], 4) for end in ("ci_low", "ci_high")] == [0.4446, 0.9371]
    assert (row["ci_method"], row["n_ok"], row["n_missing"]) == ("ppi", 10, 100)
    assert "10 cases with a label, 100 with the judge alone, weight 0.457" in row["note"]
    assert "fewer than 30" in row["note"]
    assert parts(found, "judge.ppi", "l0") == ("ok", 1.0, 1.0, "human")


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("pack", [False, True])
def test_ppi__is_the_estimate_of_the_review(tmp_path, seed, pack):
    rng = random.Random(seed)
    names = [f"c{i:02}" for i in range(24)]
    sizes = {c: rng.randint(1, 4) for c in names}
    rows = []
    for c in names:
        for k in range(sizes[c]):
            own = {"case_id": c, "claim": k}
            judged = rng.choice(["yes", "no", "partial", "unclear"])
            rows.append({**own, "judge": "m", "verdict": judged})
            if c < "c12" and rng.random() < 0.8:
                verdict = rng.choice(["yes", "no"])
                rows.append({**own, "judge": "h", "rung": "human", "verdict": verdict})
    traces = [trace(c, "abcd"[: sizes[c]]) for c in names]
    asked = "judge.ppi(relation=entailed)"
    given = rows
    if pack:
        lists = {c: [r["verdict"] for r in rows if r["case_id"] == c and r["judge"] == "m"]
                 for c in names}  # fmt: skip
        lists = [{"case_id": c, "judge": "m", "verdicts": said} for c, said in lists.items()]
        people = [r for r in rows if r["judge"] == "h"]
        given = (plain.packed(*lists), plain.table(*people))
    found = made(tmp_path, traces, [case(c) for c in names], given, asked)
    (one,) = review(plain.table(*rows)).estimates
    mean = one.means["ppi++"]
    (row,) = found.rows()
    assert (row["mean"], row["ci_low"], row["ci_high"]) == pytest.approx(
        (mean.mean, mean.low, mean.high), abs=1e-12
    )
    assert (mean.n, mean.n_unlabelled) == (one.n_labelled, one.n_unlabelled)
    assert f"{one.n_labelled} cases with a label, {one.n_unlabelled} with" in row["note"]


def test_ppi__refuses_what_is_not_clear(tmp_path):
    rows = [{"judge": j, "relation": "correct", "claim": None} for j in ("m", "o")]
    for asked, wanted in (
        ("judge.ppi(relation=all)", "relation='all'"), ("judge.ppi(against=boss)", "'boss'"),
    ):  # fmt: skip
        with pytest.raises(UsageError, match=wanted):
            made(tmp_path, [trace("a")], [case("a")], rows, asked)
    several = made(tmp_path, [trace("a")], [case("a")], rows, "judge.ppi")
    assert several.state("judge.ppi", "a") == "missing"
    assert any("2 judges below the rung human (m, o)" in w for w in several.audits[0].warnings)
    named = made(tmp_path, [trace("a")], [case("a")], rows, "judge.ppi(judge=m)")
    assert named.state("judge.ppi(judge=m)", "a") == "missing"
    (row,) = named.rows()
    assert row["mean"] is None
    nobody = made(tmp_path, [trace("a")], [case("a")], [{**rows[0], "rung": "human"}], "judge.ppi")
    assert nobody.state("judge.ppi", "a") == "missing"
