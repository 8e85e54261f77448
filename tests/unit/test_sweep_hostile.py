"""Sweeps under odd input: broken recordings, two at once, no room, suites that changed."""

from __future__ import annotations

import errno
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

import ragcore
import sweep_world
from ragcore.errors import InputError, UsageError
from ragcore.experiments import state as states
from ragcore.experiments.state import State
from ragcore.index.embed_cache import VectorCache
from ragcore.index.options import GraphSettings
from ragcore.report.table import write_arrow


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return sweep_world.suite(tmp_path_factory.mktemp("world") / "suite")


@pytest.fixture(scope="module")
def wide(folder):
    index = ragcore.build_index(folder / "chunks.arrow", folder.parent / "i", hnsw=False)
    return ragcore.search(
        index, folder, strategy="hybrid-exact", candidate_k=20, filters=["acl"], name="wide"
    ).table


def put(table, path):
    with path.open("wb") as stream:
        write_arrow(table, stream)
    return str(path)


def config(folder, **over):
    return sweep_world.sweep(folder, **({"sweep": {"context_k": [5]}, "deviation": {}} | over))


def stages(table, change):
    """The run with other lists of bm25."""
    given = [dict(one) for one in table["stages"].to_pylist()]
    for one in given:
        one["bm25"] = change(one["bm25"])
    field = table.schema.field("stages")
    column = pa.array([list(one.items()) for one in given], field.type)
    return table.set_column(table.column_names.index("stages"), field, column)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda own: [own[0], *own], "a chunk twice in stage bm25 of case 'q01'"),
        (lambda own: own[::-1], "scores that rise from rank to rank in stage bm25 of case 'q01'"),
        (lambda own: [own[0] | {"score": None}, *own[1:]], "a score that is no number"),
        (lambda own: [own[0] | {"score": float("nan")}, *own[1:]], "a score that is no number"),
    ],
)
def test_recorded_run__lists_that_cannot_be_cut_are_refused(folder, wide, tmp_path, change, said):
    rows = [i for i, one in enumerate(wide["stages"].to_pylist()) if len(dict(one)["bm25"]) > 1]
    assert rows[:2] == [0, 1]
    path = put(stages(wide.take(rows), change), tmp_path / "wide.arrow")
    with pytest.raises(InputError, match=said) as caught:
        ragcore.sweep(config(folder, run=path), state=tmp_path / "state")
    assert caught.value.where == path
    assert caught.value.row == 2  # the first of the split test


def test_recorded_run__without_a_case_of_a_split_is_refused(folder, wide, tmp_path):
    tuned = {"context_k": [5], "threshold": {"channel": "bm25", "values": ["off", 3.0]}}
    for odd, split in ((0, "test"), (1, "validation")):
        rows = [i for i, case in enumerate(wide["case_id"].to_pylist()) if int(case[1:]) % 2 == odd]
        path = put(wide.take(rows), tmp_path / f"{split}.arrow")
        with pytest.raises(InputError, match=f"no case of the split '{split}'"):
            ragcore.sweep(config(folder, run=path, sweep=tuned), state=tmp_path / "state")


def test_recorded_run__its_steps_depend_on_splits_and_suite(wide, tmp_path):
    folder = sweep_world.suite(tmp_path / "suite")
    given = config(
        folder, run=put(wide, tmp_path / "wide.arrow"), reranker="python:sweep_world:overlap",
        sweep={"ladder": ["hybrid-exact+reranker"]},
    )  # fmt: skip
    ragcore.sweep(given, state=tmp_path / "state")
    given["sweep"]["threshold"] = {"channel": "bm25", "values": ["off", 3.0]}
    found = ragcore.sweep(given, state=tmp_path / "state")
    assert {row["n_cases"] for row in found.curve if row["slice"] == "all"} == {20}
    with (folder / "chunks.arrow").open("rb") as stream:
        chunks = pa.ipc.open_file(stream).read_all()
    texts = pa.array([t[::-1] for t in chunks["text"].to_pylist()], pa.large_string())
    put(chunks.set_column(chunks.column_names.index("text"), "text", texts),
        folder / "chunks.arrow")  # fmt: skip
    again = ragcore.sweep(given, state=tmp_path / "state")
    fresh = ragcore.sweep(given, state=tmp_path / "fresh")
    name = "hybrid-exact+reranker"
    assert [c["delta"] for c in again.row(name)["cells"]] == [
        c["delta"] for c in fresh.row(name)["cells"]
    ]
    assert [c["delta"] for c in again.row(name)["cells"]] != [
        c["delta"] for c in found.row(name)["cells"]
    ]


