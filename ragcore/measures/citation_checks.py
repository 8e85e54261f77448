"""Citations of a trace, one by one: supplied, existing, of the right version, quoted exactly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore import schema
from ragcore.evidence import CONFLICTING, Evidence
from ragcore.formats.compute import pc
from ragcore.lists import Lists
from ragcore.measures.inputs import Inputs
from ragcore.measures.outcome_values import said
from ragcore.measures.reached import items_of
from ragcore.measures.surfaced import Check, unchecked, unit_keys
from ragcore_kernels.layout import I64

_BLOCK = 20_000  # citations whose texts are in memory at once
_HELD_BACK = ("abstain", "fail_closed", "escalate")


def fabricated(inputs: Inputs) -> Check:
    """A citation, as emitted, of a unit that was not in the context."""
    name, title = "fabricated", "fabricated citation"
    for column in ("citations", "context"):
        if not inputs.has_trace(column):
            return unchecked(inputs, name, title, f"the run records no {column}")
    cited, context = inputs.trace_lists("citations"), inputs.trace_lists("context")
    flags = ~supplied(inputs)
    refused = inputs.trace_coded("context_state", schema.CONTEXT_STATES) > 0
    checked = cited.present & (context.present | refused)
    return _of_citations(inputs, name, title, checked, flags, lambda at: "")


def supplied(inputs: Inputs) -> Any:
    """(n_citations,) bool: whether the cited unit was in its trace's context."""

    def make() -> Any:
        cited, context = inputs.trace_lists("citations"), inputs.trace_lists("context")
        span = int(max(len(inputs.shared.vocabulary.known), 1)) + 1
        shown = context.owners * span + inputs.units(context)
        asked = cited.owners * span + inputs.units(cited)
        return np.isin(asked, shown) & (inputs.units(cited) >= 0)

    cited, context = inputs.trace_lists("citations"), inputs.trace_lists("context")
    for one in (cited, context):
        inputs.units(one)  # every id has its code before the span is fixed
    return inputs.once("citations supplied", make)


def invalid(inputs: Inputs) -> Check:
    """A citation of no unit of the corpus, of another version, or whose quote is not there."""
    name, title = "invalid", "invalid citation"
    if not inputs.has_trace("citations"):
        return unchecked(inputs, name, title, "the run records no citations")
    if inputs.shared.chunks is None:
        return unchecked(inputs, name, title, "the suite has no chunks to look citations up in")
    cited = inputs.trace_lists("citations")
    wrong = misquoted(inputs)
    return _of_citations(
        inputs, name, title, cited.present, wrong > 0, lambda at: f" ({_WRONG[int(wrong[at])]})"
    )


_WRONG = ("", "not in the corpus", "another version", "the quote is not there")


def misquoted(inputs: Inputs) -> I64:
    """(n_citations,), what is wrong with each: 0 nothing, 1 no such unit, 2 version, 3 quote."""

    def make() -> I64:
        cited, chunks = inputs.trace_lists("citations"), inputs.shared.chunks
        codes = inputs.units(cited)
        wrong = np.zeros(codes.size, np.int64)
        if chunks is None:
            return wrong
        known = (codes >= 0) & (codes < len(chunks))
        rows = pa.array(np.where(known, codes, 0))
        wrong[~known] = 1
        version, own = cited.field("doc_version"), chunks.column("doc_version")
        if version is not None and own is not None and not pa.types.is_null(version.type):
            there = own.take(rows).cast(pa.large_string())
            differs = pc.not_equal(version.cast(pa.large_string()), there).fill_null(False)
            wrong[(wrong == 0) & np.asarray(differs).astype(np.bool_)] = 2
        wrong[_off_text(inputs, cited, codes, wrong == 0)] = 3
        return wrong

    return inputs.once("citations misquoted", make)


def _off_text(inputs: Inputs, cited: Lists, codes: I64, mask: Any) -> list[int]:
    """Citations, of those in `mask`, whose quote is not the text that they point at."""
    quotes, chunks = cited.field("quote"), inputs.shared.chunks
    if quotes is None or chunks is None or pa.types.is_null(quotes.type):
        return []
    start, end = cited.integers("start"), cited.integers("end")
    base = np.maximum(chunks.integers("start", 0), 0)
    owners, out, langs = cited.owners, [], inputs.langs
    at = np.flatnonzero(mask & np.asarray(quotes.is_valid()))
    by_lang: dict[str | None, list[int]] = {}
    for i in at.tolist():
        by_lang.setdefault(langs[owners[i]], []).append(i)
    for lang, every in by_lang.items():
        texts = chunks.texts(lang)
        if texts is None:
            continue
        for begin in range(0, len(every), _BLOCK):
            own = every[begin : begin + _BLOCK]
            bodies = texts.take(pa.array(codes[own])).to_pylist()
            said = quotes.take(pa.array(own)).to_pylist()
            for i, body, quote in zip(own, bodies, said, strict=True):
                first = int(start[i] - base[codes[i]]) if start[i] >= 0 else 0
                placed = start[i] >= 0 and end[i] >= 0
                if body is None:
                    continue
                there = body[first : first + int(end[i] - start[i])] if placed else body
                if (there != quote) if placed else (quote not in there):
                    out.append(i)
    return out


def _of_citations(
    inputs: Inputs, name: str, title: str, checked: Any, flags: Any, said_of: Callable[[int], str]
) -> Check:
    cited = inputs.trace_lists("citations")
    broken = np.zeros(inputs.n, np.bool_)
    broken[cited.owners[flags]] = True
    ids = cited.field("id")

    def what(ranking: int) -> str:
        own = range(int(cited.offsets[ranking]), int(cited.offsets[ranking + 1]))
        named = [
            f"{None if ids is None else ids[at].as_py()!r}{said_of(at)}" for at in own if flags[at]
        ]
        state = said(inputs, "final")
        word = None if state is None else state[ranking].as_py()
        late = f"; withheld, as the trace ends in {word!r}" if word in _HELD_BACK else ""
        return ", ".join(dict.fromkeys(named)) + late

    return Check(name, title, checked, broken & checked, "", what)


def labelled_supporting(inputs: Inputs, evidence: Evidence) -> Any:
    """(n_citations,) bool: whether the cited unit contains an item labelled as supporting.

    Both sides of a labelled conflict count; where nothing at all is labelled, any unit does.
    """
    cited = inputs.trace_lists("citations")
    items = items_of(inputs, evidence)
    owner = np.repeat(np.arange(inputs.n), np.diff(items.offsets))
    good = evidence.role[items.at] <= CONFLICTING
    span = len(inputs.shared.vocabulary.known) + 1
    labelled = unit_keys(evidence, items.at[good], owner[good], span)
    asked = cited.owners * span + inputs.units(cited)
    free = np.diff(items.offsets) == 0
    return np.isin(asked, labelled) | free[cited.owners]
