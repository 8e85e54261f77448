"""Tables for people and programs; files that appear whole or not at all."""

import os
import signal
import stat
import subprocess
import sys
import threading
import time
import unicodedata

import pyarrow as pa
import pytest

from conformance.shapes import environment, json_lines
from ragcore import score
from ragcore.errors import InputError
from ragcore.report import table as report

ROWS = score(
    {"q": {"a": 1.0, "b": 2.0}, "文件": {"a": 1.0}}, qrels={"q": {"a": 1}, "文件": {"a": 1}},
    measures=["RR", "nDCG@10", "NumRet"],
).rows(["case_id"])  # fmt: skip


def lines(form, rows=ROWS, **options):
    return report.render(rows, form, **options).decode().splitlines()


def columns_of(text):
    """Where a terminal would put each character."""
    at, out = 0, {}
    for c in text:
        out[at] = c
        at += 2 if unicodedata.east_asian_width(c) in "WF" else 1
    return out, at


# --- text


def test_table__columns_stand_below_each_other_also_in_chinese():
    shown = lines("table")
    where = columns_of(shown[0])[0]
    starts = [at for at, c in where.items() if c != " " and where.get(at - 1, " ") == " "]
    first = next(at for at in starts if where[at] == "m")
    assert any("文件" in line for line in shown)
    for line in shown[1:]:
        places, _ = columns_of(line)
        assert places[first - 1] == " "
        assert places[first] != " "


def test_table__numbers_end_below_each_other():
    shown = lines("table", [r for r in ROWS if r["slice"] == "all"])
    end = shown[0].index("value") + len("value")
    assert all(line[end - 1].isdigit() and line[end] == " " for line in shown[1:])
    assert all(line == line.rstrip() for line in shown)


def test_table__says_its_level():
    assert "95% exact" in lines("table")[0]
    assert "99.5% exact" in lines("table", level=0.995)[0]


@pytest.mark.parametrize("form", ["table", "md", "tsv"])
def test_people__get_no_line_breaks_and_no_escapes(form):
    nasty = "a\nb\tc\rd\x1b[31me\u2028f\u202eg|h"
    row = dict(ROWS[0]) | {"run": nasty, "slice": nasty, "measure": nasty}
    shown = lines(form, [row, dict(row) | {"run": "plain"}])
    assert len(shown) == 3 + (form == "md")
    assert not any(c in "".join(shown) for c in "\x1b\r\u2028\u202e")
    if form == "tsv":
        assert {line.count("\t") for line in shown} == {len(row) - 1}
    if form == "md":
        assert len({line.replace("\\|", "").count("|") for line in shown}) == 1


def test_jsonl__is_strict_and_keeps_every_bit():
    row = dict(ROWS[0]) | {"mean": 0.1 + 0.2, "ci_low": float("nan"), "ci_high": float("inf")}
    (back,) = json_lines("\n".join(lines("jsonl", [row])))
    assert back == row | {"ci_low": None, "ci_high": None}


def test_render__of_no_row():
    for form in ("table", "md", "tsv", "jsonl"):
        report.render([], form)


@pytest.mark.parametrize(
    ("value", "expected"),
    [(None, ""), (3.0, "3"), (0.0, "0"), (2.5, "2.5"), (1 / 3, "0.3333"), (1e20, str(10**20))],
)
def test_count__whole_where_it_is_whole(value, expected):
    assert report.count(value) == expected
    assert report.count(float("inf")) == "inf"


def test_arrow__of_runs_with_other_dictionaries(tmp_path):
    runs = [{"q": {"a": 1.0}}, {"r": {"a": 1.0}}]
    table = score(runs, qrels={"q": {"a": 1}, "r": {"a": 0}}, measures=["RR", "Judged@5"]).table()
    with report.whole_file(tmp_path / "out") as stream:
        report.write_arrow(table, stream)
    back = pa.ipc.open_file(pa.memory_map(str(tmp_path / "out"))).read_all()
    assert back.to_pylist() == table.to_pylist()
    assert back.schema.equals(table.schema)


# --- whole files


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def half_of(path, error):
    with report.whole_file(path) as stream:
        stream.write(b"half")
        raise error


def test_whole_file__appears_when_all_of_it_is_written(tmp_path):
    path = tmp_path / "out"
    with report.whole_file(path) as stream:
        stream.write(b"new")
        assert not path.exists()
    assert path.read_bytes() == b"new"
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask
    assert names(tmp_path) == ["out"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_whole_file__after_an_error_is_what_it_was(tmp_path, error):
    path = tmp_path / "out"
    for old in (None, b"old"):
        if old:
            path.write_bytes(old)
        with pytest.raises(error):
            half_of(path, error)
        assert names(tmp_path) == (["out"] if old else [])
    assert path.read_bytes() == b"old"


KILLED = """
import sys, time
from pathlib import Path
from ragcore.report.table import whole_file
with whole_file(Path(sys.argv[1])) as stream:
    stream.write(b"half" * 100_000)
    stream.flush()
    print("writing", flush=True)
    time.sleep(60)
"""


def test_whole_file__of_a_killed_process_is_what_it_was(tmp_path):
    path = tmp_path / "out"
    path.write_bytes(b"old")
    child = subprocess.Popen([sys.executable, "-c", KILLED, str(path)], env=environment(),
                             stdout=subprocess.PIPE)  # fmt: skip
    assert child.stdout.readline() == b"writing\n"
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    assert path.read_bytes() == b"old"
    with report.whole_file(path) as stream:
        stream.write(b"new")
    assert path.read_bytes() == b"new"


def test_whole_file__readers_never_see_a_half(tmp_path):
    path, stop, seen = tmp_path / "out", threading.Event(), set()
    path.write_bytes(b"0" * 10_000)

    def read():
        while not stop.is_set():
            content = path.read_bytes()
            seen.add((len(content), len(set(content))))

    reader = threading.Thread(target=read)
    reader.start()
    for i in range(30):
        with report.whole_file(path) as stream:
            for _ in range(10):
                stream.write(str(i % 10).encode() * 1_000)
                stream.flush()
        time.sleep(0.001)
    stop.set()
    reader.join()
    assert seen == {(10_000, 1)}


def test_whole_file__keeps_a_link_and_writes_through_a_pipe(tmp_path):
    target, link, pipe = tmp_path / "target", tmp_path / "link", tmp_path / "pipe"
    target.write_bytes(b"old")
    link.symlink_to(target)
    with report.whole_file(link) as stream:
        stream.write(b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    os.mkfifo(pipe)
    got = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()), daemon=True)
    reader.start()
    with report.whole_file(pipe) as stream:
        stream.write(b"through")
    reader.join(5)
    assert got == [b"through"]
    assert pipe.is_fifo()


@pytest.mark.parametrize("name", ["absent/out", "x" * 300])
def test_whole_file__that_cannot_be_made_is_an_error_of_the_user(tmp_path, name):
    with pytest.raises(InputError, match="cannot be written"), report.whole_file(tmp_path / name):
        pass
    assert names(tmp_path) == []
