"""Suites, runs and verdicts about citations: by hand, and at random with all that may be wrong."""

from __future__ import annotations

import datetime
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa

import ragcore
import tables
from ragcore import schema

Row = dict[str, Any]

CHUNK: Row = {
    "chunk_id": "", "doc_id": None, "doc_version": "v1", "start": None, "text": None,
    "text_zh": None, "topic": None, "valid_from": None, "valid_until": None, "acl": None,
    "source_family": None,
}  # fmt: skip
CASE: Row = {
    "case_id": "", "lang": None, "topic": None, "as_of": None, "principals": None,
    "expected_state": "answer", "expected_value": None, "evidence": None, "status": "final",
    "judge_required": None,
}  # fmt: skip
TRACE: Row = {
    "case_id": "", "lang": None, "context": None, "context_state": None, "proposed": None,
    "final": None, "claims": None, "citations": None, "error": None,
}  # fmt: skip
CITATION: Row = dict.fromkeys(
    ("claim", "id", "doc_id", "doc_version", "start", "end", "quote"), None
)
VERDICT: Row = {
    "run": None, "case_id": "", "lang": None, "repeat": None, "relation": "cites", "claim": 0,
    "evidence": [], "verdict": "yes", "judge": "j", "rung": "model", "adjudicated": False,
}  # fmt: skip


def table(rows: list[Row], like: Row, kinds: pa.Schema) -> pa.Table:
    """Rows with the keys of `like`, in the types of a schema; others as texts."""
    columns = {}
    for name in like:
        kind = kinds.field(name).type if name in kinds.names else pa.large_string()
        columns[name] = pa.array([{**like, **row}[name] for row in rows], kind)
    return pa.table(columns)


def suite(folder: Path, cases: list[Row], chunks: list[Row] | None = None, **without: Any) -> Path:
    """A suite's folder; columns of chunks named in `drop` are left out."""
    tables.write_suite(folder, table(cases, CASE, schema.CASES))
    if chunks is not None:
        found = table(chunks, CHUNK, schema.CHUNKS).drop_columns(without.get("drop", []))
        tables.write_ipc(found, folder / "chunks.arrow")
    return folder


def run(traces: list[Row]) -> pa.Table:
    """A case batch."""
    found = table(traces, TRACE, schema.RUNS)
    ranked = pa.array([["x"]] * len(traces), pa.list_(pa.string()))
    return found.append_column("ranked", ranked)


def judged(rows: list[Row]) -> pa.Table:
    """Judgments."""
    return table(rows, VERDICT, schema.JUDGMENTS)


def cite(id: str | None, claim: int | None = 0, **more: Any) -> Row:
    """A citation."""
    return {**CITATION, "id": id, "claim": claim, **more}


def claim(text: str = "c", sentence: int | None = None, factual: bool | None = True) -> Row:
    """A claim of an answer."""
    return {"text": text, "sentence": sentence, "factual": factual}


def shown(*ids: str) -> list[Row]:
    """A context."""
    return [{"id": one, "start": None, "end": None, "n_tokens": None} for one in ids]


# --- one case, all as it should be

NAMES = ["citation.*", "answer.supported", "alce.*", "trecrag.*", "end_to_end"]
TEXT = "Rooms cost at most 750 yuan. Meals cost 40 yuan."
ROOMS = {"start": 0, "end": 28, "quote": TEXT[:28]}
LABEL = [{"doc_id": "u", "chunk_id": "u", "start": 0, "end": 28, "role": "supporting"}]
UNIT = {"chunk_id": "u", "text": TEXT, "doc_version": "v1", "source_family": "f"}
ANSWER = {"state": "answer", "value": "750", "text": TEXT[:28]}
GOOD = {
    "case_id": "q", "context": shown("u"), "proposed": ANSWER, "final": ANSWER,
    "claims": [claim(TEXT[:28])], "citations": [cite("u", doc_version="v1", **ROOMS)],
}  # fmt: skip
QUERY = {"case_id": "q", "expected_value": "750", "evidence": LABEL}


