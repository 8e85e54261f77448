"""Suites by name: found, described, their data located and verified, checked, run."""

from __future__ import annotations

import hashlib
import json
import math
import sys
import tomllib

import pyarrow as pa
import pytest

import collections_made as made
from ragcore import score
from ragcore.catalogue import pinned, reading
from ragcore.catalogue.check import check_suite
from ragcore.catalogue.entries import entries, entry, read_entry
from ragcore.catalogue.facts import facts_of
from ragcore.catalogue.ladder import Wanted, run_suite
from ragcore.errors import InputError, UsageError
from ragcore.suites import find_suite, open_suite
from served import Server

# --- entries


def test_entries__are_found_by_name_whatever_the_dashes(shore):
    assert [one.name for one in entries()] == ["shore"]
    assert entry("Shore").folder == shore / "catalogue" / "shore"
    assert entry(str(shore / "catalogue" / "shore")).public


def test_entry__unknown_names_those_that_there_are(shore):
    with pytest.raises(UsageError, match=r"no suite 'sure'\n.*there are: shore"):
        entry("sure")
    with pytest.raises(UsageError, match=r"has no suite\.toml"):
        entry(str(shore))


def test_suite_folders__come_along_with_the_sources():
    names = [one.name for one in entries()]
    assert {"ka4", "mosaic", "in_domain"} <= set(names)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('kind = "public (out of distribution)"', 'kind = "in-domain"', "begins with public"),
        ('licence = "none"', "", "no licence"),
        ('cannot_show = ["anything at all"]', "", "no cannot_show"),
        ('cannot_show = ["anything at all"]', 'cannot_show = "x"', "a list of texts"),
        ('["bm25", "dense-exact"]', '["bm25", "magic"]', "unknown strategy 'magic'"),
        ("candidate_k = 3", "candidate_k = 0", "a whole number from 1 on"),
        ("sha256 = ", "sha = ", "without sha256"),
        ('[files."shore/corpus', '[files."../corpus', "inside the folder"),
        ('name = "shore"', 'name = "shore', "broken TOML"),
    ],
)
def test_entry__that_says_too_little_is_refused_by_name(shore, old, new, said):
    toml = shore / "catalogue" / "shore" / "suite.toml"
    toml.write_text(toml.read_text().replace(old, new))
    with pytest.raises(InputError, match=said) as error:
        read_entry(toml.parent)
    assert str(toml) in str(error.value)


# --- data


def test_data__is_found_in_the_given_folder_the_environment_and_the_cache(shore, monkeypatch):
    one = entry("shore")
    with pytest.raises(UsageError, match="RAGCORE_DATA"):
        pinned.find(one)
    assert pinned.missing(one) == ["shore/corpus.parquet", "shore/questions.parquet"]
    for given in (shore / "data", shore / "data" / "shore"):
        found = pinned.find(one, given)
        assert (found.form, len(found.files)) == (pinned.SUBSET, 2)
    monkeypatch.setenv("RAGCORE_DATA", str(shore / "data"))
    assert pinned.find(one).folder == shore / "data"
    monkeypatch.delenv("RAGCORE_DATA")
    (shore / "cache").mkdir()
    (shore / "data").rename(shore / "cache" / "data")
    assert pinned.find(one).folder == shore / "cache" / "data"
    assert pinned.missing(one) == []


def test_data__that_was_changed_is_named(shore):
    path = shore / "data" / "shore" / "corpus.parquet"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + b"x")
    with pytest.raises(InputError, match=r"corpus\.parquet: sha256 [^\n]*\n.*not the pinned file"):
        pinned.find(entry("shore"), shore / "data")
    path.write_bytes(whole + b"x")
    with pytest.raises(InputError, match=r"corpus\.parquet: [\d,]+ bytes"):
        pinned.find(entry("shore"), shore / "data")
    path.unlink()
    with pytest.raises(InputError, match=r"no such file; expected all 2 files"):
        pinned.find(entry("shore"), shore / "data")


