"""What the in-domain suite promises: sizes, types, honest wording, labels, and its ladder.

That its program still writes these files is held in test_authored.py."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest

import tables
from ragcore import schema
from ragcore.catalogue.entries import read_entry
from ragcore.catalogue.facts import facts_of
from ragcore.catalogue.ladder import Wanted, run_suite
from ragcore.score import score
from ragcore.suites import open_suite
from ragcore.wording import overlap, shared_words

FOLDER = Path(__file__).resolve().parents[2] / "data" / "in_domain"
CASES = tables.read_ipc(FOLDER / "cases.arrow").drop_columns(["vector"]).to_pylist()
CHUNKS = tables.read_ipc(FOLDER / "chunks.arrow").drop_columns(["vector"]).to_pylist()
LANGS = ("en", "zh")
UNIT = {(row["doc_id"], row["block_first"]): row for row in CHUNKS}
PER_LANG = {lang: [row for row in CASES if row["lang"] == lang] for lang in LANGS}

# By type: cases of test and of validation, content words of its questions that the evidence has,
# and all of them, over both languages.
TYPES = {
    "single-hop": (79, 56, 501, 2278),
    "hard-negative": (65, 48, 700, 1998),
    "entity-number-version": (37, 25, 486, 1128),
    "paraphrase": (32, 19, 0, 880),
    "exact-keyword": (19, 15, 278, 531),
    "semantic": (17, 10, 98, 533),
    "multi-document": (15, 10, 263, 493),
    "multi-chunk": (14, 9, 194, 452),
    "unanswerable": (12, 8, 0, 0),
    "citation-required": (5, 8, 92, 223),
    "source-scoped": (7, 5, 103, 263),
}
# R@5 and nDCG@10 over both languages and all cases that can be answered.
LADDER = {
    "bm25": (0.4623, 0.3502),
    "dense-exact": (0.6008, 0.4533),
    "hybrid-exact": (0.5635, 0.4448),
}
NEAR = 0.02
ENOUGH = 8  # cases of a type before two strategies are told apart on it
each_lang = pytest.mark.parametrize("lang", LANGS)


def required(row):
    return [item for item in row["evidence"] if item["required"]]


def texts(row):
    """Of the blocks that the answer needs."""
    return [UNIT[item["doc_id"], item["block"]]["text"] for item in required(row)]


def of_type(kind):
    return [row for row in CASES if kind in row["type"]]


def chunk_of(item):
    return UNIT[item["doc_id"], item["block"]]


# --- what it holds


@each_lang
def test_corpus__is_large_enough(lang):
    chunks = [row for row in CHUNKS if row["lang"] == lang]
    assert len({row["doc_id"] for row in chunks}) >= 24
    assert len(chunks) >= 320
    assert len(PER_LANG[lang]) >= 120
    assert {row["form"] for row in chunks} == {
        "guide", "policy", "table", "release-notes", "changelog", "reference", "runbook",
    }  # fmt: skip
    assert {row["doc_id"].rpartition(".")[2] for row in chunks} == {lang}


def test_languages__hold_the_same_cases_and_places():
    told = ["case_id", "split", "as_of", "topic", "principals", "type", "slices", "answerable",
            "expected_state", "expected_value"]  # fmt: skip
    marks = ["block", "role", "relevance", "required", "claim"]

    def plain(row):
        items = [[item["doc_id"][:-3], *(item[m] for m in marks)] for item in row["evidence"]]
        return [row[name] for name in told], items, len(row["claims"])

    english, chinese = ([plain(row) for row in PER_LANG[lang]] for lang in LANGS)
    assert english == chinese
    places = [{(r["doc_id"][:-3], r["block_first"]) for r in CHUNKS if r["lang"] == lang}
              for lang in LANGS]  # fmt: skip
    assert places[0] == places[1]


def test_origin__is_a_model_and_nobody_has_looked():
    assert {row["origin"] for row in CASES} == {"model"}
    assert {row["status"] for row in CASES} == {"unreviewed"}
    assert {row["reviewed"] for row in CASES} == {False}


def test_types__are_present_in_both_splits():
    found = defaultdict(Counter)
    for row in PER_LANG["en"]:
        for kind in row["type"]:
            found[kind][row["split"]] += 1
    assert {k: (n["test"], n["validation"]) for k, n in found.items()} == {
        kind: numbers[:2] for kind, numbers in TYPES.items()
    }


def test_several_blocks__where_the_type_says_so():
    for row in of_type("multi-chunk"):
        assert len({(item["doc_id"], item["block"]) for item in required(row)}) >= 2, row["case_id"]
    for row in of_type("multi-document"):
        assert len({item["doc_id"] for item in required(row)}) >= 2, row["case_id"]
    for row in of_type("single-hop"):
        assert len({(i["doc_id"], i["block"]) for i in required(row)}) <= 1, row["case_id"]


def test_hard_cases__are_there():
    answerable = [row for row in PER_LANG["en"] if row["answerable"]]
    roles = {
        role: sum(any(item["role"] == role for item in row["evidence"]) for row in PER_LANG["en"])
        for role in schema.ROLES
    }
    states = Counter(row["expected_state"] for row in PER_LANG["en"])
    historical = [row for row in answerable if dict(row["slices"])["temporal"] == "historical"]
    assert (roles["stale"], roles["conflicting"], roles["forbidden"]) == (61, 4, 4)
    assert states == {"answer": 175, "abstain": 26, "escalate": 4}
    assert len(historical) == 18
    assert all(row["as_of"] < date(2025, 3, 18) for row in historical)


# --- labels


def test_labels__are_true_to_the_documents():
    for row in CASES:
        for item in row["evidence"]:
            chunk = chunk_of(item)
            start, end = chunk["valid_from"], chunk["valid_until"] or date.max
            assert item["quote"] in chunk["text"], row["case_id"]
            assert item["doc_version"] == chunk["doc_version"]
            assert chunk["lang"] == row["lang"]
            assert (item["relevance"] == 0) == (item["role"] in ("stale", "forbidden"))
            seen = not chunk["acl"] or bool(set(chunk["acl"]) & set(row["principals"]))
            assert seen == (item["role"] != "forbidden"), row["case_id"]
            if item["role"] == "stale":
                assert end <= row["as_of"], row["case_id"]
            elif item["role"] != "forbidden":
                assert start <= row["as_of"] < end, row["case_id"]


def test_unanswerable__have_no_evidence_to_go_by():
    for row in CASES:
        if not row["answerable"]:
            assert row["expected_state"] == "abstain"
            assert not row["claims"], row["case_id"]
            assert {item["role"] for item in row["evidence"]} <= {"stale", "forbidden"}
    assert not [row for row in of_type("unanswerable") if row["evidence"]]


def test_conflicts__need_both_sides_of_one_authority():
    conflicts = [row for row in CASES if row["expected_state"] == "escalate"]
    for row in conflicts:
        sides = [chunk_of(item) for item in required(row)]
        assert {item["role"] for item in required(row)} == {"conflicting"}
        assert len({side["doc_id"] for side in sides}) == 2, row["case_id"]
        assert len({side["authority"] for side in sides}) == 1, row["case_id"]


def test_permissions__the_same_question_is_answered_to_some_and_refused_to_others():
    refused = [r for r in CASES if any(i["role"] == "forbidden" for i in r["evidence"])]
    answered = {
        (item["doc_id"], item["block"]): row["principals"]
        for row in CASES for item in required(row) if chunk_of(item)["acl"]
    }  # fmt: skip
    for row in refused:
        (item,) = row["evidence"]
        assert row["principals"] == ["customer"]
        assert set(answered[item["doc_id"], item["block"]]) - {"customer"}


# --- wording


def test_paraphrases__share_no_content_word_with_what_they_need():
    for row in of_type("paraphrase"):
        assert shared_words(row["question"], texts(row)) == frozenset(), row["case_id"]


def test_wording__is_what_the_catalogue_reports():
    found = facts_of(open_suite(FOLDER))
    for kind, (*_, shared, total) in TYPES.items():
        pairs = [overlap(row["question"], texts(row)) for row in of_type(kind) if required(row)]
        assert (sum(a for a, _ in pairs), sum(b for _, b in pairs)) == (shared, total), kind
        assert (found.kinds[kind].shared, found.kinds[kind].words) == (shared, total), kind
    assert (found.stage, found.n_stale, found.n_unplaced, found.n_reviewed) == (2, 0, 0, 0)


# --- another chunking


def in_twos():
    """Neighbouring chunks of each document as one, and by (document, block) the new id."""
    merged, ids = [], {}
    by_document = defaultdict(list)
    for row in CHUNKS:
        by_document[row["doc_id"]].append(row)
    for name, rows in by_document.items():
        for i in range(0, len(rows), 2):
            first, last = rows[i], rows[min(i + 1, len(rows) - 1)]
            text = "\n\n".join(row["text"] for row in rows[i : i + 2])
            ids |= dict.fromkeys(((name, row["block_first"]) for row in rows[i : i + 2]),
                                 f"{name}/{i // 2}")  # fmt: skip
            merged.append({
                **first, "chunk_id": f"{name}/{i // 2}", "block_last": last["block_last"],
                "end": last["end"], "text": text, "sha256": b"\0" * 32,
            })  # fmt: skip
    return merged, ids


def test_labels__serve_another_chunking(tmp_path):
    merged, ids = in_twos()
    tables.write_ipc(pa.Table.from_pylist(merged, schema.CHUNKS), tmp_path / "chunks.arrow")
    (tmp_path / "cases.arrow").write_bytes((FOLDER / "cases.arrow").read_bytes())
    (tmp_path / "suite.toml").write_text('name = "in_twos"\nversion = "1"\n')
    found = facts_of(open_suite(tmp_path))
    assert (found.n_chunks, found.n_stale, found.n_unplaced) == (len(merged), 0, 0)
    perfect = [
        {
            "case_id": row["case_id"], "lang": row["lang"],
            "ranked": [
                {"id": name, "score": -float(rank)}
                for rank, name in enumerate(dict.fromkeys(
                    ids[item["doc_id"], item["block"]]
                    for item in row["evidence"] if item["relevance"]
                ))
            ],
        }
        for row in CASES
    ]  # fmt: skip
    scores = score(pa.Table.from_pylist(perfect), suite=tmp_path, measures=["R@10", "RR"])
    assert scores.means() == {"R@10": 1.0, "RR": 1.0}
    placed = [v for v in scores.per_case("R@10").values() if v is not None]
    assert len(placed) == 179


# --- the ladder


@pytest.fixture(scope="module")
def climbed(tmp_path_factory):
    """The suite, run."""
    wanted = Wanted(measures=("R@5", "nDCG@10"))
    return run_suite(read_entry(FOLDER), tmp_path_factory.mktemp("in_domain"), wanted=wanted)


def test_ladder__has_its_values(climbed):
    for name, (recall, gain) in LADDER.items():
        found = climbed.scores.means(name)
        assert found["R@5"] == pytest.approx(recall, abs=NEAR), name
        assert found["nDCG@10"] == pytest.approx(gain, abs=NEAR), name


def test_ladder__leaves_room_and_is_no_chance(climbed):
    assert [rung.name for rung in climbed.rungs] == list(LADDER)
    for rung in climbed.rungs:
        assert not rung.skipped
        assert rung.room["R@5"].state == "live"
        assert 5 / rung.pool < 0.10  # what a random ranking finds


def test_ladder__words_and_vectors_each_win_somewhere(climbed):
    values = {name: climbed.scores.per_case("R@5", name) for name in ("bm25", "dense-exact")}
    ahead = Counter()
    for kind in TYPES:
        names = {row["case_id"] for row in of_type(kind) if row["answerable"]}
        means = {run: sum(per[n] for n in names) / len(names) for run, per in values.items()
                 if len(names) >= ENOUGH}  # fmt: skip
        if means:
            ahead[max(means, key=means.__getitem__)] += 1
    assert ahead["bm25"] >= 1
    assert ahead["dense-exact"] >= 1
