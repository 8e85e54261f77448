"""Working folders: one run at a time, whole or refused, of one split, never a suite's own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from conformance.shapes import cli, environment
from ragcore import score
from ragcore.catalogue import folder as folders
from ragcore.catalogue.entries import entry
from ragcore.catalogue.ladder import Wanted, run_suite
from ragcore.errors import InputError, UsageError
from ragcore.suites import find_suite, open_suite

BM25 = Wanted(strategies=("bm25",))
WORDS = {"timeout": 120, "capture_output": True, "text": True, "check": False}


def names(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


# --- stopped on the way


@pytest.mark.parametrize("step", ["cases.arrow", "chunks.arrow", "suite.toml"])
def test_folder__of_a_run_that_was_stopped_is_no_suite(shore, monkeypatch, step):
    """The process ends while a file is written: nothing that comes later mistakes the rest."""
    run = run_suite(entry("shore"), data=shore / "data", wanted=BM25)
    keep = shore / "bm25.arrow"
    (run.folder / "runs" / "bm25.arrow").rename(keep)
    true = folders.whole_file

    def stopped(path):
        if path.name == step:
            raise KeyboardInterrupt
        return true(path)

    monkeypatch.setattr(folders, "whole_file", stopped)
    with pytest.raises(KeyboardInterrupt):
        run_suite(entry("shore"), data=shore / "data", wanted=BM25)
    monkeypatch.undo()
    monkeypatch.setenv("RAGCORE_CACHE", str(shore / "cache"))
    for way in (open_suite, lambda path: score(keep, suite=path), lambda path: entry(str(path))):
        with pytest.raises(InputError, match="never finished"):
            way(run.folder)
    with pytest.raises(UsageError, match="not made yet"):
        find_suite("shore", keep)


def test_folder__of_a_run_that_was_stopped_is_written_again(shore, monkeypatch):
    place = shore / "cache" / "suites" / "shore"
    folders.clear(place)
    (place / "cases.arrow").write_bytes(b"half")
    run = run_suite(entry("shore"), data=shore / "data", wanted=BM25)
    assert run.folder == place
    assert score(place / "runs" / "bm25.arrow").mean("R@1") == 1.0


# --- two at once


def test_folder__is_of_one_run_at_a_time(tmp_path):
    place = tmp_path / "w"
    code = (
        "import sys\nfrom pathlib import Path\nfrom ragcore.catalogue.folder import alone\n"
        "with alone(Path(sys.argv[1])):\n    print('in', flush=True)\n    sys.stdin.read()\n"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", code, str(place)], env=environment(), text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == "in\n"
        done = cli("suite", "run", "ka4", "--work", place, cwd=tmp_path)
        assert done.returncode == 2
        assert f"another process works in {place}" in done.stderr
        assert names(place) == []
    finally:
        other.kill()
        other.communicate()
    # a lock dies with its process
    assert run_suite(entry("ka4"), place).folder == place


# --- found by name


@pytest.mark.parametrize("name", ["shore", "Shore", "SHORE"])
def test_folder__is_found_by_its_name_however_written(shore, name):
    run = run_suite(entry("shore"), data=shore / "data", wanted=BM25)
    assert find_suite(name) == run.folder
    assert find_suite(name, run.folder / "runs" / "bm25.arrow") == run.folder


def test_folder__whose_toml_is_no_text_is_passed_over(shore):
    run = run_suite(entry("shore"), data=shore / "data", wanted=BM25)
    (run.folder / "suite.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="broken TOML"):
        open_suite(find_suite("shore", run.folder / "runs" / "bm25.arrow"))


# --- folders that must not be written to


def test_folder__of_a_suite_is_never_its_own_working_folder(tmp_path):
    place = tmp_path / "w"
    run_suite(entry("ka4"), place)
    before = names(place)
    (tmp_path / "link").symlink_to(place)
    for out in (place, tmp_path / "link", tmp_path):
        if out == tmp_path:
            (tmp_path / "suite.toml").write_text((place / "suite.toml").read_text())
        with pytest.raises(UsageError, match="is the folder of the suite ka4 itself"):
            run_suite(entry(str(place)), out)
    assert names(place) == before
    again = run_suite(entry(str(place)), tmp_path / "other")
    assert again.scores.mean("end_to_end", "filtered") == 8 / 12


def test_folder__that_is_none_or_cannot_be_is_refused(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError, match="is no folder"):
        run_suite(entry("ka4"), tmp_path / "file")
    with pytest.raises(InputError, match="a folder to write to"):
        run_suite(entry("ka4"), tmp_path / "file" / "below")
    assert (tmp_path / "file").read_text() == "x"


def test_disk__that_is_full_leaves_one_message_and_no_suite(tmp_path):
    """A limit on the size of a file stands for it."""
    resource = pytest.importorskip("resource")
    place = tmp_path / "w"
    done = subprocess.run(
        [sys.executable, "-m", "ragcore", "suite", "run", "in_domain", "--work", str(place)],
        env=environment(), cwd=tmp_path,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000)), **WORDS,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.count("\n") <= 2
    assert "cases.arrow: cannot be written: File too large" in done.stderr
    with pytest.raises(InputError, match="never finished"):
        open_suite(place)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_cache__that_is_read_only_is_named(tmp_path):
    tmp_path.chmod(0o555)
    with pytest.raises(InputError, match="Permission denied; expected a folder to write to"):
        run_suite(entry("ka4"), tmp_path / "w")


# --- one split


def test_split__leaves_a_folder_of_these_cases_alone(tmp_path):
    whole = run_suite(entry("in_domain"), tmp_path / "w", wanted=BM25)
    part = run_suite(
        entry("in_domain"), tmp_path / "p", wanted=Wanted(strategies=("bm25",), split="test")
    )
    rows = {row["slice"]: row for row in whole.scores.rows(("split",)) if row["measure"] == "R@5"}
    (own,) = [row for row in part.scores.rows(()) if row["measure"] == "R@5"]
    # The cases of the other split were never searched for: they are no misses.
    for key in ("numerator", "denominator", "mean", "n_cases", "n_na"):
        assert own[key] == rows["split=test"][key], key
    assert own["mean"] == pytest.approx(0.4175, abs=0.005)
    assert set(part.suite.cases["split"].to_pylist()) == {"test"}
    again = score(part.folder / "runs" / "bm25.arrow", measures=["R@5"])
    assert again.mean("R@5") == own["mean"]
    said = open_suite(part.folder).settings
    assert (said["split"], said["splits"]) == ("test", ["test"])
    rerun = run_suite(entry(str(part.folder)), tmp_path / "again", wanted=BM25)
    assert rerun.scores.mean("R@5") == own["mean"]


def test_split__narrows_verdicts_too(tmp_path):
    kept = run_suite(entry("mosaic"), tmp_path / "w")
    cases = kept.suite.cases
    at = cases.schema.get_field_index("split")
    split = pa.array(["test" if i < 2 else "validation" for i in range(cases.num_rows)])
    names_of = set(cases["case_id"].to_pylist()[:2])
    with folders.whole_file(kept.folder / "cases.arrow") as stream:
        folders.write_arrow(cases.set_column(at, "split", split), stream)
    folders.narrow(open_suite(kept.folder), "test")
    found = list((kept.folder / "judgments").glob("*.arrow"))
    assert found
    for path in found:
        table = pa.ipc.open_file(str(path)).read_all()
        assert set(table["case_id"].to_pylist()) <= names_of


# --- what is printed


def test_run__of_nothing_that_could_be_evaluated_is_an_empty_table(shore):
    place = shore / "catalogue" / "own"
    place.mkdir()
    run = run_suite(entry("shore"), data=shore / "data", wanted=BM25)
    for name in ("cases", "chunks"):
        table = pa.ipc.open_file(str(run.folder / f"{name}.arrow")).read_all()
        with folders.whole_file(place / f"{name}.arrow") as stream:
            folders.write_arrow(table.drop_columns("vector"), stream)
    (place / "suite.toml").write_text(
        'strategies = ["dense-exact"]\n[files."cases.arrow"]\nsha256 = "'
        f'{folders.digest_of(place / "cases.arrow")}"\n[files."chunks.arrow"]\nsha256 = "'
        f'{folders.digest_of(place / "chunks.arrow")}"\n'
    )
    words = ("suite", "run", place, "--embed", "none", "--work", shore / "w", "-f")
    for form in ("arrow", "jsonl"):
        done = cli(*words, form, "-o", shore / form, cwd=shore)
        assert done.returncode == 0, done.stderr
        assert "own/dense-exact: not evaluated" in done.stderr
    table = pa.ipc.open_file(str(shore / "arrow")).read_all()
    assert (table.num_rows, "n_missing" in table.column_names) == (0, True)
    assert (shore / "jsonl").read_text() == ""


def test_run__names_each_suite_once_and_refuses_two_of_one_name(tmp_path):
    run_suite(entry("ka4"), tmp_path / "a")
    words = ("suite", "run", "ka4", "KA4", "-m", "end_to_end", "-f", "jsonl")
    rows = [json.loads(line) for line in cli(*words, cwd=tmp_path).stdout.splitlines()]
    assert [row["run"] for row in rows] == ["ka4/baseline", "ka4/filtered"]
    done = cli("suite", "run", "ka4", "a", cwd=tmp_path)
    assert done.returncode == 2
    assert "two suites are called ka4" in done.stderr


def test_run__with_an_unknown_slice_is_refused_before_it_runs(tmp_path):
    done = cli("suite", "run", "in_domain", "--by", "zork", "--work", "w", cwd=tmp_path)
    assert done.returncode == 2
    assert "no column 'zork' of in_domain to slice by" in done.stderr
    assert not (tmp_path / "w" / "index").exists()


def test_run__says_what_scoring_warns_of(tmp_path):
    run = run_suite(entry("in_domain"), tmp_path / "w", wanted=BM25)
    assert any("without a relevant document" in note for note in run.rungs[0].notes)


@pytest.mark.parametrize("limit", [2_000, 60_000, 200_000, 400_000])
def test_disk__that_is_full_while_indexing_is_said_and_leaves_no_index(tmp_path, limit):
    """tantivy, numpy and Arrow each have their own way to say it."""
    resource = pytest.importorskip("resource")
    chunks = (entry("in_domain").folder / "chunks.arrow").resolve()
    done = subprocess.run(
        [sys.executable, "-m", "ragcore", "index", str(chunks), "-o", "i"],
        env=environment(), cwd=tmp_path,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)), **WORDS,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert "i: cannot be written" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "i" / "manifest.json").exists()