def test_data__of_an_importer_that_there_is_not(shore):
    toml = shore / "catalogue" / "shore" / "suite.toml"
    toml.write_text(toml.read_text().replace("made_shore", "nobody"))
    one = entry("shore")
    with pytest.raises(InputError, match="importer 'nobody'"):
        pinned.load(one, pinned.find(one, shore / "data"))


def test_data__from_the_official_source_is_downloaded_and_imported(shore):
    body = made.official_bytes()
    server = Server(body)
    digest = hashlib.sha256(body).hexdigest()
    made.write(shore / "catalogue", shore / "data", (
        f'[[official]]\nurl = "{server.url}"\nfile = "shore.tsv"\nsha256 = "{digest}"\n'
        f"bytes = {len(body)}\n"
    ))  # fmt: skip
    one = entry("shore")
    with pytest.raises(UsageError, match="--download"):
        pinned.find(one)
    try:
        pinned.fetch(one)
    finally:
        server.stop()
    assert pinned.missing(one) == []
    source = pinned.find(one)
    assert source.form == pinned.OFFICIAL
    own = pinned.load(one, pinned.find(one, shore / "data"))
    there = pinned.load(one, source)
    assert there.cases.equals(own.cases)
    assert there.chunks.equals(own.chunks)
    assert run_suite(one).form == pinned.OFFICIAL


def test_fetch__without_an_official_distribution_says_where_it_comes_from(shore):
    with pytest.raises(UsageError, match="no official distribution of shore is pinned"):
        pinned.fetch(entry("shore"))


# --- check


def test_check__of_a_whole_suite(shore, tmp_path):
    found, facts = check_suite(entry("shore"), shore / "data", tmp_path / "work")
    assert all(one.holds for one in found)
    assert {one.what for one in found} == {"suite.toml", "files", "labels", "splits"}
    assert (facts.n_cases, facts.n_chunks, facts.n_items, facts.stage) == (4, 4, 4, 0)
    assert facts.kinds["odd"].by_split == {"test": 2}


def test_check__claims_no_more_of_labels_than_was_looked_at(shore, tmp_path, monkeypatch):
    build = made.build

    def said(*changes):
        def other(tables):
            given = build(tables)
            lists = given.cases["evidence"].to_pylist()
            for own, change in zip(lists, changes, strict=False):
                own[0] |= change
            kind = given.cases.schema.field("evidence")
            at = given.cases.schema.get_field_index("evidence")
            column = pa.array(lists, kind.type)
            return made.Imported(given.cases.set_column(at, kind, column), given.chunks)

        monkeypatch.setattr(sys.modules["ragcore.public.made_shore"], "build", other)
        found, facts = check_suite(entry("shore"), shore / "data", tmp_path / "work")
        (one,) = [each.found for each in found if each.what == "labels"]
        return one, facts

    bare, lost = {"quote": None}, {"quote": None, "doc_id": "d9"}
    assert said()[0] == "4 items of evidence, every quote where its label says"
    assert said(bare)[0] == "4 items of evidence, 3 with a quote, each where its label says"
    text, facts = said(bare, bare, bare, lost)
    assert text == "4 items of evidence, none with a quote to check; 1 lie in no chunk"
    assert facts.n_unplaced == 1
    text, facts = said(lost | {"in_snapshot": False})
    assert text == (
        "4 items of evidence, every quote where its label says; 1 say that the corpus lacks them"
    )
    assert (facts.n_absent, facts.n_unplaced) == (1, 0)


def test_check__names_a_label_whose_quote_is_gone(shore, tmp_path):
    made.write(shore / "catalogue", shore / "data", d2="Dunes are moved by hand.")
    found, facts = check_suite(entry("shore"), shore / "data", tmp_path / "work")
    (bad,) = [one for one in found if not one.holds]
    assert (bad.what, facts.n_stale) == ("labels", 1)
    assert "1 of 4 do not hold: q2: quote-gone 'the wind' in d2" in bad.found


