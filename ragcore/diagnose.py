"""The verb: runs, their replays and verdicts -> which layer failed, and how sure that is."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np

from ragcore import hard_gates, schema
from ragcore.confusion import Confusion, confusion_of
from ragcore.diagnosis import contracts, first, isolation, joint, operations
from ragcore.diagnosis.attribution import REPLAYS, Attribution, Interventions, attribute
from ragcore.diagnosis.certificate import Certificate, certify
from ragcore.diagnosis.facts import Facts
from ragcore.diagnosis.judged import NO, UNJUDGED, WORDS, YES, Judged
from ragcore.diagnosis.layers import layer_states, spelled
from ragcore.diagnosis.replays import Part, pair_up
from ragcore.errors import UsageError
from ragcore.lists import coded
from ragcore.results import RunScores
from ragcore.score import score
from ragcore.scores import Scores, run_named


def diagnose(
    runs: Any, *, suite: str | PathLike[str] | None = None, judgments: Any = None,
    outcome: str = "end_to_end", crossed: Sequence[str] = (), level: float = 0.95,
    **policies: Any,
) -> Diagnosis:  # fmt: skip
    """Say where the traces of runs fail.

    Parameters
    ----------
    runs : as `ragcore.score` takes them; replays (conditions oracle_context, frozen_context,
        frozen_output) and the conditions of an isolation among them.
    suite, judgments, policies : as for `ragcore.score`.
    outcome : measure of success in an isolation, from 0 to 1.
    crossed : names of four runs, g1r1, g1r2, g2r1, g2r2: two generators on two retrievers.
    level : of the intervals.

    Raises
    ------
    InputError, UsageError
        As `ragcore.score`; and if `crossed` names an unknown run, or not four.
    """
    also = [*first.MEASURES, outcome]
    scores = score(runs, suite=suite, judgments=judgments, measures=also, **policies)
    if scores.suite is None:
        raise UsageError("a diagnosis needs a suite", "say --suite DIR: qrels know no layers")
    for run in scores.runs:
        if run.traces is None:
            raise UsageError(
                f"{run.where} is a plain ranking: it records no context, answer or citation",
                "a diagnosis reads a case batch, one row a trace",
            )
    if crossed and len(crossed) != 4:
        raise UsageError(f"{len(crossed)} runs crossed", "four: G1R1,G1R2,G2R1,G2R2")
    return Diagnosis(scores, outcome, tuple(crossed), level)


@dataclass(frozen=True, slots=True)
class Trace:
    """What is said of one observed trace.

    Attributes
    ----------
    run, case, lang, repeat, fault : the trace, and the fault that was injected into it.
    first : first failing layer, of `diagnosis.first.FIRST`.
    layers : the eight states, as ``P P F N P P N P``.
    retrieval, assembly, generation, code : the joint states and their interpretation.
    served : whether the asker got what was needed: yes, no, disputed, or not judged.
    interventions : what came of its replays.
    attribution : where the failure comes from.
    """

    run: str
    case: str
    lang: str | None
    repeat: int | None
    fault: str | None
    first: str
    layers: str
    retrieval: str
    assembly: str
    generation: str
    code: str
    served: str
    interventions: Interventions
    attribution: Attribution


class Diagnosis:
    """What `diagnose` found.

    Attributes
    ----------
    scores : the measures that it rests on, and those of an isolation.
    outcome, level : as given.
    notes : what could mislead, in sentences.
    """

    def __init__(
        self, scores: Scores, outcome: str, crossed: tuple[str, ...], level: float
    ) -> None:
        self.scores, self.outcome, self.level = scores, outcome, level
        self._crossed = crossed
        self.notes: list[str] = []
        self._contracts: dict[str, list[contracts.Tally]] = {}

    @property
    def runs(self) -> list[RunScores]:
        """All runs, replays too."""
        return self.scores.runs

    @cached_property
    def observed(self) -> list[RunScores]:
        """Runs with traces of their own: no replays, no conditions of an isolation alone."""
        return [run for run in self.runs if bool(self._own(run).any())]

    def _own(self, run: RunScores) -> Any:
        """(n,) bool: traces of a run that are observed end to end."""
        inputs = run.inputs
        given = coded(inputs.trace("condition"), inputs.n, _OTHER) >= 0
        return ~inputs.absent & ~given

    @cached_property
    def first(self) -> dict[str, Any]:
        """(n,) int8 by run, places in `diagnosis.first.FIRST`."""
        return {run.name: first.first_failing(run) for run in self.runs}

    def counts(self, run: str | int | None = None) -> dict[str, dict[str, int]]:
        """Cases by first failing layer, under ``all`` and under each language."""
        one = self._run(run)
        return first.counts(one, self.first[one.name])

    def divergences(self, run: str | int | None = None) -> dict[str, dict[str | None, str]]:
        """Cases whose languages or repeats do not fail in one layer."""
        one = self._run(run)
        return first.divergences(one, self.first[one.name])

    def _run(self, run: str | int | None) -> RunScores:
        return run_named(self.runs, run)

    @cached_property
    def parts(self) -> list[Part]:
        """Every run with its facts and verdicts."""
        return [Part(run, Facts(run), Judged(run.inputs), served(run)) for run in self.runs]

    @cached_property
    def traces(self) -> list[Trace]:
        """Every observed trace of every run."""
        found, notes = pair_up(self.parts)
        self.notes += notes
        out: list[Trace] = []
        for which, part in enumerate(self.parts):
            own = self._own(part.run)
            if own.any():
                out += self._of_run(part, np.flatnonzero(own), found, which)
        return out

    def _of_run(self, part: Part, at: Any, found: Any, which: int) -> list[Trace]:
        run, facts, judged = part.run, part.facts, part.judged
        flipped = np.zeros(facts.n, np.bool_)
        for (owner, i), said in found.items():
            flipped[i] |= owner == which and said.output == "flips"
        states = layer_states(facts, judged, flipped)
        kept = contracts.contracts(facts, states)
        self._contracts[run.name] = contracts.tallies(run, kept, self._own(run))
        both = joint.joint(facts, judged)
        codes, broken = both.codes, hard_gates.violated(run.inputs)
        none, own = [None] * facts.n, self.first[run.name].tolist()
        faults = run.inputs.trace("fault")
        fault = none if faults is None else faults.to_pylist()
        lang, repeat = run.lang or none, run.repeat or none
        layers, case_of = spelled(states), run.case_of.tolist()
        served, bad, plain = part.served.tolist(), broken.tolist(), Interventions()
        out = []
        for i in at.tolist():
            replays = found.get((which, i), plain)
            out.append(
                Trace(
                    run.name, run.case_names[case_of[i]], lang[i], repeat[i], fault[i],
                    first.FIRST[own[i]], layers[i], both.retrieval[i], both.assembly[i],
                    both.generation[i], codes[i], WORDS[served[i]], replays,
                    attribute(layers[i], replays, served[i] != YES, bad[i]),
                )
            )  # fmt: skip
        return out

    @property
    def contracts(self) -> dict[str, list[contracts.Tally]]:
        """Delivery, shape and support, by observed run: how many traces meet and break which."""
        return self._contracts if self.traces else {}

    @cached_property
    def joint_counts(self) -> dict[str, list[joint.Count]]:
        """Joint counts by observed run."""
        return {
            part.run.name: joint.joint_counts(part.run, part.facts, self._own(part.run))
            for part in self.parts if self._own(part.run).any()
        }  # fmt: skip

    @cached_property
    def confusion(self) -> dict[str, Confusion]:
        """Expected against final states, traces, by observed run that records them."""
        out = {}
        for run in self.observed:
            with contextlib.suppress(UsageError):  # no state recorded, or none expected
                out[run.name] = confusion_of(run, own=self._own(run))
        return out

    @cached_property
    def hard(self) -> dict[str, list[hard_gates.HardGate]]:
        """Hard gates by observed run."""
        return {run.name: hard_gates.hard_gates(run) for run in self.observed}

    @cached_property
    def stages(self) -> dict[str, list[operations.Stage]]:
        """Recorded stages by observed run, by their share of time."""
        return {run.name: operations.stages(run) for run in self.observed}

    @cached_property
    def odd(self) -> dict[str, list[operations.Odd]]:
        """Traces that loop, or that an index of another generation served, by observed run."""
        return {
            run.name: [*operations.loops(run), *operations.lagging(run)] for run in self.observed
        }

    @cached_property
    def certificates(self) -> dict[str, Certificate]:
        """For every run whose manifest names a baseline among the runs: what it changed."""
        by_name = {str(run.manifest.get("run") or run.name): run for run in self.runs}
        out = {}
        for part in self.parts:
            base = by_name.get(str(part.run.manifest.get("baseline") or ""))
            if base is not None and base is not part.run:
                condition = part.condition if part.condition in REPLAYS else ""
                out[part.run.name] = certify(base.manifest, part.run.manifest, condition)
        return out

    @cached_property
    def isolation(self) -> isolation.Isolation | None:
        """The four-way isolation; None unless at least two of its conditions are recorded."""
        return isolation.isolate(self.runs, self.outcome)

    @cached_property
    def crossed(self) -> isolation.Crossed | None:
        """Interaction of generator and retriever; None unless four runs were crossed."""
        if not self._crossed:
            return None
        names = [self._run(name).name for name in self._crossed]
        g1r1, g1r2, g2r1, g2r2 = (self.scores.per_case(self.outcome, name) for name in names)
        r2, r1 = (self.scores.per_case("retrieval.coverage", names[at]) for at in (1, 2))
        return isolation.crossed(g1r1, g1r2, g2r1, g2r2, r1, r2, self.level)


_OTHER = tuple(name for name in schema.CONDITIONS if name not in ("end_to_end", "retrieved"))


def served(run: RunScores) -> Any:
    """(n,) int8: whether the asker of every trace was served, `diagnosis.judged` NO and so on.

    By verdicts where there are any; else by `end_to_end`.
    """
    found = Judged(run.inputs).served
    m = next(i for i, one in enumerate(run.measures) if one.text == "end_to_end")
    ok = run.states[m] == schema.OK
    plain = np.where(ok, np.where(run.values[m] == 1.0, YES, NO), UNJUDGED)
    return np.where(found == UNJUDGED, plain, found).astype(np.int8)
