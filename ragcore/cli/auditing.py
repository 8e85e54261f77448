"""`ragcore audit`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from ragcore.cli.searching import INPUT, questions_of, vectors_for
from ragcore.cli.shared import FOR_PEOPLE, Progress, emit, main, options, output_options, say_notes

_WHAT = (
    click.option("-k", "ks", type=click.IntRange(1), multiple=True,
                 help="Length of the lists; default 10; may be repeated."),
    click.option("--ef", "efs", default="16,32,64,128,256", show_default=True,
                 help="Sizes of the list that HNSW keeps, separated by commas."),
    click.option("--by", multiple=True, metavar="COLUMN",
                 help="Slice by a column of the cases; may be repeated."),
    click.option("--filter", "filters", multiple=True, metavar="FILTER",
                 help="Audit search under this filter as a slice (see `ragcore search`); may be "
                 "repeated."),
    click.option("--target", type=click.FloatRange(0.0, 1.0, min_open=True), default=0.95,
                 show_default=True, help="Mean recall that every slice must hold."),
    click.option("--recall", type=click.Choice(["distance", "id", "distinct"]),
                 help="Count what is as near as the k-th (default), the same ids (default against "
                 "--exact-run), or distinct vectors."),
    click.option("--level", type=click.FloatRange(0.5, 0.9999, min_open=True), default=0.95,
                 show_default=True, help="Of the one-sided lower bounds."),
    click.option("--self-nodes", type=click.IntRange(0), default=10_000, show_default=True,
                 help="Nodes that are searched for their own vectors; 0 for none."),
    click.option("--threads", type=click.IntRange(1), default=1, show_default=True,
                 help="Of searches, the timed ones included."),
)  # fmt: skip
_LABELS = (
    click.option("--suite", help="Suite folder or name, for the loss in a measure of the end."),
    click.option("--qrels", type=click.Path(path_type=Path),
                 help="Judgements, for the loss in a measure of the end."),
    click.option("-m", "--measure", "measures", multiple=True,
                 help="Measure whose loss is wanted; default nDCG@10 where there are labels."),
)  # fmt: skip
_OTHERS = (
    click.option("--run", type=click.Path(path_type=Path),
                 help="Audit the lists that another engine recorded in this run instead."),
    click.option("--stage", help="Of RUN: a recorded stage instead of its final ranking."),
    click.option("--exact-run", type=click.Path(path_type=Path),
                 help="Take the truth from this run of an exact search; no INDEX is needed."),
)  # fmt: skip


@main.command()
@click.argument("index", required=False, type=click.Path(path_type=Path))
@click.argument("cases", required=False, type=click.Path(path_type=Path))
@options(_WHAT, _LABELS, _OTHERS, INPUT)
@output_options
def audit(
    index: Path | None, cases: Path | None, form: str, output: Path | None, **given: Any
) -> None:
    """Compare approximate search over INDEX with exact search, for the questions of CASES.

    Recall by ef, slice, shard and filter, against queries a second; the smallest ef that holds the
    target in every slice; nodes that cannot be reached; the loss in a measure of the end. Exit
    status 1 if no ef holds the target.

    \b
    Example:
      ragcore audit vectors.index cases.arrow -k 10 --ef 16,64,256 --by lang
      ragcore audit --run hnsw.arrow --exact-run exact.arrow --recall id
    """
    from ragcore.errors import UsageError

    if given["exact_run"] is not None:
        if given["run"] is None:
            raise UsageError("--exact-run is the truth of what?", "say --run RUN")
        if index is not None and cases is None:
            index, cases = None, index  # what stands alone is the cases
        report = _against_run(cases, given)
    elif index is None or cases is None:
        raise UsageError("an audit needs INDEX and CASES", "or --run and --exact-run")
    else:
        report = _against_vectors(index, cases, given)
    from ragcore.report import audit as pages

    table = pages.page(report, form) if form in FOR_PEOPLE else report.table()
    emit(table, form, output, given["level"])
    say_notes(report.notes)
    if not report.passed:
        sys.exit(1)


def _settings(given: dict[str, Any], recall: str, measures: tuple[str, ...] = ()) -> Any:
    from ragcore.audit_report import AuditSettings
    from ragcore.errors import UsageError
    from ragcore.filters import Filter

    try:
        efs = tuple(sorted({int(part) for part in given["efs"].split(",")}))
    except ValueError:
        efs = ()
    if not efs or efs[0] < 1:
        raise UsageError(f"--ef {given['efs']}", "whole numbers from 1 on, such as 16,32,64")
    return AuditSettings(
        tuple(sorted(set(given["ks"]))) or (10,), efs, tuple(given["by"]),
        tuple(Filter.parse(text) for text in given["filters"]), given["target"],
        given["recall"] or recall, given["level"], measures, given["self_nodes"],
        given["threads"],
    )  # fmt: skip


def _against_run(cases: Path | None, given: dict[str, Any]) -> Any:
    from ragcore.audit_runs import audit_against_run, recorded_lists
    from ragcore.questions import read_questions

    questions = None if cases is None else read_questions(cases, given["split"], any_columns=True)
    exact = recorded_lists(given["exact_run"])
    lists = recorded_lists(given["run"], given["stage"])
    return audit_against_run(exact, lists, _settings(given, "id"), questions)


def _against_vectors(index: Path, cases: Path, given: dict[str, Any]) -> Any:
    from ragcore.auditing import audit_index
    from ragcore.index.opened import open_index

    opened = open_index(index, chunks=given["chunks"])
    questions = questions_of(cases, opened, given)
    vectors = vectors_for(index, opened, questions, given)
    if given["run"] is not None:
        from ragcore.audit_runs import audit_run, recorded_lists

        lists = recorded_lists(given["run"], given["stage"])
        return audit_run(opened, questions, vectors, lists, _settings(given, "distance"))
    suite, measures = given["suite"], tuple(given["measures"])
    labelled = questions.suite is not None and "evidence" in questions.table.column_names
    if suite is None and given["qrels"] is None and labelled:
        suite = str(cases)
    if not measures and (suite is not None or given["qrels"] is not None):
        measures = ("nDCG@10",)
    settings = _settings(given, "distance", measures)
    with Progress() as progress:
        return audit_index(
            opened, questions, vectors, settings, suite=suite, qrels=given["qrels"],
            progress=progress,
        )  # fmt: skip
