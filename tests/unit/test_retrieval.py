"""Measures of retrieval against plain Python, by hand, and where columns are missing."""

from __future__ import annotations

import random
from datetime import date, timedelta

import pyarrow as pa
import pytest

import reference_retrieval as reference
import tables
from ragcore import schema, score
from ragcore.errors import InputError, UsageError

ITEM = dict.fromkeys(schema.EVIDENCE.names)
CHUNK = dict.fromkeys(
    ("chunk_id", "doc_id", "start", "end", "n_tokens", "valid_from", "valid_until", "topic",
     "authority", "source_family", "acl", "deleted")
)  # fmt: skip
TRACE = dict.fromkeys(
    ("case_id", "ranked", "stages", "context", "context_state", "citations", "error")
)


def write_suite(folder, cases, chunks, toml='name = "little"\n', drop=()):
    """`cases` are dicts with evidence items; `chunks` dicts; columns in `drop` are left out."""
    names = ("case_id", "as_of", "topic", "principals")
    columns = {
        n: pa.array([c.get(n) for c in cases], schema.CASES.field(n).type)
        for n in names if n not in drop
    }  # fmt: skip
    if any("authorities" in c for c in cases):
        lists = [c.get("authorities") for c in cases]
        columns["authorities"] = pa.array(lists, pa.list_(pa.string()))
    lists = [[{**ITEM, **i} for i in c["evidence"]] for c in cases]
    columns["evidence"] = pa.array(lists, pa.list_(schema.EVIDENCE))
    folder = tables.write_suite(folder, pa.table(columns), toml)
    tables.write_ipc(
        pa.table({
            n: pa.array([{**CHUNK, **c}[n] for c in chunks], schema.CHUNKS.field(n).type)
            for n in CHUNK if n not in drop
        }), folder / "chunks.arrow",
    )  # fmt: skip
    return folder


def run_of(traces, manifest=None, drop=()):
    columns = {}
    for name in TRACE:
        if name in drop:
            continue
        values = [{**TRACE, **t}[name] for t in traces]
        if name == "stages":
            values = [
                None if v is None else [
                    (k, [{"id": u, "score": None, "shard": None} for u in own])
                    for k, own in v.items()
                ] for v in values
            ]  # fmt: skip
        if name == "ranked":
            columns[name] = pa.array(values, pa.list_(pa.string()))
        else:
            columns[name] = pa.array(values, schema.RUNS.field(name).type)
    table = pa.table(columns)
    import json

    return table.replace_schema_metadata({schema.MANIFEST_KEY: json.dumps(manifest or {}).encode()})


def outcome(scores, measure, case):
    state = scores.state(measure, case)
    return scores.value(measure, case) if state == "ok" else state


DAYS = [None, *(date(2024, 12, 30) + timedelta(days=i) for i in range(5))]
WORDS = [None, "a", "b", "c"]


def world(seed):
    draw = random.Random(seed)
    chunks = []
    for n in range(9):
        first = 10 * n
        chunks.append({
            "chunk_id": f"c{n}", "doc_id": draw.choice([None, "d0", "d1", "d2"]), "start": first,
            "end": first + 10, "n_tokens": draw.choice([3, 5, 7]) if draw.random() < 0.95 else None,
            "valid_from": draw.choice(DAYS), "valid_until": draw.choice(DAYS),
            "topic": draw.choice(WORDS), "authority": draw.choice(WORDS),
            "source_family": draw.choice(WORDS), "deleted": draw.choice([None, True, False]),
            "acl": draw.choice([None, [], ["a"], ["b", "c"]]),
        })  # fmt: skip
    names = [c["chunk_id"] for c in chunks]
    cases, traces = [], []
    for q in range(10):
        items = []
        for unit in draw.sample(names, draw.randint(0, 4)):
            low = 10 * int(unit[1:]) + draw.randint(0, 4)
            placed = draw.random() < 0.5
            items.append({
                "doc_id": unit if draw.random() < 0.5 else None, "chunk_id": unit,
                "start": low if placed else None, "end": low + 4 if placed else None,
                "role": draw.choice(["supporting", "conflicting", "forbidden", "stale"]),
                "required": draw.choice([True, True, False]), "relevance": draw.choice([0, 1, 2]),
            })  # fmt: skip
        for item in items:
            item["doc_id"] = item["chunk_id"]
        cases.append({
            "case_id": f"q{q}", "as_of": draw.choice(DAYS), "topic": draw.choice(WORDS),
            "principals": draw.choice([None, [], ["a"], ["c", "a"]]), "evidence": items,
            "authorities": draw.choice([None, [], ["a"], ["a", "b"]]),
        })  # fmt: skip
        pool = [*names, "x", "y"]

        def some(pool=pool):
            return draw.sample(pool, draw.randint(0, 7))

        stages = {n: some() for n in ("dense", "bm25", "fused", "reranked")}
        context = [
            {"id": u, "start": draw.choice([None, 10 * int(u[1:]) + draw.choice([0, 2])]),
             "end": draw.choice([None, 10 * int(u[1:]) + draw.choice([8, 10])]), "n_tokens": 1}
            for u in draw.sample(names, draw.randint(0, 4))
        ]  # fmt: skip
        citations = [{"id": u} for u in draw.choices(names, k=draw.randint(0, 3))]
        traces.append({
            "case_id": f"q{q}", "ranked": some(), "stages": stages, "context": context,
            "citations": [dict.fromkeys(
                ("claim", "id", "doc_id", "doc_version", "start", "end", "quote")) | c
                for c in citations],
        })  # fmt: skip
    manifest = {"candidate_k": draw.choice([2, 4]), "context_k": draw.choice([2, 3])}
    return chunks, cases, traces, draw.choice([{}, manifest])