def test_run__of_labels_that_do_not_hold_is_refused_before_anything_is_searched(shore):
    made.write(shore / "catalogue", shore / "data", d2="Dunes are moved by hand.")
    with pytest.raises(InputError, match=r"1 of 4 labels do not hold, first q2: quote-gone"):
        run_suite(entry("shore"), data=shore / "data")
    assert not (shore / "cache" / "suites" / "shore" / "index").exists()


def test_run__without_a_split_that_the_suite_needs_is_refused(shore):
    toml = shore / "catalogue" / "shore" / "suite.toml"
    toml.write_text(toml.read_text().replace("by = ", 'splits = ["validation", "test"]\nby = '))
    with pytest.raises(InputError, match=r"no case of split validation \(4 test\)"):
        run_suite(entry("shore"), data=shore / "data")


def test_check__names_a_split_that_is_missing(shore, tmp_path):
    toml = shore / "catalogue" / "shore" / "suite.toml"
    toml.write_text(toml.read_text().replace("by = ", 'splits = ["validation", "test"]\nby = '))
    found, _ = check_suite(entry("shore"), shore / "data", tmp_path / "work")
    (bad,) = [one for one in found if not one.holds]
    assert (bad.what, bad.found) == ("splits", "no case of split validation: 4 test")


def test_check__of_what_cannot_be_read_says_why(shore, tmp_path):
    found, facts = check_suite(entry("shore"), shore / "nowhere", tmp_path / "work")
    assert facts is None
    assert [one.holds for one in found] == [True, False]
    assert "\n" not in found[-1].found
    assert "RAGCORE_DATA" in found[-1].found


def test_facts__count_words_that_evidence_shares(shore):
    run = run_suite(entry("shore"), data=shore / "data")
    kinds = facts_of(run.suite).kinds
    # q1 "what carries sand" / carry sand; q3 "what warns ships" / warns ships; q2 dunes; q4 tides
    assert (kinds["odd"].shared, kinds["odd"].words) == (4, 4)
    assert (kinds["even"].shared, kinds["even"].words) == (4, 4)


# --- run


def test_run__scores_the_ladder_and_says_what_it_took(shore):
    run = run_suite(entry("shore"), data=shore / "data")
    assert [one.name for one in run.rungs] == ["bm25", "dense-exact"]
    assert run.scores.means("bm25") == {"R@1": 1.0, "nDCG@3": 1.0}
    # Every question's vector is its neighbour's; the rest of the list is a tie, by id, descending.
    assert run.scores.means("dense-exact") == {
        "R@1": 0.0, "nDCG@3": pytest.approx((0.5 + 2 / math.log2(3)) / 4)
    }  # fmt: skip
    assert set(run.times) == {"importing", "indexing", "searching", "scoring"}
    bm25, dense = run.rungs
    assert bm25.room["R@1"].state == "saturated"
    assert bm25.size > 0
    assert dense.size > 0
    assert bm25.pool == 4
    # n_tokens are code points where nothing else is said; dense shows two of four chunks
    assert run.suite.settings["budget_unit"] == "code points"
    assert 40 < dense.tokens < 70
    assert run.notes == ["1 of 5 sentences was left out: it was a heading"]


def test_run__is_a_suite_folder_that_every_command_knows(shore):
    run = run_suite(entry("shore"), data=shore / "data")
    again = score(run.folder / "runs" / "bm25.arrow")
    assert again.suite.name == "shore"
    assert again.means() == run.scores.means("bm25")
    assert find_suite("shore") == run.folder
    said = tomllib.loads((run.folder / "suite.toml").read_text())
    assert said["kind"] == "public (out of distribution)"
    assert said["form"] == pinned.SUBSET
    assert set(said["files"]) == {"cases.arrow", "chunks.arrow"}