def one(
    folder: Path, trace: Row | None = None, case: Row | None = None, unit: Row | None = None,
    judgments: Any = (), drop: Any = (), more: Any = (), names: Any = NAMES,
) -> ragcore.Scores:  # fmt: skip
    """Scores of a single case, all as it should be but for what is given."""
    made = suite(
        folder / "s", [{**QUERY, **(case or {})}], [{**UNIT, **(unit or {})}, *more],
        drop=list(drop),
    )  # fmt: skip
    rows = [{"case_id": "q", **row} for row in judgments]
    return ragcore.score(
        run([{**GOOD, **(trace or {})}]), suite=made, judgments=[judged(rows)] if rows else None,
        measures=names, names=["r"],
    )  # fmt: skip


def got(scores: ragcore.Scores, measure: str, case: str = "q") -> Any:
    """A value, or the word of its state."""
    state = scores.state(measure, case)
    return scores.value(measure, case) if state == "ok" else state


# --- at random

_WORDS = ("alpha", "é750", "750", "600", "元", "不超过", "🙂", "beta.", "x")
_DAYS = [datetime.date(2024, 1, 1) + datetime.timedelta(days=200 * k) for k in range(6)]


def _text(draw: random.Random) -> str:
    return " ".join(draw.choice(_WORDS) for _ in range(draw.randrange(1, 9)))


def random_world(seed: int) -> tuple[list[Row], list[Row], list[Row], list[Row]]:
    """Chunks, cases, traces and judgments; a case has one trace and language."""
    draw = random.Random(seed)

    def maybe(value: Any, share: float = 0.7) -> Any:
        return value if draw.random() < share else None

    chunks = []
    for k in range(7):
        begun = draw.choice(_DAYS)
        chunks.append({
            **CHUNK, "chunk_id": f"u{k}", "doc_id": maybe(f"d{k}", 0.9),
            "doc_version": maybe("v1", 0.9), "start": draw.choice([None, 0, 3]),
            "text": maybe(_text(draw), 0.9), "text_zh": maybe(_text(draw), 0.9),
            "topic": maybe(draw.choice("st"), 0.9), "valid_from": maybe(begun),
            "valid_until": maybe(draw.choice(_DAYS)),
            "source_family": maybe(draw.choice("fgh"), 0.95),
            "acl": maybe(draw.sample(["a", "b", "c"], draw.randrange(3)), 0.3),
        })  # fmt: skip
    cases, traces, judgments = [], [], []
    for c in range(14):
        name, lang, calm = f"c{c}", draw.choice(["en", "zh"]), draw.random() < 0.7
        trace = _trace(draw, name, lang, chunks, calm)
        evidence = [
            _evidence(draw, chunks, lang, draw.randrange(7)) for _ in range(draw.randrange(4))
        ]
        if calm:
            evidence += [_inside(draw, chunks, lang, one) for one in trace["citations"]]
        cases.append({
            **CASE, "case_id": name, "lang": lang,
            "topic": maybe(draw.choice("st"), 0.2 if calm else 0.5),
            "as_of": maybe(draw.choice(_DAYS), 0.2 if calm else 0.5), "expected_value": "750",
            "principals": maybe(draw.sample(["a", "b", "c"], draw.randrange(3)), 0.6),
            "evidence": maybe(evidence, 0.9),
        })  # fmt: skip
        traces.append(trace)
        judgments += _verdicts(draw, name, trace)
    return chunks, cases, traces, judgments


def _inside(draw: random.Random, chunks: list[Row], lang: str, cited: Row) -> Row:
    """Evidence inside what is cited, where that has a place with any text in it."""
    start, end = cited["start"], cited["end"]
    found = _evidence(draw, chunks, lang, int(cited["id"][1:]))
    if start is not None and start < end:
        start += int(draw.random() < 0.5 and start + 1 < end)
        found |= {"start": start, "end": end, "quote": None}
    return found | {"role": "supporting"}


def _evidence(draw: random.Random, chunks: list[Row], lang: str, unit: int) -> Row:
    """Evidence in a unit: at a place, by a quote that is there, or neither."""
    chunk = chunks[unit]
    text = chunk["text_zh" if lang == "zh" else "text"] or ""
    place: tuple[int | None, int | None] = (None, None)
    quote, kind = None, draw.randrange(3) if text else 2
    if kind == 0:
        start = draw.randrange(len(text))
        end = draw.randrange(start, len(text)) + 1
        place = (start + (chunk["start"] or 0), end + (chunk["start"] or 0))
    elif kind == 1:
        quote = draw.choice(text.split())
    return {
        "doc_id": chunk["doc_id"] or chunk["chunk_id"], "chunk_id": chunk["chunk_id"],
        "start": place[0], "end": place[1], "quote": quote, "required": True,
        "role": draw.choice(["supporting", "supporting", "conflicting", "stale", None]),
    }  # fmt: skip