MEASURES = {
    "retrieval.opportunity": reference.opportunity, "retrieval.ahead": reference.ahead,
    "retrieval.displaced": reference.displaced,
    "retrieval.no_result": lambda t: float(not t.ranked),
    "retrieval.token_budget(B=11)": lambda t: reference.token_budget(t, 11),
    "retrieval.source_concentration": lambda t: reference.concentration(t, "doc_id"),
    "retrieval.source_concentration(by=source_family)":
        lambda t: reference.concentration(t, "source_family"),
    "forbidden.count": reference.forbidden,
    "forbidden.rate": lambda t: float(reference.forbidden(t) > 0),
    "deleted.count": reference.deleted, "freshness.pass": reference.freshness,
    "permission.pass": reference.permission, "authority.pass": reference.authority,
    "survival.candidate": lambda t: t.share(t.candidates),
    "survival.fused": lambda t: t.share(t.stages["fused"]),
    "survival.reranked": lambda t: t.share(t.stages["reranked"]),
    "survival.selected": lambda t: t.share(t.selected),
    "survival.cited": lambda t: t.share(reference.ids(t.trace["citations"])),
    "survival.packed": reference.packed,
    **{f"overlap.{name}{cut}": lambda t, name=name, k=k: reference.agreement(
        t.stages["dense"], t.stages["bm25"], k, 0.9)[name]
       for name in ("jaccard", "share", "rbo") for cut, k in (("", 0), ("@3", 3))},
    "overlap.rbo(a=bm25,b=reranked,p=0.5)@4": lambda t: reference.agreement(
        t.stages["bm25"], t.stages["reranked"], 4, 0.5)["rbo"],
}  # fmt: skip


@pytest.mark.parametrize("seed", range(25))
def test_measures__are_those_of_plain_python(tmp_path, monkeypatch, seed):
    from ragcore.measures import inputs

    monkeypatch.setattr(inputs, "SERIAL", 0)
    chunks, cases, traces, manifest = world(seed)
    folder = write_suite(tmp_path / "s", cases, chunks)
    run = run_of(traces, manifest)
    both = [score(run, suite=folder, measures=list(MEASURES), threads=n) for n in (1, 2)]
    assert both[0].table().equals(both[1].table())
    by_id = {c["chunk_id"]: c for c in chunks}
    has_forbidden = any(i["role"] == "forbidden" for c in cases for i in c["evidence"])
    for case, trace in zip(cases, traces, strict=True):
        items = [
            {**i, "covers": {i["chunk_id"]}, "role": i["role"]} for i in case["evidence"]
        ]  # fmt: skip
        one = reference.Trace(trace, {**case, "items": items}, by_id, manifest)
        for name, value in MEASURES.items():
            wanted = value(one)
            if name.startswith("forbidden") and not has_forbidden:
                wanted = "missing"
            got = outcome(both[0], name, case["case_id"])
            if isinstance(wanted, str):
                assert got == wanted, (case["case_id"], name)
            else:
                assert got == pytest.approx(float(wanted), abs=1e-12), (case["case_id"], name)


# --- by hand


def required(*units, **more):
    return [{"doc_id": u, "chunk_id": u, "required": True, "relevance": 1, **more} for u in units]


