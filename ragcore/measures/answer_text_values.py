"""Values of the measures of the answer's text: strings beside references, numbers beside spans."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore import schema
from ragcore.answers import facts, matching
from ragcore.errors import UsageError
from ragcore.formats.compute import pc
from ragcore.lists import Lists, rows_of
from ragcore.measures.definitions import Measure
from ragcore.measures.endings import INVALID, Ending, ending
from ragcore.measures.inputs import ERROR, NO_COLUMN, Column, Inputs, missing
from ragcore_kernels.layout import I64

_NO_REFERENCE, _NO_TOKEN, _NO_NUMBER, _NO_TEXT = (
    "no-reference", "no-token", "no-number", "text-not-recorded",
)  # fmt: skip
SPANS = ("packed", "cited")


@dataclass
class Answers:
    """What every trace said.

    Attributes
    ----------
    texts : (n,), the answer; null where there is none.
    known : (n,), whether that is known: a text, or an ending without an answer.
    end : how the traces ended; None where no state is recorded.
    """

    texts: pa.Array
    known: Any
    end: Ending | None


def answers(inputs: Inputs) -> Answers | None:
    """The final text; that of the proposal where a trace answered and has no other.

    A trace that ended without an answer and has no text says nothing, which is known. None if
    the run has no text at all.
    """

    def make() -> Answers | None:
        final, proposed = inputs.part("final", "text"), inputs.part("proposed", "text")
        end = ending(inputs)
        if final is None and proposed is None:
            return None
        nothing = pa.nulls(inputs.n, pa.large_string())
        first, second = (nothing if t is None else t.cast(pa.large_string())
                         for t in (final, proposed))  # fmt: skip
        if end is not None and inputs.part("final", "state") is not None:
            shown = pa.array(end.answered)  # the gate may have withheld the proposal
            second = pc.if_else(shown, second, pa.scalar(None, pa.large_string()))
        texts = pc.coalesce(first, second)
        silent = np.zeros(inputs.n, np.bool_) if end is None else end.abstained
        return Answers(texts, np.asarray(texts.is_valid()) | silent, end)

    return inputs.once("answers", make)


def picked(texts: pa.Array, rows: I64) -> list[Any]:
    """The texts at `rows` as Python strings."""
    return texts.take(rows_of(rows)).to_pylist()


def _states(inputs: Inputs, said: Answers) -> tuple[Any, dict[int, str]]:
    """States by what is known of the text, and why."""
    invalid = np.zeros(inputs.n, np.bool_) if said.end is None else said.end.invalid
    states = inputs.states(said.known)
    states = np.where(invalid & (states == schema.MISSING), np.int8(schema.FAILED), states)
    return states, {schema.MISSING: _NO_TEXT, schema.FAILED: INVALID if invalid.any() else ERROR}


def _by_language(inputs: Inputs, rows: I64) -> Iterator[tuple[str | None, I64]]:
    """Rows of each language, in order of first appearance."""
    langs = [inputs.langs[r] for r in rows.tolist()]
    for lang in dict.fromkeys(langs):
        yield lang, rows[np.array([one == lang for one in langs], np.bool_)]


def _references(inputs: Inputs, measure: Measure, match: Callable[..., Any]) -> Column:
    """Answers against the references of their cases."""
    said = answers(inputs)
    if said is None or not inputs.has_case("references"):
        return missing(inputs, NO_COLUMN)
    lists = inputs.case_lists("references")
    states, why = _states(inputs, said)
    states = np.where(lists.counts == 0, np.int8(schema.NA), states)
    over, under = np.zeros(inputs.n), np.zeros(inputs.n)
    rows = np.flatnonzero(states == schema.OK)
    for lang, part in _by_language(inputs, rows):
        texts = [text or "" for text in picked(said.texts, part)]
        wanted = [
            [one for one in each if one is not None] for each in lists_at(lists, part)
        ]  # fmt: skip
        over[part], under[part] = match(texts, wanted, lang)
    empty = bool(((under == 0) & (states == schema.OK)).any())
    why[schema.NA] = _NO_TOKEN if empty and not (lists.counts == 0).any() else _NO_REFERENCE
    return Column(over, under, states, why)


def lists_at(lists: Lists, rows: I64) -> list[list[Any]]:
    """The lists at `rows` as Python lists."""
    offsets = lists.offsets
    return [lists.items[int(offsets[r]) : int(offsets[r + 1])].to_pylist() for r in rows]


def _exact(texts: list[str], wanted: list[list[str]], lang: str | None, strict: bool) -> Any:
    found = matching.exact_batch(texts, wanted, lang, strict=strict)
    return np.maximum(found, 0), (found != matching.UNKNOWN).astype(np.float64)


def _contains(texts: list[str], wanted: list[list[str]], lang: str | None) -> Any:
    found = matching.contains_batch(texts, wanted, lang)
    return np.maximum(found, 0), (found != matching.UNKNOWN).astype(np.float64)


def _f1(texts: list[str], wanted: list[list[str]], lang: str | None) -> Any:
    return matching.best_batch(texts, wanted, "f1", lang).T


# --- numbers


def numbers(inputs: Inputs, measure: Measure) -> Column:
    """Numbers and dates of an answer that stand in the spans it was shown, or that it cites."""
    of = str(measure.params.get("of", SPANS[0]))
    if of not in SPANS:
        raise UsageError(f"measure {measure.text!r}: of={of!r}", f"one of {', '.join(SPANS)}")
    column = "context" if of == "packed" else "citations"
    said, chunks = answers(inputs), inputs.shared.chunks
    if said is None or chunks is None or not inputs.has_trace(column):
        return missing(inputs, NO_COLUMN)
    lists = inputs.trace_lists(column)
    units = inputs.units(lists)
    states, why = _states(inputs, said)
    states = np.where(
        lists.present | (states != schema.OK), states, np.int8(schema.MISSING)
    )  # fmt: skip
    over, under = np.zeros(inputs.n), np.zeros(inputs.n)
    silent = np.asarray(said.texts.is_null())
    rows = np.flatnonzero((states == schema.OK) & ~silent)
    begins = chunks.integers("start", 0)
    starts, ends = lists.integers("start"), lists.integers("end")
    for lang, part in _by_language(inputs, rows):
        texts = chunks.texts(lang)
        if texts is None:
            states[part] = schema.MISSING
            continue
        for row, text in zip(part.tolist(), picked(said.texts, part), strict=True):
            spans = []
            for i in range(int(lists.offsets[row]), int(lists.offsets[row + 1])):
                code = int(units[i])
                if 0 <= code < len(chunks) and (whole := texts[code].as_py()):
                    spans.append(_cut(whole, int(begins[code]), int(starts[i]), int(ends[i])))
            found = facts.unsupported_facts(text, spans)
            over[row], under[row] = found.kept, found.total
    return Column(over, under, states, {**why, schema.NA: _NO_NUMBER})


def _cut(text: str, begins: int, start: int, end: int) -> str:
    """The span of a chunk; places count in the document, and -1 is no end."""
    first = max(start - begins, 0) if start >= 0 else 0
    return text[first : max(end - begins, first)] if end >= 0 else text[first:]


VALUES: dict[str, Callable[[Inputs, Measure], Column]] = {
    "answer.exact_match": partial(_references, match=partial(_exact, strict=True)),
    "answer.exact_match_normalised": partial(_references, match=partial(_exact, strict=False)),
    "answer.f1": partial(_references, match=_f1),
    "answer.contains": partial(_references, match=_contains),
    "answer.number_consistency": numbers,
}  # fmt: skip
"""How each of these measures is worked out."""
