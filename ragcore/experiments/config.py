"""SWEEP.toml: what is swept, read and checked before any work is done."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from ragcore.compare import check_deciding
from ragcore.errors import InputError, UsageError
from ragcore.experiments.chunking import Cut, read_cut
from ragcore.experiments.plans import read_plans
from ragcore.experiments.rerank import load_reranker
from ragcore.experiments.setups import (
    RERANKED,
    SIBLINGS,
    Setup,
    read_channel,
    read_count,
    read_production,
    read_settings,
    read_strategy,
    read_threshold,
)
from ragcore.gates import gates_of
from ragcore.index.options import GraphSettings
from ragcore.measures import registry
from ragcore.plan import Plan
from ragcore.suites import Suite, find_suite, open_suite

EXPERIMENTS = ("candidate_k", "context_k", "ladder", "threshold", "chunking", "deviation")
"""In the order in which they are run and told."""
TUNING = "validation"
"""The split that thresholds are chosen on."""
CRITERIA = ("f1", "recall", "precision")
"""What a threshold may be chosen by."""
_KEYS = (
    "suite", "run", "index", "name", "measures", "by", "split", "embed", "reranker", "plan",
    "production", "sweep", "deviation",
)  # fmt: skip
_SWEEP = ("candidate_k", "context_k", "ladder", "threshold", "chunking", "strategies")
_INDEX = ("analyzer", "metric", "M", "ef_construction", "seed")


@dataclass(frozen=True)
class Tuning:
    """A threshold to be chosen.

    Attributes
    ----------
    channel : whose raw scores it is on.
    values : tried, ascending; None = off.
    choose : the criterion.
    """

    channel: str
    values: tuple[float | None, ...]
    choose: str


@dataclass(frozen=True)
class Config:
    """A sweep as it is declared.

    Attributes
    ----------
    where : the file, for messages.
    name : of the sweep.
    suite : opened.
    run, index : a recorded run to replay, an index that is there; None where they are to be made.
    build : how an index is built, where one is.
    production : the baseline.
    measures, by : what is scored, and sliced by; empty for the plan's or the suite's own.
    split : of the cases that differences are reported on.
    candidate_k, context_k, ladder, tuning, cuts, deviations : the experiments; deviations are
        what is set otherwise, by name.
    strategies : of some experiments, the strategies that they are made with.
    plans : by experiment, what decides.
    embed, reranker : specs, "" for none.
    stated : keys of production that the file says.
    """

    where: str
    name: str
    suite: Suite
    run: Path | None
    index: Path | None
    build: dict[str, Any]
    production: Setup
    measures: tuple[str, ...]
    by: tuple[str, ...]
    split: str
    candidate_k: tuple[int, ...] = ()
    context_k: tuple[int, ...] = ()
    ladder: tuple[str, ...] = ()
    tuning: Tuning | None = None
    cuts: dict[str, Cut] = field(default_factory=dict)
    deviations: dict[str, dict[str, Any]] = field(default_factory=dict)
    strategies: dict[str, tuple[str, ...]] = field(default_factory=dict)
    plans: dict[str, Plan] = field(default_factory=dict)
    embed: str = ""
    reranker: str = ""
    stated: frozenset[str] = frozenset()


def read_config(source: str | PathLike[str] | Mapping[str, Any]) -> Config:
    """A sweep from a TOML file, or from a mapping with the same keys.

    Paths are looked for beside the file first.

    Raises
    ------
    InputError, UsageError
        For whatever is unknown, missing or of the wrong kind, by name.
    """
    where, folder = "sweep", Path()
    if isinstance(source, Mapping):
        given = dict(source)
    else:
        path = Path(source)
        where, folder = str(path), path.parent
        try:
            given = tomllib.loads(path.read_bytes().decode("utf-8"))
        except OSError as error:
            raise InputError(path, str(error.strerror or error), "a readable file") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InputError(path, f"broken TOML: {error}", "a sweep in TOML") from None
    _known(where, "the file", given, _KEYS)
    default = "sweep" if isinstance(source, Mapping) else Path(source).stem
    return _read(where, folder, given, default)


def _read(where: str, folder: Path, given: dict[str, Any], default: str) -> Config:
    if "suite" not in given:
        raise InputError(where, "no suite", 'suite = "FOLDER" or its name')
    suite = _suite(where, folder, given["suite"])
    run = _path(where, folder, "run", given.get("run"))
    index, build = given.get("index"), {}
    if isinstance(index, Mapping):
        _known(where, "[index]", index, _INDEX)
        index, build = None, dict(index)
        for name in ("analyzer", "metric"):
            _spec(where, name, build)
        GraphSettings(**{k: v for k, v in build.items() if k in ("M", "ef_construction", "seed")})
    sweep = _table(where, "sweep", given.get("sweep", {}))
    _known(where, "[sweep]", sweep, _SWEEP)
    production = read_production(where, _table(where, "production", given.get("production", {})))
    made = Config(
        where, _word(where, "name", given.get("name", default)), suite, run,
        _path(where, folder, "index", index), build, production,
        _words(where, "measures", given.get("measures", [])),
        _words(where, "by", given["by"]) if "by" in given else _types(suite),
        _word(where, "split", given.get("split", "test")),
        _counts(where, "candidate_k", sweep.get("candidate_k", [])),
        _counts(where, "context_k", sweep.get("context_k", [])),
        _each_once(
            read_strategy(where, "ladder of [sweep]", one)
            for one in _listed(where, "ladder", sweep.get("ladder", []))
        ),
        _tuning(where, sweep.get("threshold"), production),
        _cuts(where, _table(where, "sweep.chunking", sweep.get("chunking", {}))),
        {
            name: read_settings(where, _table(where, f"deviation.{name}", one), f"deviation.{name}")
            for name, one in _table(where, "deviation", given.get("deviation", {})).items()
        },
        _strategies(where, _table(where, "sweep.strategies", sweep.get("strategies", {}))),
        read_plans(where, _table(where, "plan", given.get("plan", {})), EXPERIMENTS),
        _spec(where, "embed", given),
        _spec(where, "reranker", given), frozenset(given.get("production", {})),
    )  # fmt: skip
    _check(made)
    return made


def _check(made: Config) -> None:
    """Refuse what could not be done, before it is begun."""
    registry.parse(made.measures)
    for plan in made.plans.values():
        check_deciding(plan, registry.parse(plan.registered))
        gates_of(plan, ())
    if made.reranker:
        load_reranker(made.reranker)
    cases = made.suite.cases
    where = str(made.suite.path / "cases.arrow")
    if "split" not in cases.column_names:
        raise InputError(
            where, "no column split", f"cases of the split {made.split!r}",
            "say of every case which split it is in",
        )  # fmt: skip
    there = set(cases["split"].to_pylist())
    for split in (made.split, TUNING) if made.tuning else (made.split,):
        if split not in there:
            named = ", ".join(sorted(str(one) for one in there))
            why = " that thresholds are chosen on" if split == TUNING else ""
            raise InputError(where, f"splits {named}", f"cases of the split {split!r}{why}")
    if made.tuning:
        _check_apart(made, where)
    if made.production.reranked and not made.reranker and made.run is None:
        raise InputError(
            made.where, f"production is {made.production.strategy!r}, without a reranker",
            'reranker = "python:MODULE:CALLABLE" or "cross-encoder:FOLDER"',
        )  # fmt: skip
    for column in made.by:
        if column not in cases.column_names and column != "lang":
            raise InputError(
                where, f"no column {column!r} to report by",
                f"one of {', '.join(cases.column_names)}",
            )  # fmt: skip
    nothing = (made.candidate_k, made.context_k, made.ladder, made.tuning, made.cuts,
               made.deviations)  # fmt: skip
    if not any(nothing):
        raise InputError(
            made.where, "no experiment", "[sweep] or [deviation.NAME]",
            "candidate_k = [5, 10, 20, 40] in [sweep], for one",
        )  # fmt: skip


def _check_apart(made: Config, where: str) -> None:
    """Refuse to tune a threshold on cases that it is then tested on, in another language say."""
    if made.split == TUNING:
        return  # known, and marked as tainted
    cases, seen = made.suite.cases, dict[str, set[str]]()
    pairs = zip(cases["case_id"].to_pylist(), cases["split"].to_pylist(), strict=True)
    for case, split in pairs:
        seen.setdefault(str(split), set()).add(str(case))
    both = sorted(seen[made.split] & seen[TUNING])
    if both:
        raise InputError(
            where, f"{len(both)} cases are in the splits {TUNING} and {made.split}, as {both[0]!r}",
            "each case in one split, with all of its languages",
            "a threshold would be tested on what it was chosen on",
        )  # fmt: skip


def strategies_of(made: Config, experiment: str) -> tuple[str, ...]:
    """The strategies that an experiment is made with, production's own or as declared."""
    if experiment in made.strategies:
        return made.strategies[experiment]
    own, base = made.production.strategy, made.production.base
    tail = RERANKED if made.production.reranked else ""
    if experiment == "chunking" or base == "bm25":
        return (own,)
    dense = {hybrid: name for name, hybrid in SIBLINGS.items()}.get(base, base)
    both = (f"{dense}{tail}", f"{SIBLINGS[dense]}{tail}")
    return both if experiment == "candidate_k" else both[1:]