def one(folder, evidence, trace, measures, manifest=None, chunks=("a", "b", "c"), **case):
    """Outcomes of one case with one trace."""
    given = [c if isinstance(c, dict) else {"chunk_id": c} for c in chunks]
    folder = write_suite(folder, [{"case_id": "q", "evidence": evidence, **case}], given)
    scores = score(run_of([{"case_id": "q", **trace}], manifest), suite=folder, measures=measures)
    return {m: outcome(scores, m, "q") for m in measures}, scores


def test_opportunity__is_0_where_the_snapshot_lacks_what_is_required(tmp_path):
    names = ["retrieval.opportunity", "retrieval.coverage"]
    lost, _ = one(tmp_path / "a", required("z", in_snapshot=False), {"ranked": ["a"]}, names)
    assert lost == {"retrieval.opportunity": 0.0, "retrieval.coverage": "na"}
    none, _ = one(tmp_path / "b", [{"doc_id": "a", "required": False}], {"ranked": ["a"]}, names)
    assert none == {"retrieval.opportunity": "na", "retrieval.coverage": "na"}


def test_no_result__is_counted_also_where_nothing_can_be_found(tmp_path):
    names = ["retrieval.no_result", "R", "retrieval.opportunity", "freshness.pass"]
    found, _ = one(tmp_path, [], {"ranked": []}, names, as_of=date(2025, 1, 1))
    assert found == {
        "retrieval.no_result": 1.0, "R": "na", "retrieval.opportunity": "na",
        "freshness.pass": "missing",
    }  # fmt: skip


def test_displaced__is_what_reranking_pushed_out(tmp_path):
    stages = {"dense": ["a", "b"], "fused": ["a", "b", "c"], "reranked": ["c", "b", "a"]}
    given = {"ranked": ["c", "b", "a"], "stages": stages}
    names = ["retrieval.displaced", "retrieval.ahead", "survival.reranked", "survival.selected"]
    found, _ = one(tmp_path, required("a", "b"), given, names, {"context_k": 2})
    assert found == {
        "retrieval.displaced": 0.5, "retrieval.ahead": 1.0, "survival.reranked": 1.0,
        "survival.selected": 0.5,
    }  # fmt: skip


def test_exercise__of_packing(tmp_path):
    """Three required, two found, one packed: 2/3 and 1/3."""
    trace = {"ranked": ["a", "b"], "context": [{"id": "a"}]}
    trace["context"][0] |= dict.fromkeys(("start", "end", "n_tokens"))
    names = ["retrieval.coverage", "context.coverage", "survival.packed"]
    found, _ = one(tmp_path, required("a", "b", "c"), trace, names)
    assert found["retrieval.coverage"] == pytest.approx(2 / 3)
    assert found["context.coverage"] == found["survival.packed"] == pytest.approx(1 / 3)


@pytest.mark.parametrize(("low", "high", "value"), [
    (0, 20, 1.0), (5, 9, 1.0), (None, None, 1.0), (6, 20, 0.0), (0, 8, 0.0), (None, 9, 1.0),
])  # fmt: skip
def test_packed__needs_the_whole_span(tmp_path, low, high, value):
    chunk = {"chunk_id": "a", "doc_id": "a", "start": 0, "end": 20}
    trace = {"ranked": ["a"], "context": [{"id": "a", "start": low, "end": high, "n_tokens": 1}]}
    evidence = required("a", start=5, end=9)
    found, _ = one(tmp_path, evidence, trace, ["survival.packed"], chunks=[chunk])
    assert found == {"survival.packed": value}


def test_packed__is_0_for_a_refused_context(tmp_path):
    trace = {"ranked": ["a"], "context": None, "context_state": "budget_refused"}
    found, _ = one(tmp_path, required("a"), trace, ["survival.packed", "context.coverage"])
    assert found == {"survival.packed": 0.0, "context.coverage": 0.0}


def test_rbo__golden(tmp_path):
    letters = [{"chunk_id": c} for c in "abcdefg"]
    for a, b, wanted in (("abcde", "bacfg", 0.619335), ("abc", "abc", 1.0), ("ab", "bacd", 0.9)):
        trace = {"ranked": [], "stages": {"dense": list(a), "bm25": list(b)}}
        names = ["overlap.rbo(a=dense,b=bm25)"]
        found, _ = one(tmp_path / a / b, required("a"), trace, names, chunks=letters)
        assert found[names[0]] == pytest.approx(wanted, abs=1e-6)


