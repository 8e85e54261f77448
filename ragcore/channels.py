"""The lists that are fused: one a run, or one a stage of a run, and the cases that they share."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore.columns import CaseCodes, Rows
from ragcore.errors import InputError, UsageError
from ragcore.formats import arrow
from ragcore.loading import Loaded, load_runs
from ragcore.nested import LIST_NAMES, nested_rows
from ragcore_kernels import ids as kernel_ids
from ragcore_kernels.layout import I64
from ragcore_kernels.rows import SCORE_NONE


@dataclass
class Channel:
    """One list of every case.

    Attributes
    ----------
    name : of the run, or of the stage.
    rows : the documents.
    manifest, path : of the run that it comes from.
    stage : the stage that was chosen; "" = the final ranking.
    """

    name: str
    rows: Rows
    manifest: dict[str, Any]
    path: Any
    stage: str = ""

    @property
    def scored(self) -> bool:
        """Whether its documents have scores."""
        used = np.unique(self.rows.segments[self.rows.segments[:, 2] > 0, 0])
        return bool((self.rows.values[used, 0] != SCORE_NONE).all())


LACKS, HAS, UNRECORDED = range(3)
"""Of a case and a channel: no row; a list, perhaps empty; a row whose list is null."""


@dataclass
class Cases:
    """The cases of all channels, in order of their first appearance.

    Attributes
    ----------
    ids : bytes of the case ids.
    lang, repeat : of each case; None where no channel knows any.
    presence : (n_cases, n_channels), `LACKS`, `HAS` or `UNRECORDED`.
    segments, offsets : segments of all channels with pieces counted on from channel to channel;
        channel c of case q owns ``offsets[q * n_channels + c]`` to the next.
    rows : (n_cases,), documents of all channels together.
    """

    ids: list[bytes]
    lang: list[str | None] | None
    repeat: list[int] | None
    presence: Any
    segments: I64 = field(default_factory=lambda: np.empty((0, 3), np.int64))
    offsets: I64 = field(default_factory=lambda: np.zeros(1, np.int64))
    rows: I64 = field(default_factory=lambda: np.empty(0, np.int64))

    def name(self, q: int) -> str:
        """Case q for messages."""
        text = self.ids[q].decode("utf-8", "backslashreplace")
        if self.lang is not None and self.lang[q] is not None:
            text += f" ({self.lang[q]})"
        if self.repeat is not None and self.repeat[q]:
            text += f" repeat {self.repeat[q]}"
        return text


def open_channels(
    runs: Any, stages: Sequence[str], names: Sequence[str] | None, threads: int
) -> list[Channel]:
    """Read the runs, choose the stages.

    Parameters
    ----------
    runs : one source or several; see `loading.load_runs`.
    stages : none; one for every run; as many as runs, in their order; or several of one run.
    names : one a run, or one a stage of a single run; None = their own.

    Raises
    ------
    InputError, UsageError
        If a run cannot be read, has no such stage, or numbers do not match.
    """
    single = isinstance(runs, (str, PathLike, Mapping, pa.Table, pa.RecordBatch))
    sources = [runs] if single or hasattr(runs, "__arrow_c_stream__") else list(runs)
    if not sources:
        raise UsageError("no run given")
    loaded = [one for i, source in enumerate(sources) for one in load_runs(source, threads, "", i)]
    if stages and len(loaded) > 1 and len(stages) not in (1, len(loaded)):
        raise UsageError(
            f"{len(stages)} stages for {len(loaded)} runs",
            "say one stage, one for each run, or several of a single run",
        )
    if len(loaded) == 1 and len(stages) > 1:
        out = [_of_stage(loaded[0], stage, stage) for stage in stages]
    elif stages:
        chosen = list(stages) * (len(loaded) if len(stages) == 1 else 1)
        label = (lambda one, stage: stage) if len(loaded) == 1 else (lambda one, _: one.rows.name)
        out = [_of_stage(o, s, label(o, s)) for o, s in zip(loaded, chosen, strict=True)]
    else:
        out = [Channel(one.rows.name, one.rows, one.manifest, one.path) for one in loaded]
    if names is not None:
        if len(names) != len(out):
            raise UsageError(f"{len(names)} names for {len(out)} lists")
        for one, name in zip(out, names, strict=True):
            one.name = name
    taken: set[str] = set()
    for one in out:  # two files of one name must not become one stage
        name, number = one.name, 1
        while one.name in taken:
            number += 1
            one.name = f"{name}#{number}"
        taken.add(one.name)
    return out


def _of_stage(one: Loaded, stage: str, name: str) -> Channel:
    """A recorded stage of a run as a channel."""
    where, table = one.rows.where, one.rows.traces
    kind = table.schema.field("stages").type if table is not None and (
        "stages" in table.column_names) else None  # fmt: skip
    if table is None or kind is None or not pa.types.is_map(kind):
        raise InputError(
            where, "no column `stages`", f"a case batch that records the stage {stage!r}",
            "leave the stage out to fuse the final ranking",
        )  # fmt: skip
    known: set[str] = set()
    chunks = [_stage_lists(chunk, stage, known, where) for chunk in table["stages"].chunks]
    if stage not in known:
        listed = ", ".join(sorted(known)) or "none"
        raise InputError(where, f"no stage {stage!r}", f"one of the recorded stages: {listed}")
    kept = [n for n in table.column_names if n not in (*LIST_NAMES, "stages")]
    column = pa.chunked_array(chunks)
    rows = nested_rows(table.select(kept).append_column("ranked", column), where, name)
    return Channel(name, rows, one.manifest, one.path, stage)


def _stage_lists(chunk: pa.Array, stage: str, known: set[str], where: str) -> pa.Array:
    """The lists of one stage, null where a row does not have it; notes all names in `known`."""
    offsets = np.asarray(chunk.offsets).astype(np.int64)
    keys = chunk.keys
    if pa.types.is_dictionary(keys.type):
        keys = keys.cast(keys.type.value_type)
    names = keys.to_pylist()
    begin, end = int(offsets[0]), int(offsets[-1])
    known.update(names[begin:end])
    at = begin + np.flatnonzero([name == stage for name in names[begin:end]])
    owner = np.searchsorted(offsets, at, side="right") - 1
    if len(np.unique(owner)) < len(owner):
        raise InputError(where, f"stage {stage!r} twice in one row", "one list a stage")
    place = np.full(len(chunk), -1, np.int64)
    place[owner] = at
    gone = place < 0
    if chunk.null_count:
        gone |= np.asarray(chunk.is_null())
    bits = pa.py_buffer(np.packbits(~gone, bitorder="little"))
    indices = pa.Array.from_buffers(
        pa.int64(), len(place), [bits, pa.py_buffer(np.where(gone, 0, place))]
    )
    return chunk.items.take(indices)


def join(channels: Sequence[Channel]) -> Cases:
    """Bring the channels together by case, language and repeat.

    Raises
    ------
    InputError
        If a trace stands twice in a channel, or a channel without languages meets a case that
        others have in several.
    """
    codes = CaseCodes()
    found = [codes.add(c.rows.case_ids, c.rows.case_at) for c in channels]
    keys = [ctypes.string_at(int(a), int(n)) for a, n in codes.keys]
    tables = [channel.rows.traces for channel in channels]
    langs = [_column(t, "lang", c.rows.where) for t, c in zip(tables, channels, strict=True)]
    repeats = [_column(t, "repeat", c.rows.where) for t, c in zip(tables, channels, strict=True)]
    plain = not any(langs) and not any(repeats)
    if plain:
        index = found
        cases = Cases(keys, None, None, np.zeros((len(keys), len(channels)), np.int8))
    else:
        index, cases = _by_language(channels, keys, found, langs, repeats)
    n_channels, parts, owners, base = len(channels), [], [], 0
    for c, channel in enumerate(channels):
        rows = channel.rows
        if rows.traces is not None:
            _refuse_twice(channel, index[c], cases)
        cases.presence[index[c], c] = HAS
        cases.presence[index[c][rows.missing], c] = UNRECORDED
        shifted = rows.segments.copy()
        shifted[:, 0] += base
        base += len(rows.ids.table)
        parts.append(shifted)
        owner = index[c] if rows.trace_of is None else index[c][rows.trace_of]
        owners.append(owner * n_channels + c)
    segments, owner = np.concatenate(parts), np.concatenate(owners).astype(np.int64)
    order = np.empty(len(segments), np.int64)
    cases.offsets = np.zeros(len(cases.ids) * n_channels + 1, np.int64)
    kernel_ids.group(owner, cases.offsets, order)
    cases.segments = np.ascontiguousarray(segments[order])
    totals = np.concatenate([[0], np.cumsum(cases.segments[:, 2])])
    cases.rows = np.diff(totals[cases.offsets[::n_channels]]).astype(np.int64)
    return cases


def _refuse_twice(channel: Channel, index: I64, cases: Cases) -> None:
    counts = np.bincount(index, minlength=1)
    if counts.max(initial=0) > 1:
        twice = int(np.flatnonzero(counts > 1)[0])
        row = int(np.flatnonzero(index == twice)[1]) + 1
        raise InputError(
            channel.rows.where, f"case {cases.name(twice)!r} stands twice",
            "one row for each case, language and repeat",
            "number the repeats in the column `repeat`", row=row,
        )  # fmt: skip


def _column(table: pa.Table | None, name: str, where: str) -> list[Any]:
    """The languages or repeats of the traces; empty where there are none at all."""
    if table is None or name not in table.column_names:
        return []
    given = table.schema.field(name).type
    inner = given.value_type if pa.types.is_dictionary(given) else given
    words = pa.types.is_string(inner) or pa.types.is_large_string(inner) or (
        pa.types.is_string_view(inner))  # fmt: skip
    fits = words if name == "lang" else pa.types.is_integer(inner)
    wanted = "languages as strings" if name == "lang" else "repeats from 0 to 32767"
    if not (fits or pa.types.is_null(inner)):
        raise InputError(where, f"column {name!r} of type {given}", wanted)
    try:
        values = table[name].cast(pa.string() if name == "lang" else pa.int16()).to_pylist()
    except pa.ArrowInvalid as error:
        raise InputError(where, f"column {name!r}: {error}", wanted) from None
    if name == "repeat" and any(v is not None and v < 0 for v in values):
        raise InputError(where, "a negative repeat", wanted)
    return values if any(v is not None for v in values) else []


def _by_language(
    channels: Sequence[Channel],
    keys: list[bytes],
    found: list[I64],
    langs: list[list[Any]],
    repeats: list[list[Any]],
) -> tuple[list[I64], Cases]:
    """One case for each id, language and repeat; a row without a language has the id's only one."""
    known: dict[int, set[str]] = {}
    for each, own in zip(found, langs, strict=True):
        for code, lang in zip(each.tolist(), own or [None] * len(each), strict=True):
            known.setdefault(code, set()).update([lang] if lang is not None else [])
    number: dict[tuple[int, str | None, int], int] = {}
    index = []
    for channel, each, own, again in zip(channels, found, langs, repeats, strict=True):
        out = np.empty(len(each), np.int64)
        none = [None] * len(each)
        triples = zip(each.tolist(), own or none, again or none, strict=True)
        for i, (code, lang, repeat) in enumerate(triples):
            if lang is None and len(known[code]) > 1:
                name = keys[code].decode("utf-8", "backslashreplace")
                raise InputError(
                    channel.rows.where, f"case {name!r} without a language",
                    f"one of {', '.join(sorted(known[code]))}, in which other rows have it",
                    "write a case batch with the columns case_id, lang, ranked",
                )  # fmt: skip
            lang = lang if lang is not None else next(iter(known[code]), None)
            out[i] = number.setdefault((code, lang, repeat or 0), len(number))
        index.append(out)
    ids = [keys[code] for code, _, _ in number]
    lang = [lang for _, lang, _ in number] if any(known.values()) else None
    repeat = [repeat for _, _, repeat in number] if any(repeats) else None
    presence = np.zeros((len(ids), len(channels)), np.int8)
    return index, Cases(ids, lang, repeat, presence)


def id_column_of(ids: Sequence[bytes]) -> pa.Array:
    """Case ids as a column: strings, or binary where one is not UTF-8."""
    try:
        return arrow.texts([value.decode() for value in ids])
    except UnicodeDecodeError:
        offsets = np.zeros(len(ids) + 1, np.int32)
        np.cumsum([len(value) for value in ids], out=offsets[1:])
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(ids))]
        return pa.Array.from_buffers(pa.binary(), len(ids), buffers)


def is_binary(channel: Channel) -> bool:
    """Whether its ids come as bytes that nobody has said to be UTF-8."""
    kinds = {
        a.type.value_type if pa.types.is_dictionary(a.type) else a.type
        for a in channel.rows.ids.arrays
    }
    return any(
        pa.types.is_binary(k) or pa.types.is_large_binary(k) or k == pa.binary_view() for k in kinds
    )
