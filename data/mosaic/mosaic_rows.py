"""Rows of the Arrow tables of Mosaic Desk: units, cases, traces and verdicts as columns."""

from __future__ import annotations

from collections.abc import Iterable

from mosaic_judges import Judge, Verdict
from mosaic_search import Scored
from mosaic_system import RESERVE, WINDOW, Trace
from mosaic_units import Unit
from mosaic_world import BY_DOC, CUSTOMER, LANGS, SEED, SNAPSHOTS, TODAY, VERSION, Case, Label
from ragcore.suite_files import Row, bilingual


def chunk_row(unit: Unit) -> Row:
    """One document as the one chunk that it is; its blocks are its lines."""
    return {
        **bilingual(unit.card, {lang: unit.text(lang) for lang in LANGS}),
        "chunk_id": unit.id,
        "doc_id": unit.doc,
        "doc_version": unit.version,
        "page": 1,
        "block_first": 0,
        "block_last": len(unit.lines["en"]) - 1,
        "valid_from": unit.valid_from,
        "valid_until": unit.valid_until,
        "topic": unit.topic,
        "authority": unit.authority,
        "source_family": unit.family,
        "form": "page",
        "acl": None if unit.acl is None else list(unit.acl),
    }


def evidence_row(case: Case, lang: str, label: Label) -> Row:
    """One labelled line."""
    unit = BY_DOC[label.doc]
    start, end = unit.span(lang, label.line, label.line)
    return {
        "doc_id": unit.doc,
        "chunk_id": unit.id,
        "doc_version": unit.version,
        "page": 1,
        "block": label.line,
        "start": start,
        "end": end,
        "quote": unit.lines[lang][label.line],
        "role": label.role,
        "relevance": 3 if label.required else 0,
        "required": label.required,
        "claim": label.claim,
        "in_snapshot": unit in SNAPSHOTS[case.snapshot],
    }


def case_row(case: Case, lang: str) -> Row:
    """One case in one language."""
    slices = {"evidence": "plain", "name": case.name, "phrasing": "plain", "sources": "single"}
    return {
        "case_id": case.id,
        "lang": lang,
        "split": "development",
        "question": case.question[lang],
        "as_of": TODAY,
        "topic": case.topic,
        "principals": list(CUSTOMER),
        "type": case.types,
        "slices": sorted({**slices, **case.slices}.items()),
        "answerable": case.answerable,
        "expected_state": case.state,
        "expected_value": case.value,
        "references": ["\n".join(claim.text[lang] for claim in case.claims)] * bool(case.claims),
        "claims": [
            {
                "text": claim.text[lang],
                "required": True,
                "vital": True,
                "high_stakes": claim.high_stakes,
            }
            for claim in case.claims
        ],
        "evidence": [evidence_row(case, lang, label) for label in case.labels],
        "prohibited": case.prohibited[lang],
        "consequence": case.consequence,
        "judge_required": "rule",
        "status": "final",
        "origin": "model",
        "label_version": VERSION,
        "snapshot": case.snapshot,
    }


def items(pairs: Scored) -> list[Row]:
    """Units with their scores, in the order given."""
    return [{"id": unit.id, "score": score} for unit, score in pairs]


def _searched(trace: Trace) -> Row:
    """The columns of search."""
    found = trace.found
    stages = [
        (name, items(getattr(found, name))) for name in ("dense", "bm25", "fused", "reranked")
    ]
    return {"query": found.query, "ranked": items(found.reranked), "stages": stages}


def run_row(case: Case, lang: str, trace: Trace, names: Row) -> Row:
    """One trace; `names` holds condition, trace, pair and fault."""
    proposal = trace.proposal
    outcome = {"state": proposal.state, "value": proposal.value, "text": proposal.text}
    return {
        "case_id": case.id,
        "lang": lang,
        "repeat": 0,
        "seed": SEED,
        **names,
        **_searched(trace),
        "context": [
            {"id": p.unit.id, "start": p.start, "end": p.end, "n_tokens": p.end - p.start}
            for p in trace.context
        ],
        "context_state": trace.context_state,
        "input_size": trace.input_size,
        "window": WINDOW,
        "reserve": RESERVE,
        "proposed": outcome,
        "final": outcome,
        "claims": [
            {"text": said.text, "sentence": i, "factual": True}
            for i, said in enumerate(proposal.statements)
        ],
        "citations": [
            {
                "claim": c.claim,
                "id": c.unit.id,
                "doc_id": c.unit.doc,
                "doc_version": c.unit.version,
                "start": c.start,
                "end": c.end,
                "quote": c.quote,
            }
            for c in trace.citations
        ],
        "effects": [],
        "retries": trace.retries,
        "index_generation": case.snapshot,
    }


def judgment_rows(
    run: str, case: Case, lang: str, judge: Judge, said: Iterable[Verdict]
) -> list[Row]:  # fmt: skip
    """What one judge says of one trace."""
    return [
        {
            "run": run,
            "case_id": case.id,
            "lang": lang,
            "repeat": 0,
            "relation": one.relation,
            "claim": one.claim,
            "evidence": list(one.evidence),
            "verdict": one.verdict,
            "judge": judge.name,
            "rung": "rule",
            "judge_version": judge.version,
            "rubric": f"{VERSION} lines and amounts",
            "rationale": one.rationale,
            "adjudicated": False,
        }
        for one in said
    ]