def test_narrow_pool__is_told(tmp_path):
    stages = {"dense": ["a", "b"], "bm25": ["b"]}
    trace = {"ranked": ["a"], "stages": stages}
    depths = {"candidate_k": 50, "context_k": 2}
    _, scores = one(tmp_path / "a", required("a"), trace, ["retrieval.no_result"], depths)
    assert scores.audits[0].counts["narrow channels"] == 2
    assert any("narrow pool: no list of channel dense" in w for w in scores.audits[0].warnings)
    wide = {"ranked": ["a"], "stages": {"dense": ["a", "b", "c"], "bm25": []}}
    _, scores = one(tmp_path / "b", required("a"), wide, ["retrieval.no_result"], depths)
    assert "narrow channels" not in scores.audits[0].counts


def test_forbidden__in_one_stage_only(tmp_path):
    bad = [{"doc_id": "b", "role": "forbidden", "relevance": 0}]
    trace = {"ranked": ["a"], "stages": {"bm25": ["a", "b"]}}
    names = ["forbidden.rate", "forbidden.rate(stage=ranked)", "forbidden.rate(stage=bm25)",
             "forbidden.count", "forbidden.count(stage=context)"]  # fmt: skip
    found, _ = one(tmp_path, required("a") + bad, trace, names)
    assert found == {
        "forbidden.rate": 1.0, "forbidden.rate(stage=ranked)": 0.0,
        "forbidden.rate(stage=bm25)": 1.0, "forbidden.count": 1.0,
        "forbidden.count(stage=context)": "missing",
    }  # fmt: skip


def test_half_open__validity(tmp_path):
    chunk = {"chunk_id": "a", "valid_from": date(2025, 1, 1), "valid_until": date(2025, 2, 1)}
    for day, value in ((date(2025, 1, 1), 1.0), (date(2025, 1, 31), 1.0), (date(2025, 2, 1), 0.0),
                       (date(2024, 12, 31), 0.0)):  # fmt: skip
        found, _ = one(tmp_path / str(day), required("a"), {"ranked": ["a"]}, ["freshness.pass"],
                       chunks=[chunk], as_of=day)  # fmt: skip
        assert found == {"freshness.pass": value}


def test_authority__by_manifest_suite_and_not_at_all(tmp_path):
    chunks = [{"chunk_id": "a", "authority": "court"}, {"chunk_id": "b", "authority": "blog"}]
    cases = [{"case_id": "q", "evidence": required("a")}]
    trace = [{"case_id": "q", "ranked": ["a", "b"]}]
    names = ["authority.pass"]
    bare = write_suite(tmp_path / "a", cases, chunks)
    assert outcome(score(run_of(trace), suite=bare, measures=names), *names, "q") == "na"
    declared = run_of(trace, {"authorities": ["court"]})
    assert score(declared, suite=bare, measures=names).mean(*names) == 0.5
    toml = 'name = "s"\nauthorities = ["court", "blog"]\n'
    said = write_suite(tmp_path / "b", cases, chunks, toml)
    assert score(run_of(trace), suite=said, measures=names).mean(*names) == 1.0
    with pytest.raises(InputError, match="authorities = 'court'"):
        score(run_of(trace, {"authorities": "court"}), suite=bare, measures=names)


def test_unknown_units__pass_nothing_and_are_counted(tmp_path):
    names = ["freshness.pass", "permission.pass"]
    chunk = {"chunk_id": "a", "acl": None, "valid_from": date(2020, 1, 1)}
    secret = {"chunk_id": "b", "acl": []}
    found, scores = one(tmp_path, required("a"), {"ranked": ["a", "zz"]}, names,
                        chunks=[chunk, secret], as_of=date(2025, 1, 1))  # fmt: skip
    assert found == {"freshness.pass": 0.5, "permission.pass": 0.5}
    assert scores.audits[0].counts["selected units that the suite does not have"] == 1


