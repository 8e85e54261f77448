"""Every promise of the KA-4 suite, recomputed in plain Python from its Arrow files alone.

That its program still writes these files is held in test_authored.py."""

from __future__ import annotations

import json
import math
from collections import Counter
from fractions import Fraction
from itertools import product

import pytest

from ka4_rules import (
    ABLATIONS,
    CASE_IDS,
    CASES,
    CHUNKS,
    CONDITIONS,
    EXPECTED,
    FILES,
    FIXED_BY_FILTER,
    GOLDEN,
    LANGS,
    MANIFEST,
    NOTE,
    RUNS,
    SNAPSHOTS,
    TABLES,
    TRACES,
    ablation,
    applies,
    bm25,
    column,
    each_condition,
    each_lang,
    expected,
    in_lang,
    judge,
    manifest,
    packed,
    payload_size,
    right,
    scores,
    supports,
    text,
    tokens,
)
from ragcore import schema


def test_files__have_their_rows() -> None:
    assert [TABLES[name].num_rows for name in FILES] == [24, 5, 72, 72, 8]


def test_manifests__differ_in_the_declared_key_only() -> None:
    for name in RUNS:
        raw = TABLES[name].schema.metadata[schema.MANIFEST_KEY].decode()
        sorted_keys = {"sort_keys": True, "ensure_ascii": False, "separators": (",", ":")}
        assert raw == json.dumps(json.loads(raw), **sorted_keys)
    filtered = manifest("runs/filtered.arrow")
    identity = {"run": "filtered", "baseline": "baseline", "single_change": "filter"}
    assert filtered == {**MANIFEST, **identity, "filter": True}
    assert MANIFEST["run"] == "baseline"
    assert MANIFEST["filter"] is False


def test_labels__lie_in_the_texts() -> None:
    for (_, lang), case in CASES.items():
        assert case["question"]
        for item in case["evidence"]:
            assert (item["relevance"] == 1) is item["required"]
            assert item["in_snapshot"] is (item["chunk_id"] in SNAPSHOTS[case["snapshot"]])
            body = text(item["chunk_id"], lang)
            assert body[item["start"] : item["end"]] == item["quote"]
    roles = {item["chunk_id"]: item["role"] for item in CASES["conflict", "en"]["evidence"]}
    assert roles.pop("travel-v1") == "stale"
    assert roles == {"travel-v2": "supporting", "travel-v2b": "conflicting"}
    kinds = {kind for case in CASES.values() for kind in case["type"]}
    assert kinds >= {"hard-negative", "unanswerable"}


@each_condition
def test_traces__hold_recorded_scores_and_sizes(name: str) -> None:
    for case_id, lang in CASES:
        case, trace = CASES[case_id, lang], TRACES[name, case_id, lang, 0]
        wanted = {unit: score for unit, score in scores(case_id, lang).items() if score > 0}
        stages = dict(trace["stages"])
        got = {item["id"]: item["score"] for item in stages["bm25"]}
        assert got == pytest.approx(wanted, abs=1e-11)
        assert trace["ranked"] is not None
        assert {item["id"]: item["score"] for item in trace["ranked"]}.items() <= got.items()
        assert len(stages["selected"]) == min(1, len(trace["ranked"]))
        refused = trace["context_state"] == "budget_refused"
        evidence = [(i["id"], text(i["id"], lang)) for i in trace["ranked"]]
        assert trace["input_size"] == payload_size(case, evidence if refused else packed(trace))
        assert refused is (trace["input_size"] > trace["window"] - trace["reserve"])
        if name == "filtered":
            assert all(applies(item["id"], case) for item in trace["ranked"])


@each_lang
@pytest.mark.parametrize(("case_id", "unit"), GOLDEN)
def test_bm25__golden_scores(case_id: str, unit: str, lang: str) -> None:
    stage = dict(TRACES["baseline", case_id, lang, 0]["stages"])["bm25"]
    (found,) = (item["score"] for item in stage if item["id"] == unit)
    assert found == pytest.approx(GOLDEN[case_id, unit][LANGS.index(lang)], abs=5e-5)