def _trace(draw: random.Random, name: str, lang: str, chunks: list[Row], calm: bool) -> Row:
    n = draw.randrange(1 if calm else 0, 4)
    citations = [_citation(draw, chunks, lang, n, calm) for _ in range(draw.randrange(5))]
    texts = [c["quote"] for c in citations if c["quote"]] or ["nothing is cited"]
    claims = [
        claim(draw.choice(texts) if calm else _text(draw), draw.choice([None, 0, 0, 1, 2]),
              draw.choice([True, True, False, None]))
        for _ in range(n)
    ]  # fmt: skip
    value = draw.choice([None] * 4 + ["750", "600", "alpha"])
    said = {"state": draw.choice(["answer", "answer", "abstain"]), "value": value,
            "text": draw.choice([*texts, _text(draw), None])}  # fmt: skip
    if draw.random() < 0.2:
        claims = []  # the text stands for itself, and claims are out of range
    few = 8 if calm else draw.randrange(3, 8)
    return {
        **TRACE, "case_id": name, "lang": lang, "claims": claims, "citations": citations,
        "proposed": {**said, "confidence": None}, "final": said,
        "context": shown(*draw.sample([f"u{k}" for k in range(8)], few)),
    }  # fmt: skip


def _citation(draw: random.Random, chunks: list[Row], lang: str, n_claims: int, calm: bool) -> Row:
    unit = draw.randrange(7 if calm else 8)
    text = (chunks[unit]["text_zh" if lang == "zh" else "text"] if unit < 7 else None) or ""
    head = (chunks[unit]["start"] if unit < 7 else None) or 0
    start = draw.randrange(len(text) + 1)
    end = draw.randrange(start, len(text) + 1)
    quote: str | None = text[start:end]
    kind = draw.choice([3, 4, 5, 6]) if calm else draw.randrange(8)
    place: tuple[Any, Any] = (head + start, head + end)
    if kind == 0:
        quote = "not there"
    elif kind == 1:
        place = draw.choice([(5, 2), (None, 3), (-1, 4), (head + start, head + len(text) + 1)])
    elif kind in (2, 3):
        place = (None, None)
    if kind in (3, 4):
        quote = None
    elif kind == 5:
        quote, place = text or None, (head, head + len(text)) if text else (None, None)
    ids, versions = [f"u{unit}"] * 15 + ["nobody", None], ["v1"] * 8 + [None, "v2"]
    own = draw.randrange(n_claims) if n_claims and draw.random() < 0.85 else None
    return cite(
        ids[0] if calm else draw.choice(ids),
        own if calm or own is not None else draw.choice([-1, n_claims, None]),
        doc_version="v1" if calm else draw.choice(versions), start=place[0], end=place[1],
        quote=quote,
    )  # fmt: skip


def _verdicts(draw: random.Random, name: str, trace: Row) -> list[Row]:
    """At most one verdict an item; most sets of what an answer cites are judged."""
    ids = sorted({c["id"] for c in trace["citations"] if c["id"]})
    sets = [[one] for one in ids] + [ids[:k] + ids[k + 1 :] for k in range(len(ids))] + [ids]
    sets += [list(pair) for pair in pairwise(ids)]
    found = {}
    for j in [None, *range(len(trace["claims"]))]:
        for units in sets:
            if len(units) and draw.random() < 0.8:
                found["cites", j, frozenset(units)] = draw.choice(
                    ["yes", "yes", "partial", "no", "contradicts"]
                )
        if j is not None and draw.random() < 0.8:
            found["correct", j, frozenset()] = draw.choice(["yes", "yes", "no"])
    return [
        {**VERDICT, "case_id": name, "relation": relation, "claim": j, "verdict": verdict,
         "evidence": draw.sample(sorted(units), len(units))}
        for (relation, j, units), verdict in found.items()
    ]  # fmt: skip
