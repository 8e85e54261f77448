"""The main job: runs x judgements -> scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np
import pyarrow as pa

from ragcore import schema
from ragcore.columns import CaseCodes, Rows
from ragcore.errors import InputError, UsageError
from ragcore.loading import Loaded, load_judgements, load_runs
from ragcore.measures import bounds as limits
from ragcore.measures import engine, ranked, registry
from ragcore.measures.definitions import Measure
from ragcore.measures.engine import Options
from ragcore.measures.rankings import (
    Labels,
    labels_of_cases,
    labels_of_qrels,
)
from ragcore.results import RunScores
from ragcore.scores import Scores
from ragcore.scoring import COVERAGE, score_run
from ragcore.suites import Suite, find_suite, has_chunks, judgements, open_suite
from ragcore.threads import default_threads
from ragcore_kernels import ranking as kernel

TOPICS = ("judged", "common")
NO_RELEVANT = ("zero", "na")
ORDERS = {kernel.RECORDED: "recorded", kernel.BY_SCORE: "score, then id"}


def score(
    runs: Any,
    *,
    suite: str | PathLike[str] | None = None,
    qrels: Any = None,
    measures: Sequence[str] | None = None,
    topics: str = "judged",
    no_relevant: str | None = None,
    duplicates: str = "error",
    rel: int = 1,
    max_depth: int | None = None,
    allow_empty: bool = False,
    drop_identical_ids: bool = False,
    normalize_ids: str | None = None,
    float_grades: bool = False,
    threads: int | None = None,
    names: Sequence[str] | None = None,
    bounds: Sequence[str] = (),
    also: Sequence[str] = (),
    judgments: Any = None,
) -> Scores:
    """Score runs against a suite or qrels.

    Parameters
    ----------
    runs : a path, an Arrow table or stream, or ``{case: {id: score}}``; or a list of these.
    suite, qrels : what the runs are judged by; at most one. With neither, the suite that the
        first run's manifest names.
    measures : names in any notation; None = the suite's own, or the standard ones.
    topics : ``judged`` averages over all judged cases, a missing one scored as an empty ranking
        (trec_eval -c); ``common`` over those that the run has.
    no_relevant : what a case without a relevant document is: ``zero`` (trec_eval; the default
        with qrels) or ``na`` (the default with a suite).
    duplicates : a document twice in a ranking: ``error``, or which one stays: ``first``,
        ``last``, ``max``.
    rel : least grade that counts as relevant, where a measure does not say.
    max_depth : ranks kept of every ranking (trec_eval -M).
    allow_empty : let a run without any row score, as empty everywhere.
    drop_identical_ids : leave out the document whose id is the case's.
    normalize_ids : ``nfc`` compares ids in Unicode NFC; collisions are refused.
    float_grades : take grades like 1.0, if they are whole numbers.
    threads : workers; the result does not depend on them. None = all processors.
    names : names of the runs, if not their files'.
    bounds : after each measure its values over all orders of tied scores (``ties``: best,
        expected, worst) and over what unjudged documents may be (``holes``: best, worst).
    also : measures that are scored besides; names that are there already add nothing.
    judgments : files or tables of verdicts (`schema.JUDGMENTS`) for the measures that rest on
        them; None = those in the suite's folder ``judgments``, if there is one.

    Returns
    -------
    Scores

    Raises
    ------
    InputError
        If a file or table breaks its contract; the message says where, what and how to mend it.
    UsageError
        If an argument cannot be honoured.
    """
    _check("topics", topics, TOPICS)
    _check("duplicates", duplicates, engine.DUPLICATES)
    if no_relevant is not None:
        _check("no_relevant", no_relevant, NO_RELEVANT)
    if normalize_ids not in (None, "nfc"):
        raise UsageError(f"normalize_ids={normalize_ids!r}", "None or 'nfc'")
    if max_depth is not None and max_depth < 1:
        raise UsageError(f"max_depth={max_depth}", "1 or more")
    if threads is not None and threads < 1:
        raise UsageError(f"threads={threads}", "1 or more, or None for all processors")
    workers = threads or default_threads()
    loaded = _load_all(runs, workers, names)
    for one in loaded:
        traced = one.rows.traces is not None and one.rows.traces.num_rows > 0
        if one.rows.n_rows == 0 and not len(one.rows.segments) and not traced and not allow_empty:
            raise InputError(
                one.rows.where, "no row at all", "at least one retrieved document",
                "if it is meant to be empty, say --allow-empty",
            )  # fmt: skip
    opened = _judge(suite, qrels, loaded[0])
    policy = {
        "topics": topics,
        "no_relevant": no_relevant or ("na" if opened is not None else "zero"),
        "duplicates": duplicates,
        "rel": str(rel),
        "order": " or ".join(dict.fromkeys(ORDERS[one.rows.order] for one in loaded)),
    }
    rare = {
        "max_depth": max_depth,
        "normalize_ids": normalize_ids,
        "drop_identical_ids": drop_identical_ids,
        "float_grades": float_grades,
        "allow_empty": allow_empty,
    }
    policy |= {name: str(value).lower() for name, value in rare.items() if value}
    options = Options(duplicates, drop_identical_ids, max_depth or 0, workers)
    codes = CaseCodes(1024)
    wanted = [measures] if isinstance(measures, str) else measures
    if wanted is None:
        wanted = opened.measures if opened is not None and opened.measures else ranked.DEFAULT
    parsed = limits.expand(registry.parse([*wanted, *(m for m in also if m)], rel), bounds)
    if not parsed:
        raise UsageError("no measure asked for")
    form: Callable[[Rows], Rows] = _as_it_is
    if normalize_ids:
        from ragcore.normalise import nfc as form
    shared = _shared(opened, judgments, parsed)
    labels, required = _labels(opened, qrels, parsed, codes, workers, float_grades, form, shared)
    for one in loaded:
        one.rows = form(one.rows)
    out: list[RunScores] = []
    pending: list[Any] = []
    for one in loaded:
        run, given = score_run(
            one.rows, labels, required, codes, parsed, options, policy, opened, allow_empty,
            shared, one.manifest,
        )  # fmt: skip
        out.append(run)
        pending.append((one.rows, labels, given[0], given[1], codes, policy))
    inputs = [one.rows.where for one in loaded] + [labels.rows.where]
    if shared is not None and shared.judgments is not None:
        inputs += [where for _, where in shared.judgments.where]
    return Scores(out, opened, policy, pending, inputs, workers)


def _check(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise UsageError(f"{name}={value!r}", f"one of {', '.join(known)}")


def _load_all(runs: Any, threads: int, names: Sequence[str] | None) -> list[Loaded]:
    single = (
        isinstance(runs, (str, PathLike, Mapping, pa.Table, pa.RecordBatch))
        or hasattr(runs, "__arrow_c_stream__")
    )  # fmt: skip
    sources = [runs] if single else list(runs)
    if not sources:
        raise UsageError("no run given")
    if names is not None and len(names) != len(sources):
        raise UsageError(f"{len(names)} names for {len(sources)} runs")
    loaded: list[Loaded] = []
    for i, source in enumerate(sources):
        loaded += load_runs(source, threads, names[i] if names else "", i)
    taken: set[str] = set()
    for one in loaded:  # two files of one name must not become one run
        name, number = one.rows.name, 1
        while one.rows.name in taken:
            number += 1
            one.rows.name = f"{name}#{number}"
        taken.add(one.rows.name)
    return loaded


def _judge(suite: Any, qrels: Any, first: Loaded) -> Suite | None:
    if suite is not None and qrels is not None:
        raise UsageError("both a suite and qrels given", "a run is judged by one of them")
    if qrels is not None:
        return None
    if suite is not None:
        return open_suite(find_suite(str(suite), first.path))
    name = first.manifest.get("suite")
    if not name:
        raise UsageError(
            f"nothing to judge {first.rows.where} by",
            "say --suite DIR or --qrels FILE; its manifest names no suite",
        )
    return open_suite(find_suite(str(name), first.path))


def _labels(
    opened: Suite | None,
    qrels: Any,
    parsed: list[Measure],
    codes: CaseCodes,
    threads: int,
    float_grades: bool,
    form: Callable[[Rows], Rows],
    shared: Any,
) -> tuple[Labels, Labels | None]:
    """The judgements, and what is required (None if the suite does not say)."""
    if opened is None:
        rows = load_judgements(qrels, threads, float_grades)
        if rows.n_rows == 0:
            raise InputError(rows.where, "no judged case", "at least one judgement")
        return labels_of_qrels(form(rows), codes), None
    names = opened.cases.column_names
    n = opened.cases.num_rows
    langs = opened.cases["lang"].to_pylist() if "lang" in names else [None] * n
    marks = opened.cases["status"].to_pylist() if "status" in names else [None] * n
    status = np.array(
        [schema.DISPUTED if m in ("disputed", "stale") else schema.OK for m in marks], np.int8
    )

    def made(required: bool) -> Labels | None:
        given = judgements(opened, required)
        if given is None:
            return None
        items, own = None, status
        if shared is not None and shared.evidence is not None and not shared.evidence.by_ids:
            from ragcore.measures.mapped import labelled

            given, items, lost = labelled(opened, shared.evidence, shared.vocabulary, required)
            own = np.where(lost, np.int8(schema.DISPUTED), status)
        found = labels_of_cases(form(given), codes, langs, own)
        found.items = items
        return found

    labels = made(False)
    assert labels is not None
    asked = any(one.definition.name == COVERAGE for one in parsed)
    return labels, made(True) if asked else None


def _shared(opened: Suite | None, judgments: Any, parsed: list[Measure]) -> Any:
    """What layered measures share, and labels that point at places; None if there is neither.

    Judgments are read even if no measure rests on them: what is wrong with them must show.
    """
    nothing = judgments is None or (isinstance(judgments, Sequence) and not len(judgments))
    layered = any(one.layered for one in parsed)
    if nothing and not layered and (opened is None or not has_chunks(opened)):
        return None
    from ragcore.judgments import read_judgments  # what plain rankings need not load
    from ragcore.measures.inputs import Shared

    if nothing and layered and opened is not None:
        judgments = sorted((opened.path / "judgments").glob("*.arrow"))
        nothing = not judgments
    given = None if nothing else read_judgments(judgments)
    return Shared(opened, given)


def _as_it_is(rows: Rows) -> Rows:
    return rows
