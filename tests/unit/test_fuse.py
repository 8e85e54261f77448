"""`ragcore.fuse`: files and tables in, a case batch out; what it records and notices."""

import hashlib
import json
import math
import random
import sys

import pyarrow as pa
import pytest

import ragcore
import reference_fusion as reference
import tables
from fusion_runs import BM25, DENSE, expected, rankings, write_forms
from ragcore import case_batch, schema
from ragcore.errors import InputError, UsageError
from ragcore.fuse import fuse
from ragcore_kernels._jit import JIT, compiled_count
from ragcore_kernels.fusion import fuse_cases
from reference_data import read_runs


def manifest(fused):
    return json.loads(fused.table.schema.metadata[schema.MANIFEST_KEY])


@pytest.fixture
def forms(tmp_path):
    return write_forms(tmp_path)


def test_fuse__gives_the_same_for_every_form_of_a_run(forms):
    want = expected([BM25, DENSE], 3)
    for name, runs in forms.items():
        for threads in (1, 2):
            fused = fuse(runs, depth=3, threads=threads)
            assert rankings(fused.table) == want, name
            assert fused.table.schema.field("case_id").type == pa.string()
            assert fused.table.schema.field("ranked").type == schema.RUNS.field("ranked").type
            assert fused.table.schema.field("stages").type == schema.RUNS.field("stages").type
            fused.table.validate(full=True)
    assert compiled_count(fuse_cases) == (1 if JIT else 0)


@pytest.mark.parametrize("method", ["rrf", "combsum", "combmnz"])
def test_fuse__equals_the_reference_on_random_runs(method):
    rng = random.Random(method)
    names = [f"d{i}" for i in range(60)]

    def run():
        return {
            f"q{i}": [(d, rng.randrange(9) / 4) for d in rng.sample(names, rng.randrange(1, 40))]
            for i in rng.sample(range(12), 9)
        }

    runs = [run() for _ in range(4)]
    got = rankings(fuse([tables.flat(r) for r in runs], method=method, depth=20).table)
    want = expected(runs, method=method)
    for case, rows in want.items():
        scores = dict(rows)
        assert len(got[case]) == min(20, len(rows))
        for doc, score in got[case]:
            assert score == pytest.approx(scores[doc], rel=1e-12)
        assert [s for _, s in got[case]] == sorted((s for _, s in got[case]), reverse=True)
        if method == "rrf":
            assert got[case] == rows[:20]


def test_recorded_order__is_the_rank_whatever_the_scores():
    run = tables.nested({"q": [("low", 1.0), ("high", 2.0)]}, scores=True)
    assert [doc for doc, _ in rankings(fuse(run).table)["q"]] == ["low", "high"]


def test_blocks__do_not_show(monkeypatch):
    whole = fuse([tables.flat(BM25), tables.flat(DENSE)])
    monkeypatch.setattr(sys.modules["ragcore.fuse"], "BLOCK_ROWS", 2)
    monkeypatch.setattr(sys.modules["ragcore.fuse"], "SERIAL_ROWS", 0)
    parts = fuse([tables.flat(BM25), tables.flat(DENSE)], threads=2)
    assert parts.table["ranked"].num_chunks > 1
    assert parts.table.to_pylist() == whole.table.to_pylist()
    assert parts.agreements == whole.agreements
    monkeypatch.setattr(sys.modules["ragcore.fuse"], "BLOCK_ROWS", 1000)
    monkeypatch.setattr(sys.modules["ragcore.fuse"], "MOST_BYTES", 12)
    assert (
        fuse([BM25, DENSE]).table.to_pylist()
        == fuse([tables.flat(BM25), tables.flat(DENSE)], names=["run1", "run2"]).table.to_pylist()
    )
    monkeypatch.setattr(sys.modules["ragcore.fuse"], "MOST_BYTES", 3)
    with pytest.raises(InputError, match="2 GiB"):
        fuse([BM25, DENSE])


