"""Whether citations support a proposal by rule alone: no verdict is asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ragcore.formats.compute import pc
from ragcore.lists import integers, plain
from ragcore.measures.chain import chain_of, spans_of
from ragcore.measures.cited import cited, claims_of, own, spaced, texts_of
from ragcore.measures.inputs import Inputs
from ragcore_kernels.amounts import hold_values
from ragcore_kernels.citations import NO, UNKNOWN, YES, contained
from ragcore_kernels.layout import I64

ANSWERED = ("answer", "partial")
"""States in which something is answered."""
_MARKERS = r"\s*[\[【]\d+(?:\s*[,;\-–]\s*\d+)*[\]】]"
_ENDS = (r"([。！？])", r"([.!?])\s+")


def all_of(*checks: Any) -> Any:
    """Three-valued and: a failed check decides, then an unknown one leaves it open."""
    out = np.full(checks[0].shape, YES, np.int8)
    for check in checks:
        out = np.where((out == NO) | (check == NO), NO, np.minimum(out, check))
    return out.astype(np.int8)


def every(offsets: I64, check: Any) -> Any:
    """Three-valued and over each stretch; `YES` for an empty one."""
    failed, open_ = _counts(offsets, check == NO), _counts(offsets, check == UNKNOWN)
    return np.where(failed > 0, NO, np.where(open_ > 0, UNKNOWN, YES)).astype(np.int8)


def _counts(offsets: I64, hit: Any) -> I64:
    """How many entries of each stretch are hit."""
    summed = np.concatenate([[0], np.cumsum(hit, dtype=np.int64)])
    return summed[offsets[1:]] - summed[offsets[:-1]]


def supports(inputs: Inputs) -> Any:
    """(n_pairs,) int8: source exists, quote exact, in scope, support span inside, value held."""

    def make() -> Any:
        chain = chain_of(inputs)
        return all_of(
            chain.stages["well_formed"], chain.exists, chain.stages["quote"], chain.scoped,
            chain.stages["span_inside"], value_held(inputs),
        )  # fmt: skip

    return inputs.once("citation supports", make)


def located(inputs: Inputs) -> Any:
    """(n_pairs,) int8: source exists, quote exact, in scope; whether it supports is left open."""
    chain = chain_of(inputs)
    return all_of(chain.stages["well_formed"], chain.exists, chain.stages["quote"], chain.scoped)


def value_held(inputs: Inputs) -> Any:
    """(n_pairs,) int8, whether what is cited holds the proposed value; none needs nothing."""
    given, spans = cited(inputs), spans_of(inputs)
    n = len(given)
    out = np.full(n, YES, np.int8)
    value = _value(inputs)
    if value is None or pa.types.is_null(value.type) or not n:
        return out
    texts = folded(value)
    asked = np.asarray(pc.not_equal(texts, "").fill_null(False)).astype(np.bool_)[given.owner]
    out[asked & (spans.usable == 0)] = UNKNOWN
    wanted = (asked & (spans.usable != 0)).astype(np.int8)
    values, held = texts_of(texts, inputs.n), texts_of(folded(spans.texts), n)
    hold_values(
        0, n, own(given.owner), wanted, values.offsets, values.address, held.offsets,
        held.address, out,
    )  # fmt: skip
    return out


def _value(inputs: Inputs) -> pa.Array | None:
    """What is proposed; where there are no proposals, what is answered."""
    name = "proposed" if inputs.part("proposed", "value") is not None else "final"
    return inputs.part(name, "value")


def folded(texts: pa.Array) -> pa.Array:
    """Texts in lower case and NFKC. A wide comma parts; it never groups the digits of a number."""
    plainer = pc.replace_substring(plain(texts).cast(pa.large_string()), "，", ", ")
    return pc.utf8_lower(pc.utf8_normalize(pc.utf8_trim_whitespace(plainer), "NFKC"))


def unmarked(texts: pa.Array) -> pa.Array:
    """Texts without citation markers, spaced as `cited.spaced` has them."""
    return spaced(pc.replace_substring_regex(plain(texts).cast(pa.large_string()), _MARKERS, ""))


def covered(inputs: Inputs) -> Any:
    """(n,) int8: every factual claim of an answer stands in something that it cites.

    Without claims it is every sentence of the text; an answer without either has nothing to cover.
    """
    given, spans, claims = cited(inputs), spans_of(inputs), claims_of(inputs)
    judged = np.flatnonzero(claims.factual) if claims.texts is not None else np.zeros(0, np.int64)
    told = np.bincount(claims.owner[judged], minlength=inputs.n) > 0
    owner, pieces = claims.owner[judged], pa.nulls(0, pa.large_string())
    if claims.texts is not None:
        pieces = plain(claims.texts).cast(pa.large_string()).take(pa.Array.from_buffers(
            pa.int64(), judged.size, [None, pa.py_buffer(np.ascontiguousarray(judged, np.int64))]
        ))  # fmt: skip
    more, at = _sentences(inputs, ~told)
    owner = np.concatenate([owner, at]).astype(np.int64)
    pieces = unmarked(pa.concat_arrays([pieces, more]))
    out = np.zeros(owner.size, np.int8)
    needles, held = texts_of(pieces, owner.size), texts_of(spaced(spans.texts), len(given))
    contained(
        0, owner.size, own(owner), needles.offsets, needles.address, given.offsets, spans.usable,
        held.offsets, held.address, out,
    )  # fmt: skip
    dark = _counts(given.offsets, spans.usable == 0) > 0
    failed = np.bincount(owner[out == NO], minlength=inputs.n) > 0
    return np.where(failed, np.where(dark, UNKNOWN, NO), YES).astype(np.int8)


def _sentences(inputs: Inputs, wanted: Any) -> tuple[pa.Array, I64]:
    """Sentences of the answers that are wanted, and the ranking of each."""
    text = inputs.part("proposed", "text")
    if text is None:
        text = inputs.part("final", "text")
    if text is None or pa.types.is_null(text.type):
        return pa.nulls(0, pa.large_string()), np.zeros(0, np.int64)
    rows = np.flatnonzero(wanted & np.asarray(text.is_valid()))
    index = pa.Array.from_buffers(pa.int64(), rows.size, [None, pa.py_buffer(rows)])
    whole = pc.replace_substring_regex(
        plain(text).cast(pa.large_string()).take(index), _MARKERS, ""
    )
    for end in _ENDS:
        whole = pc.replace_substring_regex(whole, end, "\\1\n")
    parts = pc.split_pattern(whole, "\n")
    sizes = integers(pc.list_value_length(parts), rows.size)
    return parts.flatten().cast(pa.large_string()), np.repeat(rows, sizes)


def answered(inputs: Inputs, state: pa.Array | None) -> Any:
    """(n,), where a recorded state is one in which something is answered."""
    if state is None or pa.types.is_null(state.type):
        return np.zeros(inputs.n, np.bool_)
    out = np.zeros(inputs.n, np.bool_)
    for word in ANSWERED:
        out |= np.asarray(pc.equal(plain(state), word).fill_null(False)).astype(np.bool_)
    return out


def answer_supported(inputs: Inputs) -> Any:
    """(n,) int8: at least one citation, all of them support, and the answer is covered."""

    def make() -> Any:
        given = cited(inputs)
        some = np.where(given.counts > 0, YES, NO)
        return all_of(some, every(given.offsets, supports(inputs)), covered(inputs))

    return inputs.once("answer supported", make)


def can_be_checked(inputs: Inputs) -> bool:
    """Whether the run records citations, and the suite has texts and labels to check them by."""
    if not inputs.has_trace("citations") or inputs.shared.chunks is None:
        return False
    if inputs.evidence is None or not inputs.shared.chunks.has("text"):
        return False
    given = cited(inputs)
    recorded = bool(inputs.trace_lists("citations").present.any())
    return recorded and not (len(given) and bool((supports(inputs) == UNKNOWN).all()))
