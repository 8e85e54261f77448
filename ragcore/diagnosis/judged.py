"""What judges said of every trace: was the asker served, is anything disputed, did it change."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ragcore import schema
from ragcore.lists import Lists
from ragcore.measures.inputs import Inputs
from ragcore.verdicts import Cells
from ragcore_kernels import verdicts as kernel

NO, YES, OPEN, UNJUDGED = range(4)
"""Answer to a question about a trace; OPEN: disputed, failed, or settled on too low a rung."""
WORDS = ("no", "yes", "disputed", "not judged")


class Judged:
    """The verdicts on one run, trace by trace.

    Parameters
    ----------
    inputs : of the run.
    """

    def __init__(self, inputs: Inputs) -> None:
        self.inputs = inputs
        self.n = inputs.n

    @cached_property
    def claims(self) -> Lists:
        """Claims of the answers."""
        return self.inputs.trace_lists("claims")

    @cached_property
    def wanted(self) -> Lists:
        """Reference claims of the cases."""
        return self.inputs.case_lists("claims")

    @cached_property
    def entailed(self) -> Cells:
        """Whether the context supports each claim of the answer."""
        return self.inputs.verdicts.claims("entailed", self.claims.offsets)

    @cached_property
    def covered(self) -> Cells:
        """Whether the answer covers each reference claim."""
        return self.inputs.verdicts.claims("covered", self.wanted.offsets)

    @cached_property
    def cites(self) -> Cells:
        """Whether each cited unit supports each claim; claims x citations, most cells empty."""
        cited = self.inputs.trace_lists("citations")
        return self.inputs.verdicts.pairs(
            "cites", self.claims.offsets, cited.offsets, self.inputs.units(cited)
        )

    @cached_property
    def correct(self) -> Cells:
        """Whether the answer as a whole is correct; empty where verdicts are on single claims."""
        given = self.inputs.shared.judgments
        if given is not None and not self.inputs.verdicts.packs("correct"):
            about = given.relation == schema.RELATIONS.index("correct")
            if not (about & (given.claim >= 0)).any():
                return self.inputs.verdicts.whole("correct")
        none = np.zeros(0, np.int8)
        return Cells(np.zeros(self.n + 1, np.int64), none, none)

    @cached_property
    def every(self) -> tuple[Cells, ...]:
        """All cells that a replay of the evaluator may change."""
        return self.correct, self.covered, self.entailed, self.cites

    @cached_property
    def backed(self) -> Any:
        """(n,) int8: whether the context supports all claims of the answer, `NO` ... `UNJUDGED`."""
        return resolve(self.n, self.entailed)

    @cached_property
    def cited(self) -> Any:
        """(n,) int8: whether every judged citation supports its claim."""
        return resolve(self.n, self.cites, given=True)

    @cached_property
    def served(self) -> Any:
        """(n,) int8: whether the asker got what was needed.

        With reference claims: all are covered, all claims of the answer entailed, all judged
        citations hold. Without them: the answer is correct.
        """
        with_claims = resolve(self.n, self.covered, self.entailed, given=True)
        with_claims = _worst(with_claims, self.cited)
        covered = resolve(self.n, self.covered)
        with_claims = np.where(covered == UNJUDGED, covered, with_claims)
        return np.where(self.wanted.counts > 0, with_claims, resolve(self.n, self.correct))

    @cached_property
    def disputed(self) -> Any:
        """(n,) bool: traces with a verdict that is disputed or settled on too low a rung."""
        out = np.zeros(self.n, np.bool_)
        for cells in self.every:
            bad = np.isin(cells.verdict, (kernel.DISPUTED, kernel.LOW_RUNG))
            out |= np.bincount(_owner(cells)[bad], minlength=self.n) > 0
        return out

    @cached_property
    def judged(self) -> Any:
        """(n,) bool: traces with any verdict."""
        out = np.zeros(self.n, np.bool_)
        for cells in self.every:
            out |= np.bincount(_owner(cells)[cells.verdict != kernel.MISSING], minlength=self.n) > 0
        return out

    def said(self, ranking: int) -> list[list[int]]:
        """Every cell of one trace, relation by relation."""
        return [
            cells.verdict[cells.offsets[ranking] : cells.offsets[ranking + 1]].tolist()
            for cells in self.every
        ]


def _owner(cells: Cells) -> Any:
    return np.repeat(np.arange(cells.offsets.size - 1), np.diff(cells.offsets))


def _worst(left: Any, right: Any) -> Any:
    """No beats open beats yes; what is not judged says nothing."""
    out = np.where(left == UNJUDGED, right, left)
    both = (left != UNJUDGED) & (right != UNJUDGED)
    either = (left == OPEN) | (right == OPEN)
    out = np.where(both & either, OPEN, out)
    return np.where((left == NO) | (right == NO), NO, out).astype(np.int8)


def resolve(n: int, *many: Cells, given: bool = False) -> Any:
    """(n,) int8: `YES` where all cells of a trace are yes.

    Parameters
    ----------
    many : cells of each trace.
    given : look only at cells with a verdict; else one without makes `YES` `UNJUDGED`.

    Returns
    -------
    `NO` if any cell is no, partial or contradicts; else `OPEN` if any is disputed, failed or on
    too low a rung; else `UNJUDGED` if nothing was said, or not all and not `given`.
    """
    bad, open_, yes, none = (np.zeros(n, np.bool_) for _ in range(4))
    for cells in many:
        owner = _owner(cells)
        verdict = cells.verdict

        def of(flags: Any, owner: Any = owner) -> Any:
            return np.bincount(owner[flags], minlength=n) > 0

        bad |= of(np.isin(verdict, (kernel.NO, kernel.PARTIAL, kernel.CONTRADICTS)))
        open_ |= of(np.isin(verdict, (kernel.DISPUTED, kernel.FAILED, kernel.LOW_RUNG)))
        yes |= of(verdict == kernel.YES)
        none |= of(verdict == kernel.MISSING)
    out = np.where(yes, np.int8(YES), np.int8(UNJUDGED))
    if not given:
        out = np.where(none, np.int8(UNJUDGED), out)
    out = np.where(open_, np.int8(OPEN), out)
    return np.where(bad, np.int8(NO), out).astype(np.int8)
