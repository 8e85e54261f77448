"""Values of what was selected against its scope: valid, authoritative, permitted, not deleted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore import schema
from ragcore.errors import InputError
from ragcore.formats import arrow
from ragcore.formats.compute import pc
from ragcore.lists import integers, own, plain
from ragcore.measures.definitions import Measure
from ragcore.measures.inputs import NO_COLUMN, NO_LABEL, Column, Inputs, missing
from ragcore.measures.permitted import may_see
from ragcore.measures.selected import (
    Shown,
    distinct,
    everywhere,
    in_parts,
    known,
    per_ranking,
    selected,
    shown,
)  # fmt: skip
from ragcore.units import FOREVER, Chunks
from ragcore_kernels import shown as kernel
from ragcore_kernels.layout import I64

_EMPTY, _UNDECLARED = "nothing-selected", "nothing-selected-or-declared"


def _given(inputs: Inputs) -> tuple[Shown, Chunks] | None:
    """What was selected and the suite's chunks; units that these lack are counted."""
    one, chunks = selected(inputs), inputs.shared.chunks
    if one is None or chunks is None:
        return None
    foreign = int((~known(one, inputs.shared.vocabulary)).sum())
    if foreign:
        inputs.counts["selected units that the suite does not have"] = foreign
        inputs.warnings.append(f"{foreign} selected unit(s) that the suite's chunks do not have")
    return one, chunks


def _passing(inputs: Inputs, one: Shown, passes: Any, reason: str = _EMPTY) -> Column:
    """Units that pass, over units."""
    over = per_ranking(one, passes & known(one, inputs.shared.vocabulary))
    under = one.lists.counts.astype(np.float64)
    return Column(over.astype(np.float64), under, inputs.states(one.present), {schema.NA: reason})


def _at(values: Any, one: Shown, chunks: Chunks, absent: int) -> I64:
    """Values of chunks for every unit of a list, `absent` for units that are none."""
    out = np.full(one.units.size, absent, np.int64)
    at = (one.units >= 0) & (one.units < len(chunks))
    out[at] = values[one.units[at]]
    return out


def freshness(inputs: Inputs, measure: Measure) -> Column:
    """Units in force on the case's day and about its topic."""
    given = _given(inputs)
    day, topic = inputs.case("as_of"), inputs.case("topic")
    if given is None or (day is None and topic is None):
        return missing(inputs, NO_COLUMN)
    one, chunks = given
    dated = chunks.has("valid_from") or chunks.has("valid_until")
    if not ((dated and day is not None) or (chunks.has("topic") and topic is not None)):
        return missing(inputs, NO_COLUMN)
    owners = one.lists.owners
    passes = np.ones(one.units.size, np.bool_)
    scoped = np.zeros(inputs.n, np.bool_)
    if day is not None and dated:
        asked = np.asarray(day.is_valid())
        days = inputs.case_days("as_of")[owners]
        first = _at(chunks.days("valid_from", -FOREVER), one, chunks, FOREVER)
        last = _at(chunks.days("valid_until", FOREVER), one, chunks, -FOREVER)
        passes &= ((first <= days) & (days < last)) | ~asked[owners]
        scoped |= asked
    if topic is not None and chunks.has("topic"):
        asked = np.asarray(topic.is_valid())
        wanted, have = _coded(topic, chunks.column("topic"))
        passes &= (_at(have, one, chunks, -2) == wanted[owners]) | ~asked[owners]
        scoped |= asked
    found = _passing(inputs, one, passes)
    found.states[~scoped & (found.states == schema.OK)] = schema.MISSING
    found.why[schema.MISSING] = NO_LABEL
    return found


def _coded(left: pa.Array, right: pa.Array | None) -> tuple[I64, I64]:
    """Two columns of words in one code: -1 for a word of `left` that `right` lacks, -2 for null."""
    assert right is not None
    words = plain(right).cast(pa.large_string())
    names = words.unique().drop_null()
    ours = integers(pc.index_in(plain(left).cast(pa.large_string()), value_set=names), len(left))
    theirs = integers(pc.index_in(words, value_set=names), len(right), -2)
    return ours, theirs


