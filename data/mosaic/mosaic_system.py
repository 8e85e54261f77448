"""The rest of the assistant: pack, compose, cite, check; and the replays of a recorded trace.

It is deterministic and has no model in it. A fault is a branch in this code that the case turns
on; a replay runs the later stages anew on what the earlier ones left.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from mosaic_search import CANDIDATE_K, MODEL, Found, Scored, search
from mosaic_units import Fact, Unit
from mosaic_world import BY_DOC, PROMPT, TODAY, Case

CONTEXT_K, THRESHOLD = 5, 0.45
WINDOW, RESERVE = 4000, 300
HEAD = 2  # lines that `head-only-packing` leaves of a page

__all__ = ["CANDIDATE_K", "CONTEXT_K", "THRESHOLD", "Trace", "observe", "oracle", "replay"]


@dataclass(frozen=True)
class Packed:
    """A stretch of a page that the composer is shown; code points, end exclusive."""

    unit: Unit
    start: int
    end: int


@dataclass(frozen=True)
class Statement:
    """One claim of a proposal and the lines that it was copied from."""

    unit: Unit
    first: int
    last: int
    text: str


@dataclass(frozen=True)
class Citation:
    """What a claim points at."""

    claim: int
    unit: Unit
    start: int
    end: int
    quote: str


@dataclass(frozen=True)
class Proposal:
    """The composer's answer, or why there is none."""

    state: str
    value: str | None = None
    statements: tuple[Statement, ...] = ()

    @property
    def text(self) -> str | None:
        """What the asker reads."""
        return "\n".join(s.text for s in self.statements) or None


@dataclass(frozen=True)
class Trace:
    """Everything one request left behind."""

    found: Found
    context: tuple[Packed, ...]
    context_state: str
    input_size: int
    proposal: Proposal
    citations: tuple[Citation, ...]
    retries: int = 0


def payload(case: Case, lang: str, context: Sequence[Packed]) -> str:
    """What the composer is handed; its length in code points is the input size."""
    pages = [{"id": p.unit.id, "text": p.unit.text(lang)[p.start : p.end]} for p in context]
    record = {
        "instruction": PROMPT[lang],
        "question": case.question[lang],
        "as_of": TODAY.isoformat(),
        "pages": pages,
    }
    return json.dumps(record, ensure_ascii=False)


def pack(case: Case, lang: str, ranked: Scored) -> tuple[Packed, ...]:
    """The first pages whose rerank score reaches the threshold, whole unless the fault cuts."""
    out = []
    for unit, score in ranked[:CONTEXT_K]:
        lines = len(unit.lines[lang])
        if case.fault == "head-only-packing":
            lines = min(lines, HEAD)
        if score >= THRESHOLD:
            out.append(Packed(unit, *unit.span(lang, 0, lines - 1)))
    return tuple(out)


def _readable(packed: Packed, lang: str, fact: Fact) -> bool:
    start, end = packed.unit.span(lang, fact.line, fact.line)
    return packed.start <= start and end <= packed.end


def _statement(packed: Packed, lang: str, fact: Fact, *, careful: bool) -> Statement:
    """The line that answers, with its condition if that is packed and heeded."""
    last = fact.line
    if careful and fact.condition is not None:
        start, end = packed.unit.span(lang, fact.condition, fact.condition)
        last = fact.condition if packed.start <= start and end <= packed.end else last
    text = "\n".join(packed.unit.lines[lang][fact.line : last + 1])
    return Statement(packed.unit, fact.line, last, text)


def compose(case: Case, lang: str, context: Sequence[Packed], *, careful: bool) -> Proposal:
    """Copy what the pages say on each need; abstain if one is not spoken to.

    Of several pages the one that names most models of the question counts, then the first.
    """
    models = set(MODEL.findall(case.question[lang]))
    said: list[Statement] = []
    values: list[str] = []
    escalate = False
    for need in case.needs:
        speaking = [p for p in context if need in p.unit.facts]
        speaking = [p for p in speaking if _readable(p, lang, p.unit.facts[need])]
        if not speaking:
            return Proposal("abstain")
        best = max(speaking, key=lambda p: len(models & set(MODEL.findall(p.unit.text(lang)))))
        fact = best.unit.facts[need]
        statement = _statement(best, lang, fact, careful=careful)
        said.append(statement)
        values.append(fact.value)
        escalate |= fact.documented and statement.last == fact.condition
    if escalate:  # the question brings no record, so somebody must look
        return Proposal("escalate", None, tuple(said))
    return Proposal("answer", "; ".join(values), tuple(said))


def cite(lang: str, proposal: Proposal, *, shift: int = 0) -> tuple[Citation, ...]:
    """One handle a claim; with a shift, the handle of a later claim."""
    out = []
    for claim in range(len(proposal.statements)):
        source = proposal.statements[(claim + shift) % len(proposal.statements)]
        start, end = source.unit.span(lang, source.first, source.last)
        quote = source.unit.text(lang)[start:end]
        out.append(Citation(claim, source.unit, start, end, quote))
    return tuple(out)


def misplaced(proposal: Proposal, citations: Sequence[Citation]) -> bool:
    """Whether a claim is not in the span that it points at."""
    return any(proposal.statements[c.claim].text not in c.quote for c in citations)


def _generate(case: Case, lang: str, trace: Trace, *, composer: int, validator: int) -> Trace:
    """Compose, cite and check on the context of a trace.

    Composer 2 heeds conditions whatever the fault. Validator 2 sends misplaced handles back
    once; validator 1 looks only whether a handle was supplied.
    """
    if trace.found.withheld:
        return replace(trace, proposal=Proposal("fail_closed"), citations=())
    careful = composer == 2 or case.fault != "condition-ignored"
    proposal = compose(case, lang, trace.context, careful=careful)
    citations = cite(lang, proposal, shift=int(case.fault == "handles-shifted"))
    supplied = {packed.unit for packed in trace.context}
    if any(c.unit not in supplied for c in citations):
        return replace(trace, proposal=Proposal("abstain"), citations=())
    retries = int(validator == 2 and misplaced(proposal, citations))
    if retries:
        citations = cite(lang, proposal)
    return replace(trace, proposal=proposal, citations=citations, retries=retries)


def _with_context(case: Case, lang: str, found: Found, context: tuple[Packed, ...]) -> Trace:
    size = len(payload(case, lang, context))
    assert size <= WINDOW - RESERVE
    state = "ready" if context else "no_evidence"
    return Trace(found, context, state, size, Proposal("abstain"), ())


def observe(case: Case, lang: str) -> Trace:
    """Put one case to the assistant, with its fault."""
    found = search(case, lang)
    trace = _with_context(case, lang, found, pack(case, lang, found.reranked))
    return _generate(case, lang, trace, composer=1, validator=1)


def oracle(case: Case, lang: str) -> Trace:
    """The labelled supporting pages, whole, in place of what was packed; all else as it was."""
    docs = dict.fromkeys(label.doc for label in case.labels if label.required)
    bundle = []
    for doc in docs:
        unit = BY_DOC[doc]
        bundle.append(Packed(unit, *unit.span(lang, 0, len(unit.lines[lang]) - 1)))
    trace = _with_context(case, lang, search(case, lang), tuple(bundle))
    return _generate(case, lang, trace, composer=1, validator=1)


def replay(case: Case, lang: str, trace: Trace, *, composer: int = 1, validator: int = 1) -> Trace:
    """The same context, with another composer or validator."""
    return _generate(case, lang, replace(trace, retries=0), composer=composer, validator=validator)
