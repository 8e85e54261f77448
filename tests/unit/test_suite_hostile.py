"""Descriptors that say nonsense are refused by name, by every command, before any work."""

from __future__ import annotations

import hashlib
import re
import tomllib

import pytest

from ragcore.catalogue import pinned
from ragcore.catalogue.entries import entries, entry, read_entry
from ragcore.catalogue.ladder import Wanted, run_suite
from ragcore.errors import InputError, RagcoreError, UsageError
from ragcore.suites import open_suite


def changed(shore, old="", new="", top="", end="") -> None:
    """The descriptor with another text in it."""
    toml = shore / "catalogue" / "shore" / "suite.toml"
    text = toml.read_text("utf-8")
    assert old in text
    toml.write_text(f"{top}\n{text.replace(old, new) if old else text}\n{end}\n", "utf-8")


SCOPE = '[[scope]]\nname = "a"\n'
OFFICIAL = '[[official]]\nurl = "https://x/y"\nfile = "y"\nbytes = 1\nsha256 = "' + "0" * 64 + '"\n'


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"top": "index = 3"}, "index = 3; expected a table of analyzer"),
        ({"top": "index = {zork = 1}"}, "index.zork is unknown"),
        ({"top": "index = {hnsw = true}"}, "index.hnsw is unknown"),
        ({"top": "index = {analyzer = 3}"}, "index.analyzer = 3; expected a text"),
        ({"top": 'index = {analyzer = "klingon"}'}, "no analyzer 'klingon'"),
        ({"top": 'index = {k1 = "x"}'}, "index.k1 = 'x'; expected a number"),
        ({"top": "index = {k1 = nan}"}, "index.k1 is nan; expected a number from 0, finite"),
        ({"top": "index = {b = 7}"}, "index.b is 7; expected a number from 0, at most 1"),
        ({"top": 'index = {variant = "zork"}'}, "index.variant is 'zork'"),
        ({"top": 'index = {metric = "zork"}'}, "index.metric = 'zork'"),
        ({"top": "scope = 3"}, "scope = 3; expected tables"),
        ({"top": "scope = {}"}, "scope = {}; expected tables"),
        ({"top": "scope = [1]"}, "scope 1; expected a name"),
        ({"end": SCOPE + 'filters = "doc_id"'}, "filters = 'doc_id'; expected a list of texts"),
        ({"end": SCOPE + "filters = [1]"}, "filters = [1]; expected a list of texts"),
        ({"end": SCOPE + 'filters = ["=x"]'}, "filter '=x' is not understood"),
        ({"end": SCOPE + 'filter = ["doc_id"]'}, "scope 'a' says filter; expected only name"),
        ({"end": SCOPE + SCOPE}, "scope 'a' twice"),
        ({"end": '[[scope]]\nname = "a b"\n[[scope]]\nname = "a-b"\n'}, "scope 'a-b' twice"),
        ({"end": '[[scope]]\nname = "../a"'}, "the name of a scope = '../a'"),
        ({"top": "official = 3"}, "official = 3; expected tables"),
        ({"top": "official = [1]"}, "official = [1]; expected tables"),
        ({"end": '[[official]]\nurl = "https://x"'}, "without file"),
        ({"end": OFFICIAL.replace('"https://x/y"', "3")}, "official file: url = 3"),
        ({"end": OFFICIAL.replace('"https://x/y"', '"file:///x"')}, "an address of http or https"),
        ({"end": OFFICIAL.replace('"https://x/y"', '"x"')}, "an address of http or https"),
        ({"end": OFFICIAL.replace('"y"', '"../y"')}, "a path inside the folder"),
        ({"end": OFFICIAL.replace("= 1", '= "x"')}, "bytes = 'x'; expected a whole number"),
        ({"end": OFFICIAL.replace("00", "0x")}, "64 digits"),
        ({"end": OFFICIAL + OFFICIAL}, "official file 'y' twice"),
        ({"end": '[files."."]\nsha256 = "x"'}, "file '.'; expected a path inside"),
        ({"end": '[files.""]\nsha256 = "x"'}, "file ''; expected a path inside"),
        ({"old": "\nbytes = ", "new": '\nrows = "x"\nbytes = '}, "rows = 'x'; expected a whole"),
        ({"old": 'name = "shore"', "new": 'name = "../../shore"'}, "a name that a folder can have"),
        ({"old": 'name = "shore"', "new": 'name = ".."'}, "a name that a folder can have"),
        ({"old": 'name = "shore"', "new": 'name = ""'}, "a name that a folder can have"),
        ({"old": 'name = "shore"', "new": 'name = "a\\u0000b"'}, "a name that a folder can have"),
        ({"old": 'name = "shore"', "new": f'name = "{"a" * 400}"'}, "a name that a folder can"),
        ({"old": '"bm25", "dense-exact"', "new": '"bm25", "bm25"'}, "strategy 'bm25' twice"),
        ({"old": "candidate_k = 3", "new": f"candidate_k = {2**62}"}, "a whole number from 1 on"),
        ({"top": "filters = [1]"}, "filters = [1]; expected a list of texts"),
    ],
)
def test_descriptor__of_nonsense_is_refused_by_name(shore, change, said):
    changed(shore, **change)
    for way in (lambda: read_entry(shore / "catalogue" / "shore"), entries):
        with pytest.raises(InputError) as error:
            way()
        assert said in str(error.value)
        assert "suite.toml" in str(error.value)


