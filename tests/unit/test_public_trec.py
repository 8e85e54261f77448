"""The importer of classic collections: grades, runs and their parts, the files, what is broken."""

from __future__ import annotations

import gzip

import polars as pl
import pytest

import importers
from ragcore.errors import InputError
from ragcore.public import trec
from ragcore.public import trec_files as files


def qrels(*rows):
    kinds = {"query_id": pl.String, "doc_id": pl.String, "relevance": pl.Int32}
    return pl.DataFrame(list(rows), kinds, orient="row")


def run(system, *rows):
    kinds = {"system": pl.String, "query_id": pl.String, "doc_id": pl.String, "score": pl.Float64}
    return pl.DataFrame([(system, *row) for row in rows], kinds, orient="row")


def topics(*names):
    return pl.DataFrame({"query_id": list(names), "text": [f"{name}?" for name in names]})


CORPUS = pl.DataFrame({
    "doc_id": ["a", "b", "c"], "title": ["Tea", "Salt", ""], "text": ["Tea is hot.", "Sea.", " "],
})  # fmt: skip
JUDGED = qrels(("2", "a", 2), ("1", "b", -2), ("2", "b", 0), ("1", "a", 1))


def grades(suite):
    return {
        row["case_id"]: row["evidence"]
        and [(item["doc_id"], item["relevance"]) for item in row["evidence"]]
        for row in suite.cases.to_pylist()
    }


def test_build__keeps_grades_as_they_are():
    suite = trec.build({"qrels": JUDGED})
    assert grades(suite) == {"2": [("a", 2), ("b", 0)], "1": [("b", -2), ("a", 1)]}
    assert suite.chunks is None
    assert suite.notes == ("1 judgement of 4 below 0: judged, not relevant, and no loss",)


def test_build__a_topic_without_judgements_is_unknown():
    suite = trec.build({"qrels": JUDGED, "queries": topics("1", "2", "3")})
    assert grades(suite)["3"] is None
    assert suite.cases["question"].to_pylist() == ["1?", "2?", "3?"]
    assert suite.notes[0].startswith("1 topic of 3 without any judgement")


def test_build__says_what_the_corpus_lacks():
    rows = pl.concat([JUDGED, qrels(("1", "z", 1), ("1", "a", 0))])
    suite = trec.build({"qrels": rows, "corpus": CORPUS})
    assert suite.chunks is not None
    assert suite.chunks["title"].to_pylist() == [None, "Salt", None]
    assert [note.split(" ")[:2] for note in suite.notes] == [
        ["1", "document"], ["1", "title"], ["1", "judgement"], ["1", "judgement"],
        ["1", "document"],
    ]  # fmt: skip
    assert "judged twice" in suite.notes[-1]
    assert grades(suite)["1"][-1] == ("a", 0)  # both are there; the engine takes the higher


def test_runs__are_flat_and_those_made_here_stay_out():
    rows = [run("real", ("1", "b", 1.5)), run("lsa12", ("1", "a", 1.0)),
            run("bm25", ("1", "a", 1.0), ("2", "a", 0.5))]  # fmt: skip
    x = run("x", ("2", "a", -1.0), ("1", "a", -3.0))
    suite = trec.build({"qrels": JUDGED, "runs": pl.concat(rows), "run_x": x})
    found = {name: [tuple(row.values()) for row in table.to_pylist()]
             for name, table in suite.runs.items()}  # fmt: skip
    assert found == {"x": [("2", "a", -1.0), ("1", "a", -3.0)], "real": [("1", "b", 1.5)]}
    assert suite.runs["x"].column_names == ["case_id", "id", "score"]
    assert "3 rows of 2 runs left out, which nobody published: lsa12, bm25" in suite.notes


def test_runs__of_parts_of_the_topics_are_one():
    parts = pl.concat([run("m-11", ("1", "a", 1.0)), run("m-12", ("2", "a", 1.0)),
                       run("n-11", ("1", "a", 1.0))])  # fmt: skip
    suite = trec.build({"qrels": JUDGED, "queries": topics("1", "2", "3"), "runs": parts})
    assert set(suite.runs) == {"m", "n-11"}
    assert suite.cases["part"].to_pylist() == ["11", "12", None]
    assert suite.notes[0] == "2 runs of parts of the topics are one run 'm': m-11, m-12"


def test_runs__that_share_a_topic_stay_apart():
    both = pl.concat([run("m-11", ("1", "a", 1.0), ("2", "a", 1.0)), run("m-12", ("2", "a", 1.0))])
    suite = trec.build({"qrels": JUDGED, "runs": both})
    assert set(suite.runs) == {"m-11", "m-12"}
    assert "part" not in suite.cases.column_names


@pytest.mark.parametrize(
    ("tables", "told"),
    [
        ({"qrels": JUDGED, "run_x": run("x", ("1", "a", 1.0)),
          "run_y": run("x", ("1", "a", 1.0))}, "run_y: a run 'x' again"),
    ],
)  # fmt: skip
def test_build__names_what_does_not_belong(tables, told):
    with pytest.raises(InputError, match=told):
        trec.build(tables)


# --- files


def page(text):
    return f"<html>\n<pre>\n\n\n{text}\n\n</pre>\n</html>\n"


def archive(path, **pages):
    raw = {f"CACM-{name[1:]}.html": text.encode() for name, text in pages.items()}
    importers.write_tar(path, raw)


