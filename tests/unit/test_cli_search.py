"""`ragcore index` and `ragcore search` as a user calls them."""

from __future__ import annotations

import json
import pickle
import sys

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pytest
from click.testing import CliRunner

import indexes
from conformance.shapes import python
from ragcore import schema
from ragcore.cli import main
from ragcore.index.opened import open_index

TEXTS = {"a": "red fox", "b": "blue hen", "c": "red hen 狐狸"}
VECTORS = {"a": [1.0, 0.0], "b": [0.0, 1.0], "c": [0.6, 0.8]}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    feather.write_feather(indexes.chunk_table(TEXTS), str(tmp_path / "chunks.arrow"))
    cases = pa.table({"case_id": ["q1", "q2"], "question": ["red fox", "zebra 狐"]})
    feather.write_feather(cases, str(tmp_path / "cases.arrow"))
    return tmp_path


def call(*arguments, status=0):
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    assert result.exit_code == status, result.output
    return result


def write(folder, name, ids, matrix, column="doc_id"):
    vectors = indexes.vector_column(np.array(matrix, np.float32))
    feather.write_feather(pa.table({column: ids, "vector": vectors}), str(folder / name))


def read(path):
    return pa.ipc.open_file(pa.memory_map(str(path))).read_all()


def test_index_and_search__from_nothing_to_a_score(folder):
    done = call("index", "chunks.arrow", "-o", "i")
    assert "3 chunks; 5 terms, 7 postings; postings from segment files" in done.stderr
    done = call("search", "i", "cases.arrow", "-o", "run.arrow")
    assert "50% of query tokens are out of vocabulary (2 of 4;" in done.stderr
    assert "50% of questions find nothing (1 of 2)" in done.stderr
    assert "nothing for q2 (zebra 狐)" in done.stderr
    (folder / "qrels").write_text("q1 0 a 1\n")
    done = call("score", "run.arrow", "--qrels", "qrels", "-m", "RR", "-f", "jsonl")
    assert json.loads(done.stdout.splitlines()[0])["mean"] == 1.0
    manifest = json.loads(read("run.arrow").schema.metadata[schema.MANIFEST_KEY])
    assert manifest["run"] == "run"


def test_index__vectors_from_a_file_and_every_strategy(folder):
    write(folder, "vectors.arrow", list("bca"), [VECTORS[n] for n in "bca"])
    write(folder, "asked.arrow", ["q2", "q1"], [[0.0, 1.0], [1.0, 0.1]], "query_id")
    call("index", "chunks.arrow", "-o", "i", "--vectors", "vectors.arrow", "--hnsw", "--m", 8)
    for strategy in ("dense", "dense-exact", "hybrid", "hybrid-exact"):
        given = ["--question-vectors", "asked.arrow", "--context-k", 1, "--batch", "--threads", 2]
        call("search", "i", "cases.arrow", "--strategy", strategy, "-o", "run.arrow", *given)
        rows = read("run.arrow").to_pylist()
        assert rows[0]["ranked"][0]["id"] == "a"
        assert [len(row["context"]) for row in rows] == [1, 1]
    done = call("search", "i", "cases.arrow", "--strategy", "dense", "-o", "x.arrow", status=2)
    assert "--question-vectors FILE" in done.stderr
    assert not (folder / "x.arrow").exists()