def test_recorded_run__of_a_batch_has_no_latencies(folder, tmp_path):
    index = ragcore.build_index(folder / "chunks.arrow", tmp_path / "i", hnsw=False)
    table = ragcore.search(
        index, folder, strategy="hybrid-exact", candidate_k=20, filters=["acl"], timing="batch"
    ).table
    found = ragcore.sweep(
        config(folder, run=put(table, tmp_path / "wide.arrow")), state=tmp_path / "state"
    )
    row = found.row("context_k=5")
    assert (row["p50_us"], row["p95_us"], row["timed"]) == (None, None, "")


def test_recorded_run__languages_that_only_one_side_says(folder, wide, tmp_path):
    other = sweep_world.suite(tmp_path / "suite")
    with (other / "cases.arrow").open("rb") as stream:
        cases = pa.ipc.open_file(stream).read_all()
    put(cases.drop_columns(["lang"]), other / "cases.arrow")
    path = put(wide, tmp_path / "wide.arrow")
    bare = put(wide.drop_columns(["lang"]), tmp_path / "bare.arrow")
    given = {"sweep": {"ladder": ["bm25"]}}
    found = [
        ragcore.sweep(config(where, run=run, **given), state=tmp_path / "state").row("bm25")
        for where, run in ((folder, path), (other, path), (folder, bare))
    ]
    means = [[cell["mean"] for cell in row["cells"]] for row in found]
    assert means[0] == means[1] == means[2]


def test_recorded_run__of_other_texts_under_the_same_ids_is_noted(wide, tmp_path):
    other = sweep_world.suite(tmp_path / "suite", seed=9)
    given = config(other, run=put(wide, tmp_path / "wide.arrow"))
    found = ragcore.sweep(given, state=tmp_path / "state")
    assert [line for line in found.notes if "other texts under the same ids" in line]


def test_rows__of_one_name_are_refused_and_doubles_are_one(folder, tmp_path):
    for name in ("bm25", "context_k=5", "production", " ", "threshold.bm25=3"):
        given = config(folder, deviation={name: {"k1": 0.5}})
        given["sweep"] |= {
            "ladder": ["bm25"],
            "threshold": {"channel": "bm25", "values": ["off", 3.0]},
        }
        with pytest.raises(InputError, match=r"two rows are called|a row without a name"):
            ragcore.sweep(given, state=tmp_path / "state")
    twice = config(folder, sweep={
        "ladder": ["bm25", "bm25"], "candidate_k": [5, 5],
        "strategies": {"candidate_k": ["bm25", "bm25"]},
    })  # fmt: skip
    found = ragcore.sweep(twice, state=tmp_path / "state")
    assert [row["name"] for row in found.rows] == ["bm25 candidate_k=5", "bm25"]


def test_candidate_k__beyond_all_chunks_takes_no_room(folder, tmp_path):
    found = ragcore.sweep(
        config(folder, sweep={"candidate_k": [96, 10**12]}), state=tmp_path / "state"
    )
    for name in ("candidate_k", "dense-exact candidate_k"):
        least, most = found.row(f"{name}=96"), found.row(f"{name}={10**12}")
        assert [c["mean"] for c in least["cells"]] == [c["mean"] for c in most["cells"]]


def test_index__settings_that_would_crash_are_refused(folder, tmp_path):
    for index in ({"M": 0}, {"M": "a"}, {"ef_construction": 0}, {"seed": -1}, {"analyzer": 5}):
        with pytest.raises((UsageError, InputError)):
            ragcore.sweep(config(folder, index=index), state=tmp_path / "state")
    with pytest.raises(UsageError, match="M is 0"):
        ragcore.build_index(folder / "chunks.arrow", tmp_path / "i", graph=GraphSettings(M=0))


# --- the state