@each_lang
def test_k1_plain_query__prefers_the_current_rule(lang: str) -> None:
    found = scores("current", lang)
    assert found["travel-v2"] > found["travel-v1"] > found["parking-v1"] > found["cancel-v1"]


@each_lang
def test_k2_stale_query__the_token_600_alone_decides(lang: str) -> None:
    case = CASES["stale-premise", lang]
    found = scores("stale-premise", lang)
    assert found["travel-v1"] > found["travel-v2"]
    found = bm25(case["question"].replace("600", " "), case["snapshot"], lang)
    assert found["travel-v2"] > found["travel-v1"]


@each_lang
@pytest.mark.parametrize("case_id", ["synonym", "passport"])
def test_k3_k4_query__shares_no_token_with_any_card(case_id: str, lang: str) -> None:
    for chunk in CHUNKS.values():
        card = tokens(chunk[in_lang("title", lang)])
        assert not set(card) & set(tokens(CASES[case_id, lang]["question"]))
    for name in CONDITIONS:
        assert TRACES[name, case_id, lang, 0]["ranked"] == []


@each_lang
@each_condition
def test_k5_conflict__sibling_rule_adds_the_other_side_only(name: str, lang: str) -> None:
    trace = TRACES[name, "conflict", lang, 0]
    (first,) = dict(trace["stages"])["selected"]
    assert first["id"] in {"travel-v2", "travel-v2b"}
    assert {item["id"] for item in trace["ranked"]} == {"travel-v2", "travel-v2b"}
    assert trace["context_state"] == "conflict"


@each_lang
def test_k6_historical__ranks_v1_and_its_date_leaves_only_v1(lang: str) -> None:
    case, found = CASES["historical", lang], scores("historical", lang)
    assert max(found, key=found.__getitem__) == "travel-v1"
    assert [unit for unit in SNAPSHOTS[case["snapshot"]] if applies(unit, case)] == ["travel-v1"]


@each_lang
def test_k7_cancellation__ranks_its_document_first(lang: str) -> None:
    found = scores("cancellation", lang)
    assert max(found, key=found.__getitem__) == "cancel-v1"


def test_k8_windows__fit_all_but_the_low_one() -> None:
    assert MANIFEST["window"] >= 1153 + MANIFEST["reserve"]
    for row in (*TRACES.values(), *ABLATIONS.values()):
        low = row["fault"] == "low-budget"
        assert row["window"] == MANIFEST["window_low" if low else "window"]
        assert row["reserve"] == MANIFEST["reserve"]
    sizes = [row["input_size"] for row in TRACES.values() if row["context_state"] == "ready"]
    assert MANIFEST["window_low"] < min(sizes) + MANIFEST["reserve"]


def test_k9_parent__adds_two_lines_and_two_escaped_newlines() -> None:
    case = CASES["current", "en"]
    lines = text("travel-v2", "en").split("\n")
    assert len(lines[0]) + len(lines[1]) == 111
    assert payload_size(case, [("travel-v2", lines[2])]) == 476
    assert payload_size(case, [("travel-v2", "\n".join(lines))]) == 591
    before, after = ablation("expand", "current", "en")
    assert (before["input_size"], after["input_size"]) == (476, 591)
    assert packed(before) == [("travel-v2", lines[2])]
    assert (before["final"]["state"], after["final"]["state"]) == ("abstain", "answer")


def test_k10_note__weighs_562() -> None:
    case, body = CASES["current", "en"], text("travel-v2", "en")
    assert payload_size(case, [("travel-v2", f"{body}\n{NOTE}")]) == 1153 == 591 + 562
    told = manifest("ablations.arrow")["note"]
    assert told["text"] * told["times"] == NOTE
    before, after = ablation("compress", "current", "en")
    assert (before["input_size"], after["input_size"]) == (1153, 591)
    assert before["context"][0]["end"] == len(f"{body}\n{NOTE}")
    assert before["final"] == after["final"]
    assert after["final"]["value"] == "750"


