"""Mosaic Desk: replays change one thing, and what is recorded is what the rules give."""

from __future__ import annotations

import json
import math
import re
from fractions import Fraction
from itertools import pairwise

import pytest

from mosaic_rules import (
    CASES,
    CHUNKS,
    FILES,
    JUDGMENTS,
    MANIFEST,
    RUNS,
    SNAPSHOTS,
    TABLES,
    TRACES,
    candidates,
    ids,
    labelled,
    manifest,
    text,
    verdicts,
)
from ragcore import schema

IDENTITIES = {
    "case", "corpus", "query", "retriever", "assembler", "model", "message", "decoding", "schema",
    "validator", "evaluator",
}  # fmt: skip
SINGLE = {
    "oracle_context": "assembler", "frozen_model": "model", "frozen_validator": "validator",
    "frozen_output": "evaluator",
}  # fmt: skip
SEARCHED = ("query", "stages", "ranked")
PACKED = ("context", "context_state", "input_size", "window", "reserve")
each_key = pytest.mark.parametrize("key", CASES, ids="-".join)
each_replay = pytest.mark.parametrize("run", SINGLE)


# --- replays


@each_replay
def test_replays__name_their_pair_and_change_one_identity(run: str) -> None:
    about = manifest(f"runs/{run}.arrow")
    assert set(about["identities"]) == IDENTITIES
    assert all(about["identities"].values())
    key = f"identities.{SINGLE[run]}"
    changed = {SINGLE[run]: about["identities"][SINGLE[run]]}
    assert changed[SINGLE[run]] != MANIFEST["identities"][SINGLE[run]]
    assert about == {
        **MANIFEST, "run": run, "baseline": "observed", "single_change": key,
        "identities": {**MANIFEST["identities"], **changed},
    }  # fmt: skip
    for case, trace in TRACES[run].items():
        seen = TRACES["observed"][case]
        kind = "frozen_context" if run.startswith("frozen_") and "output" not in run else run
        assert (trace["pair"], trace["condition"]) == (seen["trace"], kind)
        held = SEARCHED if run == "oracle_context" else (*SEARCHED, *PACKED)
        assert all(trace[column] == seen[column] for column in held)
        if run == "frozen_output":
            own = {"condition", "trace", "pair"}
            assert {k: v for k, v in trace.items() if k not in own} == {
                k: v for k, v in seen.items() if k not in own
            }


def test_repaired__differs_in_the_faults_only() -> None:
    about = manifest("repaired.arrow")
    own = {"run": "repaired", "baseline": "observed", "single_change": "faults", "faults": "none"}
    assert about == {**MANIFEST, **own}


def test_oracle__shows_the_labelled_pages_whole() -> None:
    for key, trace in TRACES["oracle_context"].items():
        assert ids(trace["context"]) == list(dict.fromkeys(ids(labelled(key, "supporting"))))
        for packed in trace["context"]:
            assert (packed["start"], packed["end"]) == (0, len(text(packed["id"], key[1])))


def test_manifests__are_canonical_and_traces_unique() -> None:
    names = [name for name in FILES if name.startswith("runs/")]
    for name in names:
        raw = TABLES[name].schema.metadata[schema.MANIFEST_KEY].decode()
        sorted_keys = {"sort_keys": True, "ensure_ascii": False, "separators": (",", ":")}
        assert raw == json.dumps(json.loads(raw), **sorted_keys)
    traces = [trace["trace"] for run in RUNS for trace in TRACES[run].values()]
    assert len(traces) == len(set(traces)) == 66


# --- what was recorded is what the rules give


def tokens(string: str) -> list[str]:
    out = []
    for run in re.findall(r"[a-z]+\d+|[a-z]+|\d+|[\u4e00-\u9fff]+", string.lower()):
        pairs = [a + b for a, b in pairwise(run)]
        out += [run] if run.isascii() else pairs or [run]
    return out


def indexed(unit: str, lang: str) -> list[str]:
    title = CHUNKS[unit]["title" if lang == "en" else f"title_{lang}"]
    return tokens(f"{title}\n{text(unit, lang)}")


