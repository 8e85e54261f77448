"""Every Arrow layout of a run and its judgements gives the same numbers, read where it lies."""

import io

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
import tables
from ragcore import columns, score
from ragcore.errors import InputError

NAMES = ("nDCG@5", "AP", "R@10", "P@3", "Bpref", "Judged@5")
RUN, QRELS = tables.world(1, n_cases=9, depth=12)
TRUTH = {name: tables.truth(RUN, QRELS, name) for name in NAMES}


def same(run, qrels=QRELS, truth=None, **options):
    scores = score(run, qrels=qrels, measures=NAMES, **options)
    for name, expected in (truth or TRUTH).items():
        found = scores.per_case(name)
        assert found.keys() == expected.keys()
        for case, value in expected.items():
            assert found[case] == (None if value is None else pytest.approx(value, abs=1e-12))
    return scores


# --- flat rows


@pytest.mark.parametrize("kind", tables.LAYOUTS)
def test_flat__every_layout(kind):
    same(tables.flat(RUN, kind, cuts=(3, 3, 40)), tables.judged(QRELS, kind))


@pytest.mark.parametrize("kind", ["string", "large_string", "string_view", "dict-int8-string"])
def test_flat__slices_of_longer_columns(kind):
    table = tables.flat(RUN, kind)
    arrays = {name: tables.sliced(table[name].chunk(0)) for name in table.column_names}
    assert arrays["doc_id"].offset == 1
    same(pa.table(arrays))


def test_flat__a_slice_of_a_table_and_chunks_of_one_row():
    whole = tables.flat({"before": [("x", 1.0)], **RUN, "after": [("y", 1.0)]})
    same(whole.slice(1, len(whole) - 2))
    n = len(tables.flat(RUN))
    for cuts in (range(n), (0, 0, 0), (n, n), [1] * 5):
        same(tables.flat(RUN, cuts=cuts))


def test_flat__columns_cut_at_different_rows():
    table = tables.flat(RUN)
    mixed = {
        "case_id": tables.cut(table["case_id"].chunk(0), (7, 50)),
        "doc_id": tables.cut(table["doc_id"].chunk(0), (1, 7, 8)),
        "score": tables.cut(table["score"].chunk(0), (30,)),
    }
    same(pa.table(mixed))


@pytest.mark.parametrize("n_parts", [1, 2, 5])
def test_flat__rows_of_a_case_in_any_batch(n_parts):
    rows = [(case, *row) for case, pairs in RUN.items() for row in pairs]
    shuffled = [row for i in range(n_parts) for row in rows[i::n_parts]]
    same(tables.flat_of(shuffled, cuts=(11, 60)))
    same(tables.flat_of(rows[::-1]))


