"""Arrow and Parquet files and tables: told by their bytes, widened where needed, or refused."""

import decimal

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import tables
from ragcore import score
from ragcore.errors import InputError
from ragcore.formats import arrow

RUN, QRELS = tables.world(3, n_cases=5, depth=8)
EXPECTED = score(tables.flat(RUN), qrels=QRELS, measures=["AP"]).per_case("AP")


def chunked(values, kind=None):
    return pa.chunked_array([pa.array(values, kind)])


# --- files


@pytest.mark.parametrize("how", ["file", "stream", "parquet", "lz4", "zstd", "feather"])
def test_files__are_told_by_their_bytes(how, tmp_path):
    path, table = tmp_path / "run.txt", tables.flat(RUN, cuts=(4, 4))
    if how in ("file", "stream"):
        tables.write_ipc(table, path, how == "stream")
    elif how == "parquet":
        pq.write_table(table, path, row_group_size=7)
    elif how == "feather":
        feather.write_feather(table, path, compression="uncompressed")
    else:
        options = pa.ipc.IpcWriteOptions(compression=how)
        with pa.ipc.new_file(str(path), table.schema, options=options) as writer:
            writer.write_table(table)
    assert score(path, qrels=QRELS, measures=["AP"]).per_case("AP") == EXPECTED


@pytest.mark.parametrize("how", ["file", "stream", "parquet"])
def test_files__cut_anywhere_are_refused(how, tmp_path):
    path, table = tmp_path / "run", tables.flat(RUN)
    if how == "parquet":
        pq.write_table(table, path)
    else:
        tables.write_ipc(table, path, how == "stream")
    whole = path.read_bytes()
    for size in (8, 9, 12, 100, len(whole) // 2, len(whole) - 9):
        path.write_bytes(whole[:size])
        with pytest.raises(InputError, match="run"):
            score(path, qrels=QRELS)


@pytest.mark.parametrize("name", ["run.arrow", "run.parquet", "run.feather", "run.ipc"])
def test_files__of_no_byte_are_refused_by_name(name, tmp_path):
    (tmp_path / name).touch()
    with pytest.raises(InputError, match="it is empty"):
        score(tmp_path / name, qrels=QRELS)


@pytest.mark.parametrize("query", ["PAR1", "ARROW1"])
def test_files__of_text_may_begin_like_a_table(query, tmp_path):
    (tmp_path / "run").write_text(f"{query} Q0 d1 1 1.0 t\n")
    scores = score(tmp_path / "run", qrels={query: {"d1": 1}}, measures=["P@1"])
    assert scores.mean("P@1") == 1.0


@pytest.mark.parametrize("layout", ["string", "dict-int32-string", "string_view"])
def test_files__with_damaged_offsets_or_codes_are_refused(layout, tmp_path):
    """What Arrow only checks when asked to must not make a kernel read outside the file."""
    rows = {"q": [(f"document-number-{i:04}", float(-i)) for i in range(200)]}
    table = tables.flat(rows, layout)
    path = tables.write_ipc(table, tmp_path / "run.arrow")
    array = table["doc_id"].chunk(0)
    buffer = (array.indices if pa.types.is_dictionary(array.type) else array).buffers()[1]
    whole, wanted = path.read_bytes(), buffer.to_pybytes()
    place = whole.index(wanted)
    for value in (0x7F000000, -5):
        damaged = bytearray(whole)
        spot = place + (16 * 50 + 8 if layout == "string_view" else 4 * 50)
        damaged[spot : spot + 4] = value.to_bytes(4, "little", signed=True)
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=r"run\.arrow"):
            score(path, qrels={"q": {"document-number-0001": 1}}, measures=["RR"])


@pytest.mark.parametrize("form", ["list", "large_list", "list_view"])
@pytest.mark.parametrize("value", [0x7F000000, -7])
def test_files__with_damaged_lists_are_refused(form, value, tmp_path):
    rows = {f"case{i:04}": [(f"document-{i:03}-{j}", 0.0) for j in range(5)] for i in range(100)}
    table = tables.nested(rows, form)
    path = tables.write_ipc(table, tmp_path / "run.arrow")
    whole = bytearray(path.read_bytes())
    spot = whole.index(table["ranked"].chunk(0).buffers()[1].to_pybytes()) + 200
    whole[spot : spot + 4] = value.to_bytes(4, "little", signed=True)
    path.write_bytes(whole)
    with pytest.raises(InputError, match=r"run\.arrow"):
        score(path, qrels={"case0001": {"document-001-1": 1}}, measures=["RR"])


# --- tables from elsewhere


def test_tables__from_other_frames():
    table = tables.flat(RUN)
    sources = [
        table,
        table.to_batches()[0],
        pa.RecordBatchReader.from_batches(table.schema, table.to_batches()),
    ]
    import polars

    sources.append(polars.from_arrow(table))
    for source in sources:
        assert score(source, qrels=QRELS, measures=["AP"]).per_case("AP") == EXPECTED


def test_tables__from_pandas():
    pandas = pytest.importorskip("pandas")
    frame = tables.flat(RUN).to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert score(frame, qrels=QRELS, measures=["AP"]).per_case("AP") == EXPECTED


def test_numbers_and_texts__are_arrow_arrays_over_the_same_values():
    for values in (np.arange(4), np.array([1.5, np.nan])[::-1], np.array([], np.int32)):
        array = arrow.numbers(values)
        assert array.type == pa.from_numpy_dtype(values.dtype)
        assert np.array_equal(array.to_numpy(), values, equal_nan=values.dtype.kind == "f")
    for texts in ([], [""], ["a", "文", "e\u0301", "x" * 5000]):
        assert arrow.texts(texts).to_pylist() == texts
        arrow.texts(texts).validate(full=True)