@pytest.mark.parametrize(
    ("change", "wanted", "said"),
    [
        ({"old": '"R@1", "nDCG@3"', "new": '"Zork@3"'}, {}, "unknown measure 'Zork@3'"),
        ({}, {"measures": ("Zork@3",)}, "unknown measure 'Zork@3'"),
        ({}, {"by": ("zork",)}, "no column 'zork' of shore to slice by"),
        ({}, {"by": ("vector",)}, "no column 'vector' of shore to slice by"),
        ({"top": 'filters = ["zork"]'}, {}, "filter 'zork': its chunks have no such column"),
        ({"top": 'filters = ["text"]'}, {}, "filter 'text': its cases have no such column"),
        ({"top": 'filters = ["acl"]'}, {}, "filter 'acl': its chunks have no such column"),
        ({"top": 'filters = ["valid_at"]'}, {}, "filter 'valid_at': its chunks have no such"),
        ({"end": SCOPE + 'question = "zork"'}, {}, "asks the column 'zork'; expected a column of"),
        ({"end": SCOPE + 'question = "type"'}, {}, "asks the column 'type'; expected a column of"),
        ({}, {"candidate_k": 2**62}, "a depth of"),
        ({}, {"context_k": 2**62}, "a depth of"),
        ({}, {"split": "moon"}, "splits test; expected cases of split 'moon'"),
    ],
)
def test_run__refuses_what_cannot_be_done_before_anything_is_indexed(shore, change, wanted, said):
    changed(shore, **change)
    with pytest.raises(RagcoreError) as error:
        run_suite(entry("shore"), data=shore / "data", wanted=Wanted(**wanted))
    assert said in str(error.value)
    assert not (shore / "cache" / "suites" / "shore" / "index").exists()


@pytest.mark.parametrize("name", ["checks", "columns", "imported", "../x", "", "made shore"])
def test_importer__that_is_none_is_refused(shore, name):
    changed(shore, old='"made_shore"', new=f'"{name}"')
    one = entry(str(shore / "catalogue" / "shore"))
    with pytest.raises(InputError, match="expected an importer"):
        pinned.load(one, pinned.find(one, shore / "data"))


def test_data__that_is_no_parquet_though_its_checksum_is_right(shore):
    path = shore / "data" / "shore" / "corpus.parquet"
    toml = shore / "catalogue" / "shore" / "suite.toml"
    whole = path.read_bytes()
    old = hashlib.sha256(whole).hexdigest()
    for other in (b"", b"PAR1" * 3, whole[: len(whole) // 2], b"no table at all\n" * 20):
        path.write_bytes(other)
        text = toml.read_text().replace(old, old := hashlib.sha256(other).hexdigest())
        toml.write_text(re.sub(r"bytes = \d+", f"bytes = {len(other)}", text, count=1))
        one = entry("shore")
        with pytest.raises(InputError, match=r"corpus\.parquet: damaged"):
            pinned.load(one, pinned.find(one, shore / "data"))


def test_data__whose_decoder_panics_is_damaged(shore, monkeypatch):
    class Panic(pinned.pl.exceptions.PanicException):
        pass

    def panics(_):
        raise Panic("assertion failed")

    monkeypatch.setattr(pinned.pl, "read_parquet", panics)
    one = entry("shore")
    with pytest.raises(InputError, match="damaged: assertion failed"):
        pinned.load(one, pinned.find(one, shore / "data"))


def test_folder__keeps_whatever_keys_and_values_a_descriptor_has(shore):
    changed(shore, top=(
        '"a b" = 1\n"é" = {"x y" = 2}\n"😀" = "\\u007f"\nwhen = 2020-01-01\nat = 10:00:00\n'
        "nothing = nan\nmost = [inf, -inf]\nyes = true\n"
    ))  # fmt: skip
    run = run_suite(entry("shore"), data=shore / "data", wanted=Wanted(strategies=("bm25",)))
    said = tomllib.loads((run.folder / "suite.toml").read_text("utf-8"))
    for key in ("a b", "é", "😀", "when", "at", "most", "yes"):
        assert said[key] == entry("shore").settings[key], key


@pytest.mark.parametrize("line", ["name = 3", "kind = 3", "measures = [1]", "measures = 5"])
def test_open_suite__refuses_settings_of_another_type(shore, line):
    run = run_suite(entry("shore"), data=shore / "data", wanted=Wanted(strategies=("bm25",)))
    (run.folder / "suite.toml").write_text(line)
    with pytest.raises(InputError, match=re.escape(line.replace("'", "")[:4])):
        open_suite(run.folder)


def test_scopes__of_a_suite_are_named_in_every_run(shore):
    changed(shore, end=(
        '[[scope]]\nname = "own"\nfilters = ["chunk_id=d1"]\n[[scope]]\nname = "all"\n'
    ))  # fmt: skip
    wanted = Wanted(strategies=("bm25", "bm25"), scopes=("own", "own"))
    run = run_suite(entry("shore"), data=shore / "data", wanted=wanted)
    assert [one.name for one in run.rungs] == ["bm25 own"]


@pytest.mark.parametrize(
    "wanted", [{"split": "x"}, {"scopes": ("",)}, {"candidate_k": 3}, {"context_k": 3},
               {"strategies": ("bm25",)}]
)  # fmt: skip
def test_recorded_runs__take_no_settings_of_a_search(tmp_path, wanted):
    with pytest.raises(UsageError, match="nothing is searched"):
        run_suite(entry("ka4"), tmp_path / "ka4", wanted=Wanted(**wanted))
    assert not (tmp_path / "ka4").exists()