@each_lang
def test_rewrite__turns_the_synonym_into_a_supported_answer(lang: str) -> None:
    before, after = ablation("rewrite", "synonym", lang)
    assert (before["final"]["state"], before["ranked"]) == ("abstain", [])
    assert (after["final"]["state"], after["final"]["value"]) == ("answer", "750")
    assert supports(after["citations"][0], CASES["synonym", lang], after)
    assert after["pair"] == before["trace"]


@each_lang
@pytest.mark.parametrize("case_id", EXPECTED)
@each_condition
def test_cells__are_the_declared_ones(name: str, case_id: str, lang: str) -> None:
    assert judge(name, case_id, lang) == expected(name, case_id)


def test_cases__twelve_in_two_languages_and_three_repeats() -> None:
    assert set(CASE_IDS) == set(EXPECTED)
    assert set(TRACES) == set(product(CONDITIONS, CASE_IDS, LANGS, range(3)))


def test_layers__counts() -> None:
    found = [Counter(judge(n, case_id, "en")[1] for case_id in CASE_IDS) for n in CONDITIONS]
    later = {"context": 1, "generation": 1, "citation": 1}
    assert found == [
        {"passed": 7, "retrieval": 2, **later},
        {"passed": 8, "retrieval": 1, **later},
    ]


def test_repeats__are_identical() -> None:
    for (name, case_id, lang, _), trace in TRACES.items():
        first = TRACES[name, case_id, lang, 0]
        assert {**trace, "repeat": 0, "trace": first["trace"]} == first
    assert len({trace["trace"] for trace in TRACES.values()}) == 144


@each_lang
@pytest.mark.parametrize(
    ("place", "published"),
    list(enumerate(["8/10 9/10", "6/10 7/10", "8/12 9/12", "3/5 4/6", "7/12 8/12"])),
    ids=["retrieval", "context", "proposal", "citation", "end-to-end"],
)
def test_measures__sums_and_denominators(place: int, published: str, lang: str) -> None:
    found = [column(name, place, lang) for name in CONDITIONS]
    assert " ".join(f"{sum(cells.values())}/{len(cells)}" for cells in found) == published


def test_citation__is_unchanged_on_matched_cases() -> None:
    before, after = column("baseline", 3), column("filtered", 3)
    matched = before.keys() & after.keys()
    assert [(sum(c[i] for i in matched), len(matched)) for c in (before, after)] == [(3, 5), (3, 5)]


def test_abstention__expected_and_always() -> None:
    waited = {i for i in CASE_IDS if CASES[i, "en"]["expected_state"] == "abstain"}
    assert waited == {"passport", "expired-only", "conflict", "low-budget"}
    for name in CONDITIONS:
        final = {i: TRACES[name, i, "en", 0]["final"]["state"] for i in CASE_IDS}
        assert sum(final[i] == "abstain" for i in waited) == 4
    silent = {"state": "abstain", "value": None}
    assert sum(right(silent, CASES[i, "en"]) for i in CASE_IDS) == 4


def binomial_interval(n: int, m: int) -> tuple[Fraction, Fraction]:
    """Exact percentile bootstrap of a mean of n differences, m of them 1 and the rest 0."""
    mass = [math.comb(n, k) * m**k * (n - m) ** (n - k) for k in range(n + 1)]
    total = Fraction(n) ** n

    def quantile(p: Fraction) -> Fraction:
        return next(Fraction(k, n) for k in range(n + 1) if sum(mass[: k + 1]) >= p * total)

    return quantile(Fraction(1, 40)), quantile(Fraction(39, 40))


def test_difference__is_one_case_with_an_interval_from_zero() -> None:
    before, after = column("baseline", 4), column("filtered", 4)
    gains = {case_id: after[case_id] - before[case_id] for case_id in CASE_IDS}
    assert {case_id for case_id, gain in gains.items() if gain} == {FIXED_BY_FILTER}
    assert sum(gains.values()) / len(gains) == Fraction(1, 12)
    assert binomial_interval(12, 1) == (0, Fraction(3, 12))


def test_difference__traces_taken_for_cases_would_exclude_zero() -> None:
    for n, interval in ((72, (0.0278, 0.1528)), (144, (0.0417, 0.1319))):
        bounds = binomial_interval(n, n // 12)
        assert tuple(round(float(bound), 4) for bound in bounds) == interval
