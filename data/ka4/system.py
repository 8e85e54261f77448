"""The small assistant that KA-4 observes: retrieve, pack, compose, cite, gate.

It is deterministic and has no model in it. One setting, `Settings.filter`, tells the two
conditions of the suite apart; the others serve the separate ablations.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from world import PROMPT, REWRITE, SNAPSHOTS, Case, Unit

K1, B = 1.2, 0.75
WINDOW, LOW_WINDOW, RESERVE = 1800, 400, 300

Stretch = Literal["parent", "support", "line"]

_RUN = re.compile(r"[a-z]+|[0-9]+|[\u4e00-\u9fff]+")
_AMOUNT = re.compile(r"([0-9]+) (?:yuan|元)")


@dataclass(frozen=True)
class Settings:
    """How the assistant is set up."""

    filter: bool = False
    """Drop units that do not apply (topic, date) before the best one is chosen."""
    rewrite: bool = False
    """Replace one exact phrase in the retrieval query, and nowhere else."""
    pack: Stretch = "parent"
    """What of a unit is packed: `parent` all, `support` its support lines, `line` the answer."""


@dataclass(frozen=True)
class Packed:
    """A stretch of a unit that the composer is shown; code points, end exclusive."""

    unit: Unit
    start: int
    end: int


@dataclass(frozen=True)
class Citation:
    """What the proposal points at."""

    unit: Unit
    start: int
    end: int
    quote: str


@dataclass(frozen=True)
class Proposal:
    """The composer's answer before the support gate."""

    state: str
    value: str | None = None
    text: str | None = None
    claim: str | None = None
    """The line of `text` that holds the answer; `sentence` is its place, from 0."""
    sentence: int = 0
    citations: tuple[Citation, ...] = ()


ABSTAIN = Proposal("abstain")


@dataclass(frozen=True)
class Trace:
    """Everything one request left behind, stage by stage."""

    query: str
    scored: list[tuple[Unit, float]]
    selected: list[tuple[Unit, float]]
    ranked: list[tuple[Unit, float]]
    context: list[Packed]
    context_state: str
    input_size: int
    window: int
    proposed: Proposal
    final: Proposal


def tokens(text: str) -> list[str]:
    """Lower-case ASCII letter runs, digit runs, and bigrams inside each run of CJK."""
    out: list[str] = []
    for run in _RUN.findall(text.lower()):
        if run.isascii() or len(run) == 1:
            out.append(run)
        else:
            out.extend(run[i : i + 2] for i in range(len(run) - 1))
    return out


def bm25(query: str, units: Sequence[Unit], lang: str) -> list[tuple[Unit, float]]:
    """Score every card against the distinct terms of the query, best first.

    Statistics are those of the whole snapshot, whatever is eligible. Rounding to 12 places
    keeps the last bit of the platform's logarithm out of the files.
    """
    cards = [Counter(tokens(unit.card[lang])) for unit in units]
    lengths = [card.total() for card in cards]
    mean = sum(lengths) / len(lengths)
    scores = [0.0] * len(units)
    for term in dict.fromkeys(tokens(query)):
        df = sum(term in card for card in cards)
        idf = math.log(1 + (len(cards) - df + 0.5) / (df + 0.5))
        for i, card in enumerate(cards):
            norm = K1 * (1 - B + B * lengths[i] / mean)
            scores[i] += idf * card[term] * (K1 + 1) / (card[term] + norm)
    pairs = [(unit, round(score, 12)) for unit, score in zip(units, scores, strict=True)]
    return sorted(pairs, key=lambda pair: (-pair[1], pair[0].id))


def retrieve(
    case: Case, query: str, lang: str, settings: Settings
) -> tuple[list[tuple[Unit, float]], list[tuple[Unit, float]], list[tuple[Unit, float]]]:
    """All positive scores; the one selected; the selected one with its siblings.

    A sibling has the topic, authority and first day of the selected unit, so it may
    contradict it with equal right: it is fetched whatever its own rank.
    """
    everything = bm25(query, SNAPSHOTS[case.snapshot], lang)
    pool = everything
    if settings.filter:
        pool = [pair for pair in pool if pair[0].applies(case.topic, case.as_of)]
    selected = [pair for pair in pool if pair[1] > 0][:1]
    ranked = list(selected)
    for best, _ in selected:
        key = (best.topic, best.valid_from)  # there is one authority
        ranked += [
            pair
            for pair in pool
            if pair[0].id != best.id and (pair[0].topic, pair[0].valid_from) == key
        ]
    return [pair for pair in everything if pair[1] > 0], selected, ranked