def _allowed(inputs: Inputs, names: pa.Array) -> tuple[I64, I64] | None:
    """Words in `names` that each ranking allows, as offsets and codes; None if nothing says."""
    if inputs.has_case("authorities"):
        lists = inputs.case_lists("authorities")
        words = lists.items.cast(pa.large_string())
        return lists.offsets, integers(pc.index_in(words, value_set=names), len(words))
    one = inputs.case("authority")
    if one is not None:
        said = np.asarray(one.is_valid())
        codes = integers(pc.index_in(one.cast(pa.large_string()), value_set=names), len(one))
        return np.concatenate([[0], np.cumsum(said)]).astype(np.int64), codes[said]
    for where, value in (
        ("the manifest", inputs.manifest.get("authorities")),
        ("suite.toml", inputs.settings.get("authorities")),
    ):
        if value is None:
            continue
        if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
            raise InputError(where, f"authorities = {value!r}", "a list of names")
        words = arrow.texts(value).cast(pa.large_string())
        codes = integers(pc.index_in(words, value_set=names), len(value))
        return np.arange(inputs.n + 1) * codes.size, np.tile(codes, inputs.n)
    return None


def authority(inputs: Inputs, measure: Measure) -> Column:
    """Units of an authority that is allowed."""
    given = _given(inputs)
    if given is None or not given[1].has("authority"):
        return missing(inputs, NO_COLUMN)
    one, chunks = given
    column = plain(chunks.column("authority")).cast(pa.large_string())
    names = column.unique().drop_null()
    allowed = _allowed(inputs, names)
    if allowed is None:
        found = _passing(inputs, one, np.zeros(one.units.size, np.bool_), _UNDECLARED)
        found.under[:] = 0.0
        return found
    codes = own(integers(pc.index_in(column, value_set=names), len(column)))
    passes = np.zeros(one.units.size, np.int64)
    none, each = np.zeros(len(chunks), np.int64), np.arange(len(chunks) + 1, dtype=np.int64)
    offsets, words = own(allowed[0]), own(allowed[1])
    in_parts(
        inputs,
        lambda a, b: kernel.permitted(
            a, b, one.offsets, one.units, none, each, codes, offsets, words, passes
        ),
    )
    found = _passing(inputs, one, passes.astype(np.bool_), _UNDECLARED)
    found.under[np.diff(offsets) == 0] = 0.0
    return found


def permission(inputs: Inputs, measure: Measure) -> Column:
    """Units that are public, or that one of the case's principals may see."""
    given = _given(inputs)
    if given is None:
        return missing(inputs, NO_COLUMN)
    one, chunks = given
    if not chunks.has("acl"):
        return _passing(inputs, one, np.ones(one.units.size, np.bool_))
    if not inputs.has_case("principals"):
        return missing(inputs, NO_COLUMN)
    asking = inputs.case_lists("principals")
    acl = chunks.lists("acl")
    seen = may_see(acl, asking, one.offsets, one.units, inputs.lanes)
    found = _passing(inputs, one, seen)
    # Who asks is not said: what is public may be seen all the same, of the rest nobody knows.
    unknown = per_ranking(one, ~seen & known(one, inputs.shared.vocabulary)) > 0
    found.states[unknown & ~asking.present & (found.states == schema.OK)] = schema.MISSING
    found.why[schema.MISSING] = NO_LABEL
    return found


def deleted(inputs: Inputs, measure: Measure) -> Column:
    """Distinct deleted units anywhere in a trace."""
    chunks = inputs.shared.chunks
    lists = everywhere(inputs)
    if chunks is None or "deleted" not in chunks.table.column_names or not lists:
        return missing(inputs, NO_COLUMN)
    if inputs.has_trace("citations"):
        lists = [*lists, shown(inputs, "citations", inputs.trace_lists("citations"))]
    found: list[tuple[I64, I64]] = []
    recorded = np.zeros(inputs.n, np.bool_)
    for one in lists:
        at = known(one, inputs.shared.vocabulary)
        at[at] = chunks.deleted[one.units[at]]
        found.append((one.lists.owners[at], one.units[at]))
        recorded |= one.present
    count = distinct(inputs.n, found).astype(np.float64)
    return Column(count, np.ones(inputs.n), inputs.states(recorded))


VALUES: dict[str, Callable[[Inputs, Measure], Column]] = {
    "freshness.pass": freshness, "authority.pass": authority, "permission.pass": permission,
    "deleted.count": deleted,
}  # fmt: skip
"""How each of these measures is worked out."""