# --- parts


def _suite(where: str, folder: Path, name: Any) -> Suite:
    name = _word(where, "suite", name)
    try:
        near = folder / name
        return open_suite(near if near.is_dir() else find_suite(name))
    except UsageError as error:
        raise InputError(
            where, str(error).splitlines()[0], "the folder of a suite, or its name", error.hint
        ) from None


def _path(where: str, folder: Path, key: str, value: Any) -> Path | None:
    if value is None:
        return None
    path = Path(_word(where, key, value))
    near = folder / path
    found = near if near.exists() else path
    if not found.exists():
        raise InputError(where, f"{key} = {str(path)!r}: there is no such file", "a path")
    return found


def _types(suite: Suite) -> tuple[str, ...]:
    return ("type",) if "type" in suite.cases.column_names else ()


def _tuning(where: str, given: Any, production: Setup) -> Tuning | None:
    if given is None:
        return None
    table = _table(where, "sweep.threshold", given)
    _known(where, "[sweep.threshold]", table, ("channel", "values", "choose"))
    channel = read_channel(where, "channel of [sweep.threshold]", table.get("channel"))
    if channel not in production.channels:
        raise InputError(
            where, f"[sweep.threshold] is on {channel!r}",
            f"a channel of production, which is {production.strategy}: "
            f"{', '.join(production.channels)}",
        )  # fmt: skip
    listed = _listed(where, "values of [sweep.threshold]", table.get("values", []))
    values = [read_threshold(where, "values of [sweep.threshold]", one) for one in listed]
    if len(set(values)) < max(len(values), 1):
        raise InputError(where, f"[sweep.threshold] has values {listed!r}", "values, each once")
    choose = table.get("choose", "f1")
    if choose not in CRITERIA:
        raise InputError(where, f"choose = {choose!r}", f"one of {', '.join(CRITERIA)}")
    rising = sorted(t for t in values if t is not None)
    return Tuning(channel, (*((None,) if None in values else ()), *rising), choose)


