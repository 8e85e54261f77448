"""What `ragcore.fuse` refuses, and the command."""

import json
import math

import pyarrow as pa
import pytest
from click.testing import CliRunner

import ragcore.cli.fusing  # noqa: F401  (registers the command)
import tables
from fusion_runs import BM25, DENSE, QRELS, expected, rankings, write_forms
from ragcore.cli import main
from ragcore.errors import InputError, UsageError
from ragcore.fuse import fuse


def call(*arguments, status=0):
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    assert result.exit_code == status, result.output
    return result


@pytest.fixture
def forms(tmp_path):
    return write_forms(tmp_path)


# --- refusals


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "borda"}, "method='borda'"),
        ({"normalise": "sum"}, "normalise='sum'"),
        ({"rrf_k": -1}, "rrf_k=-1"),
        ({"rrf_k": math.nan}, "rrf_k=nan"),
        ({"weights": [1.0]}, "1 weights for 2 lists"),
        ({"weights": [1.0, -1.0]}, "weight -1"),
        ({"weights": [0.0, 0.0]}, "every weight is 0"),
        ({"weights": [1.0, math.inf]}, "weight inf"),
        ({"depth": 0}, "depth=0"),
        ({"overlap_depth": -1}, "overlap_depth=-1"),
        ({"names": ["one"]}, "1 names for 2 lists"),
    ],
)
def test_settings__that_make_no_sense_are_refused(options, message):
    with pytest.raises(UsageError, match=message):
        fuse([BM25, DENSE], **options)


def test_scores__that_cannot_be_used_are_refused():
    bad = tables.flat({"q": [("a", 1.0), ("b", math.nan)]})
    with pytest.raises(InputError, match=r"row 2: a score of case 'q' is not a number"):
        fuse([tables.flat(BM25), bad])
    endless = tables.flat({"q": [("a", math.inf), ("b", 1.0)]})
    assert [doc for doc, _ in rankings(fuse(endless).table)["q"]] == ["a", "b"]
    with pytest.raises(InputError, match="infinite score in case 'q'"):
        fuse(endless, method="combsum")
    bare = tables.nested(BM25)
    with pytest.raises(InputError, match="no scores in list"):
        fuse([bare, tables.flat(DENSE)], method="combsum")
    assert fuse([bare, tables.flat(DENSE)], method="combsum", normalise="rank").table.num_rows == 3


def test_nothing__is_refused_or_empty():
    with pytest.raises(UsageError, match="no run given"):
        fuse([])
    assert fuse(tables.flat({})).table.num_rows == 0
    assert rankings(fuse([{"q": {}}, {"q": {}}]).table) == {"q": []}


def test_one_run__is_fused_too():
    assert [doc for doc, _ in rankings(fuse(tables.flat(BM25)).table)["q1"]] == ["a", "b", "c"]


def test_equal_names__stay_apart():
    fused = fuse([BM25, DENSE], names=["same", "same"])
    assert [one.name for one in fused.lists] == ["same", "same#2"]


# --- the command


def test_command__writes_what_score_reads(tmp_path, forms):
    out, qrels = tmp_path / "hybrid.arrow", tmp_path / "qrels.txt"
    qrels.write_text("".join(f"{q} 0 {d} {g}\n" for q, e in QRELS.items() for d, g in e.items()))
    result = call("fuse", *forms["arrow"], "--depth", 2, "-o", out)
    assert "bm25 and dense agree: Jaccard@2" in result.stderr
    assert "policy: method rrf, rrf-k 60, weights 1, 1, lists 2, depth 2" in result.stderr
    assert result.stdout == ""
    scored = call("score", out, "--qrels", qrels, "-m", "RR", "-f", "jsonl", "--per-case")
    values = {r["case_id"]: r["value"] for r in map(json.loads, scored.stdout.splitlines())}
    want = expected([BM25, DENSE], 2)
    assert values == {
        q: 1.0 / (1 + [d for d, _ in want[q]].index(next(iter(e)))) for q, e in QRELS.items()
    }
    again = tmp_path / "again.arrow"
    call("fuse", out, "--stage", "bm25", "--stage", "dense", "--depth", 2, "-o", again)
    assert rankings(pa.ipc.open_file(str(again)).read_all()) == want
    for method in ("combsum", "combmnz"):
        call("fuse", *forms["text"], "--method", method, "--normalise", "z-score", "--weight", 1,
             "--weight", 2, "--no-stages", "-o", again)  # fmt: skip
    assert "stages" not in pa.ipc.open_file(str(again)).schema.names
    assert sorted(p.name for p in tmp_path.glob(".*")) == []


@pytest.mark.parametrize(
    "arguments",
    [("--weight", 1), ("--rrf-k", -1), ("--method", "sum"), ("--depth", 0), ("nothing.arrow",),
     ("--stage", "bm25")],
)  # fmt: skip
def test_command__refuses_and_writes_nothing(tmp_path, forms, arguments):
    out = tmp_path / "out.arrow"
    result = call("fuse", *forms["arrow"], *arguments, "-o", out, status=2)
    assert "rror" in result.stderr
    assert not out.exists()