def test_index__changes_and_checks(folder):
    call("index", "chunks.arrow", "-o", "i")
    feather.write_feather(indexes.chunk_table({"d": "new", "a": "white"}), str(folder / "m.arrow"))
    assert (
        "is in the index already"
        in call("index", "m.arrow", "-o", "i", "--append", status=2).stderr
    )
    call("index", "m.arrow", "-o", "i", "--append", "--replace", "--delete", "b")
    assert open_index("i").ids.to_pylist() == ["d", "c", "a"]
    call("index", "-o", "i", "--delete", "c")
    assert open_index("i").ids.to_pylist() == ["d", "a"]
    assert (
        "postings equal those of tantivy's segment files"
        in call("index", "-o", "i", "--check").stdout
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["index", "-o", "i"], "nothing to index"),
        (["index", "none.arrow", "-o", "i"], "a readable file"),
        (["index", "chunks.arrow", "-o", "i", "--check"], "as it is"),
        (["index", "chunks.arrow", "-o", "i", "--replace"], "goes with --append"),
        (["index", "chunks.arrow", "-o", "i", "--delete", "a"], "add --append"),
        (["index", "chunks.arrow", "-o", "i", "--append"], "no manifest.json"),
        (["index", "chunks.arrow", "-o", "i", "--vectors", "x", "--embed", "y"], "leave one out"),
        (["index", "chunks.arrow", "-o", "i", "--embed", "y"], "no embedder 'y'"),
        (["index", "chunks.arrow", "-o", "i", "--analyzer", "klingon"], "no analyzer"),
        (["index", "chunks.arrow", "-o", "i", "--text", "words"], "a column words"),
        (["index", "chunks.arrow", "-o", "cases.arrow"], "is a file"),
        (["search", "i", "cases.arrow"], "nowhere to write"),
        (["search", "i", "cases.arrow", "-o", "r"], "no manifest.json"),
    ],
)
def test_bad_usage__is_told_and_writes_nothing(folder, arguments, said):
    before = sorted(p.name for p in folder.iterdir())
    done = call(*arguments, status=2)
    assert said in done.stderr
    assert "Traceback" not in done.output
    assert sorted(p.name for p in folder.iterdir()) == before


def test_search__options_reach_the_search(folder):
    call("index", "chunks.arrow", "-o", "i", "--k1", 0.9, "--b", 0.4, "--analyzer", "en")
    given = ["--variant", "lucene", "--lengths", "tantivy", "--count-repeats", "--name", "x"]
    given += ["--candidate-k", 7, "--threshold", 0.1]
    call("search", "i", "cases.arrow", "-o", "r.arrow", *given)
    manifest = json.loads(read("r.arrow").schema.metadata[schema.MANIFEST_KEY])
    assert manifest["bm25"] == {
        "variant": "lucene", "lengths": "tantivy", "k1": 0.9, "b": 0.4, "count_repeats": True,
        "analyzer": "words:1+nfkc+casefold+bigram+stop:english+stem:english",
        "statistics": "live chunks",
    }  # fmt: skip
    assert manifest["threshold"] == {"bm25": 0.1}
    for text, said in (("x", "a number"), ("dense=1", "does not have")):
        assert (
            said
            in call("search", "i", "cases.arrow", "-o", "r", "--threshold", text, status=2).stderr
        )
    done = call("search", "i", "cases.arrow", "-o", "r", "--strategy", "hybrid", "--threshold", 1,
                status=2)  # fmt: skip
    assert "bm25=1 or dense=1" in done.stderr


def test_search__refuses_an_index_of_another_corpus(folder):
    call("index", "chunks.arrow", "-o", "i")
    feather.write_feather(indexes.chunk_table(TEXTS | {"a": "x"}), str(folder / "new.arrow"))
    done = call("search", "i", "cases.arrow", "-o", "r", "--chunks", "new.arrow", status=2)
    assert "the corpus has changed under its index" in done.stderr
    (folder / "new.arrow").rename(folder / "chunks.arrow")  # the folder is a suite now
    done = call("search", "i", ".", "-o", "r", status=2)
    assert "the corpus has changed under its index" in done.stderr


def test_search__explains_to_the_last_bit(folder):
    call("index", "chunks.arrow", "-o", "i")
    call("search", "i", "cases.arrow", "-o", "r.arrow")
    done = call("search", "i", "cases.arrow", "--explain", "q1")
    best = read("r.arrow").to_pylist()[0]["ranked"][0]
    assert f"1. a  {best['score']:.7g}" in done.stdout
    assert "in no chunk: zebra" in call("search", "i", "cases.arrow", "--explain", "q2").stdout
    assert "no case 'q9'" in call("search", "i", "cases.arrow", "--explain", "q9", status=2).stderr