def payload(case: Case, lang: str, context: Sequence[Packed]) -> str:
    """What the composer is handed, as one string; its length is the input size."""
    evidence = [{"id": p.unit.id, "text": p.unit.text(lang)[p.start : p.end]} for p in context]
    return json.dumps(
        {
            "instruction": PROMPT[lang],
            "question": case.question[lang],
            "topic": case.topic,
            "as_of": case.as_of.isoformat(),
            "evidence": evidence,
        },
        ensure_ascii=False,
    )


def pack(unit: Unit, lang: str, what: Stretch) -> Packed:
    """Take the declared stretch of a unit, never a part of it."""
    first, stop = {
        "parent": (0, len(unit.lines[lang])),
        "support": (0, unit.support),
        "line": (unit.decides, unit.decides + 1),
    }[what]
    return Packed(unit, *unit.span(lang, first, stop))


def assemble(
    case: Case, lang: str, ranked: Sequence[tuple[Unit, float]], settings: Settings
) -> tuple[list[Packed], str, int, int]:
    """Context, its state, the input size and the window.

    A refusal leaves nothing to use, but keeps the size that was refused.
    """
    window = LOW_WINDOW if case.fault == "low-budget" else WINDOW
    context = [pack(unit, lang, settings.pack) for unit, _ in ranked]
    if case.fault == "drop-context":
        context = []
    size = len(payload(case, lang, context))
    if not context:
        return [], "no_evidence", size, window
    if size > window - RESERVE:
        return [], "budget_refused", size, window
    amounts = {amount(p.unit.text(lang)) for p in context if p.unit.applies(case.topic, case.as_of)}
    return context, "conflict" if len(amounts) > 1 else "ready", size, window


def amount(text: str) -> str | None:
    """The sum of money that a text names, if it names one."""
    found = _AMOUNT.search(text)
    return found.group(1) if found else None


def cite(unit: Unit, lang: str) -> Citation:
    """Quote all support lines of a unit."""
    start, end = unit.span(lang, 0, unit.support)
    return Citation(unit, start, end, unit.text(lang)[start:end])


def compose(case: Case, lang: str, context: Sequence[Packed], state: str) -> Proposal:
    """Copy the support lines of the one unit that applies and is packed far enough."""
    usable = []
    for packed in context:
        start, end = packed.unit.span(lang, 0, packed.unit.support)
        inside = packed.start <= start and end <= packed.end
        if inside and packed.unit.applies(case.topic, case.as_of):
            usable.append(packed.unit)
    if state != "ready" or not usable:
        return ABSTAIN
    unit = usable[0]
    citation = cite(unit, lang)
    return Proposal(
        state="answer",
        value=amount(citation.quote),
        text=citation.quote,
        claim=unit.lines[lang][unit.decides],
        sentence=unit.decides,
        citations=(citation,),
    )


def spoil(case: Case, lang: str, proposal: Proposal) -> Proposal:
    """Inject the two faults that strike after composition."""
    if case.fault == "amount-600" and proposal.value and proposal.text and proposal.claim:
        return replace(
            proposal,
            value="600",
            text=proposal.text.replace(proposal.value, "600"),
            claim=proposal.claim.replace(proposal.value, "600"),
        )
    if case.fault == "citation-v1" and proposal.citations:
        old = next(unit for unit in SNAPSHOTS[case.snapshot] if unit.id == "travel-v1")
        return replace(proposal, citations=(cite(old, lang),))
    return proposal


def supported(case: Case, lang: str, proposal: Proposal, citation: Citation) -> bool:
    """Source exists, quote exact, in scope, support span inside, value as proposed."""
    unit = citation.unit
    start, end = unit.span(lang, 0, unit.support)
    return (
        unit in SNAPSHOTS[case.snapshot]
        and unit.text(lang)[citation.start : citation.end] == citation.quote
        and unit.applies(case.topic, case.as_of)
        and citation.start <= start
        and end <= citation.end
        and amount(citation.quote) == proposal.value
    )


def gate(case: Case, lang: str, proposal: Proposal) -> Proposal:
    """Withhold an answer unless its citations hold and cover all of its text."""
    if proposal.state != "answer":
        return ABSTAIN
    holds = all(supported(case, lang, proposal, c) for c in proposal.citations)
    covered = proposal.text == "\n".join(c.quote for c in proposal.citations)
    return proposal if proposal.citations and holds and covered else ABSTAIN


def run(case: Case, lang: str, settings: Settings) -> Trace:
    """Put one case to the assistant in one language."""
    query = case.question[lang]
    if settings.rewrite:
        query = query.replace(*REWRITE[lang])
    scored, selected, ranked = retrieve(case, query, lang, settings)
    context, state, size, window = assemble(case, lang, ranked, settings)
    proposed = spoil(case, lang, compose(case, lang, context, state))
    final = gate(case, lang, proposed)
    return Trace(query, scored, selected, ranked, context, state, size, window, proposed, final)
