"""What `score` takes: mappings, paths, pipes, manifests, and the names that runs get."""

import gzip
import json
import os
import threading
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import tables
from ragcore import score
from ragcore.errors import InputError, UsageError

QRELS = {"q": {"a": 1}}


def names(runs, **options):
    return [run.name for run in score(runs, qrels=QRELS, measures=["RR"], **options).runs]


def rr(run, qrels=QRELS, **options):
    return score(run, qrels=qrels, measures=["RR"], **options).mean("RR")


# --- mappings


@pytest.mark.parametrize("value", [1, 1.0, np.float32(1), np.int8(1), np.float64(1), True, -0.0])
def test_mapping__takes_any_number(value):
    assert rr({"q": {"a": value, "b": -5}}) == 1.0


def test_mapping__takes_pairs_and_ids_that_are_no_strings():
    assert rr({"q": [("b", 2.0), ("a", 1.0)]}) == 0.5
    assert rr({7: {3: 1.0}}, {"7": {"3": 1}}) == 1.0
    assert rr({"7": {"3": 1.0}}, {7: {3: np.int64(1)}}) == 1.0
    assert rr({b"q": {b"a": 1.0}}) == 1.0
    assert rr({"q": {"\ud800": 2.0, "a": 1.0}}) == 0.5


def test_mapping__of_a_case_without_rows_has_that_case():
    scores = score(
        {"q": {"a": 1.0}, "p": {}}, qrels={"q": {"a": 1}, "p": {"a": 1}}, measures=["RR"]
    )
    assert scores.per_case("RR") == {"q": 1.0, "p": 0.0}
    assert scores.audits[0].missing_in_run == []


@pytest.mark.parametrize(
    "bad", ["x", "1.5", None, b"1", [1], [1, 2], Decimal("1"), 1j, "nan", float("nan")]
)
def test_mapping__refuses_what_is_no_score(bad):
    with pytest.raises(InputError, match=r"run( 1 row 1)?: "):
        score({"q": {"a": bad}}, qrels=QRELS)


@pytest.mark.parametrize(
    "bad", ["x", "1", None, 2**31, 2**70, -(2**40), 0.5, 1.0, float("inf"), float("nan"), [1]]
)
def test_mapping__refuses_what_is_no_grade(bad):
    with pytest.raises(InputError, match="qrels"):
        score({"q": {"a": 1.0}}, qrels={"q": {"a": bad}})


@pytest.mark.parametrize(
    "inner", [["a", "b"], ["document", "other"], [("a", 1.0, 2)], 7, None, "ab"]
)
def test_mapping__refuses_what_holds_no_pairs(inner):
    with pytest.raises(InputError, match="run"):
        score({"q": inner}, qrels=QRELS)


# --- what cannot be read


@pytest.mark.parametrize("thing", [7, None, object(), np.zeros(3)])
def test_runs__of_no_known_kind_are_refused(thing):
    with pytest.raises(UsageError, match="cannot read a run from"):
        score([thing], qrels=QRELS)


def test_qrels__of_no_known_kind_are_refused():
    with pytest.raises(UsageError, match="cannot read a qrels from int"):
        score({"q": {"a": 1.0}}, qrels=7)


def test_paths__that_cannot_be_read_are_named(tmp_path):
    for path in (tmp_path / "absent.run", tmp_path):
        with pytest.raises(InputError, match=str(path)):
            score(path, qrels=QRELS)
        with pytest.raises(InputError, match=str(path)):
            score({"q": {"a": 1.0}}, qrels=path)
    (tmp_path / "empty.run").touch()
    with pytest.raises(InputError, match="no row at all"):
        score(tmp_path / "empty.run", qrels=QRELS)
    with pytest.raises(InputError, match="no judged case"):
        score({"q": {"a": 1.0}}, qrels=tmp_path / "empty.run")


# --- pipes


def lines(n):
    return "".join(f"q Q0 d{i} 1 {n - i} t\n" for i in range(n)) + "q Q0 a 1 -1 t\n"


@pytest.mark.parametrize("n", [3, 5_000])
@pytest.mark.parametrize("packed", [False, True])
def test_pipes__are_read_whole(tmp_path, n, packed):
    path, text = tmp_path / "pipe", lines(n).encode()
    os.mkfifo(path)
    text = gzip.compress(text) if packed else text
    writer = threading.Thread(target=path.write_bytes, args=(text,), daemon=True)
    writer.start()
    scores = score(path, qrels=QRELS, measures=["NumRet", "RR"])
    writer.join(5)
    assert scores.means() == {"NumRet": n + 1.0, "RR": 1 / (n + 1)}