def test_run__again_takes_the_place_of_the_first(shore):
    one = entry("shore")
    first = run_suite(one, data=shore / "data")
    (first.folder / "runs" / "old.arrow").write_bytes(b"")
    second = run_suite(one, data=shore / "data", wanted=Wanted(strategies=("bm25",)))
    assert sorted(p.name for p in (second.folder / "runs").iterdir()) == ["bm25.arrow"]


def test_run__never_writes_over_a_folder_of_somebody_else(shore, tmp_path):
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "letter.txt").write_text("dear")
    with pytest.raises(UsageError, match="no working folder of a suite"):
        run_suite(entry("shore"), mine, data=shore / "data")
    assert [p.name for p in mine.iterdir()] == ["letter.txt"]


def test_run__says_what_was_not_evaluated(shore, monkeypatch):
    monkeypatch.setattr(made, "vector", lambda i: None)
    build = made.build

    def without(tables):
        given = build(tables)
        return made.Imported(
            given.cases.drop_columns("vector"), given.chunks.drop_columns("vector")
        )

    made_module = __import__("sys").modules["ragcore.public.made_shore"]
    made_module.build = without
    wanted = Wanted(embed="none")
    run = run_suite(entry("shore"), data=shore / "data", wanted=wanted)
    dense = run.rungs[1]
    assert dense.skipped.startswith("no vectors came with the data")
    assert [one.name for one in run.scores.runs] == ["bm25"]
    assert f"dense-exact: not evaluated, {dense.skipped}" in reading.sentences(run)


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (Wanted(strategies=("magic",)), "unknown strategy 'magic'"),
        (Wanted(scopes=("moon",)), "unknown scope 'moon'"),
    ],
)
def test_run__refuses_before_anything_is_done(shore, wanted, said):
    with pytest.raises(UsageError, match=said):
        run_suite(entry("shore"), data=shore / "data", wanted=wanted)
    assert not (shore / "cache").exists()


def test_run__in_several_scopes(shore):
    toml = shore / "catalogue" / "shore" / "suite.toml"
    text = toml.read_text().replace("\n[files", (
        '\n[[scope]]\nname = "own"\nfilters = ["chunk_id=d1"]\n'
        '[[scope]]\nname = "all"\n\n[files'
    ), 1)  # fmt: skip
    toml.write_text(text)
    run = run_suite(entry("shore"), data=shore / "data", wanted=Wanted(strategies=("bm25",)))
    assert [one.name for one in run.rungs] == ["bm25 own", "bm25 all"]
    assert run.scores.mean("R@1", "bm25 own") == 0.25
    assert run.scores.mean("R@1", "bm25 all") == 1.0
    assert [one.pool for one in run.rungs] == [1, 4]
    # rungs are compared inside their scope only
    assert not [s for s in reading.sentences(run) if "->" in s]


def test_reading__compares_rungs_and_names_types(shore):
    run = run_suite(entry("shore"), data=shore / "data")
    said = reading.sentences(run)
    assert said[0].startswith("R@1, bm25 -> dense-exact: 1.0000 -> 0.0000, -1.0000 [")
    assert "0 won, 4 lost: a loss" in said[0]
    kinds = reading.types_of(run, "R@1")
    assert [(one.name, one.n, one.best) for one in kinds] == [
        ("even", [2, 2], ["bm25"]), ("odd", [2, 2], ["bm25"])
    ]  # fmt: skip
    assert any("descriptive only" in s for s in said)


def test_authored__is_copied_and_verified(tmp_path):
    run = run_suite(entry("ka4"), tmp_path / "ka4")
    assert json.loads(json.dumps(run.scores.means("filtered")["end_to_end"])) == 8 / 12
    assert run.form == ""
    assert open_suite(run.folder).settings["extractive"] is True
    assert not run.rungs[0].strategy
