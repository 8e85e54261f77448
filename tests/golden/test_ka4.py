"""Every promise of the KA-4 suite, recomputed in plain Python from its Arrow files alone.

The generator is run only to see that it still writes these files.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import math
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from fractions import Fraction
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ragcore import schema

ROOT = Path(__file__).resolve().parents[2]
SUITE = ROOT / "data" / "ka4"
RUNS = ("runs/baseline.arrow", "runs/filtered.arrow", "ablations.arrow")
FILES = ("cases.arrow", "chunks.arrow", *RUNS)
LANGS = ("en", "zh")
CONDITIONS = ("baseline", "filtered")
NOTE = "Administrative filing note. " * 20

Row = dict[str, Any]
Cells = tuple[Fraction | None, Fraction | None, bool, Fraction | None, bool]

NO, YES = Fraction(0), Fraction(1)
PASS: Cells = (YES, YES, True, YES, True)
LOST: Cells = (NO, NO, False, None, False)
UNASKED: Cells = (None, None, True, None, True)
EXPECTED: dict[str, tuple[Cells, str]] = {
    "current": (PASS, "passed"),
    "stale-premise": (LOST, "retrieval"),
    "historical": (PASS, "passed"),
    "synonym": (LOST, "retrieval"),
    "passport": (UNASKED, "passed"),
    "expired-only": (UNASKED, "passed"),
    "conflict": ((YES, YES, True, None, True), "passed"),
    "low-budget": ((YES, NO, True, None, True), "passed"),
    "drop-context": ((YES, NO, False, None, False), "context"),
    "wrong-amount": ((YES, YES, False, NO, False), "generation"),
    "wrong-citation": ((YES, YES, True, NO, False), "citation"),
    "cancellation": (PASS, "passed"),
}
GOLDEN = {
    ("current", "travel-v2"): (1.2407, 1.2407),
    ("current", "travel-v1"): (0.9791, 0.9791),
    ("stale-premise", "travel-v1"): (2.7485, 2.1020),
    ("stale-premise", "travel-v2"): (1.8871, 1.2407),
    ("conflict", "travel-v2"): (0.9862, 0.9862),
    ("conflict", "travel-v2b"): (0.9862, 0.9862),
    ("conflict", "travel-v1"): (0.7830, 0.7830),
}
FIXED_BY_FILTER = "stale-premise"


def read(path: Path) -> pa.Table:
    with pa.OSFile(str(path)) as source:
        return pa.ipc.open_file(source).read_all()


TABLES = {name: read(SUITE / name) for name in FILES}
DECLARED = tomllib.loads((SUITE / "suite.toml").read_text(encoding="utf-8"))
CASES: dict[tuple[str, str], Row] = {
    (row["case_id"], row["lang"]): row for row in TABLES["cases.arrow"].to_pylist()
}
CASE_IDS = tuple(dict.fromkeys(case_id for case_id, _ in CASES))
CHUNKS: dict[str, Row] = {row["chunk_id"]: row for row in TABLES["chunks.arrow"].to_pylist()}
SNAPSHOTS: Row = json.loads(TABLES["chunks.arrow"].schema.metadata[b"snapshots"])
TRACES: dict[tuple[str, str, str, int], Row] = {
    (name, row["case_id"], row["lang"], row["repeat"]): row
    for name in CONDITIONS
    for row in TABLES[f"runs/{name}.arrow"].to_pylist()
}
ABLATIONS: Row = {row["trace"]: row for row in TABLES["ablations.arrow"].to_pylist()}
each_lang = pytest.mark.parametrize("lang", LANGS)
each_condition = pytest.mark.parametrize("name", CONDITIONS)


def manifest(name: str) -> Row:
    return json.loads(TABLES[name].schema.metadata[schema.MANIFEST_KEY])


MANIFEST = manifest("runs/baseline.arrow")


def ablation(probe: str, case_id: str, lang: str) -> tuple[Row, Row]:
    name = f"ka4/ablations/{probe}-{{}}/{case_id}/{lang}/0"
    return ABLATIONS[name.format("before")], ABLATIONS[name.format("after")]


def in_lang(column: str, lang: str) -> str:
    return column if lang == "en" else f"{column}_{lang}"


def text(unit: str, lang: str) -> str:
    return CHUNKS[unit][in_lang("text", lang)]


def tokens(string: str) -> list[str]:
    out = []
    for run in re.findall(r"[a-z]+|\d+|[\u4e00-\u9fff]+", string.lower()):
        pairs = [a + b for a, b in pairwise(run)]
        out += [run] if run.isascii() else pairs or [run]
    return out


def bm25(query: str, snapshot: str, lang: str) -> dict[str, float]:
    """Scores of all cards of a snapshot; title is the card."""
    cards = {unit: tokens(CHUNKS[unit][in_lang("title", lang)]) for unit in SNAPSHOTS[snapshot]}
    mean = sum(map(len, cards.values())) / len(cards)
    out = dict.fromkeys(cards, 0.0)
    for term in set(tokens(query)):
        df = sum(term in card for card in cards.values())
        idf = math.log(1 + (len(cards) - df + 0.5) / (df + 0.5))
        for unit, card in cards.items():
            tf = card.count(term)
            out[unit] += idf * tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * len(card) / mean))
    return out


def scores(case_id: str, lang: str) -> dict[str, float]:
    case = CASES[case_id, lang]
    return bm25(case["question"], case["snapshot"], lang)


def applies(unit: str, case: Row) -> bool:
    chunk = CHUNKS[unit]
    until = chunk["valid_until"] or datetime.date.max
    return chunk["topic"] == case["topic"] and chunk["valid_from"] <= case["as_of"] < until


def payload_size(case: Row, evidence: list[tuple[str, str]]) -> int:
    record = {
        "instruction": MANIFEST["prompt"][case["lang"]],
        "question": case["question"],
        "topic": case["topic"],
        "as_of": str(case["as_of"]),
        "evidence": [{"id": unit, "text": shown} for unit, shown in evidence],
    }
    return len(json.dumps(record, ensure_ascii=False))


def packed(trace: Row) -> list[tuple[str, str]]:
    return [
        (item["id"], text(item["id"], trace["lang"])[item["start"] : item["end"]])
        for item in trace["context"]
    ]


def fraction(found: list[bool]) -> Fraction | None:
    return Fraction(sum(found), len(found)) if found else None


def supports(citation: Row, case: Row, trace: Row) -> bool:
    """Exists, exact, in scope, support lines inside, amount as proposed."""
    unit = citation["id"]
    amounts = re.findall(r"(\d+) (?:yuan|元)", citation["quote"])
    items = [item for item in case["evidence"] if item["chunk_id"] == unit]
    return (
        unit in SNAPSHOTS[case["snapshot"]]
        and CHUNKS[unit]["doc_version"] == citation["doc_version"]
        and text(unit, case["lang"])[citation["start"] : citation["end"]] == citation["quote"]
        and applies(unit, case)
        and any(citation["start"] <= i["start"] and i["end"] <= citation["end"] for i in items)
        and (amounts[0] if amounts else None) == trace["proposed"]["value"]
    )


def right(outcome: Row, case: Row) -> bool:
    wanted = (case["expected_state"], case["expected_value"])
    return (outcome["state"], outcome["value"]) == wanted


def judge(name: str, case_id: str, lang: str, repeat: int = 0) -> tuple[Cells, str]:
    """The five cells of a trace and its first failing layer."""
    case, trace = CASES[case_id, lang], TRACES[name, case_id, lang, repeat]
    required = [item for item in case["evidence"] if item["required"]]
    ranked = {item["id"] for item in trace["ranked"]}
    retrieval = fraction([item["chunk_id"] in ranked for item in required])
    shown = dict(packed(trace))
    context = fraction([item["quote"] in shown.get(item["chunk_id"], "") for item in required])
    proposal = right(trace["proposed"], case)
    held = [supports(citation, case, trace) for citation in trace["citations"]]
    citation = fraction(held)
    end = right(trace["final"], case)
    if end and case["expected_state"] == "answer":
        cited = {c["id"] for c in trace["citations"]}
        end = all(held) and cited == {item["chunk_id"] for item in required}
    label = "citation"
    if end:
        label = "passed"
    elif retrieval is not None and retrieval < 1:
        label = "retrieval"
    elif context is not None and context < 1:
        label = "context"
    elif not proposal:
        label = "generation"
    return (retrieval, context, proposal, citation, end), label


def column(name: str, place: int, lang: str = "en") -> dict[str, Fraction]:
    """One cell of every case where it is a number."""
    cells = {case_id: judge(name, case_id, lang)[0][place] for case_id in CASE_IDS}
    return {case_id: Fraction(cell) for case_id, cell in cells.items() if cell is not None}


def expected(name: str, case_id: str) -> tuple[Cells, str]:
    if name == "filtered" and case_id == FIXED_BY_FILTER:
        return PASS, "passed"
    return EXPECTED[case_id]


@pytest.fixture(scope="module")
def rewritten(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("ka4")
    command = [sys.executable, str(SUITE / "generate.py"), "--out", str(out)]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    return out


@pytest.mark.parametrize("name", FILES)
def test_generator__writes_the_same_tables(rewritten: Path, name: str) -> None:
    assert read(rewritten / name).equals(TABLES[name], check_metadata=True)


@pytest.mark.parametrize("name", [*FILES, "suite.toml"])
def test_generator__writes_the_same_bytes(rewritten: Path, name: str) -> None:
    if pa.__version__ != DECLARED["pyarrow"]:
        pytest.skip(f"written by pyarrow {DECLARED['pyarrow']}, this is {pa.__version__}")
    assert (rewritten / name).read_bytes() == (SUITE / name).read_bytes()


def test_suite_toml__checksums_and_rows() -> None:
    assert tuple(DECLARED["files"]) == FILES
    for name, entry in DECLARED["files"].items():
        assert hashlib.sha256((SUITE / name).read_bytes()).hexdigest() == entry["sha256"]
        assert TABLES[name].num_rows == entry["rows"]
    assert [entry["rows"] for entry in DECLARED["files"].values()] == [24, 5, 72, 72, 8]


def test_schemas__are_those_of_ragcore() -> None:
    assert TABLES["cases.arrow"].schema.equals(schema.CASES)
    for name in RUNS:
        assert TABLES[name].schema.equals(schema.RUNS)
    chunks = TABLES["chunks.arrow"].schema
    assert pa.schema(list(chunks)[: len(schema.CHUNKS)]).equals(schema.CHUNKS)
    assert chunks.names[len(schema.CHUNKS) :] == ["title_zh", "text_zh", "n_tokens_zh"]


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