def test_embed__a_callable_from_index_to_search_and_never_two_models(folder, monkeypatch):
    (folder / "my_model.py").write_text(
        "import numpy as np\n"
        "def embed(texts, kind):\n"
        "    return np.array([[len(t), t.count('e') + 1] for t in texts], np.float32)\n"
    )
    monkeypatch.syspath_prepend(str(folder))
    call("index", "chunks.arrow", "-o", "i", "--embed", "python:my_model:embed")
    call("search", "i", "cases.arrow", "--strategy", "dense-exact", "-o", "r.arrow")
    assert {t["stage"] for t in read("r.arrow")["timings"].to_pylist()[0]} == {
        "embed", "dense_exact", "end_to_end",
    }  # fmt: skip
    assert (folder / "i.embeddings").is_dir()
    (folder / "my_model.py").write_text(
        "import numpy as np\n"
        "def embed(texts, kind):\n"
        "    return np.array([[1, t.count('e') + 1] for t in texts], np.float32)\n"
    )
    del sys.modules["my_model"]
    done = call("search", "i", "cases.arrow", "--strategy", "dense-exact", "-o", "x", status=2)
    assert "vectors of two models cannot be compared" in done.stderr


def test_without_hnswlib__exact_search_works_and_hnsw_says_what_to_install(folder):
    write(folder, "vectors.arrow", list("abc"), list(VECTORS.values()))
    write(folder, "asked.arrow", ["q1", "q2"], [[1.0, 0.0], [0.0, 1.0]], "case_id")
    (folder / "arguments").write_bytes(pickle.dumps([
        (["index", "chunks.arrow", "-o", "i", "--vectors", "vectors.arrow"], 0, "hnswlib is not"),
        (["index", "chunks.arrow", "-o", "j", "--vectors", "vectors.arrow", "--hnsw"], 2,
         "ragcore[ann]"),
        (["search", "i", "cases.arrow", "--strategy", "dense-exact", "--question-vectors",
          "asked.arrow", "-o", "r.arrow"], 0, ""),
        (["search", "i", "cases.arrow", "--strategy", "dense", "--question-vectors",
          "asked.arrow", "-o", "s.arrow"], 2, "--strategy dense-exact"),
    ]))  # fmt: skip
    done = python(
        "import pickle, sys\n"
        "sys.modules['hnswlib'] = None\n"
        "import importlib.util\n"
        "found = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda n, *a: None if n == 'hnswlib' else found(n, *a)\n"
        "from click.testing import CliRunner\n"
        "from ragcore.cli import main\n"
        "for arguments, status, said in pickle.load(open('arguments', 'rb')):\n"
        "    result = CliRunner().invoke(main, arguments)\n"
        "    assert result.exit_code == status, result.output\n"
        "    assert said in result.stderr, result.stderr\n",
        folder,
    )
    assert done.returncode == 0, done.stderr
    assert (folder / "r.arrow").exists()
    assert not (folder / "j").exists()


def test_index__of_other_columns_is_checked_against_those(folder):
    texts = {"text": ["red fox"], "text_zh": ["红 狐狸"], "title_zh": ["动物"]}
    feather.write_feather(pa.table({"chunk_id": ["a"], **texts}), str(folder / "chunks.arrow"))
    call("index", "chunks.arrow", "-o", "i", "--text", "text_zh", "--title", "title_zh")
    call("search", "i", ".", "-o", "r.arrow")  # the folder is a suite: its chunks are compared
    assert read("r.arrow")["ranked"].to_pylist()[0] == []
    more = {"text": ["b"], "text_zh": ["狐狸"]}
    feather.write_feather(pa.table({"chunk_id": ["b"], **more}), str(folder / "more.arrow"))
    call("index", "more.arrow", "-o", "i", "--append")
    both = pa.table({
        "chunk_id": ["a", "b"], "text": ["red fox", "b"], "text_zh": ["红 狐狸", "狐狸"],
        "title_zh": ["动物", None],
    })  # fmt: skip
    feather.write_feather(both, str(folder / "chunks.arrow"))
    call("search", "i", ".", "-o", "r.arrow")
    feather.write_feather(
        both.set_column(2, "text_zh", [["红", "狐"]]), str(folder / "chunks.arrow")
    )
    assert "has changed under its index" in call("search", "i", ".", "-o", "r", status=2).stderr