def _cuts(where: str, given: Mapping[str, Any]) -> dict[str, Cut]:
    return {
        name: read_cut(where, name, _table(where, f"sweep.chunking.{name}", one))
        for name, one in given.items()
    }


def _strategies(where: str, given: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    _known(where, "[sweep.strategies]", given, ("candidate_k", "context_k", "chunking"))
    return {
        key: _each_once(
            read_strategy(where, f"{key} of [sweep.strategies]", one)
            for one in _listed(where, key, value)
        )
        for key, value in given.items()
    }


def _known(where: str, what: str, given: Mapping[str, Any], keys: tuple[str, ...]) -> None:
    for key in given:
        if key not in keys:
            raise InputError(where, f"unknown key {key!r} in {what}", f"one of {', '.join(keys)}")


def _table(where: str, what: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InputError(where, f"{what} = {value!r}", "a table")
    return value


def _word(where: str, what: str, value: Any) -> str:
    if isinstance(value, PathLike):
        value = str(value)
    if not isinstance(value, str) or not value:
        raise InputError(where, f"{what} = {value!r}", "a word")
    return value


def _spec(where: str, key: str, given: Mapping[str, Any]) -> str:
    return _word(where, key, given[key]) if key in given else ""


def _listed(where: str, what: str, value: Any) -> list[Any]:
    if not isinstance(value, (list, tuple)):
        raise InputError(where, f"{what} = {value!r}", "a list")
    return list(value)


def _words(where: str, what: str, value: Any) -> tuple[str, ...]:
    return tuple(_word(where, what, one) for one in _listed(where, what, value))


def _counts(where: str, what: str, value: Any) -> tuple[int, ...]:
    listed = _listed(where, f"{what} of [sweep]", value)
    return _each_once(read_count(where, f"{what} of [sweep]", one) for one in listed)


def _each_once(values: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(values))
