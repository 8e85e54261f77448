"""Values of the measures of retrieval: what was found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ragcore import schema
from ragcore.errors import UsageError
from ragcore.evidence import FORBIDDEN
from ragcore.lists import integers
from ragcore.measures import eligibility_values, granularity_values, survival_values
from ragcore.measures.definitions import Measure
from ragcore.measures.inputs import NO_COLUMN, NO_LABEL, Column, Inputs, missing
from ragcore.measures.reached import items_of, places, shares
from ragcore.measures.required import (
    over_items,
    over_required,
    reached,
    says_required,
    supporting,
)  # fmt: skip
from ragcore.measures.selected import (
    Shown,
    candidates,
    context_k,
    distinct,
    everywhere,
    final,
    in_parts,
    known,
    marks,
    selected,
    shown,
    stage,
)  # fmt: skip
from ragcore_kernels import shown as kernel
from ragcore_kernels.layout import I64

_NO_SUPPORT, _NO_BUDGET, _NO_TOKENS, _EMPTY = (
    "nothing-supporting", "no-budget", "length-not-known", "nothing-selected",
)  # fmt: skip


def opportunity(inputs: Inputs, measure: Measure) -> Column:
    """Whether any item that is required (else any that supports) is among the candidates."""
    evidence = inputs.evidence
    lists = candidates(inputs)
    if evidence is None or not lists:
        return missing(inputs, NO_COLUMN)
    required = says_required(evidence)
    base = evidence.needed & evidence.first if required else supporting(evidence)
    counted = base & ~evidence.stale
    hit = np.zeros(items_of(inputs, evidence).at.size, np.bool_)
    recorded = np.zeros(inputs.n, np.bool_)
    for one in lists:
        hit |= reached(inputs, evidence, one)
        recorded |= one.present
    hit &= ~evidence.absent[items_of(inputs, evidence).at]
    found = over_items(inputs, evidence, counted, hit, recorded, evidence.needed & evidence.stale)
    found.over, found.under = np.minimum(found.over, 1.0), np.minimum(found.under, 1.0)
    return found


def ahead(inputs: Inputs, measure: Measure) -> Column:
    """Units ahead of the first that supports."""
    evidence, one = inputs.evidence, final(inputs)
    if evidence is None or one is None:
        return missing(inputs, NO_COLUMN)
    which = supporting(evidence)
    at = np.flatnonzero(marks(inputs, one, which))
    owners = one.lists.owners[at]
    first = one.lists.counts.astype(np.int64)
    np.minimum.at(first, owners, at - one.offsets[owners])
    items = items_of(inputs, evidence)
    _, has = shares(items.offsets, which[items.at], which[items.at])
    states = inputs.states(one.present)
    states[(has == 0) & (states == schema.OK)] = schema.NA
    return Column(first.astype(np.float64), np.ones(inputs.n), states, {schema.NA: _NO_SUPPORT})


def displaced(inputs: Inputs, measure: Measure) -> Column:
    """Required items that reranking pushed beyond what the generator may be shown."""
    evidence, names = inputs.evidence, inputs.stages
    if evidence is None or "reranked" not in names:
        return missing(inputs, NO_COLUMN)
    if not says_required(evidence):
        return missing(inputs, NO_LABEL)
    before = "fused" if "fused" in names else names[max(names.index("reranked") - 1, 0)]
    if before == "reranked":
        return missing(inputs, NO_COLUMN)
    k = context_k(inputs)
    first, then = stage(inputs, before).cut(k), stage(inputs, "reranked").cut(k)
    hit = reached(inputs, evidence, first) & ~reached(inputs, evidence, then)
    return over_required(inputs, evidence, hit, first.present & then.present)


def no_result(inputs: Inputs, measure: Measure) -> Column:
    """Empty final rankings."""
    one = final(inputs)
    if one is None:
        return missing(inputs, NO_COLUMN)
    known = one.present | inputs.absent  # a case that the run lacks found nothing
    states = np.where(known, np.int8(schema.OK), inputs.states(known))
    empty = (one.lists.counts == 0).astype(np.float64)
    return Column(empty, np.ones(inputs.n), states)


def _budget(inputs: Inputs, measure: Measure) -> int | None:
    for value in (
        measure.params["B"], inputs.manifest.get("token_budget"),
        inputs.settings.get("token_budget"),
    ):  # fmt: skip
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise UsageError(
                f"measure {measure.text!r}: a budget of {value!r}", "tokens, a whole number from 0"
            )
        return value
    return None


def lengths_of(inputs: Inputs, one: Shown) -> I64:
    """Tokens of every unit of a list, in the language of its ranking; -1 where not known."""
    chunks = inputs.shared.chunks
    out = np.full(one.units.size, -1, np.int64)
    if chunks is None:
        return out
    at = known(one, inputs.shared.vocabulary)
    langs = np.array([lang or "" for lang in inputs.langs], dtype=object)
    own = langs[one.lists.owners]
    for lang in set(langs.tolist()):
        name = f"n_tokens_{lang}"
        column = chunks.column(name if name in chunks.table.column_names else "n_tokens")
        here = at & (own == lang)
        out[here] = integers(column, len(chunks))[one.units[here]]
    return out


def token_budget(inputs: Inputs, measure: Measure) -> Column:
    """Required items in what a budget of tokens lets through."""
    evidence, one, budget = inputs.evidence, final(inputs), _budget(inputs, measure)
    if evidence is None or one is None:
        return missing(inputs, NO_COLUMN)
    if not says_required(evidence):
        return missing(inputs, NO_LABEL)
    if budget is None:
        return missing(inputs, _NO_BUDGET)
    lengths, most = lengths_of(inputs, one), np.zeros(inputs.n, np.int64)
    in_parts(inputs, lambda a, b: kernel.prefixes(a, b, one.offsets, lengths, budget, most))
    at = places(inputs, evidence, one.name, one.lists, one.units)
    items = items_of(inputs, evidence)
    limit = np.repeat(most, np.diff(items.offsets))
    unknown = most < 0
    found = over_required(inputs, evidence, (at >= 0) & (at < limit), one.present & ~unknown)
    if (unknown & one.present).any():
        found.why[schema.MISSING] = _NO_TOKENS
    return found


def _most_frequent(one: Shown, sources: I64, n: int) -> Any:
    """(n,), how often the most frequent source of each list stands in it."""
    out = np.zeros(n, np.int64)
    width = int(sources.max(initial=0)) + 1
    keys, counts = np.unique(one.lists.owners * width + sources, return_counts=True)
    np.maximum.at(out, keys // width, counts)
    return out


def concentration(inputs: Inputs, measure: Measure) -> Column:
    """The largest share of one document, or one family of sources, among what was selected."""
    by = measure.params["by"]
    if by not in ("document", "source_family"):
        raise UsageError(f"measure {measure.text!r}: by={by!r}", "document or source_family")
    one, chunks = selected(inputs), inputs.shared.chunks
    if one is None or chunks is None:
        return missing(inputs, NO_COLUMN)
    column = chunks.column("doc_id" if by == "document" else by)
    if by == "source_family" and not chunks.has(by):
        return missing(inputs, NO_COLUMN)
    names = inputs.shared.vocabulary
    own = np.arange(len(names.known), dtype=np.int64)  # a unit of no known source is its own
    if column is not None and column.null_count < len(column):
        coded = column.dictionary_encode()
        codes = integers(coded.indices, len(chunks))
        own[: len(chunks)] = np.where(codes >= 0, codes + own.size, own[: len(chunks)])
    sources = np.where(one.units >= 0, own[one.units] if own.size else 0, 0)
    over = _most_frequent(one, sources, inputs.n).astype(np.float64)
    under = one.lists.counts.astype(np.float64)
    return Column(over, under, inputs.states(one.present), {schema.NA: _EMPTY})


def _forbidden(inputs: Inputs, measure: Measure) -> tuple[I64, Any] | str:
    """Distinct forbidden units of each ranking, and which rankings record a list."""
    evidence, name = inputs.evidence, measure.params["stage"]
    if name in ("ranked", "context"):
        lists = [shown(inputs, name, inputs.trace_lists(name))] if inputs.has_trace(name) else []
    elif name is not None:
        lists = [stage(inputs, name)] if name in inputs.stages else []
    else:
        lists = everywhere(inputs)
    if evidence is None or not lists:
        return NO_COLUMN
    which = (evidence.role == FORBIDDEN) & ~evidence.stale
    if not which.any():
        return NO_LABEL
    found, recorded = [], np.zeros(inputs.n, np.bool_)
    for one in lists:
        at = marks(inputs, one, which)
        found.append((one.lists.owners[at], one.units[at]))
        recorded |= one.present
    return distinct(inputs.n, found), recorded


def forbidden_count(inputs: Inputs, measure: Measure) -> Column:
    """Distinct units that hold forbidden evidence."""
    found = _forbidden(inputs, measure)
    if isinstance(found, str):
        return missing(inputs, found)
    return Column(found[0].astype(np.float64), np.ones(inputs.n), inputs.states(found[1]))


def forbidden_rate(inputs: Inputs, measure: Measure) -> Column:
    """Traces with any such unit."""
    out = forbidden_count(inputs, measure)
    out.over = np.minimum(out.over, 1.0)
    return out


VALUES: dict[str, Callable[[Inputs, Measure], Column]] = {
    "retrieval.opportunity": opportunity, "retrieval.ahead": ahead,
    "retrieval.displaced": displaced, "retrieval.no_result": no_result,
    "retrieval.token_budget": token_budget, "retrieval.source_concentration": concentration,
    "forbidden.rate": forbidden_rate, "forbidden.count": forbidden_count,
    **granularity_values.VALUES, **eligibility_values.VALUES, **survival_values.VALUES,
}  # fmt: skip
"""How each measure of this layer is worked out."""
