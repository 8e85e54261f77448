"""Expected states against found ones: who answered, abstained, escalated or closed, and when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore import schema
from ragcore.errors import UsageError
from ragcore.measures.endings import ending
from ragcore.results import RunScores
from ragcore_kernels.layout import I64

STATES = schema.EXPECTED_STATES
FOUND = (*STATES, "invalid", "error", "not recorded", "not run")
"""Columns: the five states; a word that is none of them; a trace that broke; one without a state;
a case without a trace.
"""
CONFUSION = pa.schema(
    [("run", pa.string()), ("expected", pa.string()), ("found", pa.string()), ("n", pa.int64())]
)
"""One row = run x expected state x found state: so many traces."""


@dataclass(frozen=True)
class Confusion:
    """One run's traces by expected and found state.

    Attributes
    ----------
    run : its name.
    of : ``final`` or ``proposed``.
    counts : (5, 9), traces by expected state (`STATES`) and found one (`FOUND`).
    unlabelled, disputed : traces outside: of cases that expect no state, or whose labels are not
        final.
    """

    run: str
    of: str
    counts: I64
    unlabelled: int
    disputed: int

    @property
    def n(self) -> int:
        """Traces in the table."""
        return int(self.counts.sum())

    @property
    def right(self) -> int:
        """Traces in the expected state."""
        return int(np.trace(self.counts[:, : len(STATES)]))

    def rows(self) -> list[dict[str, Any]]:
        """Rows of `CONFUSION`, every pair of states, zeros too."""
        return [
            {"run": self.run, "expected": wanted, "found": found, "n": int(self.counts[i, j])}
            for i, wanted in enumerate(STATES)
            for j, found in enumerate(FOUND)
        ]

    def text(self) -> str:
        """The table for people: a row for each expected state that occurs."""
        from ragcore.report.table import aligned

        shown = [
            j for j in range(len(FOUND)) if j < len(STATES) or self.counts[:, j].any()
        ]  # fmt: skip
        head = ["expected \\ found", *(FOUND[j] for j in shown), "right"]
        body = []
        for i, wanted in enumerate(STATES):
            total = int(self.counts[i].sum())
            if total:
                cells = [str(int(self.counts[i, j])) for j in shown]
                body.append([wanted, *cells, f"{int(self.counts[i, i])}/{total}"])
        lines = [f"{self.run}: {self.of} states, {self.right}/{self.n} traces as expected"]
        lines += aligned(head, body) if body else []
        for count, what in (
            (self.unlabelled, "of cases that expect no state"),
            (self.disputed, "of cases whose labels are not final"),
        ):
            if count:
                lines.append(f"{count} traces {what}: not counted")
        return "\n".join(line.rstrip() for line in lines)


def confusion_of(run: RunScores, of: str = "final") -> Confusion:
    """Expected against found states of one run, trace by trace.

    Raises
    ------
    UsageError
        If the run was scored without any measure of traces, has no such states, or its suite
        expects none.
    """
    if of not in ("final", "proposed"):
        raise UsageError(f"of={of!r}", "'final' or 'proposed'")
    inputs = run.inputs
    if inputs is None:
        raise UsageError(
            f"run {run.name!r} was scored by its rankings alone",
            "score a measure of traces too, such as generation.state",
        )
    end, wanted = ending(inputs, of), inputs.case_coded("expected_state", STATES)
    if end is None or not inputs.has_case("expected_state"):
        what = f"no {of} state" if end is None else "its suite expects no states"
        raise UsageError(f"run {run.name!r}: {what}", "columns final or proposed, expected_state")
    found = np.where(end.code >= 0, end.code, FOUND.index("not recorded"))
    found = np.where(inputs.failed & (end.code < 0), FOUND.index("error"), found)
    found = np.where(end.invalid, FOUND.index("invalid"), found)
    found = np.where(inputs.absent, FOUND.index("not run"), found)
    disputed = inputs.status == schema.DISPUTED
    bare = (wanted < 0) & ~disputed
    use = ~disputed & ~bare
    counts = np.zeros((len(STATES), len(FOUND)), np.int64)
    np.add.at(counts, (wanted[use], found[use]), 1)
    return Confusion(run.name, of, counts, int(bare.sum()), int(disputed.sum()))


def confusion_table(runs: list[RunScores], of: str = "final") -> pa.Table:
    """`CONFUSION` of every run.

    Raises
    ------
    UsageError
        As `confusion_of`.
    """
    rows = [row for run in runs for row in confusion_of(run, of).rows()]
    return pa.Table.from_pylist(rows, schema=CONFUSION)


def confusion_text(runs: list[RunScores], of: str = "final") -> str:
    """The tables of all runs for people.

    Raises
    ------
    UsageError
        As `confusion_of`.
    """
    return "\n\n".join(confusion_of(run, of).text() for run in runs)
