"""What `ragcore.score` gives: values, means, tables, and what did not join."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore import audits, provenance, schema, summary
from ragcore.aggregates import form_of
from ragcore.errors import UsageError
from ragcore.results import Audit, RunScores
from ragcore.suites import Suite


class Scores:
    """Scores of some runs against one set of judgements.

    Attributes
    ----------
    runs : one `RunScores` a run.
    suite : the suite, or None where judgements came from qrels.
    policy : the policies that shaped the numbers.
    threads : workers; no number depends on them.
    """

    def __init__(
        self,
        runs: list[RunScores],
        suite: Suite | None,
        policy: dict[str, str],
        pending: list[Any],
        inputs: list[str],
        threads: int,
    ) -> None:
        self.runs, self.suite, self.policy = runs, suite, policy
        self._pending, self._inputs, self.threads = pending, inputs, threads
        self._record: bytes | None = None
        self._audits: list[Audit] | None = None

    @property
    def measures(self) -> list[str]:
        """Names of the measures, as they were given."""
        return [one.text for one in self.runs[0].measures]

    @property
    def audits(self) -> list[Audit]:
        """What did not join, one a run; worked out when first asked for."""
        if self._audits is None:
            self._audits = [audits.audit(*given) for given in self._pending]
            self._pending = []  # from here on the runs themselves are free
            for run, audit in zip(self.runs, self._audits, strict=True):
                if self.suite is not None:
                    audit.counts["suite cases"] = self.suite.cases.num_rows
                if run.inputs is not None:
                    counts, sentences = run.inputs.audit()
                    audit.counts |= counts
                    audit.warnings += sentences
        return self._audits

    def _run(self, run: str | int | None) -> RunScores:
        return run_named(self.runs, run)

    def _measure(self, run: RunScores, measure: str) -> int:
        names = [one.text for one in run.measures]
        if measure not in names:
            raise UsageError(f"measure {measure!r} was not scored", f"scored: {', '.join(names)}")
        return names.index(measure)

    def mean(self, measure: str, run: str | int | None = None) -> float:
        """The aggregate over cases, as it is printed; NaN if no case has a value."""
        one = self._run(run)
        return self._mean(one, self._measure(one, measure))

    def _mean(self, run: RunScores, m: int) -> float:
        values = run.values[m]
        if form_of(run.measures[m].aggregate).gather is not None:
            return summary.case_values(run, m).aggregate()[0]
        if not run.single:
            values = summary.case_values(run, m).values
        elif run.states[m].any():
            values = values[run.states[m] == schema.OK]
        return summary.aggregate(run.measures[m].aggregate, values)[0]

    def means(self, run: str | int | None = None) -> dict[str, float]:
        """`mean` of every measure."""
        one = self._run(run)
        return {measure.text: self._mean(one, m) for m, measure in enumerate(one.measures)}

    def _rankings(self, run: RunScores, case: str) -> np.ndarray[Any, Any]:
        code = run.code_of.get(case, -1)
        if run.single:
            at = int(np.searchsorted(run.case_of, code))
            return np.arange(at, at + int(at < run.case_of.size and run.case_of[at] == code))
        return np.flatnonzero(run.case_of == code)

    def value(self, measure: str, case: str, run: str | int | None = None) -> float | None:
        """One case's value, the mean over its languages and repeats; None if it has none."""
        one = self._run(run)
        m = self._measure(one, measure)
        cell = summary.case_values(one, m, self._rankings(one, case))
        return float(cell.values[0]) if cell.values.size else None

    def state(self, measure: str, case: str, run: str | int | None = None) -> str | None:
        """One case's state, or None if it is not among the scored."""
        one = self._run(run)
        m = self._measure(one, measure)
        cell = summary.case_values(one, m, self._rankings(one, case))
        return next((state for state, count in cell.counts.items() if count), None)

    def per_case(self, measure: str, run: str | int | None = None) -> dict[str, float | None]:
        """Every scored case's value, in the judgements' order."""
        one = self._run(run)
        order = dict.fromkeys(one.case_names[c] for c in one.case_of.tolist())
        return {case: self.value(measure, case, run) for case in order}

    def table(self) -> pa.Table:
        """`schema.SCORES`: one row a run, ranking and measure."""
        return self.signed(pa.concat_tables([run.table() for run in self.runs]))

    def summary(
        self,
        by: Sequence[str] = (),
        level: float = 0.95,
        registered: frozenset[str] | None = None,
    ) -> pa.Table:
        """`schema.SUMMARY`: one row a run, measure and slice, with exact intervals.

        Parameters
        ----------
        by : columns to slice by, each on its own.
        level : of the intervals.
        registered : measures that were registered before; others are marked exploratory.
        """
        rows = self.rows(by, level, registered)
        return self.signed(pa.Table.from_pylist(rows, schema=schema.SUMMARY))

    def confusion(self, of: str = "final") -> pa.Table:
        """Expected against found states, `confusion.CONFUSION`: so many traces of each pair.

        Parameters
        ----------
        of : ``final`` or ``proposed``.

        Raises
        ------
        UsageError
            If no measure of traces was scored, or states are not there.
        """
        from ragcore.confusion import confusion_table

        return self.signed(confusion_table(self.runs, of))

    def signed(self, table: pa.Table) -> pa.Table:
        """`table` with the record of what it rests on in its schema metadata."""
        if self._record is None:
            self._record = provenance.record(self._inputs, self.policy, self.threads)
        return table.replace_schema_metadata({schema.PROVENANCE_KEY: self._record})

    def rows(
        self,
        by: Sequence[str] = (),
        level: float = 0.95,
        registered: frozenset[str] | None = None,
    ) -> list[dict[str, Any]]:
        """`summary` as plain rows."""
        return summary.summarise(self.runs, tuple(by), level, self.threads, registered)


def run_named(runs: Sequence[RunScores], run: str | int | None) -> RunScores:
    """A run by its name or place; None for the first.

    Raises
    ------
    UsageError
        If none has that name.
    """
    if run is None or isinstance(run, int):
        return runs[run or 0]
    found = next((one for one in runs if one.name == run), None)
    if found is None:
        raise UsageError(f"no run {run!r}", f"runs: {', '.join(r.name for r in runs)}")
    return found