def test_columns__that_are_not_there_are_missing(tmp_path):
    cases = [{"case_id": "q", "evidence": [{"doc_id": "a"}]}]
    drop = ("as_of", "topic", "principals", "authority", "source_family", "deleted")
    folder = write_suite(tmp_path / "a", cases, [{"chunk_id": "a", "acl": ["x"]}], drop=drop)
    bare = run_of([{"case_id": "q", "ranked": ["a"]}], drop=("stages", "context", "citations"))
    names = [n for n in MEASURES if n not in ("retrieval.no_result", "retrieval.opportunity",
             "retrieval.ahead", "retrieval.source_concentration")]  # fmt: skip
    scores = score(bare, suite=folder, measures=names)
    assert {n: outcome(scores, n, "q") for n in names} == dict.fromkeys(names, "missing")
    kept = ["retrieval.opportunity", "retrieval.ahead", "retrieval.source_concentration"]
    scores = score(bare, suite=folder, measures=kept)
    assert [scores.mean(n) for n in kept] == [1.0, 0.0, 1.0]
    plain = score({"q": {"a": 1.0}}, qrels={"q": {"a": 1}}, measures=list(MEASURES))
    assert {plain.state(n, "q") for n in MEASURES} == {"missing"}


def test_traces__that_failed_or_are_absent(tmp_path):
    cases = [{"case_id": c, "evidence": required("a")} for c in ("ok", "failed", "absent")]
    folder = write_suite(tmp_path, cases, [{"chunk_id": "a"}])
    run = run_of([{"case_id": "ok", "ranked": ["a"]},
                  {"case_id": "failed", "ranked": None, "error": "timeout"}])  # fmt: skip
    names = ["retrieval.opportunity", "retrieval.no_result", "survival.selected"]
    scores = score(run, suite=folder, measures=names)
    assert [outcome(scores, n, "failed") for n in names] == ["failed"] * 3
    assert [outcome(scores, n, "absent") for n in names] == [0.0, 1.0, 0.0]


@pytest.mark.parametrize("bad", [
    "retrieval.token_budget(B=-1)", "retrieval.token_budget(B=x)",
    "retrieval.source_concentration(by=colour)", "overlap.rbo(a=nothing)", "overlap.rbo(p=2)",
])  # fmt: skip
def test_parameters__that_mean_nothing_are_refused(tmp_path, bad):
    trace = {"ranked": ["a"], "stages": {"dense": ["a"], "bm25": ["a"]}}
    with pytest.raises(UsageError):
        one(tmp_path, required("a"), trace, [bad])


def test_stale__requirements_are_disputed(tmp_path):
    evidence = required("a", quote="not there")
    names = ["retrieval.opportunity", "survival.selected", "retrieval.coverage",
             "retrieval.coverage_span"]  # fmt: skip
    folder = write_suite(tmp_path, [{"case_id": "q", "evidence": evidence}], [{"chunk_id": "a"}])
    chunks = pa.table({"chunk_id": ["a"], "text": ["here"]})
    tables.write_ipc(chunks, folder / "chunks.arrow")
    scores = score(run_of([{"case_id": "q", "ranked": ["a"]}]), suite=folder, measures=names)
    assert {n: outcome(scores, n, "q") for n in names} == dict.fromkeys(names, "disputed")


def test_permission__is_missing_where_nobody_says_who_asks(tmp_path):
    closed = [{"chunk_id": "a", "acl": ["staff"]}, {"chunk_id": "b"}]
    trace, names = {"ranked": ["a", "b"]}, ["permission.pass"]
    for at, (principals, ranked, expected) in enumerate((
        (["staff"], ["a", "b"], 1.0), (["guest"], ["a", "b"], 0.5), ([], ["a", "b"], 0.5),
        (None, ["a", "b"], "missing"), (None, ["b"], 1.0),
    )):  # fmt: skip
        found, _ = one(
            tmp_path / str(at), required("b"), {**trace, "ranked": ranked}, names, None, closed,
            principals=principals,
        )  # fmt: skip
        assert found == {"permission.pass": expected}, (principals, ranked)


@pytest.mark.parametrize("name", ["doc_ids", "ids", "retrieved_ids"])
def test_ranking__by_another_name_is_the_same(tmp_path, name):
    measures = ["retrieval.coverage", "retrieval.no_result", "survival.selected", "freshness.pass"]
    cases = [{"case_id": "q", "evidence": required("a", "b"), "as_of": date(2025, 1, 1)}]
    folder = write_suite(tmp_path, cases, [{"chunk_id": c} for c in "abc"])
    run = run_of([{"case_id": "q", "ranked": ["a", "c"]}])
    other = run.rename_columns({"ranked": name})
    found = [score(one, suite=folder, measures=measures) for one in (run, other)]
    for measure in measures:
        assert outcome(found[0], measure, "q") == outcome(found[1], measure, "q"), measure
    assert outcome(found[1], "survival.selected", "q") == 0.5
