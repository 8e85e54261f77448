"""Merged chunks: windows, places, texts, labels that need no relabelling; rows over them."""

from __future__ import annotations

import pyarrow as pa
import pytest

import ragcore
import sweep_world
from ragcore.errors import InputError, RagcoreError
from ragcore.experiments.chunking import Cut, recut
from ragcore.report.table import write_arrow

TEXTS = ["one two", "three", "four five six", "seven", "eight"]


def table(**over):
    ends = [7, 13, 27, 33, 39]
    given = {
        "chunk_id": [f"c{i}" for i in range(5)], "doc_id": ["d"] * 5,
        "block_first": pa.array(range(5), pa.int32()), "block_last": pa.array(range(5), pa.int32()),
        "start": pa.array([0, 8, 14, 28, 34], pa.int32()), "end": pa.array(ends, pa.int32()),
        "page": pa.array([1, 1, 1, 2, 2], pa.int32()), "text": TEXTS,
        "n_tokens": pa.array([2, 1, 3, 1, 1], pa.int32()), "lang": ["en"] * 5,
    } | over  # fmt: skip
    return pa.table(given)


def ids(made):
    return made["chunk_id"].to_pylist()


def test_recut__merges_neighbours_with_their_places():
    made, notes = recut(table(), "t", Cut(merge=2))
    assert ids(made) == ["c0+c1", "c2+c3", "c4"]
    assert made["text"].to_pylist() == ["one two\nthree", "four five six\nseven", "eight"]
    assert made["block_first"].to_pylist() == [0, 2, 4]
    assert made["block_last"].to_pylist() == [1, 3, 4]
    assert made["start"].to_pylist() == [0, 14, 34]
    assert made["end"].to_pylist() == [13, 33, 39]
    assert made["n_tokens"].to_pylist() == [3, 4, 1]
    assert made["page"].to_pylist() == [1, None, 2]
    assert notes == ["5 chunks became 3 (merge 2); 1 of these are as they were"]
    for row in made.to_pylist():  # code points are those of the document
        assert row["end"] - row["start"] == len(row["text"]) or row["chunk_id"] == "c2+c3"


@pytest.mark.parametrize(
    ("cut", "wanted"),
    [
        (Cut(merge=2, overlap=1), ["c0+c1", "c1+c2", "c2+c3", "c3+c4"]),
        (Cut(merge=3, overlap=1), ["c0+c2", "c2+c4"]),
        (Cut(merge=9), ["c0+c4"]),
        (Cut(max_tokens=3), ["c0+c1", "c2", "c3+c4"]),
        (Cut(max_tokens=4, overlap=1), ["c0+c1", "c1+c2", "c2+c3", "c3+c4"]),
        (Cut(max_tokens=1), ["c0", "c1", "c2", "c3", "c4"]),
        (Cut(merge=2, max_tokens=100), ["c0+c1", "c2+c3", "c4"]),
    ],
)
def test_recut__windows(cut, wanted):
    assert ids(recut(table(), "t", cut)[0]) == wanted


def test_recut__never_merges_what_filters_tell_apart():
    for over in (
        {"lang": ["en", "en", "zh", "zh", "en"]}, {"doc_id": ["d", "d", "e", "e", "d"]},
    ):  # fmt: skip
        made = ids(recut(table(**over), "t", Cut(merge=2))[0])
        assert sorted(made) == ["c0+c1", "c2+c3", "c4"]
    acl = pa.array([None, ["staff"], ["staff"], None, None], pa.list_(pa.string()))
    assert ids(recut(table(acl=acl), "t", Cut(merge=9))[0]) == ["c0", "c1+c2", "c3+c4"]
    gone = table(deleted=[False, True, False, False, False])
    assert ids(recut(gone, "t", Cut(merge=2))[0]) == ["c0", "c2+c3", "c4"]


def test_recut__follows_blocks_not_rows_and_drops_shared_text():
    mixed = table().take(pa.array([4, 2, 0, 3, 1]))
    assert sorted(ids(recut(mixed, "t", Cut(merge=2))[0])) == ["c0+c1", "c2+c3", "c4"]
    over = table(start=pa.array([0, 4, 9, 20, 30], pa.int32()))
    made, _ = recut(over, "t", Cut(merge=2))
    first = made.to_pylist()[0]
    assert first["text"] == "one two" + "three"[3:]
    assert first["n_tokens"] is None  # what overlaps was counted twice
    bare = table().select(["chunk_id", "doc_id", "text"])
    assert recut(bare, "t", Cut(merge=5))[0]["text"].to_pylist() == ["\n".join(TEXTS)]


