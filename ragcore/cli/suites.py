"""`ragcore suite list | show | check | run`."""

from __future__ import annotations

import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from ragcore.cli.shared import (
    FOR_PEOPLE,
    Progress,
    emit,
    main,
    options,
    output_options,
    say_notes,
)

_DATA = (
    click.option(
        "--data", type=click.Path(file_okay=False, path_type=Path), metavar="DIR",
        help="Folder of public data; else RAGCORE_DATA, else the user's cache.",
    ),
)  # fmt: skip
_DOWNLOAD = (
    click.option("--download", is_flag=True,
                 help="First bring the official distribution; resumed, its checksums verified."),
)  # fmt: skip
_RUN = (
    click.option("--strategy", "strategies", multiple=True,
                 help="In place of the suite's ladder; may be repeated."),
    click.option("--scope", "scopes", multiple=True,
                 help="Only this scope of the suite; may be repeated."),
    click.option("-m", "--measure", "measures", multiple=True,
                 help="In place of the suite's own; the first is the primary one."),
    click.option("--by", multiple=True, metavar="SLICE",
                 help="Slices in tsv, jsonl and arrow; may be repeated."),
    click.option("--split", help="Only cases of this split."),
    click.option("--candidate-k", type=click.IntRange(1), help="Rows from each channel."),
    click.option("--context-k", type=click.IntRange(1), help="Rows that the context takes."),
    click.option("--embed", metavar="MODEL", default="",
                 help="What embeds a suite without vectors, as `ragcore index` takes it; or none."),
    click.option("--threads", type=click.IntRange(min=1), help="Of scoring; default: all."),
    click.option("--level", type=click.FloatRange(0.5, 0.9999), default=0.95, show_default=True,
                 help="Of the intervals."),
    click.option("--work", type=click.Path(file_okay=False, path_type=Path), metavar="DIR",
                 help="Working folder (one suite only); default: the suite's own in the cache."),
)  # fmt: skip


@main.group()
def suite() -> None:
    """Pinned suites: what there is, whether it is whole, what a ladder of searches scores.

    Public suites and one's own are reported apart, and never averaged.

    \b
    Example:
      ragcore suite list
    """


@suite.command("list")
@options(_DATA)
def list_(data: Path | None) -> None:
    """List every suite: what it is, under which licence, and whether its data is here.

    \b
    Example:
      ragcore suite list
    """
    from ragcore.catalogue.entries import entries
    from ragcore.report import suites as pages

    found = entries()
    where = {one.name: _where(one, data) for one in found}
    click.echo(pages.page(pages.listing(found, where), "table").decode(), nl=False)


def _where(entry: Any, data: Path | None) -> str:
    """Whether the data of a suite is there, without reading it."""
    from ragcore.catalogue.pinned import missing

    if not entry.public:
        return "comes along"
    gone = missing(entry, data)
    return "here" if not gone else f"{len(gone)} of {len(entry.settings['files'])} files missing"


@suite.command()
@click.argument("name")
@options(_DATA)
def show(name: str, data: Path | None) -> None:
    """Show what the suite NAME is, what it holds, and what it cannot show.

    Query types are counted, with the share of their questions' words that the evidence has: what
    word matching is given for nothing.

    \b
    Example:
      ragcore suite show ka4
    """
    from ragcore.catalogue.check import facts_or_reason
    from ragcore.catalogue.entries import entry
    from ragcore.report import suites as pages

    one = entry(name)
    with tempfile.TemporaryDirectory() as work:
        facts, reason = facts_or_reason(one, data, Path(work))
    blocks = [pages.about(one)]
    blocks += pages.facts(facts) if facts is not None else []
    blocks += pages.files(one)
    click.echo(pages.page(blocks, "table").decode(), nl=False)
    if reason:
        click.echo(f"not counted: {reason}", err=True)


@suite.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@options(_DATA, _DOWNLOAD)
def check(names: tuple[str, ...], data: Path | None, download: bool) -> None:
    """Check suites: files against their checksums, labels against texts, splits and types.

    Exit status 2 if anything is wrong.

    \b
    Example:
      ragcore suite check ka4 mosaic
    """
    from ragcore.catalogue.check import check_suite
    from ragcore.catalogue.entries import entry
    from ragcore.report import suites as pages

    wrong = 0
    for one in [entry(name) for name in names]:
        if download and one.public:
            _fetch(one, data)
        with tempfile.TemporaryDirectory() as work:
            found, _ = check_suite(one, data, Path(work))
        wrong += sum(not finding.holds for finding in found)
        click.echo(f"{one.name}")
        click.echo(pages.page([pages.checks(found)], "table").decode(), nl=False)
    if wrong:
        click.echo(f"error: {wrong} finding{'s' * (wrong > 1)}", err=True)
        sys.exit(2)


