"""What a layered measure may read: the columns of a run, its suite and its verdicts, by ranking."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from ragcore import schema
from ragcore.columns import Rows
from ragcore.evidence import Evidence, evidence_of
from ragcore.formats import arrow
from ragcore.formats.compute import pc
from ragcore.judgments import Judgments
from ragcore.lists import (
    Lists,
    coded,
    entry_of,
    flags,
    integers,
    joined,
    keys_of,
    lists_of,
    no_lists,
    taken,
)
from ragcore.measures.rankings import Labels, Rankings
from ragcore.nested import LIST_NAMES
from ragcore.suites import Suite
from ragcore.units import Chunks, Vocabulary, chunks_of
from ragcore.verdicts import Matching, Verdicts
from ragcore_kernels.layout import F64, I64

T = TypeVar("T")

NO_COLUMN, NO_LABEL, NO_VERDICT = "no-column", "no-label", "no-verdict"
NOT_REQUIRED, NOT_RECORDED, ERROR, LABEL = (
    "nothing-required", "not-recorded", "error", "label-not-final",
)  # fmt: skip
"""Reasons for states, as `scores` tells them."""
SERIAL = 50_000
"""Rankings; below this a second thread costs more than it brings."""


@dataclass
class Column:
    """One measure on every ranking.

    Attributes
    ----------
    over, under : (n,), numerator and denominator; the value is their quotient. With a denominator
        of 0 a ranking that was `ok` is `na`.
    states : (n,) int8, `schema.STATES`.
    why : by state, the word that tells the reason.
    rungs : (n,) int8 or None, lowest rung of the verdicts behind a value, -1 for none.
    order : (n,) or None, what an area under a curve orders the rankings by: a confidence.
    sums : whether numerator and denominator enter sums over traces whatever the state: a cost
        without an answer has no value, and is spent all the same. Neither counts where one is NaN.
    """

    over: F64
    under: F64
    states: Any
    why: dict[int, str] = field(default_factory=dict)
    rungs: Any = None
    order: Any = None
    sums: bool = False

    def settled(self) -> Column:
        """The same with 0/0 as `na` and nothing but NaN where the state is not ok."""
        self.states = np.where(
            (self.states == schema.OK) & ~(self.under > 0), np.int8(schema.NA), self.states
        ).astype(np.int8)
        if self.sums:
            return self
        off = self.states != schema.OK
        self.over = np.where(off, np.nan, self.over)
        self.under = np.where(off, np.nan, self.under)
        return self


class Shared:
    """What all runs of one scoring share: the suite's chunks and evidence, codes, judgments.

    Parameters
    ----------
    suite : None with qrels.
    judgments : None where none were given.
    """

    def __init__(self, suite: Suite | None, judgments: Judgments | None) -> None:
        self.suite, self.judgments = suite, judgments

    @cached_property
    def cases(self) -> pa.Table | None:
        """The suite's cases."""
        return self.suite.cases if self.suite is not None else None

    @cached_property
    def chunks(self) -> Chunks | None:
        """The suite's chunks, read when first asked for."""
        return chunks_of(self.suite.path) if self.suite is not None else None

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """Codes of chunk ids: rows of `chunks` first."""
        return Vocabulary(self.chunks)

    @cached_property
    def evidence(self) -> Evidence | None:
        """The evidence of every row of the cases, brought to chunks."""
        if self.cases is None:
            return None
        from ragcore.placing import ratio_of

        assert self.suite is not None
        ratio = ratio_of(self.suite.settings, str(self.suite.path / "suite.toml"))
        where = str(self.suite.path / "cases.arrow") if self.suite is not None else "cases"
        return evidence_of(self.cases, self.chunks, self.vocabulary, ratio, where)