def cacm(folder, **pages):
    body = "Two\nlines\n\nAn  abstract\nof 1 2 3.\n\nCACM May, 1958\n\n1\t5\t1\n3\t6\t1"
    archive(folder / files.CACM, **(pages or {
        "p0001": page(body),
        "p0002": page("A &lt;Title&gt;\n\nCA580101 JB March 1, 1978\n\n2\t5\t2"),
    }))  # fmt: skip
    (folder / files.CACM_RUN).write_text("1 Q0 CACM-0001 1 2.5 tag\n")
    (folder / files.CACM_TOPICS).write_text("<DOC>\n<DOCNO> 1 </DOCNO>\n\n What\nis? \n\n</DOC>\n")
    (folder / files.CACM_QRELS).write_text("1 Q0 CACM-1 1\n1 Q0 CACM-0001 1\n")
    return folder


def test_cacm__records_lose_their_citation_lists(tmp_path):
    tables = trec.official(cacm(tmp_path))
    assert tables["corpus"].rows() == [
        ("CACM-0001", "Two lines", "An abstract of 1 2 3.\n\nCACM May, 1958"),
        ("CACM-0002", "A <Title>", ""),
    ]
    assert tables["queries"].rows() == [("1", "What is?")]
    suite = trec.build(tables)
    assert suite.runs["Anserini"].num_rows == 1
    assert any(note.startswith("1 judgement of documents that the corpus") for note in suite.notes)


def test_cranfield__grades_are_turned_and_questions_counted(tmp_path):
    (tmp_path / files.CRANFIELD).write_text(
        ".I 1\n.T\na\nb\n.A\nx\n.B\ny\n.W\na\nb  c\n.I 2\n.T\n.A\n.B\n.W\n.I 3\n.W\nd\n.W\n.e\n"
    )
    (tmp_path / files.CRANFIELD_QUERIES).write_bytes(
        b".I 001\r\n.W\r\nwhat\r\n.I 004\r\n.W\r\nwho\r\n"
    )
    (tmp_path / files.CRANFIELD_QRELS).write_text("1 1 1 \n1 2 4\n2 3 -1\n")
    tables = trec.official(tmp_path)
    assert tables["corpus"].select("doc_id", "title", "text").rows() == [
        ("1", "a b", "a b c"), ("2", "", ""), ("3", "", "d .e"),
    ]  # fmt: skip
    assert tables["queries"].rows() == [("1", "what", "001"), ("2", "who", "004")]
    assert tables["qrels"]["relevance"].to_list() == [4, 1, -1]


def robust(folder, text="1\tQ0\td1\t0\t2.5\ttag\n1 Q0 d2 1 2.5 tag\n"):
    (folder / files.ROBUST).write_text("1 0 d1 1\n1 0 d2 0\n")
    for name in files.ROBUST_RUNS:
        (folder / f"input.{name}.gz").write_bytes(gzip.compress(text.encode()))
    return folder


def test_robust__runs_have_the_names_of_their_files(tmp_path):
    tables = trec.official(robust(tmp_path))
    assert set(trec.build(tables).runs) == set(files.ROBUST_RUNS)
    assert tables["run_InexpC2"]["rank"].to_list() == [0, 1]


def test_web__keeps_the_years_that_have_runs(tmp_path):
    (tmp_path / files.WEB).write_text("1 0 x 1\n101 0 a -2\n151 0 b 1\n201 0 c 1\n251 0 d 1\n")
    (tmp_path / files.WEB_QUERIES).write_text(
        "".join(f"query\t{n}\t t{n} \n" for n in (1, 101, 151, 201, 251))
    )
    for n, name in zip((101, 151, 201, 251), files.WEB_RUNS.values(), strict=True):
        (tmp_path / name).write_text(f"{n} Q0 a 1 -2.25 run\n")
    tables = trec.official(tmp_path)
    assert tables["queries"].rows()[0] == ("101", "t101")
    assert tables["qrels"]["query_id"].to_list() == ["101", "151", "201", "251"]
    suite = trec.build(tables)
    assert suite.cases["part"].to_pylist() == ["wt11", "wt12", "wt13", "wt14"]
    assert suite.runs["bm25"].num_rows == 4


@pytest.mark.parametrize(
    ("name", "raw", "told"),
    [
        (files.ROBUST, b"1 0 d1 1\n1 0 d2\n", r"robust03_qrels\.txt:2: 3 fields"),
        (files.ROBUST, b"1 0 d1 one\n", "not as published"),
        ("input.InexpC2.gz", b"1 Q0 d1 1 2.5 tag\n", "not as published: BadGzipFile"),
        (
            "input.InexpC2.gz",
            gzip.compress(b"1 Q0 d1 1 2.5 tag\n", mtime=0)[:-9],
            "not as published: EOFError",
        ),
        ("input.InexpC2.gz", gzip.compress(b"1 Q0 d1 1 high tag\n", mtime=0), "not as published"),
        ("input.InexpC2.gz", None, "no such file"),
    ],
)
def test_official__names_what_is_broken(tmp_path, name, raw, told):
    path = robust(tmp_path) / name
    path.unlink() if raw is None else path.write_bytes(raw)
    with pytest.raises(InputError, match=told):
        trec.official(tmp_path)


def test_official__names_broken_records(tmp_path):
    with pytest.raises(InputError, match="not as published"):
        trec.official(cacm(tmp_path, p0001="no record"))
    (tmp_path / files.CACM).write_bytes(b"none")
    with pytest.raises(InputError, match="not as published"):
        trec.official(tmp_path)
    (tmp_path / files.CACM).unlink()
    with pytest.raises(InputError, match="none of the files that name a collection"):
        trec.official(tmp_path)
    (tmp_path / files.CRANFIELD).write_text("text\n")
    with pytest.raises(InputError, match=r"records that begin with \.I"):
        trec.official(tmp_path)
