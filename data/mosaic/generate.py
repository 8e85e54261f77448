"""Write the Arrow files of Mosaic Desk: ``python data/mosaic/generate.py [--out DIR]``.

The same pyarrow writes the same bytes. `suite.toml` is written last, as it holds the
checksums of the rest.
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from mosaic_judges import LITERAL_1, LITERAL_2, QUANTITIES_1, Judge, verdicts
from mosaic_rows import case_row, chunk_row, judgment_rows, run_row
from mosaic_search import CANDIDATE_K, CONCEPTS, DEPTH, K1, RRF_K, STOPS, B
from mosaic_system import CONTEXT_K, RESERVE, THRESHOLD, WINDOW, Trace, observe, oracle, replay
from mosaic_units import UNITS
from mosaic_world import CASES, LANGS, PROMPT, SEED, SNAPSHOTS, VERSION, Case
from ragcore import schema
from ragcore.suite_files import CHINESE, TEXT_COLUMNS, Row, canonical, write_suite

MEASURES = (
    "end_to_end", "retrieval.coverage", "context.span_intact", "generation.task",
    "grounded.faithfulness", "citation.recall", "forbidden.count", "R@5", "nDCG@5",
)  # fmt: skip
ALL = tuple(case.id for case in CASES)


def digest(value: object) -> str:
    """A short content hash."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Run:
    """One run: its cases, what of the set-up it changes, and who judges it."""

    name: str
    condition: str = "end_to_end"
    cases: tuple[str, ...] = ALL
    changed: str = ""
    """The one identity that differs from the observed run, and its value there."""
    value: str = ""
    composer: int = 1
    validator: int = 1
    judges: tuple[Judge, ...] = (LITERAL_1, QUANTITIES_1)

    def trace(self, case: Case, lang: str) -> Trace:
        """One trace, run anew."""
        if self.condition == "oracle_context":
            return oracle(case, lang)
        seen = observe(case, lang)
        if self.condition == "frozen_context":
            return replay(case, lang, seen, composer=self.composer, validator=self.validator)
        return seen


OBSERVED = Run("observed")
RUNS = (
    OBSERVED,
    Run("oracle_context", "oracle_context", ALL[:8], "assembler", "labelled pages, whole"),
    Run(
        "frozen_model", "frozen_context", ("M2", "M3", "M4", "M5", "M6", "M8"),
        "model", "composer 2, heeds every condition", composer=2,
    ),
    Run(
        "frozen_validator", "frozen_context", ("M7",),
        "validator", "handles 2, sends misplaced ones back once", validator=2,
    ),
    Run(
        "frozen_output", "frozen_output", ALL, "evaluator", "literal 2, converts units",
        judges=(LITERAL_2,),
    ),
)  # fmt: skip


def identities() -> dict[str, str]:
    """The eleven identities that a replay binds, as the observed run had them."""
    cases = [case_row(case, lang) for case in CASES for lang in LANGS]
    cases = [{k: str(v) for k, v in row.items()} for row in cases]
    corpus = [[u.id, u.version, u.text("en"), u.text("zh")] for u in UNITS]
    thesaurus = [CONCEPTS, STOPS["en"], STOPS["zh"]]
    return {
        "case": f"{VERSION} {digest(cases)}",
        "corpus": f"{VERSION} {digest(corpus)}",
        "query": f"rewriter 1 {digest(thesaurus[1:])}",
        "retriever": f"bm25 and thesaurus 1 {digest(thesaurus[0])}",
        "assembler": "packer 1",
        "model": "composer 1",
        "message": f"{VERSION} {digest(PROMPT)}",
        "decoding": "lines copied, nothing sampled",
        "schema": "proposal 1",
        "validator": "handles 1, supplied or not",
        "evaluator": "literal 1 and quantities 1",
    }


def manifest(run: Run, faults: str = "by case") -> dict[bytes, bytes]:
    """What a run was made with, as schema metadata."""
    bound = identities()
    record: dict[str, Any] = {
        "b": B,
        "budget_unit": "code points",
        "candidate_k": CANDIDATE_K,
        "channel_depth": DEPTH,
        "context_k": CONTEXT_K,
        "context_order": "as ranked",
        "faults": faults,
        "filter": "principals and validity, before the channels",
        "grounding": "context-only",
        "identities": bound,
        "indexed": "card and lines",
        "k1": K1,
        "languages": LANGS,
        "prompt": PROMPT,
        "repeats": 1,
        "rerank": "share of query terms, itself or by concept; first of equal texts",
        "reserve": RESERVE,
        "rrf_k": RRF_K,
        "run": run.name,
        "score_places": 12,
        "seed": SEED,
        "statistics": "whole snapshot",
        "suite": "mosaic",
        "suite_version": VERSION,
        "threshold": {"reranked": THRESHOLD},
        "ties": "id ascending; after reranking as fused",
        "window": WINDOW,
    }
    if run.changed:
        record["identities"] = {**bound, run.changed: run.value}
        record |= {"baseline": "observed", "single_change": f"identities.{run.changed}"}
    if run.name == "repaired":
        record |= {"baseline": "observed", "single_change": "faults"}
    return {schema.MANIFEST_KEY: canonical(record).encode()}


