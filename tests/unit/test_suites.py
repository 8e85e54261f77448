"""Suites: opening, finding, evidence as judgements, and what is refused."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tables
from ragcore import score
from ragcore.errors import InputError, UsageError
from ragcore.suites import find_suite, judgements, manifest_of, open_suite

CASES = pa.table({"case_id": ["A"], "evidence": [tables.evidence(("d1", 1))]})


def test_open__reads_what_suite_toml_says(tmp_path):
    toml = 'name = "x"\nkind = "made"\nmeasures = ["RR", "P@1"]\n'
    suite = open_suite(tables.write_suite(tmp_path / "s", CASES, toml))
    assert (suite.name, suite.kind, suite.measures) == ("x", "made", ["RR", "P@1"])
    assert score({"A": {"d1": 1.0}}, suite=tmp_path / "s").measures == ["RR", "P@1"]


def test_open__without_suite_toml_and_from_parquet(tmp_path):
    folder = tmp_path / "bare"
    folder.mkdir()
    pq.write_table(CASES, folder / "cases.parquet")
    suite = open_suite(folder)
    assert (suite.name, suite.kind, suite.measures) == ("bare", "", [])
    assert score({"A": {"d1": 1.0}}, suite=folder, measures=["RR"]).mean("RR") == 1.0


def test_open__refuses(tmp_path):
    with pytest.raises(InputError, match=r"no cases\.arrow(?s:.*)--qrels"):
        open_suite(tmp_path)
    broken = tables.write_suite(tmp_path / "toml", CASES, "name = ")
    with pytest.raises(InputError, match="broken TOML"):
        open_suite(broken)
    nameless = tables.write_suite(tmp_path / "columns", CASES.drop_columns(["case_id"]))
    with pytest.raises(InputError, match="a column case_id"):
        open_suite(nameless)
    (tmp_path / "toml" / "suite.toml").write_text("")
    (tmp_path / "toml" / "cases.arrow").write_bytes(b"ARROW1\0\0 cut")
    with pytest.raises(InputError, match="not an Arrow IPC file"):
        open_suite(tmp_path / "toml")


def test_find__by_folder_around_the_run_and_under_data(tmp_path, monkeypatch):
    folder = tables.write_suite(tmp_path / "here", CASES, 'name = "little"\n')
    runs = folder / "runs"
    runs.mkdir()
    run = tables.nested({"A": [("d1", 1.0)]})
    manifest = {b"ragcore.manifest": json.dumps({"suite": "little", "run": "r"}).encode()}
    path = tables.write_ipc(run.replace_schema_metadata(manifest), runs / "r.arrow")
    assert find_suite(str(folder)) == folder
    assert find_suite("little", path) == folder
    assert score(path, measures=["RR"]).mean("RR") == 1.0
    monkeypatch.chdir(tmp_path)
    tables.write_suite(tmp_path / "data" / "far", CASES)
    assert find_suite("far").name == "far"
    with pytest.raises(UsageError, match="no suite 'nowhere' found"):
        find_suite("nowhere", path)


def test_judge__by_one_thing_only(tmp_path):
    folder = tables.write_suite(tmp_path / "s", CASES)
    with pytest.raises(UsageError, match="both a suite and qrels"):
        score({"A": {"d1": 1.0}}, suite=folder, qrels={"A": {"d1": 1}})
    with pytest.raises(UsageError, match="nothing to judge"):
        score({"A": {"d1": 1.0}})


def test_manifest__of_a_table_without_one():
    assert manifest_of(None) == {}
    assert manifest_of(CASES) == {}
    assert manifest_of(CASES.replace_schema_metadata({b"other": b"x"})) == {}


def graded(tmp_path, items, required=False):
    cases = pa.table({"case_id": ["A"], "evidence": pa.array([items])})
    rows = judgements(open_suite(tables.write_suite(tmp_path / "g", cases)), required)
    if rows is None:
        return None
    column = rows.ids.arrays[0].to_pylist()
    grades = rows.keep[0].to_pylist()
    return dict(zip(column, grades, strict=True))


def item(doc, **rest):
    names = ("chunk_id", "role", "relevance", "required", "in_snapshot")
    return {"doc_id": doc} | dict.fromkeys(names) | rest


def test_judgements__grade_by_relevance_else_by_role(tmp_path):
    items = [
        item("a"), item("b", role="supporting"), item("c", role="conflicting"),
        item("d", role="stale"), item("e", role="forbidden"), item("f", role="background"),
        item("g", role="stale", relevance=2), item("h", relevance=0), item("i", relevance=-1),
        item("j", chunk_id="j-1"), item("k", relevance=1), item("k", relevance=3), item("k"),
    ]  # fmt: skip
    assert graded(tmp_path, items) == {
        "a": 1, "b": 1, "c": 1, "d": 0, "e": 0, "f": 0, "g": 2, "h": 0, "i": -1, "j-1": 1, "k": 3
    }  # fmt: skip


def test_judgements__of_what_is_required(tmp_path):
    items = [
        item("a", required=True), item("b", required=False), item("c"),
        item("d", required=True, in_snapshot=False), item("e", required=True, relevance=0),
        item("a", required=True),
    ]  # fmt: skip
    assert graded(tmp_path, items, required=True) == {"a": 1, "e": 1}
    assert graded(tmp_path, [item("a")], required=True) is None


def test_judgements__without_an_id_are_refused(tmp_path):
    with pytest.raises(InputError, match="evidence without an id") as caught:
        graded(tmp_path, [item(None, relevance=1)])
    assert caught.value.row == 1


@pytest.mark.parametrize("bad", [0.5, 1.0, "1", True, 2**31, -(2**40)])
def test_judgements__whose_relevance_is_no_integer_are_refused(tmp_path, bad):
    with pytest.raises(InputError, match=rf"relevance {bad!r}; expected an integer"):
        graded(tmp_path, [item("a", relevance=bad)])


@pytest.mark.parametrize("bad", [["d1"], "d1", {"doc_id": "d1"}, [("d1", "x")]])
def test_open__evidence_of_another_form_is_refused(tmp_path, bad):
    kind = pa.map_(pa.string(), pa.string()) if isinstance(bad, list) and bad[0] != "d1" else None
    cases = pa.table({"case_id": ["A"], "evidence": pa.array([bad], kind)})
    with pytest.raises(InputError, match="column evidence of type"):
        open_suite(tables.write_suite(tmp_path / "s", cases))


@pytest.mark.parametrize("where", ["lang", "evidence"])
def test_open__damaged_cases_are_refused(tmp_path, where):
    n = 60
    cases = pa.table({
        "case_id": [f"case-{i}" for i in range(n)],
        "lang": pa.array(["en", "zh"] * (n // 2)).dictionary_encode(),
        "evidence": [tables.evidence(f"document-{i}") for i in range(n)],
    })  # fmt: skip
    folder = tables.write_suite(tmp_path / "s", cases)
    path = folder / "cases.arrow"
    column = cases[where].chunk(0)
    buffer = column.indices.buffers()[1] if where == "lang" else column.buffers()[1]
    whole = bytearray(path.read_bytes())
    spot = whole.index(buffer.to_pybytes()) + 100
    whole[spot : spot + 4] = (0x7F000000).to_bytes(4, "little")
    path.write_bytes(whole)
    with pytest.raises(InputError, match="damaged"):
        open_suite(folder)


def test_coverage__is_missing_where_nothing_says_what_is_required(tmp_path):
    folder = tables.write_suite(tmp_path / "s", CASES)
    scores = score({"A": {"d1": 1.0}}, suite=folder, measures=["retrieval.coverage"])
    assert scores.state("retrieval.coverage", "A") == "missing"
    row = scores.summary().to_pylist()[0]
    assert (row["n_ok"], row["n_missing"], row["mean"]) == (0, 1, None)


def test_cases__of_any_layout_and_ids(tmp_path):
    for i, ids in enumerate((pa.array([7, 8]), tables.column(["7", "8"], "string_view"),
                             tables.column(["7", "8"], "dict-int8-large_string"))):  # fmt: skip
        cases = pa.table({"case_id": ids, "evidence": [tables.evidence("d1"), None]})
        folder = tables.write_suite(tmp_path / f"s{i}", cases)
        scores = score({7: {"d1": 1.0}, 8: {"d1": 1.0}}, suite=folder, measures=["RR"])
        assert scores.per_case("RR") == {"7": 1.0, "8": None}


def test_cases__that_stand_twice_are_refused(tmp_path):
    cases = pa.table({"case_id": ["A", "B", "A"], "evidence": [tables.evidence("d1")] * 3})
    folder = tables.write_suite(tmp_path / "s", cases)
    with pytest.raises(InputError, match=r"case 'A' in language None stands twice \(row 1 too\)"):
        score({"A": {"d1": 1.0}}, suite=folder)
