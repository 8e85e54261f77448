"""Whether a suite may be run at all: its labels hold, the splits that it needs are there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from ragcore import schema
from ragcore.catalogue.entries import Entry, Scope
from ragcore.errors import InputError, UsageError
from ragcore.filters import ACL, VALID_AT, Filter
from ragcore.measures.inputs import Shared
from ragcore.suites import Suite
from ragcore.summary import is_nested

IN_DOMAIN = "in-domain"
TUNED, TESTED = "validation", "test"
_OF_RUNS = frozenset(("lang", "repeat", *schema.RUNS.names))


def wanted_splits(entry: Entry) -> list[str]:
    """Splits that a suite must have: those it names; of one that sets defaults, two."""
    named = entry.settings.get("splits")
    if named is not None:
        return list(named)
    return [TUNED, TESTED] if entry.kind.startswith(IN_DOMAIN) else []


def splits_of(suite: Suite) -> Counter[str]:
    """How many cases each split has, "" for those without; a case counts once."""
    names = suite.cases["case_id"].to_pylist()
    if "split" not in suite.cases.column_names:
        return Counter({"": len(set(names))})
    by_case = dict(zip(names, suite.cases["split"].to_pylist(), strict=True))
    return Counter(str(value or "") for value in by_case.values())


def stale_label(one: dict[str, Any]) -> str:
    """A label that does not hold, in words; `one` is of `Evidence.stale_items`."""
    lang = "" if one["lang"] is None else f" {one['lang']}"
    return f"{one['case_id']}{lang}: {one['why']} {str(one['quote'])[:40]!r} in {one['doc_id']}"


def refuse(entry: Entry, suite: Suite) -> None:
    """Refuse a suite whose figures would not mean what they say, before anything is searched.

    Raises
    ------
    InputError
        Naming the first label whose quote is gone, or the split that no case has.
    """
    where = suite.path / "cases.arrow"
    found = splits_of(suite)
    gone = [split for split in wanted_splits(entry) if not found[split]]
    if gone:
        there = ", ".join(f"{n} {split or 'without a split'}" for split, n in found.items())
        raise InputError(
            where, f"no case of split {' or '.join(gone)} ({there})",
            f"cases of {' and '.join(wanted_splits(entry))}",
            "what is tuned and tested on the same cases proves nothing",
        )  # fmt: skip
    evidence = Shared(suite, None).evidence
    if evidence is not None and evidence.stale.any():
        stale = evidence.stale_items(suite.cases)
        n = len(evidence.lists.items)
        raise InputError(
            where, f"{len(stale)} of {n} labels do not hold, first {stale_label(stale[0])}",
            "quotes that the documents have",
            f"`ragcore suite check {entry.name}` names them; mend labels or texts. `ragcore score` "
            "takes runs of such a suite, and counts these labels as stale",
        )  # fmt: skip


def refuse_columns(
    entry: Entry, suite: Suite, scopes: Sequence[Scope], by: Sequence[str] = ()
) -> None:
    """Refuse filters, questions and slices by columns that are not there, before any search.

    Parameters
    ----------
    by : columns that will be sliced by; those of runs are let through.

    Raises
    ------
    InputError
        Naming the first column that neither cases nor chunks have, or that is none of texts.
    """
    cases = suite.cases.schema
    for scope in scopes:
        if scope.question:
            kinds = [cases.field(name).type for name in cases.names if name == scope.question]
            if not kinds or not _is_text(kinds[0]):
                raise InputError(
                    entry.toml, f"scope {scope.name!r} asks the column {scope.question!r}",
                    "a column of texts of its cases",
                )  # fmt: skip
    flat = [one.name for one in cases if not is_nested(one.type)]
    if by and "slices" in cases.names:
        maps = suite.cases["slices"].to_pylist()
        flat += sorted({str(key) for one in maps for key, _ in one or ()})
    for name in by:
        if name not in flat and name not in _OF_RUNS:
            raise UsageError(
                f"no column {name!r} of {entry.name} to slice by", f"it has {', '.join(flat)}"
            )
    path = suite.path / "chunks.arrow"
    if not scopes or not path.is_file():
        return
    chunks = set(pa.ipc.open_file(pa.memory_map(str(path))).schema.names)
    for one in {text: Filter.parse(text) for scope in scopes for text in scope.filters}.values():
        needs = {VALID_AT: {"valid_from", "valid_until"}}.get(one.column, {one.column})
        own = {VALID_AT: "as_of", ACL: "principals"}.get(one.column, one.column)
        where = "" if needs & chunks else "chunks"
        if not where and one.value is None and own not in cases.names:
            where = "cases"
        if where:
            raise InputError(
                entry.toml, f"filter {str(one)!r}: its {where} have no such column",
                f"a column {own if where == 'cases' else ' or '.join(sorted(needs))}",
            )  # fmt: skip


def _is_text(kind: pa.DataType) -> bool:
    own = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.types.is_string(own) or pa.types.is_large_string(own)