# --- names


def test_names__come_from_the_caller_the_file_the_manifest_or_the_place(tmp_path):
    text = tmp_path / "bm25.run.gz"
    text.write_bytes(gzip.compress(b"q Q0 a 1 1 tag\n"))
    manifest = {b"ragcore.manifest": json.dumps({"run": "dense"}).encode()}
    table = tables.flat({"q": [("a", 1.0)]})
    told = table.replace_schema_metadata(manifest)
    stored = tables.write_ipc(told, tmp_path / "stored.arrow")
    runs = [text, told, stored, table, {"q": {"a": 1.0}}]
    assert names(runs) == ["bm25", "dense", "stored", "run4", "run5"]
    assert names(runs, names=list("vwxyz")) == list("vwxyz")
    assert names(table, names=["one"]) == ["one"]


def test_names__that_come_twice_are_numbered():
    run = {"q": {"a": 1.0}}
    assert names([run] * 3, names=["x", "x", "x"]) == ["x", "x#2", "x#3"]
    found = names([run] * 3, names=["x#2", "x", "x"])
    assert len(set(found)) == 3


def test_names__of_files_that_are_not_utf8(tmp_path):
    path = os.fsencode(tmp_path) + b"/r\xe9.run"
    with open(path, "wb") as file:  # noqa: PTH123 - a path of bytes
        file.write(b"q Q0 a 1 1 t\n")
    scores = score(os.fsdecode(path), qrels=QRELS, measures=["RR"])
    assert scores.runs[0].name == r"r\xe9"
    assert scores.table().num_rows == 1


@pytest.mark.parametrize("given", [["x"], ["x", "y", "z"]])
def test_names__of_another_number_are_refused(given):
    with pytest.raises(UsageError, match=f"{len(given)} names for 2 runs"):
        names([{"q": {"a": 1.0}}] * 2, names=given)


# --- manifests


@pytest.mark.parametrize("text", [b"{bad", b"[1]", b"\xff", b"", b'"text"', b"null"])
def test_manifest__that_is_no_json_object_is_refused(text):
    table = tables.flat({"q": [("a", 1.0)]}).replace_schema_metadata({b"ragcore.manifest": text})
    with pytest.raises(InputError, match=r"ragcore\.manifest: .*expected a JSON object"):
        score(table, qrels=QRELS)


def test_manifest__may_name_anything(tmp_path):
    for run in (7, None, ["x"]):
        manifest = {b"ragcore.manifest": json.dumps({"run": run, "suite": 3}).encode()}
        table = tables.flat({"q": [("a", 1.0)]}).replace_schema_metadata(manifest)
        assert score(table, qrels=QRELS).summary().num_rows > 0
        with pytest.raises(UsageError, match="no suite '3' found"):
            score(table)


# --- arguments


def test_runs__of_none_are_refused():
    with pytest.raises(UsageError, match="no run given"):
        score([], qrels=QRELS)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"topics": "all"}, "topics='all'.*judged, common"),
        ({"duplicates": "mean"}, "duplicates='mean'.*error, first, last, max"),
        ({"no_relevant": "skip"}, "no_relevant='skip'.*zero, na"),
        ({"normalize_ids": "nfkc"}, "normalize_ids='nfkc'"),
        ({"max_depth": 0}, "max_depth=0"),
        ({"threads": -1}, "threads=-1"),
        ({"measures": []}, "no measure asked for"),
    ],
)
def test_options__refused(options, match):
    with pytest.raises(UsageError, match=f"(?s){match}"):
        score({"q": {"a": 1.0}}, qrels=QRELS, **options)


def test_measures__may_be_one_name():
    assert score({"q": {"a": 1.0}}, qrels=QRELS, measures="RR").measures == ["RR"]


def test_float_grades__by_option():
    assert rr({"q": {"a": 1.0}}, {"q": {"a": 1.0}}, float_grades=True) == 1.0
    with pytest.raises(InputError, match=r"0\.5 is not an integer"):
        rr({"q": {"a": 1.0}}, {"q": {"a": 0.5}}, float_grades=True)


def test_tables__keep_their_buffers_alive():
    import gc

    scores = score(pa.table({"qid": ["q"], "docno": ["a"], "score": [1.0]}), qrels=QRELS)
    gc.collect()
    assert scores.audits[0].counts["rows"] == 1
    assert scores.table()["case_id"].to_pylist()[0] == "q"