def chosen(run: Run) -> Iterator[tuple[Case, str]]:
    """The cases of a run, in both languages."""
    return ((case, lang) for case in CASES if case.id in run.cases for lang in LANGS)


def trace_name(run: Run, case: Case, lang: str) -> str:
    """The identity of one trace."""
    return f"mosaic/{run.name}/{case.id}/{lang}/0"


def rows_of(run: Run) -> list[Row]:
    """All traces of one run; the pair of a replay is the observed trace."""
    out = []
    for case, lang in chosen(run):
        names = {
            "condition": run.condition,
            "trace": trace_name(run, case, lang),
            "pair": None if run is OBSERVED else trace_name(OBSERVED, case, lang),
            "fault": case.fault,
        }
        out.append(run_row(case, lang, run.trace(case, lang), names))
    return out


def repaired() -> list[Row]:
    """The observed run without the faults; a page that is not in the corpus stays away."""
    run = Run("repaired")
    out = []
    for case, lang in chosen(run):
        names = {"condition": "end_to_end", "trace": trace_name(run, case, lang), "fault": None}
        trace = observe(replace(case, fault=""), lang)
        out.append(run_row(case, lang, trace, {**names, "pair": None}))
    return out


def judged(judge: Judge, runs: Iterable[Run]) -> list[Row]:
    """What one judge says of the runs."""
    return [
        row
        for run in runs
        if judge in run.judges
        for case, lang in chosen(run)
        for row in judgment_rows(
            run.name, case, lang, judge, verdicts(judge, case, lang, run.trace(case, lang))
        )
    ]


def about() -> dict[str, Any]:
    """What `suite.toml` begins with."""
    return {
        "name": "mosaic",
        "title": "Mosaic Desk: paired faults of a help desk, with replays and verdicts",
        "version": VERSION,
        "kind": "development (authored, not a sample)",
        "licence": "Apache-2.0",
        "source": "authored for this project; the list of faults is from a public textbook chapter",
        "labels": "authored with the cases; checked by rule in tests/golden/test_mosaic.py",
        "cannot_show": [
            "how good any system is: the cases were made so that each layer fails in a known way",
            "what users ask, or how often: the cases are no sample",
        ],
        "languages": LANGS,
        "measures": MEASURES,
        "generator": "python data/mosaic/generate.py",
    }


def about_chunks() -> dict[bytes, bytes]:
    """The metadata of the corpus: its snapshots, and where the texts of a language are."""
    held = {name: [unit.id for unit in units] for name, units in SNAPSHOTS.items()}
    acl = {unit.id: unit.acl for unit in UNITS if unit.acl}
    return {
        b"snapshot": VERSION.encode(),
        b"snapshots": canonical(held).encode(),
        b"index_generation": VERSION.encode(),
        b"acl_generation": f"acl {digest(acl)}".encode(),
        b"parser": b"none: authored as lines",
        b"chunker": b"one chunk a document, one block a line",
        b"analyzer": b"lower case; names, words, numbers, CJK bigrams within a run",
        b"embedding": b"counts of thesaurus concepts",
        b"text_columns": canonical(TEXT_COLUMNS).encode(),
    }


def generate(out: Path) -> None:
    """Write every file of the suite under `out`."""
    cases = [case_row(case, lang) for case in CASES for lang in LANGS]
    chunks = [chunk_row(unit) for unit in UNITS]
    tables = {
        "cases.arrow": (cases, schema.CASES, {b"suite": b"mosaic"}),
        "chunks.arrow": (chunks, pa.schema([*schema.CHUNKS, *CHINESE]), about_chunks()),
    }
    for run in RUNS:
        tables[f"runs/{run.name}.arrow"] = rows_of(run), schema.RUNS, manifest(run)
    tables["repaired.arrow"] = repaired(), schema.RUNS, manifest(Run("repaired"), "none")
    for judge in (LITERAL_1, QUANTITIES_1, LITERAL_2):
        name = f"judgments/{judge.name}-{judge.version}.arrow"
        tables[name] = judged(judge, RUNS), schema.JUDGMENTS, {b"suite": b"mosaic"}
    write_suite(out, tables, about())


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Write the Arrow files of Mosaic Desk.")
    here = Path(__file__).resolve().parent
    parser.add_argument("--out", type=Path, default=here, help="folder (default: beside this)")
    generate(parser.parse_args().out)


if __name__ == "__main__":
    main()
