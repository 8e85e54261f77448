"""What a diagnosis of one run rests on: where every labelled item stands in every trace."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ragcore import schema
from ragcore.diagnosis.corpus import held_by_corpus
from ragcore.evidence import Evidence
from ragcore.lists import Lists
from ragcore.measures.inputs import Inputs
from ragcore.measures.outcome_values import said, same, value_of
from ragcore.measures.packed_spans import intact_items
from ragcore.measures.reached import items_of, places
from ragcore.measures.shown import refused
from ragcore.measures.surfaced import shown_lists
from ragcore.results import RunScores
from ragcore_kernels.layout import I64

NOT_PACKED, CUT, WHOLE = range(3)
"""What is left of an item in the context: no unit of it; one, but not all of the item; all."""
RERANKED = "rerank"
"""A stage whose name begins like this orders candidates; it finds none."""


class Facts:
    """Items of evidence and outcomes of every ranking of a run.

    Flat arrays run over the items of each ranking's case, as `measures.reached.items_of`.

    Parameters
    ----------
    run : scored with at least one layered measure.
    """

    def __init__(self, run: RunScores) -> None:
        assert run.inputs is not None
        self.run = run
        self.inputs: Inputs = run.inputs
        self.n = self.inputs.n

    @cached_property
    def evidence(self) -> Evidence | None:
        """The suite's evidence."""
        return self.inputs.evidence

    @cached_property
    def owner(self) -> I64:
        """(n_items,), the ranking of each item."""
        if self.evidence is None:
            return np.zeros(0, np.int64)
        offsets = items_of(self.inputs, self.evidence).offsets
        return np.repeat(np.arange(self.n), np.diff(offsets))

    @cached_property
    def at(self) -> I64:
        """(n_items,), the item of `Evidence` behind each."""
        if self.evidence is None:
            return np.zeros(0, np.int64)
        return items_of(self.inputs, self.evidence).at

    @cached_property
    def required(self) -> Any:
        """(n_items,) bool: what an answer cannot do without, in the snapshot or not."""
        if self.evidence is None:
            return np.zeros(0, np.bool_)
        return self.evidence.needed[self.at]

    def any(self, flags: Any) -> Any:
        """(n,) bool: whether any item of a ranking is flagged."""
        return np.bincount(self.owner[flags], minlength=self.n) > 0

    # Where items stand ----------------------------------------------------------------------

    @cached_property
    def held(self) -> Any:
        """(n_items,) int8: `corpus.HELD`, `LACKING` or `LOST`."""
        if self.evidence is None:
            return np.zeros(0, np.int8)
        labels = held_by_corpus(self.inputs, self.evidence)
        return labels[self.at]

    def _place(self, name: str) -> I64:
        """Place of each item in one recorded list, from 0; -1 for nowhere."""
        found = shown_lists(self.inputs).get(name)
        if found is None or self.evidence is None:
            return np.full(self.at.size, -1, np.int64)
        return places(self.inputs, self.evidence, f"shown {name}", found.lists, found.units)

    @cached_property
    def found_in(self) -> list[str]:
        """The stages that make the candidates: `fused`, else all but reranked ones."""
        stages = self.inputs.stages
        if "fused" in stages:
            return ["fused"]
        return [name for name in stages if not name.startswith(RERANKED)]

    @cached_property
    def candidate(self) -> Any:
        """(n_items,) bool: among the first candidate_k of such a stage, or in the ranking."""
        depth = whole_number(self.run.manifest.get("candidate_k"))
        out = self._place("ranked") >= 0
        for name in self.found_in:
            place = self._place(f"stage {name}")
            out |= (place >= 0) & ((place < depth) | (depth == 0))
        return out

    @cached_property
    def searched(self) -> Any:
        """(n,) bool: rankings with a recorded list of candidates."""
        lists = shown_lists(self.inputs)
        out = np.zeros(self.n, np.bool_)
        for name in ("ranked", *(f"stage {one}" for one in self.found_in)):
            if name in lists:
                out |= lists[name].present
        return out

    @cached_property
    def ranked(self) -> Any:
        """(n,) bool: rankings with a recorded final order."""
        lists = shown_lists(self.inputs)
        return lists["ranked"].present if "ranked" in lists else np.zeros(self.n, np.bool_)

    @cached_property
    def selected(self) -> Any:
        """(n_items,) bool: among the first context_k of the final ranking."""
        depth = whole_number(self.run.manifest.get("context_k"))
        place = self._place("ranked")
        return (place >= 0) & ((place < depth) | (depth == 0))

    @cached_property
    def packed(self) -> I64:
        """(n_items,), `NOT_PACKED`, `CUT` or `WHOLE`: what is left of each item in the context."""
        out = np.full(self.at.size, NOT_PACKED, np.int64)
        if self.evidence is None or not self.inputs.has_trace("context"):
            return out
        usable = ~refused(self.inputs)[self.owner]
        out[(self._place("context") >= 0) & usable] = CUT
        out[intact_items(self.inputs, self.evidence)] = WHOLE
        return out

    @cached_property
    def context(self) -> Lists:
        """What was packed."""
        return self.inputs.trace_lists("context")

    @cached_property
    def refused(self) -> Any:
        """(n,) bool: traces whose context was refused, or that had no evidence to pack."""
        return self.inputs.trace_coded("context_state", schema.CONTEXT_STATES) > 0

    @cached_property
    def packing(self) -> Any:
        """(n,) bool: traces that record what was packed, be it nothing."""
        return self.context.present | self.refused

    # Outcomes -------------------------------------------------------------------------------

    def words(self, column: str) -> list[str | None]:
        """State of every trace: proposed, or final."""
        found = said(self.inputs, column)
        return [None] * self.n if found is None else found.to_pylist()

    @cached_property
    def state_right(self) -> tuple[Any, Any]:
        """Whether the proposed state (or final one) is the expected one; where both are known."""
        return self._right("state")

    @cached_property
    def value_right(self) -> tuple[Any, Any]:
        """Whether state and value of the proposal are the expected ones; where both are known."""
        return self._right("value")

    @cached_property
    def source(self) -> str:
        """The column that proposals stand in: `proposed`, else `final`."""
        return "proposed" if self.inputs.part("proposed", "state") is not None else "final"

    def _right(self, what: str) -> tuple[Any, Any]:
        state, wanted = said(self.inputs, self.source), self.inputs.case("expected_state")
        if state is None or wanted is None:
            return np.zeros(self.n, np.bool_), np.zeros(self.n, np.bool_)
        right = same(state, wanted, self.n)
        if what == "value" and self.inputs.has_case("expected_value"):
            given = value_of(self.inputs, self.source)
            right &= same(given, self.inputs.case("expected_value"), self.n)
        return right, np.asarray(state.is_valid()) & np.asarray(wanted.is_valid())


def whole_number(value: Any) -> int:
    """A depth from a manifest; 0 where it has none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
