"""Whether a suite may be run at all: its labels hold, the splits that it needs are there."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ragcore.catalogue.entries import Entry
from ragcore.errors import InputError
from ragcore.measures.inputs import Shared
from ragcore.suites import Suite

IN_DOMAIN = "in-domain"
TUNED, TESTED = "validation", "test"


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
