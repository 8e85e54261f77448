"""Write the Arrow files of KA-4: ``python data/ka4/generate.py [--out DIR]``.

The same pyarrow writes the same bytes. `suite.toml` is written last, as it holds the
checksums of the rest.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from ragcore import schema
from ragcore.suite_files import CHINESE, TEXT_COLUMNS, Row, bilingual, canonical, write_suite
from system import K1, LOW_WINDOW, RESERVE, WINDOW, B, Packed, Settings, Trace, run
from world import (
    AUTHORITY,
    BASE,
    CASES,
    LANGS,
    NOTE,
    NOTE_TIMES,
    PROMPT,
    REPEATS,
    SEED,
    SNAPSHOTS,
    UNITS,
    VERSION,
    WITH_NOTE,
    Case,
    Unit,
)

MEASURES = (
    "end_to_end", "retrieval.coverage", "context.coverage", "generation.task", "citation.support",
    "abstention.correct", "R@5", "P@1", "RR", "AP", "nDCG@5", "Success@1",
)  # fmt: skip


def chunk_row(unit: Unit) -> Row:
    """One document as the one chunk that it is; the title is its search card."""
    return {
        **bilingual(unit.card, {lang: unit.text(lang) for lang in LANGS}),
        "chunk_id": unit.id,
        "doc_id": unit.id,
        "doc_version": unit.version,
        "block_first": 0,
        "block_last": len(unit.lines["en"]) - 1,
        "valid_from": unit.valid_from,
        "valid_until": unit.valid_until,
        "topic": unit.topic,
        "authority": AUTHORITY,
        "source_family": unit.family,
        "form": "policy" if unit.family.endswith("rules") else "note",
    }


def evidence_rows(case: Case, lang: str) -> list[Row]:
    """What a case says of each unit: its role, and the lines that carry it."""
    by_id = {unit.id: unit for unit in UNITS}
    rows = []
    for unit_id, role in case.roles.items():
        unit = by_id[unit_id]
        start, end = unit.span(lang, 0, unit.support)
        needed = unit_id in case.required()
        rows.append(
            {
                "doc_id": unit.id,
                "chunk_id": unit.id,
                "doc_version": unit.version,
                "start": start,
                "end": end,
                "quote": unit.text(lang)[start:end],
                "role": role,
                "relevance": int(needed),
                "required": needed,
                "claim": 0 if needed and case.state == "answer" else None,
                "in_snapshot": unit in SNAPSHOTS[case.snapshot],
            }
        )
    return rows


def case_row(case: Case, lang: str) -> Row:
    """One case in one language."""
    references: list[str] = []
    claims: list[Row] = []
    if case.state == "answer":
        (unit,) = (unit for unit in UNITS if unit.id in case.required())
        references = ["\n".join(unit.lines[lang][: unit.support])]
        text = unit.lines[lang][unit.decides]
        claims = [{"text": text, "required": True, "vital": True, "high_stakes": False}]
    slices = {
        "fault": "injected" if case.fault else "none",
        "phrasing": "exact",
        "sources": "single",
        "temporal": "current",
    }
    return {
        "case_id": case.id,
        "lang": lang,
        "split": "development",
        "question": case.question[lang],
        "as_of": case.as_of,
        "topic": case.topic,
        "type": case.types,
        "slices": sorted({**slices, **case.slices}.items()),
        "answerable": case.answerable,
        "expected_state": case.state,
        "expected_value": case.value,
        "references": references,
        "claims": claims,
        "evidence": evidence_rows(case, lang),
        "prohibited": case.prohibited,
        "consequence": "ordinary",
        "judge_required": "rule",
        "status": "final",
        "origin": "model",
        "label_version": VERSION,
        "snapshot": case.snapshot,
    }


def items(pairs: Iterable[tuple[Unit, float]]) -> list[Row]:
    """Units with their scores, in the order given."""
    return [{"id": unit.id, "score": score} for unit, score in pairs]


def context_row(packed: Packed) -> Row:
    """A stretch of a unit; its size is in code points, the budget unit."""
    size = packed.end - packed.start
    return {"id": packed.unit.id, "start": packed.start, "end": packed.end, "n_tokens": size}


def run_row(case: Case, lang: str, repeat: int, name: str, trace: Trace) -> Row:
    """One trace."""
    proposed, final = trace.proposed, trace.final
    claims = []
    if proposed.claim is not None:
        claims = [{"text": proposed.claim, "sentence": proposed.sentence, "factual": True}]
    return {
        "case_id": case.id,
        "lang": lang,
        "repeat": repeat,
        "seed": SEED,
        "condition": "end_to_end",
        "trace": f"ka4/{name}/{case.id}/{lang}/{repeat}",
        "fault": case.fault,
        "query": trace.query,
        "ranked": items(trace.ranked),
        "stages": [("bm25", items(trace.scored)), ("selected", items(trace.selected))],
        "context": [context_row(packed) for packed in trace.context],
        "context_state": trace.context_state,
        "input_size": trace.input_size,
        "window": trace.window,
        "reserve": RESERVE,
        "proposed": {"state": proposed.state, "value": proposed.value, "text": proposed.text},
        "final": {"state": final.state, "value": final.value, "text": final.text},
        "claims": claims,
        "citations": [
            {
                "claim": 0,
                "id": c.unit.id,
                "doc_id": c.unit.id,
                "doc_version": c.unit.version,
                "start": c.start,
                "end": c.end,
                "quote": c.quote,
            }
            for c in proposed.citations
        ],
        "effects": [],
        "index_generation": case.snapshot,
    }


def manifest(name: str, settings: Settings, **more: object) -> dict[bytes, bytes]:
    """What a run was made with, as schema metadata."""
    record = {
        "analyzer": "lower case; ASCII letter runs, digit runs, CJK bigrams within a run",
        "b": B,
        "budget_unit": "code points",
        "candidate_k": 1,
        "chunker": "one unit per document",
        "composer": f"extractive {VERSION}",
        "context_k": 2,
        "context_order": "as ranked",
        "filter": settings.filter,
        "filter_rule": "topic and date, before the cutoff",
        "grounding": "context-only",
        "idf": "ln(1 + (N - df + 0.5) / (df + 0.5))",
        "indexed": "search cards (title)",
        "k1": K1,
        "languages": LANGS,
        "lengths": "exact",
        "pack": settings.pack,
        "payload": "JSON of instruction, question, topic, as_of, evidence (id, text)",
        "primary": [{"margin": 0, "measure": "end_to_end"}],
        "prompt": PROMPT,
        "repeats": REPEATS,
        "reserve": RESERVE,
        "rewrite": settings.rewrite,
        "run": name,
        "score_places": 12,
        "seed": SEED,
        "siblings": "same topic, authority and valid_from",
        "statistics": "whole snapshot",
        "suite": "ka4",
        "suite_version": VERSION,
        "support_gate": VERSION,
        "threshold": {"bm25": 0},
        "ties": "id ascending",
        "window": WINDOW,
        "window_low": LOW_WINDOW,
    }
    return {schema.MANIFEST_KEY: canonical({**record, **more}).encode()}


def condition(name: str, settings: Settings) -> list[Row]:
    """All traces of one condition. Each repeat runs anew: equality is then a finding."""
    return [
        run_row(case, lang, repeat, name, run(case, lang, settings))
        for case in CASES
        for lang in LANGS
        for repeat in range(REPEATS)
    ]


@dataclass(frozen=True)
class Probe:
    """One ablation: a case before and after one change of the set-up."""

    name: str
    case: Case
    lang: str
    before: Settings
    after: Settings


def probes() -> list[Probe]:
    """The separate ablations; none of them enters the two conditions."""
    case = {case.id: case for case in CASES}
    noted = replace(case["current"], snapshot=WITH_NOTE)
    plain, rewrite = Settings(), Settings(rewrite=True)
    line, support = Settings(pack="line"), Settings(pack="support")
    return [
        Probe("rewrite", case["synonym"], "en", plain, rewrite),
        Probe("rewrite", case["synonym"], "zh", plain, rewrite),
        Probe("expand", case["current"], "en", line, plain),
        Probe("compress", noted, "en", plain, support),
    ]


def probe_rows() -> list[Row]:
    """Before and after of each probe; `pair` of the second is the trace of the first."""
    rows = []
    for probe in probes():
        pair = None
        for side, settings in (("before", probe.before), ("after", probe.after)):
            name = f"ablations/{probe.name}-{side}"
            row = run_row(probe.case, probe.lang, 0, name, run(probe.case, probe.lang, settings))
            rows.append({**row, "pair": pair})
            pair = row["trace"]
    return rows


def about() -> dict[str, Any]:
    """What `suite.toml` begins with."""
    return {
        "name": "ka4",
        "title": "KA-4: a travel-rules assistant that fails once in every layer",
        "version": VERSION,
        "kind": "development (authored, not a sample)",
        "licence": "Apache-2.0",
        "source": "authored for this project; the idea of the suite is from a public textbook "
        "chapter",
        "labels": "authored with the cases; checked by rule in tests/golden/test_ka4.py",
        "cannot_show": [
            "how good any system is: the cases were made so that each layer fails in a known way",
            "what users ask, or how often: the cases are no sample",
        ],
        "languages": LANGS,
        "extractive": True,
        "measures": MEASURES,
        "generator": "python data/ka4/generate.py",
    }


def generate(out: Path) -> None:
    """Write every file of the suite under `out`."""
    baseline, filtered = Settings(), Settings(filter=True)
    held = {name: sorted(u.id for u in us) for name, us in SNAPSHOTS.items() if name != WITH_NOTE}
    about_chunks = {
        b"snapshot": VERSION.encode(),
        b"snapshots": canonical(held).encode(),
        b"chunker": b"one unit per document",
        b"text_columns": canonical(TEXT_COLUMNS).encode(),
    }
    about_filtered = manifest("filtered", filtered, baseline="baseline", single_change="filter")
    note = {"line": 4, "snapshot": WITH_NOTE, "text": NOTE, "times": NOTE_TIMES}
    about_probes = manifest("ablations", baseline, note=note, snapshot=BASE)
    case_rows = [case_row(case, lang) for case in CASES for lang in LANGS]
    chunk_rows = [chunk_row(unit) for unit in UNITS]
    chunks_schema = pa.schema([*schema.CHUNKS, *CHINESE])
    tables = {
        "cases.arrow": (case_rows, schema.CASES, {b"suite": b"ka4"}),
        "chunks.arrow": (chunk_rows, chunks_schema, about_chunks),
        "runs/baseline.arrow": (
            condition("baseline", baseline),
            schema.RUNS,
            manifest("baseline", baseline),
        ),
        "runs/filtered.arrow": (condition("filtered", filtered), schema.RUNS, about_filtered),
        "ablations.arrow": (probe_rows(), schema.RUNS, about_probes),
    }
    write_suite(out, tables, about())


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Write the Arrow files of KA-4.")
    here = Path(__file__).resolve().parent
    parser.add_argument("--out", type=Path, default=here, help="folder (default: beside this)")
    generate(parser.parse_args().out)


if __name__ == "__main__":
    main()