@each_key
def test_bm25__scores_and_order(key: tuple[str, str]) -> None:
    bags = {unit: indexed(unit, key[1]) for unit in SNAPSHOTS[CASES[key]["snapshot"]]}
    mean = sum(map(len, bags.values())) / len(bags)
    trace = TRACES["observed"][key]
    k1, b = MANIFEST["k1"], MANIFEST["b"]
    terms = set(tokens(trace["query"]))
    df = {term: sum(term in bag for bag in bags.values()) for term in terms}
    wanted = {
        unit: sum(
            math.log(1 + (len(bags) - df[t] + 0.5) / (df[t] + 0.5)) * bag.count(t) * (k1 + 1)
            / (bag.count(t) + k1 * (1 - b + b * len(bag) / mean))
            for t in terms
        )
        for unit, bag in bags.items()
        if terms & set(bag)
    }  # fmt: skip
    got = {item["id"]: item["score"] for item in trace["stages"]["bm25"]}
    day = CASES[key]["as_of"]
    unseen = {u for u in wanted if CHUNKS[u]["acl"] and key[0] != "M9"}
    expired = {u for u in wanted if CHUNKS[u]["valid_until"] and CHUNKS[u]["valid_until"] <= day}
    assert got == pytest.approx({u: wanted[u] for u in wanted.keys() - unseen - expired}, abs=1e-9)
    assert list(got) == sorted(got, key=lambda u: (-got[u], u))


@each_key
def test_fused__is_reciprocal_rank_fusion_and_candidates_its_head(key: tuple[str, str]) -> None:
    trace = TRACES["observed"][key]
    total: dict[str, Fraction] = {}
    for channel in ("dense", "bm25"):
        for rank, unit in enumerate(ids(trace["stages"][channel]), start=1):
            total[unit] = total.get(unit, Fraction(0)) + Fraction(1, MANIFEST["rrf_k"] + rank)
    got = {item["id"]: item["score"] for item in trace["stages"]["fused"]}
    assert got == pytest.approx({u: float(s) for u, s in total.items()}, abs=1e-11)
    assert list(got) == sorted(total, key=lambda u: (-total[u], u))
    reranked = [{k: item[k] for k in ("id", "score")} for item in trace["stages"]["reranked"]]
    assert trace["ranked"] == reranked
    kept = set(ids(trace["ranked"]))
    assert kept <= set(candidates(trace))
    if key[0] == "M4":
        assert kept == set(candidates(trace))


UNITS = {
    "ml": (1, "ml"), "毫升": (1, "ml"), "litres": (1000, "ml"), "升": (1000, "ml"),
    "kg": (1, "kg"), "千克": (1, "kg"), "mm": (1, "mm"), "毫米": (1, "mm"),
    "decibels": (1, "dB"), "分贝": (1, "dB"), "hours": (1, "h"), "小时": (1, "h"),
    "weeks": (1, "wk"), "周": (1, "wk"), "loads": (1, "load"), "次": (1, "load"),
}  # fmt: skip


def amounts(string: str) -> set[tuple[Fraction, str]]:
    found = re.findall(rf"(\d+(?:\.\d+)?) ({'|'.join(UNITS)})", string)
    pairs = [(Fraction(number), *UNITS[unit]) for number, unit in found]
    return {(number * factor, unit) for number, factor, unit in pairs}


def backed(page: str, claim: str) -> bool:
    """All lines of a claim are in the page, and so is the condition after each of them."""
    said, lines = set(claim.split("\n")), page.split("\n")
    due = {b for a, b in pairwise(lines) if a in said and b.startswith(("Only ", "仅"))}
    return said <= set(lines) and due <= said


