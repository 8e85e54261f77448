"""Every promise of the Mosaic Desk suite, recomputed in plain Python from its Arrow files alone.

That its program still writes these files is held in test_authored.py."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from itertools import product

import pytest

from mosaic_rules import (
    CASE_IDS,
    CASES,
    CHUNKS,
    JUDGMENTS,
    LANGS,
    LAYERS,
    MANIFEST,
    REPAIRED,
    RUNS,
    SNAPSHOTS,
    TABLES,
    TRACES,
    attribution,
    hard,
    ids,
    interventions,
    joint,
    labelled,
    layers,
    query,
    required,
    resolved,
    served,
    text,
    verdicts,
)
from ragcore import schema

# Layers: corpus query retrieval ranking context generation citation evaluation.
# Interventions: oracle context, frozen context, frozen output.
TABLE = {
    "M1": ("G P N N P P N P", "recovers - same", "corpus attributed"),
    "M2": ("P F F F P P F P", "recovers fails same", "query attributed"),
    "M3": ("P P F N P P N P", "recovers fails same", "retrieval attributed"),
    "M4": ("P P P F P P N P", "recovers fails same", "ranking attributed"),
    "M5": ("P P P P F F F P", "recovers fails same", "context attributed"),
    "M6": ("P P P P P F F P", "fails recovers same", "generation attributed"),
    "M7": ("P P P P P P F P", "fails recovers same", "citation attributed"),
    "M8": ("P P P P P P P F", "fails fails flips", "evaluation disputed"),
    "M9": ("N P F N F F F P", "- - same", "hard gate violation"),
}
JOINT = {
    "M1": "retrieval_gap_correct_abstention",
    "M2": "unclassified",
    "M3": "retrieval_gap_correct_abstention",
    "M4": "unclassified",
    "M5": "assembly_failure",
    "M6": "generation_use_failure",
    "M7": "candidate_pass",
    "M8": "candidate_pass",
    "M9": "authorization_failure",
}
STATES = {
    "M1": "abstain abstain", "M2": "answer answer", "M3": "answer abstain",
    "M4": "answer abstain", "M5": "answer answer", "M6": "escalate answer",
    "M7": "answer answer", "M8": "answer answer", "M9": "fail_closed answer",
}  # fmt: skip
each_key = pytest.mark.parametrize("key", CASES, ids="-".join)


def test_enumerations__are_those_of_ragcore() -> None:
    for run in RUNS:
        for trace in TRACES[run].values():
            assert trace["condition"] in schema.CONDITIONS
            assert trace["context_state"] in schema.CONTEXT_STATES
            assert trace["final"]["state"] in schema.EXPECTED_STATES
    for row in JUDGMENTS:
        assert row["relation"] in schema.RELATIONS
        assert row["verdict"] in schema.VERDICTS
        assert row["rung"] in schema.RUNGS
        assert (row["case_id"], row["lang"]) in TRACES[row["run"]]
    for case in CASES.values():
        assert case["judge_required"] in schema.RUNGS
        assert {item["role"] for item in case["evidence"]} <= set(schema.ROLES)


# --- the table


@each_key
def test_layers__are_the_declared_ones(key: tuple[str, str]) -> None:
    assert layers(key) == TABLE[key[0]][0]
    assert len(LAYERS) == 8


@each_key
def test_interventions__are_the_declared_ones(key: tuple[str, str]) -> None:
    assert " ".join(found or "-" for found in interventions(key)) == TABLE[key[0]][1]


@each_key
def test_attribution__is_the_declared_one(key: tuple[str, str]) -> None:
    assert " ".join(attribution(key)) == TABLE[key[0]][2]


def test_attribution__seven_one_and_a_gate() -> None:
    for lang in LANGS:
        found = Counter(attribution((case_id, lang))[1] for case_id in CASE_IDS)
        assert found == {"attributed": 7, "disputed": 1, "violation": 1}


@each_key
def test_joint_matrix__codes(key: tuple[str, str]) -> None:
    assert joint(key) == JOINT[key[0]]


def test_languages__agree_in_every_cell() -> None:
    for case_id in CASE_IDS:
        cells = [
            (layers(key), interventions(key), attribution(key), joint(key), served("observed", key))
            for key in product([case_id], LANGS)
        ]
        assert cells[0] == cells[1]


@each_key
def test_states__expected_and_observed(key: tuple[str, str]) -> None:
    trace, case = TRACES["observed"][key], CASES[key]
    assert f"{case['expected_state']} {trace['proposed']['state']}" == STATES[key[0]]
    assert trace["final"] == {f: trace["proposed"][f] for f in ("state", "value", "text")}


@each_key
def test_hard_failures__only_where_a_forbidden_unit_appears(key: tuple[str, str]) -> None:
    for run in RUNS:
        # An oracle shows a page that the corpus lacks, so there M1 answers what it may not.
        if key in TRACES[run] and (run, key[0]) != ("oracle_context", "M1"):
            assert bool(hard(TRACES[run][key], key)) is (key[0] == "M9")
    if key[0] == "M9":
        (item,) = labelled(key, "forbidden")
        trace = TRACES["observed"][key]
        for shown in (trace["ranked"], trace["context"], trace["citations"]):
            assert item["chunk_id"] in ids(shown)
        assert CHUNKS[item["chunk_id"]]["acl"] == ["technician"]


# --- the cases, one by one


def test_cases__nine_in_two_languages() -> None:
    assert set(CASES) == set(product(TABLE, LANGS))
    assert {case["label_version"] for case in CASES.values()} == {"mosaic.1"}
    kinds = {kind for case in CASES.values() for kind in case["type"]}
    assert kinds >= {"hard-negative", "unanswerable", "citation-required"}


@each_key
def test_labels__lie_in_one_block_of_their_document(key: tuple[str, str]) -> None:
    case = CASES[key]
    for item in case["evidence"]:
        body = text(item["chunk_id"], key[1])
        assert body[item["start"] : item["end"]] == item["quote"]
        assert body.split("\n")[item["block"]] == item["quote"]
        chunk = CHUNKS[item["chunk_id"]]
        assert (chunk["doc_id"], chunk["doc_version"]) == (item["doc_id"], item["doc_version"])
        assert chunk["block_first"] <= item["block"] <= chunk["block_last"]
        assert item["in_snapshot"] is (item["chunk_id"] in SNAPSHOTS[case["snapshot"]])
        assert item["relevance"] == (3 if item["required"] else 0)
        if item["role"] == "stale":
            assert chunk["valid_until"] <= case["as_of"]
    assert {i["claim"] for i in required(key)} == set(range(len(case["claims"])))


def test_corpus__is_short_and_its_units_are_unique() -> None:
    assert len(CHUNKS) == TABLES["chunks.arrow"].num_rows == 36
    for chunk in CHUNKS.values():
        assert chunk["sha256"] == hashlib.sha256(chunk["text"].encode()).digest()
        for size, body in (("n_tokens", chunk["text"]), ("n_tokens_zh", chunk["text_zh"])):
            assert chunk[size] == len(body)
        assert chunk["text"].count("\n") == chunk["text_zh"].count("\n") == chunk["block_last"]
    absent = set(SNAPSHOTS["mosaic.1"]) - set(SNAPSHOTS["mosaic.1-without-v8-sound"])
    assert absent == {"v8-sound#1"}


@pytest.mark.parametrize("lang", LANGS)
def test_m1__noise_is_found_and_kept_out(lang: str) -> None:
    trace = TRACES["observed"]["M1", lang]
    assert ids(trace["ranked"]) == ids(labelled(("M1", lang), "background"))
    assert (trace["context_state"], trace["context"], trace["citations"]) == ("no_evidence", [], [])
    assert trace["ranked"][0]["score"] < MANIFEST["threshold"]["reranked"]
    assert set(resolved("observed", ("M1", lang), "correct").values()) == {"yes"}


@pytest.mark.parametrize("lang", LANGS)
def test_m2__model_and_negation_are_lost(lang: str) -> None:
    key = "M2", lang
    trace = TRACES["observed"][key]
    assert "K31" in CASES[key]["question"]
    assert not re.search(r"K31|MK2|without|没有", trace["query"])
    for stage in trace["stages"].values():
        assert not set(ids(required(key))) & set(ids(stage))
    assert query(key, REPAIRED[key]) == "P"


@pytest.mark.parametrize("lang", LANGS)
def test_m3__unit_stands_beyond_the_candidates(lang: str) -> None:
    stages = TRACES["observed"]["M3", lang]["stages"]
    assert ids(stages["fused"]).index("t5-probe#1") + 1 == 12 > MANIFEST["candidate_k"]
    assert "t5-probe#1" not in ids(stages["dense"])
    assert ids(REPAIRED["M3", lang]["stages"]["dense"])[0] == "t5-probe#1"


@pytest.mark.parametrize("lang", LANGS)
def test_m4__duplicates_push_rank_4_to_9(lang: str) -> None:
    trace = TRACES["observed"]["M4", lang]
    before, after = ids(trace["stages"]["fused"]), ids(trace["ranked"])
    assert (before.index("w20-dose#1") + 1, after.index("w20-dose#1") + 1) == (4, 9)
    ahead = [CHUNKS[unit]["sha256"] for unit in after[:8]]
    assert sorted(Counter(ahead).values()) == [1, 1, 6]
    assert MANIFEST["context_k"] == len(trace["context"]) == 5
    assert ids(REPAIRED["M4", lang]["ranked"]).index("w20-dose#1") + 1 == 4


@pytest.mark.parametrize("lang", LANGS)
def test_m5__the_condition_is_cut_off(lang: str) -> None:
    trace = TRACES["observed"]["M5", lang]
    (packed,) = [p for p in trace["context"] if p["id"] == "f12-power#1"]
    answer, condition = required(("M5", lang))
    assert answer["end"] <= packed["end"] < condition["start"]
    assert trace["claims"][0]["text"] == answer["quote"]
    told = TRACES["oracle_context"]["M5", lang]["claims"][0]["text"]
    assert told == f"{answer['quote']}\n{condition['quote']}"


@pytest.mark.parametrize("lang", LANGS)
def test_m6__citation_resolves_and_does_not_entail(lang: str) -> None:
    trace = TRACES["observed"]["M6", lang]
    (cited,) = trace["citations"]
    answer, condition = required(("M6", lang))
    assert cited["id"] == answer["chunk_id"]
    assert text(cited["id"], lang)[cited["start"] : cited["end"]] == cited["quote"]
    assert trace["context"][0]["end"] >= condition["end"]
    assert set(resolved("observed", ("M6", lang), "cites").values()) == {"no"}
    assert TRACES["frozen_model"]["M6", lang]["final"]["state"] == "escalate"


@pytest.mark.parametrize("lang", LANGS)
def test_m7__handles_are_exchanged(lang: str) -> None:
    trace, mended = TRACES["observed"]["M7", lang], TRACES["frozen_validator"]["M7", lang]
    assert trace["claims"] == mended["claims"]
    assert ids(trace["citations"]) == ids(mended["citations"])[::-1]
    for cited in trace["citations"]:
        assert text(cited["id"], lang)[cited["start"] : cited["end"]] == cited["quote"]
    assert (trace["retries"], mended["retries"]) == (0, 1)


@pytest.mark.parametrize("lang", LANGS)
def test_m8__judges_of_one_rung_differ(lang: str) -> None:
    key = "M8", lang
    for run in ("observed", "oracle_context", "frozen_model"):
        (said,) = verdicts(run, key, "covered").values()
        assert said == {"literal 1": "no", "quantities 1": "yes"}
        assert served(run, key) == "disputed"
    (said,) = verdicts("frozen_output", key, "covered").values()
    assert said == {"literal 2": "yes"}
    disputed = {
        (row["run"], row["case_id"]) for row in JUDGMENTS
        for found in [resolved(row["run"], (row["case_id"], row["lang"]), row["relation"])]
        if "disputed" in found.values()
    }  # fmt: skip
    assert disputed == {(run, "M8") for run in ("observed", "oracle_context", "frozen_model")}


@each_key
def test_repaired__without_its_fault_each_case_goes_right(key: tuple[str, str]) -> None:
    trace, case = REPAIRED[key], CASES[key]
    assert trace["fault"] is None
    assert TRACES["observed"][key]["fault"]
    assert trace["final"]["state"] == case["expected_state"]
    assert trace["final"]["value"] == case["expected_value"]
    assert hard(trace, key) == []
    if case["expected_state"] in ("answer", "escalate"):
        pages = {item["claim"]: item["chunk_id"] for item in required(key)}
        assert {c["claim"]: c["id"] for c in trace["citations"]} == pages