@dataclass
class Inputs:
    """One run as the layered measures see it: everything by ranking, (n,) or lists of n.

    Attributes
    ----------
    shared : what all runs share.
    traces : the run's table, None where it is a plain ranking.
    row_of, label_of : (n,), row of each ranking in the traces and in the suite's cases, or -1.
    status : (n,) int8, `schema.OK`, or `DISPUTED` where the labels are not final.
    match : how verdicts find rankings.
    manifest : what the run says of itself.
    threads : workers; no value depends on them.
    counts, warnings : what measures noticed: counted by name, and in sentences for people.
    """

    shared: Shared
    traces: pa.Table | None
    row_of: I64
    label_of: I64
    status: Any
    match: Matching
    manifest: dict[str, Any]
    threads: int = 1
    counts: dict[str, int] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    _made: dict[str, Any] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """How many rankings."""
        return self.row_of.size

    @property
    def absent(self) -> Any:
        """(n,), cases that the run has no trace of."""
        return self.row_of < 0

    @property
    def settings(self) -> dict[str, Any]:
        """The suite's own settings."""
        return self.shared.suite.settings if self.shared.suite is not None else {}

    @cached_property
    def verdicts(self) -> Verdicts:
        """The verdicts on this run, resolved."""
        declared = str(self.manifest.get("judge") or self.settings.get("judge") or "")
        return Verdicts(self.shared.judgments, self.match, self.shared.vocabulary, declared)

    # Columns -----------------------------------------------------------------------------------

    def has_trace(self, name: str) -> bool:
        """Whether the run has a column."""
        return self.traces is not None and name in self.traces.column_names

    def has_case(self, name: str) -> bool:
        """Whether the suite's cases have a column."""
        return self.shared.cases is not None and name in self.shared.cases.column_names

    def trace(self, name: str) -> pa.Array | None:
        """A column of the run, null for absent traces; None without it."""
        return self.once(f"trace {name}", lambda: self._taken(self.traces, name, self.row_of))

    def case(self, name: str) -> pa.Array | None:
        """A column of the cases, null for rankings of no case; None without it."""
        cases = self.shared.cases
        return self.once(f"case {name}", lambda: self._taken(cases, name, self.label_of))

    def part(self, column: str, name: str) -> pa.Array | None:
        """One field of a struct column of the run, null where either is; None without it."""
        whole = self.trace(column)
        if whole is None or not pa.types.is_struct(whole.type):
            return None
        if whole.type.get_field_index(name) < 0:
            return None
        return pc.struct_field(whole, name)

    def trace_lists(self, name: str) -> Lists:
        """A list column of the run; nothing is present without it."""
        return self.once(f"lists {name}", lambda: self._lists(self.traces, name, self.row_of))

    def case_lists(self, name: str) -> Lists:
        """A list column of the cases; nothing is present without it."""
        return self.once(
            f"case lists {name}", lambda: self._lists(self.shared.cases, name, self.label_of)
        )

    def stage(self, name: str) -> Lists:
        """The recorded list of one stage (``bm25``, ``fused``, ...); absent where not recorded."""
        if not self.has_trace("stages") or self.traces is None:
            return no_lists(self.n)
        column = self.traces["stages"]
        return self.once(f"stage {name}", lambda: entry_of(column, name, self.row_of))

    @cached_property
    def stages(self) -> list[str]:
        """Names of the recorded stages, in order of first appearance."""
        if self.traces is None or not self.has_trace("stages"):
            return []
        return keys_of(self.traces["stages"])

    def units(self, lists: Lists, name: str = "id") -> I64:
        """Codes of the chunk ids in a list (their field `name`, or the items themselves)."""
        found = lists.field(name) if pa.types.is_struct(lists.items.type) else lists.items
        return self.shared.vocabulary.codes(found, len(lists.items))

    def trace_coded(self, name: str, names: tuple[str, ...]) -> I64:
        """A text column of the run as places in `names`: -1 for null, -2 for another word.

        Other words are counted and named.
        """

        def make() -> I64:
            found = self.trace(name)
            codes = coded(found, self.n, names)
            odd = np.flatnonzero(codes == -2)
            if odd.size and found is not None:
                what = f"{name} that is none of {', '.join(names)}"
                self.counts[what] = odd.size
                self.warnings.append(f"{odd.size} x {what}: {found[int(odd[0])].as_py()!r}")
            return codes

        return self.once(f"coded {name}", make)

    def case_coded(self, name: str, names: tuple[str, ...]) -> I64:
        """A text column of the cases as places in `names`: -1 for null, -2 for another word."""
        return coded(self.case(name), self.n, names)

    def case_days(self, name: str) -> I64:
        """A date column of the cases, in days since 1970; -1 where null."""
        found = self.case(name)
        if found is not None and not pa.types.is_null(found.type):
            found = found.cast(pa.date32()).cast(pa.int32())
        return integers(found, self.n)

    @property
    def lanes(self) -> int:
        """Threads to split kernels over rankings on: one for so few that a second costs more."""
        return self.threads if self.n > SERIAL else 1

    @cached_property
    def answerable(self) -> I64:
        """(n,), 1, 0, or -1 where the labels leave it open."""
        found = self.case("answerable")
        yes = flags(found, self.n).astype(np.int64)
        known = np.zeros(self.n, np.bool_) if found is None else np.asarray(found.is_valid())
        return np.where(known, yes, -1)

    @cached_property
    def langs(self) -> list[str | None]:
        """(n,), language of each ranking."""
        return list(self.match.lang) if self.match.lang is not None else [None] * self.n

    @cached_property
    def failed(self) -> Any:
        """(n,), traces that say `error`."""
        found = self.trace("error")
        return np.zeros(self.n, np.bool_) if found is None else np.asarray(found.is_valid())

    def states(self, recorded: Any) -> Any:
        """(n,) int8: ok where `recorded`; else failed if the trace says `error`, else missing.

        Labels that are not final make it disputed.
        """
        found = np.where(self.failed, np.int8(schema.FAILED), np.int8(schema.MISSING))
        found = np.where(recorded, np.int8(schema.OK), found)
        return np.where(self.status == schema.DISPUTED, self.status, found).astype(np.int8)

    def audit(self) -> tuple[dict[str, int], list[str]]:
        """What was noticed: counts by name, and sentences for people."""
        counts, sentences = dict(self.counts), list(dict.fromkeys(self.warnings))
        if "verdicts" in self.__dict__:  # only where a measure asked for them
            counts |= self.verdicts.audit()
            sentences += self.verdicts.sentences()
        return counts, sentences

    # Evidence ----------------------------------------------------------------------------------

    @property
    def evidence(self) -> Evidence | None:
        """Evidence by row of the cases (`label_of` leads there); None without any."""
        return self.shared.evidence

    def once(self, key: str, make: Callable[[], T]) -> T:
        """What `make` gives, worked out once and kept under `key`."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    def _taken(self, table: pa.Table | None, name: str, rows: I64) -> pa.Array | None:
        if table is None or name not in table.column_names:
            return None
        return taken(table[name], rows)

    def _lists(self, table: pa.Table | None, name: str, rows: I64) -> Lists:
        if table is None or name not in table.column_names:
            return no_lists(rows.size)
        return lists_of(table[name], rows)


def missing(inputs: Inputs, reason: str) -> Column:
    """A measure whose columns the run or the suite does not have at all: missing everywhere."""
    nan = np.full(inputs.n, np.nan)
    states = np.full(inputs.n, np.int8(schema.MISSING))
    return Column(nan, nan.copy(), states, {schema.MISSING: reason})


def inputs_of(
    shared: Shared, rows: Rows, rankings: Rankings, picked: I64, labels: Labels,
    manifest: dict[str, Any], threads: int,
) -> Inputs:  # fmt: skip
    """The rankings `picked` of a run as the layered measures see them."""
    label_of = rankings.label_of[picked]
    known = label_of >= 0
    status = np.zeros(picked.size, np.int8)
    status[known] = labels.status[label_of[known]]
    needed = np.zeros(picked.size, np.int8)
    cases = shared.cases
    ids, codes = pa.array([], pa.large_string()), np.zeros(0, np.int64)
    if cases is not None:
        ids, codes = joined(cases["case_id"]).cast(pa.large_string()), labels.case_of
        if "judge_required" in cases.column_names:
            rungs = coded(joined(cases["judge_required"]), len(cases), schema.RUNGS)
            needed[known] = np.maximum(rungs, 0)[label_of[known]]
    match = Matching(
        rows.name, ids, codes, rankings.case_of[picked], _picked(rankings.lang, picked),
        _picked(rankings.repeat, picked), needed,
    )  # fmt: skip
    traces = rows.traces
    name = arrow.find(traces, LIST_NAMES) if traces is not None else None
    if traces is not None and name not in (None, "ranked"):  # every measure knows it by one name
        traces = traces.rename_columns({name: "ranked"})
    return Inputs(
        shared, traces, rankings.row_of[picked], label_of, status, match, manifest, threads
    )


def _picked(values: list[Any] | None, rows: I64) -> list[Any] | None:
    if values is None or rows.size == len(values):  # all of them, in their order
        return values
    return [values[row] for row in rows.tolist()]
