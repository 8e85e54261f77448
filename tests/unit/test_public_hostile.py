"""What every importer refuses, and in which words: tables that are not as they should be.

Each collection is a small whole one in which every column is needed. Each is then broken in every
place, one at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import polars as pl
import pytest

from ragcore.errors import InputError
from ragcore.public import (
    clapnq,
    cmrc2018,
    covidqa,
    miracl_zh,
    mtrag,
    nomiracl_zh,
    qasper,
    scifact,
    trec,
    xquad,
)
from ragcore.public.checks import LEAST, MOST
from ragcore.public.imported import Imported

TEXT = "Tea is hot."


@dataclass(frozen=True)
class Small:
    """A collection that is whole.

    Attributes
    ----------
    build, tables : of its importer, and for it.
    keys : the column by table in which a value stands once.
    links : (table, column, table that has it), of ids that must be known.
    maybe : (table, column) that may be empty.
    spare : tables that need not be there.
    """

    build: Callable[..., Imported]
    tables: dict[str, pl.DataFrame]
    keys: dict[str, str]
    links: list[tuple[str, str, str]]
    maybe: tuple[tuple[str, str], ...] = ()
    spare: tuple[str, ...] = ()


def frame(**columns):
    return pl.DataFrame(columns)


def vectors(**columns):
    made = frame(**columns)
    held = [[1.0, 0.0]] * made.height
    return made.with_columns(pl.Series("vector", held, pl.Array(pl.Float32, 2)))


ANSWERS = frame(
    query_id=["q"], doc_id=["d"], annotator=[0], text=["hot"], start_codepoint=[7],
)  # fmt: skip
CORPUS = frame(doc_id=["d"], title=["Tea"], text=[TEXT])
QUERIES = frame(query_id=["q"], text=["How is tea?"])
QRELS = frame(query_id=["q"], doc_id=["d"], relevance=[1])


def of(rows, **values):
    """Rows that say more, the same in each."""
    return rows.with_columns(**{name: pl.lit(value) for name, value in values.items()})


CLAPNQ = Small(
    clapnq.build,
    {
        "corpus": CORPUS.with_columns(sentences=pl.Series([[TEXT]])),
        "queries": of(QUERIES, answerable=True),
        "qrels": QRELS.drop("relevance"),
        "answers": frame(query_id=["q"], doc_id=["d"], text=["Hot."], sentence_index=[[0]]),
    },
    {"corpus": "doc_id", "queries": "query_id"},
    [(one, *link) for one in ("qrels", "answers")
     for link in (("query_id", "queries"), ("doc_id", "corpus"))],
)  # fmt: skip
CMRC2018 = Small(
    cmrc2018.build,
    {"corpus": CORPUS, "queries": of(QUERIES, split="dev"), "answers": ANSWERS},
    {"corpus": "doc_id", "queries": "query_id"},
    [("answers", "query_id", "queries"), ("answers", "doc_id", "corpus")],
)
COVIDQA = Small(
    covidqa.build,
    {
        "documents": CORPUS, "queries": of(QUERIES, doc_id="d"), "answers": ANSWERS,
        "units": frame(unit_id=["d:0"], doc_id=["d"], start_codepoint=[0], end_codepoint=[11],
                       text=[TEXT]),
    },
    {"documents": "doc_id", "units": "unit_id", "queries": "query_id"},
    [("units", "doc_id", "documents"), ("queries", "doc_id", "documents"),
     ("answers", "query_id", "queries"), ("answers", "doc_id", "documents")],
)  # fmt: skip
MIRACL = Small(
    miracl_zh.build,
    {
        "nomiracl_zh/corpus": of(CORPUS, lang="zh"),
        "nomiracl_zh/vectors_corpus": vectors(doc_id=["d"]),
        "miracl_zh/queries": of(QUERIES, lang="zh", split="dev"),
        "miracl_zh/vectors_queries": vectors(query_id=["q"]),
        "miracl_zh/qrels": QRELS,
    },
    {"nomiracl_zh/corpus": "doc_id", "miracl_zh/queries": "query_id",
     "nomiracl_zh/vectors_corpus": "doc_id", "miracl_zh/vectors_queries": "query_id"},
    [("miracl_zh/qrels", "query_id", "miracl_zh/queries")],
    spare=("nomiracl_zh/vectors_corpus", "miracl_zh/vectors_queries"),
)  # fmt: skip
TASK = frame(
    task_id=["t"], history=["user: How?"], question=["How?"], target=["Hot."],
    answerability=["ANSWERABLE"], turn=[1],
)  # fmt: skip
MTRAG = Small(
    mtrag.build,
    {
        "un_tasks": of(TASK, domain="govt").with_columns(
            question_type=pl.Series([["How-To"]]), multi_turn=pl.Series([["Follow-up"]])
        ),
        "un_corpus": of(CORPUS, domain="govt"),
        "un_contexts": frame(task_id=["t"], doc_id=["d"]),
        "retrieval_qrels": frame(set=["mtragun"], query_id=["t"], doc_id=["d"], relevance=[1]),
    },
    {"un_tasks": "task_id", "un_corpus": "doc_id"},
    [("un_contexts", "task_id", "un_tasks"), ("un_contexts", "doc_id", "un_corpus"),
     ("retrieval_qrels", "query_id", "un_tasks"), ("retrieval_qrels", "doc_id", "un_corpus")],
)  # fmt: skip
SAID = frame(task_id=["t"], system=["s"])
RATED = Small(
    mtrag.rated,
    {
        "human_tasks": of(TASK, collection="mt-rag-govt-elser-512").with_columns(
            doc_ids=pl.Series([["d"]]), relevant_positions=pl.Series([[0]])
        ),
        "human_corpus": CORPUS,
        "human_responses": of(SAID, response="Hot."),
        "human_scores": of(SAID, metric=mtrag.RIGHT, kind="algorithm", value=1.0),
    },
    {"human_tasks": "task_id", "human_corpus": "doc_id", "human_responses": "task_id",
     "human_scores": "task_id"},
    [("human_responses", "task_id", "human_tasks"), ("human_scores", "task_id", "human_tasks"),
     ("human_tasks", "doc_ids", "human_corpus")],
)  # fmt: skip
NOMIRACL = Small(
    nomiracl_zh.build,
    {
        "corpus": CORPUS,
        "queries": of(QUERIES, answerable=True),
        "candidates": frame(query_id=["q"], doc_id=["d"], position=[1]),
        "responses": frame(query_id=["q"], system=["s"], response=["I don't know."]),
    },
    {"corpus": "doc_id", "queries": "query_id", "responses": "query_id"},
    [("candidates", "query_id", "queries"), ("candidates", "doc_id", "corpus"),
     ("responses", "query_id", "queries")],
)  # fmt: skip
QASPER = Small(
    qasper.build,
    {
        "papers": frame(paper_id=["p"], title=["Of tea"]),
        "corpus": frame(doc_id=["p:0"], paper_id=["p"], section=["S"], unit=["paragraph"],
                        text=[TEXT]),
        "queries": of(QUERIES, paper_id="p", type="yes_no", answerable=True, lang="en",
                      split="dev"),
        "answers": frame(query_id=["q"], annotation_id=["a"], type=["yes_no"], text=["Yes"],
                         spans=[["x"]], yes_no=[True]),
        "evidence": frame(query_id=["q"], annotation_id=["a"], kind=["evidence"], quote=[TEXT],
                          doc_id=["p:0"], match=["exact"], start_codepoint=[0],
                          end_codepoint=[11]),
        "vectors_corpus": vectors(doc_id=["p:0"]),
        "vectors_queries": vectors(query_id=["q"]),
    },
    {"papers": "paper_id", "corpus": "doc_id", "queries": "query_id",
     "vectors_corpus": "doc_id", "vectors_queries": "query_id"},
    [("corpus", "paper_id", "papers"), ("queries", "paper_id", "papers"),
     ("answers", "query_id", "queries"), ("evidence", "query_id", "queries"),
     ("evidence", "doc_id", "corpus")],
    (("papers", "title"), *(("answers", one) for one in ("text", "spans", "yes_no")),
     *(("evidence", one) for one in ("quote", "doc_id", "start_codepoint", "end_codepoint"))),
    ("vectors_corpus", "vectors_queries"),
)  # fmt: skip
SCIFACT = Small(
    scifact.build,
    {
        "corpus": CORPUS,
        "queries": of(QUERIES, split="test", verdict="SUPPORT", answerable=True),
        "qrels": QRELS,
        "claims": frame(query_id=["q"], doc_id=["d"], label=["SUPPORT"], sentences=[[0]]),
    },
    {"corpus": "doc_id", "queries": "query_id"},
    [(one, *link) for one in ("qrels", "claims")
     for link in (("query_id", "queries"), ("doc_id", "corpus"))],
    (("queries", "split"),),
)  # fmt: skip
TREC = Small(
    trec.build,
    {
        "qrels": QRELS, "queries": QUERIES, "corpus": CORPUS,
        "runs": frame(system=["s"], query_id=["q"], doc_id=["d"], score=[1.0]),
        "run_x": frame(system=["x"], query_id=["q"], doc_id=["d"], score=[1.0]),
    },
    {"queries": "query_id", "corpus": "doc_id"},
    [(one, "query_id", "queries") for one in ("qrels", "runs", "run_x")],
    spare=("queries", "corpus", "runs", "run_x"),
)  # fmt: skip
XQUAD = Small(
    xquad.build,
    {
        "corpus": of(CORPUS, lang="en", parallel_id="d"),
        "queries": of(QUERIES, lang="en", parallel_id="q"),
        "answers": ANSWERS,
    },
    {"corpus": "doc_id", "queries": "query_id"},
    [("answers", "query_id", "queries"), ("answers", "doc_id", "corpus")],
)

SMALL = {
    "clapnq": CLAPNQ, "cmrc2018": CMRC2018, "covidqa": COVIDQA, "miracl_zh": MIRACL,
    "mtrag": MTRAG, "mtrag rated": RATED, "nomiracl_zh": NOMIRACL, "qasper": QASPER,
    "scifact": SCIFACT, "trec": TREC, "xquad": XQUAD,
}  # fmt: skip


@pytest.fixture(params=SMALL)
def small(request):
    return SMALL[request.param]


def refused(small, name, rows):
    """What is said of a collection with another table; None in place of a table: none."""
    tables = {key: value for key, value in small.tables.items() if key != name}
    if rows is not None:
        tables[name] = rows
    with pytest.raises(InputError) as caught:
        small.build(tables)
    assert caught.value.where.startswith(name)
    return caught.value


def places(small):
    return [(name, column) for name, rows in small.tables.items() for column in rows.columns]


def test_whole__is_imported(small):
    made = small.build(small.tables)
    assert made.cases.num_rows == 1
    made.cases.validate(full=True)


def test_table__that_is_missing_is_named_with_those_that_are_there(small):
    for name in small.tables.keys() - set(small.spare):
        error = refused(small, name, None)
        assert error.found.startswith("no such table; there are ")
        assert error.wanted == f"a table {name}"


def test_column__that_is_missing_is_named_with_those_that_are_there(small):
    for name, column in places(small):
        rows = small.tables[name].drop(column)
        error = refused(small, name, rows)
        if column != "vector":
            assert error.found == f"columns {', '.join(rows.columns) or '(none)'}"
            assert error.wanted == f"a column {column}"


def test_column__of_another_type_is_named_with_its_type(small):
    for name, column in places(small):
        kind = small.tables[name].schema[column]
        for value in (7, "x", 0.5, True, [7], ["x"], b"x"):
            rows = small.tables[name].with_columns(pl.Series(column, [value]))
            fits = rows.schema[column] == kind or (
                kind.is_float() and rows.schema[column].is_integer()
            )
            if not fits:
                error = refused(small, name, rows)
                assert error.found == f"column {column} of type {rows.schema[column]}"
                assert error.wanted.endswith((" in it", "of one length"))


def test_value__that_is_missing_is_named_with_its_row(small):
    for name, column in places(small):
        rows = small.tables[name]
        empty = rows.clear(1).with_columns(rows[other] for other in rows.columns if other != column)
        twice = pl.concat([rows, empty])
        if (name, column) in small.maybe:
            small.build({**small.tables, name: rows if column in small.keys else empty})
        elif column != "vector":
            error = refused(small, name, twice)
            assert (error.found, error.row) == (f"no {column}", 2)
            assert error.wanted == f"a {column} in every row"


def test_list__that_lacks_a_value_is_named_with_its_row(small):
    for name, column in places(small):
        kind = small.tables[name].schema[column]
        if isinstance(kind, pl.List) and (name, column) not in small.maybe:
            rows = small.tables[name].with_columns(pl.Series(column, [[None]], kind))
            assert refused(small, name, rows).found == f"no {column}"


def test_id__that_stands_twice_is_named_with_its_row(small):
    for name, column in small.keys.items():
        rows = small.tables[name]
        error = refused(small, name, pl.concat([rows, rows, rows]))
        assert error.found == f"{column} {rows[column][0]!r} again, and 1 more like it"
        assert (error.wanted, error.row) == (f"each {column} once", 2)


def test_id__that_is_unknown_is_named_with_the_table_that_lacks_it(small):
    for name, column, of in small.links:
        rows = small.tables[name]
        strange = pl.Series(column, ["?"]).cast(pl.String)
        if isinstance(rows.schema[column], pl.List):
            strange = pl.Series(column, [["?"]])
        others = [rows[other] for other in rows.columns if other != column]
        if small.keys.get(name) not in (None, column):
            key = small.keys[name]
            others = [one.rename(key) + "!" if one.name == key else one for one in others]
        wrong = pl.DataFrame([*others, strange]).select(rows.columns)
        error = refused(small, name, pl.concat([rows, wrong]))
        assert error.found == f"unknown {column} '?'"
        known = error.wanted.split()
        assert (known[:1], known[-2:]) == (["a"], ["of", of])
        assert error.row == 2


@pytest.mark.parametrize("grade", [LEAST - 1, MOST + 1])
def test_grade__that_there_is_no_room_for_is_named_with_its_row(small, grade):
    for name, column in places(small):
        if column == "relevance":
            error = refused(small, name, of(small.tables[name], relevance=grade))
            assert (error.found, error.row) == (f"relevance {grade}", 1)


def test_number__that_there_is_no_room_for_is_named(small):
    """Places and turns are smaller in a suite than they may be in a table."""
    for name, column in places(small):
        if column in ("turn", "start_codepoint") and name not in ("answers", "evidence"):
            rows = of(small.tables[name], **{column: 2**40})
            with pytest.raises(InputError, match=r"^column (turn|start): "):
                small.build({**small.tables, name: rows})


@pytest.mark.parametrize(
    ("small", "name", "column", "value"),
    [
        (SCIFACT, "claims", "label", "MAYBE"), (MTRAG, "un_tasks", "answerability", "ODD"),
        (RATED, "human_tasks", "answerability", "ODD"), (QASPER, "queries", "split", "half"),
        (CMRC2018, "queries", "split", "half"), (MIRACL, "miracl_zh/queries", "split", "half"),
    ],
)  # fmt: skip
def test_choice__that_is_unknown_is_named_with_those_that_there_are(small, name, column, value):
    error = refused(small, name, of(small.tables[name], **{column: value}))
    assert (error.found, error.row) == (f"unknown {column} {value!r}", 1)
    assert error.wanted.startswith("one of ")


@pytest.mark.parametrize("small", [MIRACL, QASPER], ids=["miracl_zh", "qasper"])
def test_vectors__that_are_too_few_or_uneven_are_named(small):
    for name in small.spare:
        key = small.keys[name]
        rows = small.tables[name]
        error = refused(small, name, of(rows, **{key: "?"}))
        assert "(1 of 1 have none)" in error.found
        loose = rows.with_columns(pl.col("vector").arr.to_list())
        assert refused(small, name, loose).wanted == "arrays of numbers, of one length"
