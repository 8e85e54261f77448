"""Runs a suite: its corpus indexed, its questions searched by each strategy, the lists scored.

A strategy that cannot be run is a rung all the same, with the reason: it was not evaluated, which
is neither a value nor nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ragcore.catalogue import folder as folders
from ragcore.catalogue import pinned
from ragcore.catalogue.corpus import as_asked, in_vectors, indexed, read_corpus, timed
from ragcore.catalogue.descriptor import DEEPEST
from ragcore.catalogue.entries import Entry, Scope
from ragcore.catalogue.rungs import Rung, measure_rooms, search_rung
from ragcore.catalogue.sound import refuse, refuse_columns
from ragcore.errors import UsageError
from ragcore.measures.registry import parse
from ragcore.places import user_cache
from ragcore.progress import Progress, no_progress
from ragcore.questions import read_questions
from ragcore.score import score
from ragcore.scores import Scores
from ragcore.search_settings import BM25, STRATEGIES
from ragcore.suites import Suite, open_suite

CANDIDATE_K, CONTEXT_K = 100, 5
"""Depth of every channel and length of the context, where a suite does not say."""


@dataclass
class SuiteRun:
    """A suite, run.

    Attributes
    ----------
    entry, folder, suite : the suite, its working folder, the latter opened.
    form : of a public suite's data, `pinned.SUBSET` or `pinned.OFFICIAL`; "" of an authored one.
    rungs : the ladder, in its order.
    scores : of the rungs that were run, in their order; None if none was.
    times : seconds by step: importing, embedding, indexing, searching, scoring.
    notes : what importing and indexing noticed.
    """

    entry: Entry
    folder: Path
    suite: Suite
    form: str
    rungs: list[Rung]
    scores: Scores | None
    times: dict[str, float]
    notes: list[str]

    @property
    def cutoff(self) -> int:
        """Cut-off of the first measure that has one; else the length of the context."""
        measures = [] if self.scores is None else self.scores.runs[0].measures
        own = self.entry.settings.get("context_k", CONTEXT_K)
        return next((one.k for one in measures if one.k), own)


@dataclass(frozen=True)
class Wanted:
    """What of a suite is run, where it does not go by the suite's own settings.

    Attributes
    ----------
    strategies, measures, scopes, split : in place of the suite's own; empty for these.
    candidate_k, context_k : 0 for the suite's own.
    embed : spec of an embedder for suites without vectors; "none" for none.
    by : columns that will be sliced by; unknown ones are refused.
    threads : workers of scoring.
    """

    strategies: tuple[str, ...] = ()
    measures: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    split: str | None = None
    candidate_k: int = 0
    context_k: int = 0
    embed: str = ""
    by: tuple[str, ...] = ()
    threads: int | None = None


def run_suite(
    entry: Entry,
    out: Path | None = None,
    *,
    data: Path | None = None,
    wanted: Wanted | None = None,
    progress: Progress = no_progress,
) -> SuiteRun:
    """Import, index, search and score a suite.

    Parameters
    ----------
    out : the working folder; None for the suite's own in the user's cache.
    data : folder of public data, see `ragcore.places.data_folders`.

    Raises
    ------
    InputError, UsageError
        If data are missing or changed, a strategy is unknown, or a setting cannot be honoured:
        before anything is done.
    """
    how = wanted or Wanted()
    strategies, scopes = check_wanted(entry, how)
    place = out or user_cache() / "suites" / entry.name
    with folders.alone(place):
        return _run(entry, place, data, how, strategies, scopes, progress)


def _run(
    entry: Entry, place: Path, data: Path | None, how: Wanted, strategies: list[str],
    scopes: list[Scope], progress: Progress,
) -> SuiteRun:  # fmt: skip
    """`run_suite`, in a folder that nobody else works in."""
    times: dict[str, float] = {}
    with timed(times, "importing"):
        suite, form, notes = _made(entry, place, data, how)
        refuse_columns(entry, suite, scopes if strategies else [], how.by)
    rungs: list[Rung] = []
    runs: list[Path] = []
    if strategies:
        rungs = _climb(entry, suite, strategies, scopes, how, times, notes, progress)
        runs = [_path(place, rung.name) for rung in rungs if not rung.skipped]
    else:
        runs = sorted((place / "runs").glob("*.arrow"))
        rungs = [Rung(path.stem, "", Scope("", ())) for path in runs]
    scores = None
    if runs:
        with timed(times, "scoring"):
            scores = score(
                runs, suite=place, measures=list(how.measures) or None, threads=how.threads,
                names=[rung.name for rung in rungs if not rung.skipped],
            )  # fmt: skip
        measure_rooms(scores, [rung for rung in rungs if not rung.skipped])
        for rung, audit in zip((r for r in rungs if not r.skipped), scores.audits, strict=True):
            rung.notes = [*rung.notes, *audit.warnings]
    return SuiteRun(entry, place, suite, form, rungs, scores, times, notes)


def _made(
    entry: Entry, place: Path, data: Path | None, how: Wanted
) -> tuple[Suite, str, list[str]]:
    """The working folder, written; the form of its data; what importing noticed."""
    form, notes = "", []
    if entry.public:
        source = pinned.find(entry, data)
        form, given = source.form, pinned.load(entry, source)
        notes += given.notes
        folders.write(entry, source, given, place)
    else:
        folders.copy(entry, place)
    suite = open_suite(place)
    refuse(entry, suite)
    if how.split is not None:
        suite = folders.narrow(suite, how.split)
        notes.append(f"only cases of the split {how.split}: in this folder there are no others")
    return suite, form, notes


def check_wanted(entry: Entry, how: Wanted) -> tuple[list[str], list[Scope]]:
    """Strategies and scopes to run, each known.

    Raises
    ------
    UsageError
        Naming the first that is not.
    """
    parse([*entry.measures, *how.measures])
    strategies = list(dict.fromkeys(how.strategies or entry.strategies))
    for name in strategies:
        if name not in STRATEGIES:
            raise UsageError(f"unknown strategy {name!r}", f"one of {', '.join(STRATEGIES)}")
    asked = {
        "--strategy": how.strategies, "--scope": how.scopes, "--split": how.split is not None,
        "--candidate-k": how.candidate_k, "--context-k": how.context_k,
    }  # fmt: skip
    for option, value in asked.items():
        if value and not entry.strategies:
            raise UsageError(
                f"{entry.name} has recorded runs and no strategies: nothing is searched",
                f"run it without {option}",
            )
    if max(how.candidate_k, how.context_k) > DEEPEST:
        raise UsageError(f"a depth of {max(how.candidate_k, how.context_k)}", f"{DEEPEST} at most")
    known = {scope.name: scope for scope in entry.scopes}
    for name in how.scopes:
        if name not in known:
            raise UsageError(
                f"unknown scope {name!r} of {entry.name}", f"one of {', '.join(known) or 'none'}"
            )
    chosen = [known[name] for name in dict.fromkeys(how.scopes)]
    return strategies, chosen or list(known.values())


def _path(place: Path, name: str) -> Path:
    return place / "runs" / f"{folders.file_name(name)}.arrow"


def _climb(
    entry: Entry, suite: Suite, strategies: list[str], scopes: list[Scope], how: Wanted,
    times: dict[str, float], notes: list[str], progress: Progress,
) -> list[Rung]:  # fmt: skip
    """Index the corpus and search it with every strategy in every scope; write the runs."""
    questions = read_questions(suite.path)
    dense = any(STRATEGIES[name] != (BM25,) for name in strategies)
    chunks, why = read_corpus(entry, suite, dense, how.embed, times, progress)
    asked = [as_asked(entry, questions, scope) for scope in scopes]
    for i, one in enumerate(asked):
        if dense and not why:
            asked[i], why = in_vectors(entry, one, how.embed, times, progress)
    if why:
        chunks.vectors = None
    with timed(times, "indexing"):
        index = indexed(entry, suite, chunks, strategies, notes, progress)
    said = entry.settings
    depths = (
        how.candidate_k or said.get("candidate_k", CANDIDATE_K),
        how.context_k or said.get("context_k", CONTEXT_K),
    )
    rungs = []
    (suite.path / "runs").mkdir(exist_ok=True)
    for scope, own in zip(scopes, asked, strict=True):
        for strategy in strategies:
            name = strategy if len(entry.scopes) == 1 else f"{strategy} {scope.name}"
            rung = Rung(name, strategy, scope)
            rung.skipped = why if STRATEGIES[strategy] != (BM25,) else ""
            if not rung.skipped:
                with timed(times, "searching"):
                    search_rung(rung, index, own, *depths, _path(suite.path, name))
            rungs.append(rung)
    return rungs