def test_flat__a_stream_that_replaces_its_dictionaries():
    table = tables.flat(RUN)
    sink, batches = io.BytesIO(), []
    for begin in range(0, len(table), 17):
        piece = table.slice(begin, 17)
        coded = {
            name: piece[name].combine_chunks().dictionary_encode() for name in ("case_id", "doc_id")
        }
        batches.append(pa.record_batch(coded | {"score": piece["score"].combine_chunks()}))
    with pa.ipc.new_stream(sink, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    read = pa.ipc.open_stream(sink.getvalue()).read_all()
    assert len({tuple(c.dictionary.to_pylist()) for c in read["doc_id"].chunks}) > 1
    same(read)


@pytest.mark.parametrize(
    "kind", [pa.float32(), pa.float16(), pa.int8(), pa.uint64(), pa.decimal128(9, 2)]
)
def test_flat__scores_of_any_number(kind):
    run = {c: [(d, float(i % 7)) for i, (d, _) in enumerate(rows)] for c, rows in RUN.items()}
    table = tables.flat(run)
    scores = table["score"].cast(kind)
    truth = {name: tables.truth(run, QRELS, name) for name in NAMES}
    same(table.set_column(2, "score", scores), truth=truth)


def test_flat__integers_beyond_double_tie_as_doubles():
    table = pa.table({"case_id": ["q"] * 2, "id": ["b", "a"], "score": [2**53, 2**53 + 1]})
    assert score(table, qrels={"q": {"b": 1}}, measures=["RR"]).mean("RR") == 1.0


@pytest.mark.parametrize(
    "kind", [pa.int64(), pa.uint8(), pa.int16(), pa.dictionary(pa.int8(), pa.int32())]
)
def test_flat__integer_ids_equal_their_decimals(kind):
    run = {str(c): [(str(d), float(-d)) for d in range(5)] for c in range(3)}
    qrels = {str(c): {str(c): 1, "4": 2} for c in range(3)}
    table = tables.flat(run)

    def numbers(name):
        plain = table[name].cast(pa.int64()).combine_chunks()
        return (
            plain.dictionary_encode().cast(kind)
            if pa.types.is_dictionary(kind)
            else plain.cast(kind)
        )

    both = pa.table({n: numbers(n) for n in ("case_id", "doc_id")} | {"score": table["score"]})
    truth = {name: tables.truth(run, qrels, name) for name in NAMES}
    same(both, qrels, truth)
    same(table, tables.judged(qrels), truth)


def test_flat__fixed_size_binary_ids():
    kind = pa.binary(2)
    table = pa.table(
        {"qid": pa.array([b"q1"], kind), "docno": pa.array([b"d1"], kind), "score": [1]}
    )
    assert score(table, qrels={"q1": {"d1": 1}}, measures=["P@1"]).mean("P@1") == 1.0


# --- nested lists


@pytest.mark.parametrize("form", tables.LISTS)
@pytest.mark.parametrize("scored", [False, True])
@pytest.mark.parametrize("cut", [False, True])
def test_nested__every_list(form, scored, cut):
    ranked = {c: [(d, 0.5) for d in reference.order(rows)][:5] for c, rows in RUN.items()}
    if form == "fixed_size_list":
        ranked = {c: rows for c, rows in ranked.items() if len(rows) == 5}
    ranked |= {"null": None} if not cut else {}
    table = tables.nested(ranked, form, scored)
    if cut:
        lists = table["ranked"].chunk(0)
        table = pa.table({
            "case_id": tables.cut(tables.sliced(table["case_id"].chunk(0)), (2, 2)),
            "ranked": tables.cut(lists, (1, 4)) if "view" in form else
            tables.cut(tables.sliced(lists), (1, 4)),
        })  # fmt: skip
    plain = {c: [(d, float(-i)) for i, (d, _) in enumerate(r or [])] for c, r in ranked.items()}
    same(table, truth={name: tables.truth(plain, QRELS, name) for name in NAMES})


@pytest.mark.parametrize("kind", ["large_string", "string_view", "dict-uint8-string", "binary"])
def test_nested__items_of_every_layout(kind):
    docs = ["d1", "d2", "d3", "d4"]
    items = tables.sliced(tables.column(docs, kind))
    offsets = pa.array([0, 3, 3, 4], pa.int32())
    lists = pa.ListArray.from_arrays(offsets, items)
    table = pa.table({"case_id": ["p", "q", "r"], "ranked": lists})
    scores = score(table, qrels={c: {"d3": 1, "d4": 1} for c in "pqr"}, measures=["RR", "NumRet"])
    assert scores.per_case("RR") == {"p": pytest.approx(1 / 3), "q": 0.0, "r": 1.0}
    assert scores.per_case("NumRet") == {"p": 3.0, "q": 0.0, "r": 1.0}


def test_nested__views_that_overlap_and_leave_items_out():
    items = pa.array(["d0", "unused", "d1", "d2", None])
    views = pa.ListViewArray.from_arrays(
        pa.array([2, 0, 3, 2], pa.int32()), pa.array([2, 1, 1, 0], pa.int32()), items
    )
    table = pa.table({"case_id": list("abcd"), "ranked": views})
    scores = score(table, qrels={c: {"d2": 1} for c in "abcd"}, measures=["RR"])
    assert scores.per_case("RR") == {"a": 0.5, "b": 0.0, "c": 1.0, "d": 0.0}


def test_nested__order_is_rank_and_rising_scores_are_counted():
    kind = pa.list_(pa.struct([("id", pa.string()), ("score", pa.float64())]))
    lists = [
        [{"id": "a", "score": 1.0}, {"id": "b", "score": 2.0}],
        [{"id": "a", "score": 2.0}, {"id": "b", "score": 1.0}],
        [{"id": "a", "score": None}, {"id": "b", "score": None}],
    ]
    chunks = [pa.array([one], kind) for one in lists]
    table = pa.table(
        {"case_id": pa.chunked_array([["p"], ["q"], ["r"]]), "ranked": pa.chunked_array(chunks)}
    )
    scores = score(table, qrels={c: {"a": 1} for c in "pqr"}, measures=["RR"])
    assert scores.per_case("RR") == {"p": 1.0, "q": 1.0, "r": 1.0}
    assert scores.audits[0].counts["order conflicts"] == 1
    assert any("1 list(s) whose scores rise" in said for said in scores.audits[0].warnings)


@pytest.mark.parametrize("item", [pa.int64(), pa.string()])
def test_nested__null_fixed_size_lists_of_any_ids(item):
    values = [[1, 2], None] if pa.types.is_integer(item) else [["1", "2"], None]
    table = pa.table({"case_id": ["q", "p"], "ranked": pa.array(values, pa.list_(item, 2))})
    scores = score(table, qrels={"q": {"2": 1}, "p": {"1": 1}}, measures=["RR"])
    assert scores.per_case("RR") == {"q": 0.5, "p": None}
    assert scores.state("RR", "p") == "missing"


@pytest.mark.parametrize(
    ("items", "match"),
    [
        (pa.array([["a", None]]), "null id inside ranked"),
        (pa.array([[{"id": None}]]), "null id inside ranked"),
        (pa.array([[{"doc": "a"}]]), "a field `id`"),
        (pa.array([[{"id": "a", "score": 1.0}, {"id": "b", "score": None}]]), "null score in some"),
        (pa.array([[{"id": "a", "score": "high"}]]), "score"),
        (pa.array([[1.5]]), "type double"),
        (pa.array([["a", "b", "a"]]), "duplicate document 'a' of case 'q'"),
        (pa.array([[{"id": "a", "score": float("nan")}]]), "is NaN"),
    ],
)
def test_nested__refusals(items, match):
    with pytest.raises(InputError, match=match):
        score(pa.table({"case_id": ["q"], "ranked": items}), qrels={"q": {"a": 1}})


def test_nested__a_fault_is_found_in_its_row():
    table = pa.table({"case_id": ["o", "p", "q"], "ranked": [["x", "y"], ["a"], ["c", "c"]]})
    for part, row in ((table, 3), (table.slice(1), 2)):
        with pytest.raises(InputError, match="duplicate document 'c' of case 'q'") as caught:
            score(part, qrels={"q": {"a": 1}, "p": {"a": 1}})
        assert caught.value.row == row


# --- codes of cases


def test_case_codes__names_come_back_from_every_layout():
    codes = columns.CaseCodes(4)
    known: dict[str, int] = {}
    for kind in ("string", "string_view", "large_binary", "dict-int16-string_view"):
        names = [f"{kind}-{i % 700}-{'x' * (i % 30)}" for i in range(2_000)] + ["", "shared"]
        strings = columns.Strings.of([tables.column(names, kind)])
        at = columns.find_segments(strings.table)[:, :2].copy()
        found = codes.add(strings, at)
        for (piece, row), code in zip(at.tolist(), found.tolist(), strict=True):
            assert known.setdefault(strings.text(piece, row), code) == code
    assert codes.names() == list(known)
    assert codes.count == len(known)


@given(st.lists(st.sampled_from(["a", "b", "bb", "", "a\0"]), max_size=40), st.data())
@settings(derandomize=True, deadline=None, max_examples=50)
def test_find_segments__cover_every_row_in_order(names, data):
    cuts = data.draw(st.lists(st.integers(0, len(names)), max_size=4))
    chunks = tables.cut(pa.array(names, pa.string()), cuts).chunks
    found = columns.find_segments(columns.Strings.of(chunks).table).tolist()
    rows = [chunks[p][r].as_py() for p, start, n in found for r in range(start, start + n)]
    assert rows == names
    assert all(len(set(chunks[p].slice(s, n).to_pylist())) == 1 for p, s, n in found)