@pytest.mark.parametrize("method", ["rrf", "combsum"])
def test_real_runs__fuse_as_by_definition(shared_data, method):
    runs = [
        run for name in ("SABIR03BASE", "pircRBa1", "humR03dc")
        for run in read_runs(shared_data / "trec_robust03" / f"run_{name}.parquet").values()
    ]  # fmt: skip
    topics = sorted({topic for run in runs for topic in run})[:4]
    some = [{topic: run[topic] for topic in topics if topic in run} for run in runs]
    got = rankings(fuse([tables.flat(run) for run in some], method=method, depth=100).table)
    for topic, rows in expected(some, method=method).items():
        scores = dict(rows)
        assert len(got[topic]) == 100
        if method == "rrf":
            assert got[topic] == rows[:100]
        assert [s for _, s in got[topic]] == pytest.approx([s for _, s in rows[:100]], rel=1e-12)
        assert all(scores[doc] == pytest.approx(s, rel=1e-12) for doc, s in got[topic])


# --- what the result records


def test_stages__hold_every_list_in_rank_order_and_recompute_the_fusion():
    fused = fuse([tables.flat(BM25), tables.nested(DENSE)], names=["bm25", "dense"])
    for row in fused.table.to_pylist():
        lists = dict(row["stages"])
        assert list(lists) == [
            name for name, run in (("bm25", BM25), ("dense", DENSE)) if row["case_id"] in run
        ]
        again = reference.fuse(
            [[(item["id"].encode(), 0.0) for item in each] for each in lists.values()],
            recorded=[True] * len(lists),
        )
        assert [(d.decode(), s) for d, s, _ in again] == [
            (item["id"], item["score"]) for item in row["ranked"]
        ]
        for name, each in lists.items():
            known = [item["score"] is not None for item in each]
            assert all(known) if name == "bm25" else not any(known)
    assert "stages" not in fuse([BM25, DENSE], stages=False).table.column_names


def test_stages__of_one_run_can_be_fused_again():
    first = fuse([tables.flat(BM25), tables.flat(DENSE)], names=["bm25", "dense"])
    again = fuse(first.table, stage=["bm25", "dense"])
    assert again.table.to_pylist() == first.table.to_pylist()
    assert [one.name for one in again.lists] == ["bm25", "dense"]
    sliced = fuse(first.table.slice(1), stage=["dense", "bm25"])
    assert rankings(sliced.table) == {
        case: rows for case, rows in rankings(first.table).items() if case != "q1"
    }
    two = fuse([first.table, first.table], stage="bm25", names=["one", "two"])
    assert [doc for doc, _ in rankings(two.table)["q1"]] == ["a", "b", "c"]
    assert len(fuse([first.table, first.table], stage=["bm25", "dense"]).lists) == 2


@pytest.mark.parametrize(
    ("stage", "message"),
    [("sparse", "no stage 'sparse'.*bm25, dense"), (["bm25", "dense", "x"], "no stage 'x'")],
)
def test_stages__that_are_not_there_are_refused(stage, message):
    run = fuse([BM25, DENSE], names=["bm25", "dense"]).table
    with pytest.raises(InputError, match=message):
        fuse(run, stage=stage)
    with pytest.raises(InputError, match="no column `stages`"):
        fuse(tables.flat(BM25), stage="bm25")
    with pytest.raises(UsageError, match="3 stages for 2 runs"):
        fuse([run, run], stage=["bm25"] * 3)