def test_recut__refuses_what_cannot_be_merged():
    with pytest.raises(InputError, match="a column doc_id"):
        recut(table().drop_columns(["doc_id"]), "t", Cut(merge=2))
    with pytest.raises(InputError, match="lengths of all"):
        recut(table().drop_columns(["n_tokens"]), "t", Cut(max_tokens=2))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return sweep_world.suite(tmp_path_factory.mktemp("world") / "suite")


def swept(folder, state, cuts, **over):
    given = sweep_world.sweep(folder, deviation={}, sweep={"chunking": cuts}) | over
    return ragcore.sweep(given, state=state)


def test_rows__labels_reach_merged_chunks(folder, tmp_path):
    """With chunks of three blocks bm25 finds the block's chunk where it found the block."""
    found = swept(
        folder, tmp_path / "state", {"threes": {"merge": 3}, "pairs": {"merge": 2, "overlap": 1}},
        production={"strategy": "bm25", "candidate_k": 96, "context_k": 3},
    )  # fmt: skip
    assert [row["state"] for row in found.rows] == ["evaluated"] * 2
    for row in found.rows:
        assert row["single_change"]
        cells = {c["measure"]: c for c in row["cells"] if c["slice"] == "all"}
        assert cells["R@5"]["n_na"] == found.baseline["cells"][0]["n_na"] == 4
        assert cells["R@5"]["n_missing"] == cells["R@5"]["n_disputed"] == 0
    threes, pairs = found.rows
    assert threes["context_tokens"] == 90.0
    assert "96 chunks became 32 (merge 3)" in threes["notes"][0]
    assert "96 chunks became 80 (merge 2, overlap 1)" in pairs["notes"][0]
    folders = sorted((tmp_path / "state" / "suites").iterdir())
    assert [one.name.split("-")[0] for one in folders] == ["pairs", "threes"]
    scores = ragcore.score(
        tmp_path / "state" / threes["file"], suite=folders[1], measures=["R@96"], topics="common"
    )
    assert scores.mean("R@96") > 0.9


def test_rows__dense_over_merged_chunks_needs_an_embedder(tmp_path):
    plain = sweep_world.suite(tmp_path / "plain", vectors=False)
    over = {"embed": "python:sweep_world:hashed", "measures": ["R@5"]}
    cuts = {"pairs": {"merge": 2}}
    found = swept(plain, tmp_path / "a", cuts, **over)
    (row,) = found.rows
    assert row["state"] == "evaluated"
    assert row["single_change"], row["manifest"]
    assert (tmp_path / "a" / "embeddings").is_dir()
    with pytest.raises(RagcoreError, match="production cannot be run: no vectors"):
        swept(plain, tmp_path / "b", cuts)


def test_rows__an_embedder_that_made_other_vectors_is_refused(folder, tmp_path):
    with pytest.raises(RagcoreError, match="has not made the column vector"):
        swept(folder, tmp_path / "a", {"pairs": {"merge": 2}}, embed="python:sweep_world:hashed")


def test_rows__other_strategies_have_their_own_anchor(folder, tmp_path):
    found = swept(
        folder, tmp_path / "state",
        {"pairs": {"merge": 2}}, sweep={
            "chunking": {"pairs": {"merge": 2}}, "strategies": {"chunking": ["bm25"]},
        },
    )  # fmt: skip
    assert [row["name"] for row in found.rows] == ["production with bm25", "bm25 chunking=pairs"]
    assert found.rows[1]["anchor"] == "production with bm25"
    assert [row["single_change"] for row in found.rows] == [True, True]


def test_rows__labels_that_only_name_chunks_are_not_moved(tmp_path):
    folder = sweep_world.suite(tmp_path / "suite")
    cases = pa.ipc.open_file((folder / "cases.arrow").read_bytes()).read_all()
    rows = cases.drop_columns(["vector"]).to_pylist()
    for row in rows:
        row["evidence"] = [
            {"doc_id": one["doc_id"], "chunk_id": f"{one['doc_id']}#{one['block']}",
             "relevance": 1, "required": True}
            for one in row["evidence"]
        ]  # fmt: skip
    kind = cases.drop_columns(["vector"]).schema
    made = pa.Table.from_pylist(rows, schema=kind).append_column("vector", cases["vector"])
    with (folder / "cases.arrow").open("wb") as stream:
        write_arrow(made, stream)
    found = swept(
        folder, tmp_path / "state", {"pairs": {"merge": 2}}, production={"strategy": "bm25"}
    )
    (row,) = found.rows
    assert row["state"] == "not evaluated"
    assert "32 labels name chunks and no quote, block or place" in row["reason"]