@suite.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@options(_DATA, _DOWNLOAD, _RUN)
@output_options
def run(
    names: tuple[str, ...], data: Path | None, download: bool, form: str, output: Path | None,
    **given: Any,
) -> None:  # fmt: skip
    """Run suites: index the corpus, search it with each strategy of the ladder, score every run.

    Where a suite records runs instead, these are scored. The working folder is a suite folder like
    any other: `ragcore score DIR/runs/*.arrow`, `compare` and `explain` go on from there.

    \b
    Example:
      ragcore suite run ka4
      ragcore suite run qasper miracl-zh --data DIR
    """
    from ragcore.catalogue.entries import entry
    from ragcore.catalogue.ladder import Wanted, check_wanted, run_suite
    from ragcore.errors import UsageError

    wanted = Wanted(
        given["strategies"], given["measures"], given["scopes"], given["split"],
        given["candidate_k"] or 0, given["context_k"] or 0, given["embed"], (), given["threads"],
    )  # fmt: skip
    if given["work"] is not None and len(names) > 1:
        raise UsageError("--work is for one suite", "leave it out, or name one suite")
    chosen = _apart([entry(name) for name in names])
    for one in chosen:
        check_wanted(one, wanted)
    parts: list[Any] = []
    for one in chosen:
        wanted = replace(wanted, by=_by(one, given))
        if download and one.public:
            _fetch(one, data)
        with Progress() as progress:
            found = run_suite(one, given["work"], data=data, wanted=wanted, progress=progress)
        parts.append(_shown(found, given, form))
        click.echo(f"{one.name}: written to {found.folder}", err=True)
    if form in FOR_PEOPLE:
        emit(b"\n".join(parts), form, output, given["level"])
    elif form == "arrow":
        import pyarrow as pa

        from ragcore.schema import SUMMARY

        whole = pa.concat_tables(parts) if (parts := [*filter(None, parts)]) else None
        emit(SUMMARY.empty_table() if whole is None else whole, form, output, given["level"])
    else:
        emit([row for part in parts for row in part], form, output, given["level"])


def _apart(chosen: list[Any]) -> list[Any]:
    """Each suite once; two of one name would share their folder, and their rows could mix."""
    from ragcore.errors import UsageError

    by_name: dict[str, Any] = {}
    for one in chosen:
        other = by_name.setdefault(one.name, one)
        if other.folder.resolve() != one.folder.resolve():
            raise UsageError(
                f"two suites are called {one.name}: {other.folder} and {one.folder}",
                "run them one by one, each with its own --work DIR",
            )
    return list(by_name.values())


def _by(entry: Any, given: dict[str, Any]) -> tuple[str, ...]:
    """Columns to slice by: those asked for, else the suite's own."""
    return tuple(dict.fromkeys(given["by"] or entry.settings.get("by", ())))


def _fetch(one: Any, data: Path | None) -> None:
    from ragcore.catalogue.pinned import fetch

    with Progress() as progress:
        fetch(one, data, progress)


def _shown(found: Any, given: dict[str, Any], form: str) -> Any:
    """One suite's part of the output; runs carry its name, so that two suites never mix."""
    from ragcore.catalogue import reading
    from ragcore.report import suites as pages

    level = given["level"]
    if form in FOR_PEOPLE:
        primary = found.scores.measures[0] if found.scores is not None else ""
        pivots = reading.pivots(found, primary)
        return pages.run(found, pivots, reading.sentences(found, level), level, form)
    for one in found.rungs:
        if one.skipped:
            say_notes([f"{found.entry.name}/{one.name}: not evaluated, {one.skipped}"])
    if found.scores is None:
        return []
    for one in found.scores.runs:
        one.name = f"{found.entry.name}/{one.name}"
    by = _by(found.entry, given)
    return found.scores.summary(by, level) if form == "arrow" else found.scores.rows(by, level)