def test_verdicts__are_those_of_the_rules() -> None:
    for row in JUDGMENTS:
        key = row["case_id"], row["lang"]
        trace, yes = TRACES[row["run"]][key], row["verdict"] == "yes"
        said = (trace["final"]["text"] or "").split("\n")
        if row["relation"] in ("entailed", "cites"):
            claim = trace["claims"][row["claim"]]["text"]
            assert yes is any(backed(text(unit, key[1]), claim) for unit in row["evidence"])
        if row["relation"] == "cites":
            assert row["evidence"] == [
                c["id"] for c in trace["citations"] if c["claim"] == row["claim"]
            ]
        if row["relation"] == "entailed":
            assert row["evidence"] == ids(trace["context"])
        if row["relation"] == "covered":
            claim = CASES[key]["claims"][row["claim"]]["text"].split("\n")
            literal = set(claim) <= set(said)
            same = amounts("\n".join(claim)) <= amounts("\n".join(said))
            limits = {line for line in claim if line.startswith(("Only ", "仅"))} <= set(said)
            version = f"{row['judge']} {row['judge_version']}"
            assert yes is (literal if version == "literal 1" else same and limits), row


def test_verdicts__correct_is_state_and_coverage() -> None:
    for row in JUDGMENTS:
        if row["relation"] != "correct":
            continue
        case_id = row["case_id"]
        same = [
            other["verdict"] == "yes" for other in JUDGMENTS if other["relation"] == "covered"
            and all(other[c] == row[c] for c in ("run", "case_id", "lang", "judge"))
        ]  # fmt: skip
        state = TRACES[row["run"]][case_id, row["lang"]]["final"]["state"]
        expected = CASES[case_id, row["lang"]]["expected_state"]
        useful = bool(same) and all(same)
        silent = expected in ("abstain", "fail_closed")
        assert (row["verdict"] == "yes") is (
            (state == expected and (useful or silent))
            or (expected == "abstain" and state == "answer" and useful)
        )


def test_judgments__every_trace_has_its_verdicts() -> None:
    for run in RUNS:
        judges = {"literal 2"} if run == "frozen_output" else {"literal 1", "quantities 1"}
        for key, trace in TRACES[run].items():
            (said,) = verdicts(run, key, "correct").values()
            assert set(said) == judges
            covered = verdicts(run, key, "covered")
            assert {claim for claim, _ in covered} == set(range(len(CASES[key]["claims"])))
            for relation in ("entailed", "cites"):
                found = {claim for claim, _ in verdicts(run, key, relation)}
                assert found == set(range(len(trace["claims"])))


@each_key
def test_context__is_the_head_of_the_ranking_within_the_window(key: tuple[str, str]) -> None:
    trace = TRACES["observed"][key]
    top = trace["ranked"][: MANIFEST["context_k"]]
    wanted = [item["id"] for item in top if item["score"] >= MANIFEST["threshold"]["reranked"]]
    assert ids(trace["context"]) == wanted
    assert trace["context_state"] == ("ready" if wanted else "no_evidence")
    for packed in trace["context"]:
        whole = len(text(packed["id"], key[1]))
        assert packed["n_tokens"] == packed["end"] - packed["start"]
        assert (packed["end"] < whole) is (key[0] == "M5" and packed["id"] == "f12-power#1")


@pytest.mark.parametrize("run", RUNS)
def test_input_size__is_the_payload_and_fits(run: str) -> None:
    for key, trace in TRACES[run].items():
        pages = [
            {"id": p["id"], "text": text(p["id"], key[1])[p["start"] : p["end"]]}
            for p in trace["context"]
        ]
        record = {
            "instruction": MANIFEST["prompt"][key[1]],
            "question": CASES[key]["question"],
            "as_of": str(CASES[key]["as_of"]),
            "pages": pages,
        }
        assert trace["input_size"] == len(json.dumps(record, ensure_ascii=False))
        assert trace["input_size"] <= trace["window"] - trace["reserve"]


def test_lists__hold_units_of_the_snapshot_in_force_and_open_to_the_asker() -> None:
    for run in RUNS:
        for key, trace in TRACES[run].items():
            case = CASES[key]
            assert trace["index_generation"] == case["snapshot"]
            for listed in trace["stages"].values():
                units = ids(listed)
                assert len(units) == len(set(units)) <= MANIFEST["channel_depth"]
                assert set(units) <= set(SNAPSHOTS[case["snapshot"]])
                for unit in units:
                    until = CHUNKS[unit]["valid_until"]
                    assert until is None or until > case["as_of"]
                    assert CHUNKS[unit]["acl"] is None or key[0] == "M9"