def test_state__two_sweeps_at_once_give_the_same(folder, tmp_path):
    given = config(folder, sweep={
        "candidate_k": [5, 20], "chunking": {"two": {"merge": 2}, "three": {"merge": 3}},
        "strategies": {"candidate_k": ["bm25"]},
    })  # fmt: skip
    given["production"] |= {"strategy": "bm25"}

    def work(_):
        return ragcore.sweep(given, state=tmp_path / "state", threads=1)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(work, range(4)))
    costs = {"p50_us", "p95_us", "note"}
    plain = [
        [{k: v for k, v in row.items() if k not in costs} for row in one.table().to_pylist()]
        for one in found
    ]
    assert all(one == plain[0] for one in plain)
    assert not list((tmp_path / "state").rglob("*.part"))


def test_state__a_folder_that_another_sweep_made_first_is_taken(tmp_path):
    held = State(tmp_path / "state")

    def slower(part: Path) -> None:
        (part / "x").write_text("ours")
        other = held.path("suites", "a", "1")
        other.mkdir()
        (other / "x").write_text("theirs")

    path = held.directory("suites", "a", "1", slower)
    assert (path / "x").read_text() == "theirs"
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_state__without_room_is_an_error_with_a_name(folder, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    held = State(tmp_path / "state")
    with pytest.raises(InputError, match="cannot be written: No space left"):
        held.directory("suites", "a", "1", full)
    assert not list((tmp_path / "state" / "suites").iterdir())
    monkeypatch.setattr("ragcore.index.build.write_documents", full)
    with pytest.raises(InputError, match="cannot be written: No space left"):
        ragcore.build_index(folder / "chunks.arrow", tmp_path / "i")
    assert not (tmp_path / "i").exists()
    monkeypatch.setattr(VectorCache, "_begin", full)
    with pytest.raises(InputError, match="cannot be written: No space left"):
        ragcore.sweep(
            config(folder, embed="python:sweep_world:hashed",
                   index={"metric": "ip"}, sweep={"chunking": {"two": {"merge": 2}}}),
            state=tmp_path / "state",
        )  # fmt: skip


def test_state__of_another_version_is_left_alone(folder, tmp_path, monkeypatch):
    given = config(folder)
    first = ragcore.sweep(given, state=tmp_path / "state")
    monkeypatch.setattr(states, "FORMAT", states.FORMAT - 1)
    other = ragcore.sweep(given, state=tmp_path / "state")
    assert sum(other.kept.values()) == 0
    monkeypatch.undo()
    again = ragcore.sweep(given, state=tmp_path / "state")
    assert again.table().equals(first.table())
    assert again.kept["recordings"] == 1


def test_state__keeps_nothing_of_a_suite_that_changed_meanwhile(tmp_path):
    folder = sweep_world.suite(tmp_path / "suite")
    given = config(folder)

    def change(stage, done, total):
        if stage == "searching bm25" and done == 5:
            sweep_world.suite(folder, seed=4)

    with pytest.raises(InputError, match="changed while the sweep ran"):
        ragcore.sweep(given, state=tmp_path / "state", progress=change)
    assert not list((tmp_path / "state" / "rows").iterdir())
    ragcore.sweep(given, state=tmp_path / "state")


def test_state__does_not_ask_where_the_file_lies(folder, tmp_path):
    text = f'suite = "{folder}"\n[production]\nstrategy = "bm25"\n[sweep]\ncontext_k = [3]\n'
    kept = []
    for name in ("a", "b"):
        path = tmp_path / name / "s.toml"
        path.parent.mkdir()
        path.write_text(text)
        kept.append(ragcore.sweep(path, state=tmp_path / "state").kept)
    assert kept[1]["rows"] == 2
    recording = next((tmp_path / "state" / "recordings").iterdir())
    recording.write_bytes(recording.read_bytes()[:100])
    with pytest.raises(InputError, match="delete it: it is made again"):
        ragcore.sweep(tmp_path / "a" / "s.toml", state=tmp_path / "state")


def test_progress__is_told_question_by_question(folder, tmp_path):
    told = []
    ragcore.sweep(config(folder), state=tmp_path / "state", progress=lambda *one: told.append(one))
    assert ("searching dense_exact", 7, 20) in told
    assert ("searching bm25", 19, 20) in told