# --- columns


@pytest.mark.parametrize(
    ("values", "kind", "match"),
    [
        ([1.5], None, "type double"),
        ([True], None, "type bool"),
        ([["a"]], None, "type list"),
        ([None, "a"], None, "null id"),
        ([None, 3], pa.int32(), "null id"),
        (["a", None], pa.dictionary(pa.int8(), pa.string()), "null id"),
        ([None], pa.null(), "null id"),
    ],
)
def test_as_ids__refuses(values, kind, match):
    with pytest.raises(InputError, match=match):
        arrow.as_ids("here", "id", chunked(values, kind))


def test_as_ids__finds_a_null_inside_a_dictionary():
    codes = pa.array([0, 1], pa.int8())
    used = pa.DictionaryArray.from_arrays(codes, pa.array(["a", None]))
    with pytest.raises(InputError, match="null id") as caught:
        arrow.as_ids("here", "id", pa.chunked_array([used]))
    assert caught.value.row == 2
    unused = pa.DictionaryArray.from_arrays(codes, pa.array(["a", "b", None]))
    assert arrow.as_ids("here", "id", pa.chunked_array([unused])).to_pylist() == ["a", "b"]


@pytest.mark.parametrize(
    ("values", "kind"),
    [(["1"], None), ([True], None), ([None, 1.0], None), ([None], pa.null()), ([[1.0]], None)],
)
def test_as_scores__refuses(values, kind):
    with pytest.raises(InputError, match=r"null score|type"):
        arrow.as_scores("here", "score", chunked(values, kind))


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        ([1, -2], pa.int8(), [1, -2]),
        ([2**31 - 1, -(2**31)], pa.int64(), [2**31 - 1, -(2**31)]),
        ([True, False], None, [1, 0]),
        ([1.0, -3.0, -0.0], pa.float64(), [1, -3, 0]),
        ([2.0], pa.float16(), [2]),
    ],
)
def test_as_grades__takes_whole_numbers(values, kind, expected):
    column = chunked(values, kind)
    found = arrow.as_grades("here", "grade", column, float_grades=True)
    assert (found.type, found.to_pylist()) == (pa.int32(), expected)


@pytest.mark.parametrize(
    ("values", "kind", "floats"),
    [
        ([1, 1.0], pa.float64(), False),
        ([1.0, 0.5], None, True),
        ([float("inf")], None, True),
        ([float("-inf")], None, True),
        ([float("nan")], None, True),
        ([1e10], None, True),
        ([-3e9], None, True),
        ([2**31], pa.int64(), True),
        ([2**63], pa.uint64(), True),
        (["1"], None, True),
        ([None, 1], pa.int32(), True),
        ([decimal.Decimal("1.0")], None, False),
    ],
)
def test_as_grades__refuses(values, kind, floats):
    with pytest.raises(InputError, match="here"):
        arrow.as_grades("here", "grade", chunked(values, kind), floats)


def test_find__refuses_a_name_that_stands_twice():
    table = pa.table([["q"], ["d"], [1.0], [2.0]], names=["qid", "id", "score", "score"])
    with pytest.raises(InputError, match=r"score.*(twice|2 times)"):
        score(table, qrels={"q": {"d": 1}})


@pytest.mark.parametrize("drop", ["case_id", "doc_id", "score"])
def test_flat__without_a_column_is_refused(drop):
    with pytest.raises(InputError, match=r"columns .*; expected one of "):
        score(tables.flat(RUN).drop_columns([drop]), qrels=QRELS)


def test_flat__nulls_are_named_by_row():
    table = pa.table({
        "case_id": pa.chunked_array([["q"], ["q", None]]),
        "id": ["a", None, "c"],
        "score": [1.0, 2.0, None],
    })  # fmt: skip
    with pytest.raises(InputError, match="null id") as caught:
        score(table, qrels=QRELS)
    assert caught.value.row == 2


# --- several systems in one table


@pytest.mark.parametrize(
    "kind", ["string", "large_string", "dict-int8-string", "string_view", "int"]
)
@pytest.mark.parametrize("ids", ["string", "string_view"])
def test_systems__are_runs_of_their_own(kind, ids):
    rows = [("q", "a", 2.0), ("q", "b", 1.0), ("q", "b", 2.0), ("q", "a", 1.0)]
    names = pa.array([1, 1, 2, 2]) if kind == "int" else tables.column(["1", "1", "2", "2"], kind)
    table = tables.flat_of(rows, ids, system=names)
    scores = score(table, qrels={"q": {"a": 1}}, measures=["RR"])
    assert [(run.name, scores.mean("RR", run.name)) for run in scores.runs] == [
        ("1", 1.0),
        ("2", 0.5),
    ]


def test_systems__without_a_name_are_refused():
    table = tables.flat_of([("q", "a", 2.0), ("q", "b", 1.0)], system=pa.array(["x", None]))
    with pytest.raises(InputError, match="null system"):
        score(table, qrels={"q": {"a": 1}})


def test_systems__of_one_name_are_one_run():
    table = tables.flat_of([("q", "a", 2.0)], run=pa.array(["bm25"]))
    assert [run.name for run in score(table, qrels={"q": {"a": 1}}).runs] == ["bm25"]