def test_manifest__says_how_and_keeps_what_all_runs_share(tmp_path):
    about = {"suite": "ka4", "candidate_k": 20, "context_k": 2, "run": "left"}
    left = tables.nested(BM25).replace_schema_metadata({"ragcore.manifest": json.dumps(about)})
    about = {**about, "run": "right", "candidate_k": 30}
    right = tables.nested(DENSE).replace_schema_metadata({"ragcore.manifest": json.dumps(about)})
    folder = tmp_path / "left"
    folder.mkdir()
    files = [tables.write_ipc(left, folder / "run.arrow"),
             tables.write_ipc(right, tmp_path / "run.arrow")]  # fmt: skip
    fused = fuse(files, weights=[1, 0.5], depth=2, name="hybrid")
    said = manifest(fused)
    assert said["run"] == "hybrid"
    assert (said["fusion"]["method"], said["rrf_k"], said["context_k"]) == ("rrf", 60, 2)
    assert said["fusion"]["weights"] == {"run": 1.0, "run#2": 0.5}
    assert said["suite"] == "ka4"
    assert "candidate_k" not in said
    path = fused.write(tmp_path / "hybrid.arrow")
    metadata = pa.ipc.open_file(str(path)).schema.metadata
    said = json.loads(metadata[schema.MANIFEST_KEY])
    for one, file in zip(said["fusion"]["inputs"], files, strict=True):
        assert one["sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()
    assert json.loads(metadata[schema.PROVENANCE_KEY])["options"]["method"] == "rrf"
    assert manifest(fuse(BM25, method="combsum"))["fusion"]["normalise"] == "min-max"


# --- cases, languages, repeats


def test_cases_of_some_runs__are_kept_counted_and_named():
    fused = fuse([BM25, DENSE])
    assert set(rankings(fused.table)) == {"q1", "q2", "q3"}
    assert "2 cases are in 1 of 2 lists: q2, q3" in fused.notes


def test_languages_and_repeats__are_cases_of_their_own():
    def batch(run, lang, repeat):
        return tables.nested(
            run, lang=pa.array(lang).dictionary_encode(), repeat=pa.array(repeat, pa.int16())
        ).set_column(0, "case_id", pa.array([q.split("-")[0] for q in run]))

    rows = {"q-en": [("a", 1.0)], "q-de": [("b", 1.0)], "q-de2": [("c", 1.0)]}
    first = batch(rows, ["en", "de", "de"], [0, 0, 1])
    second = batch(dict(list(rows.items())[:2]), ["de", "en"], [0, None])
    fused = fuse([first, second])
    got = [
        (r["lang"], r["repeat"], [i["id"] for i in r["ranked"]], len(r["stages"]))
        for r in fused.table.to_pylist()
    ]
    assert got == [
        ("en", 0, ["b", "a"], 2), ("de", 0, ["b", "a"], 2), ("de", 1, ["c"], 1)
    ]  # fmt: skip
    assert "1 case is in 1 of 2 lists: q (de) repeat 1" in fused.notes
    assert fused.table.schema.field("lang").type == schema.DICT
    with pytest.raises(InputError, match="without a language"):
        fuse([first, {"q": {"a": 1.0}}])
    alone = fuse([second.slice(0, 1), {"q": {"z": 1.0}}])
    assert [(r["lang"], len(r["ranked"])) for r in alone.table.to_pylist()] == [("de", 2)]
    with pytest.raises(InputError, match="stands twice"):
        fuse([pa.concat_tables([second, second])])
    with pytest.raises(InputError, match="'lang' of type"):
        fuse(tables.nested(BM25, lang=pa.array([1.5, 2.5])))


def test_null_list__is_not_an_empty_one():
    first = tables.nested({"q": None, "p": [("a", 1.0)], "r": []}, scores=True)
    second = tables.nested({"q": None, "p": None, "r": []}, scores=True)
    fused = fuse([first, second], names=["one", "two"])
    ranked = {r["case_id"]: r["ranked"] and [i["id"] for i in r["ranked"]]
              for r in fused.table.to_pylist()}  # fmt: skip
    assert ranked == {"q": None, "p": ["a"], "r": []}
    assert "two: no list recorded for 2 cases: q, p" in fused.notes
    assert "one: no result for 1 of 2 cases" in fused.notes


def test_repeated_documents__count_once_and_are_noted():
    rows = {"q": [("a", 3.0), ("b", 2.0), ("a", 1.0), ("c", 0.5)]}
    fused = fuse(tables.flat(rows), names=["one"])
    assert rankings(fused.table) == {"q": [("a", 1 / 61), ("b", 1 / 62), ("c", 1 / 63)]}
    assert [one.repeated for one in fused.lists] == [1]
    assert any("1 rows repeat a document" in note for note in fused.notes)


def test_ids_that_are_no_text__stay_bytes(tmp_path):
    (tmp_path / "run.trec").write_bytes(b"q Q0 caf\xe9 1 1.0 t\nq Q0 b 2 0.5 t\n")
    fused = fuse(tmp_path / "run.trec")
    items = fused.table["ranked"][0].as_py()
    assert [item["id"] for item in items] == [b"caf\xe9", b"b"]
    path = fused.write(tmp_path / "out.arrow")
    run = ragcore.score(path, qrels={"q": {"b": 1}}, measures=["RR"])
    assert run.value("RR", "q") == 0.5


# --- what is noticed


def with_manifest(run, **about):
    table = tables.nested(run, scores=True)
    return table.replace_schema_metadata({"ragcore.manifest": json.dumps(about)})


def test_narrow_fusion__is_said():
    runs = [with_manifest(BM25, candidate_k=20), with_manifest(DENSE, candidate_k=20)]
    fused = fuse(runs, depth=3, names=["bm25", "dense"])
    assert len(fused.warnings) == 2
    assert "narrow fusion" in fused.warnings[0]
    assert "candidate_k 20" in fused.warnings[0]
    assert fuse(runs, depth=2).warnings == []
    assert fuse(runs).warnings == []
    known = [with_manifest(r, candidate_k=20, context_k=5) for r in (BM25, DENSE)]
    assert len(fuse(known).warnings) == 2
    by_stage = with_manifest(BM25, candidate_k={"run1": 9}, context_k=5)
    assert len(fuse(by_stage, names=["run1"]).warnings) == 1
    (note,) = [n for n in fuse([BM25, DENSE], depth=3).notes if "no list is longer" in n]
    assert "cut at 3" in note


def test_agreement__is_measured_for_every_pair():
    fused = fuse([BM25, DENSE, BM25], overlap_depth=3, names=["a", "b", "c"])
    pairs = {(one.first, one.second): one for one in fused.agreements}
    assert list(pairs) == [("a", "b"), ("a", "c"), ("b", "c")]
    lists = [[doc for doc, _ in run["q1"]] for run in (BM25, DENSE)]
    exact = [float(v) for v in reference.agreement(*lists, 3, 0.9)]
    one = pairs["a", "b"]
    assert [one.jaccard, one.overlap, one.rbo] == pytest.approx(exact, rel=1e-12)
    assert (one.n_cases, one.depth) == (1, 3)
    assert pairs["a", "c"].rbo == pytest.approx(1.0, rel=1e-12)
    assert fuse([BM25, DENSE], overlap_depth=0).agreements == []
    (empty,) = fuse([{"q": {"a": 1.0}, "p": {}}, {"q": {"a": 1.0}, "p": {}}]).agreements
    assert (empty.n_cases, empty.jaccard, empty.rbo) == (1, 1.0, 1.0)
    (lone,) = fuse([{"q": {"a": 1.0}}, {"p": {"a": 1.0}}]).agreements
    assert math.isnan(lone.rbo)


# --- case batches in general


def test_case_batch__has_the_types_of_the_schema():
    table = case_batch.case_batch(
        {"case_id": ["a", "b"], "lang": ["en", None], "query": ["x", "y"], "repeat": [0, 1],
         "tokens_in": [3, None]}, {"run": "r"},
    )  # fmt: skip
    for field in table.schema:
        assert field.equals(schema.RUNS.field(field.name))
    assert table["lang"].to_pylist() == ["en", None]
    assert json.loads(table.schema.metadata[schema.MANIFEST_KEY]) == {"run": "r"}
    with pytest.raises(KeyError, match="nothing"):
        case_batch.case_batch({"case_id": ["a"], "nothing": [1]}, {})
    with pytest.raises(KeyError, match="case_id"):
        case_batch.case_batch({"query": ["a"]}, {})
