"""`ragcore diagnose`."""

from __future__ import annotations

from pathlib import Path

import click

from ragcore.cli.shared import FOR_PEOPLE, compile_beside, emit, main, output_options, policy

TABLES = ("traces", "counts", "hard", "isolation")


@main.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", type=click.Path(path_type=Path))
@click.option("--suite", help="Suite folder, or its name; else the one the run's manifest names.")
@click.option(
    "--judgments",
    type=click.Path(path_type=Path),
    multiple=True,
    help="Verdicts, Arrow or Parquet; else the suite's own folder of them; may be repeated.",
)
@click.option(
    "--outcome",
    default="end_to_end",
    show_default=True,
    metavar="MEASURE",
    help="Measure of success, from 0 to 1, of an isolation.",
)
@click.option(
    "--crossed",
    metavar="G1R1,G1R2,G2R1,G2R2",
    help="Names of four runs: two generators, each on two retrievers.",
)
@click.option(
    "--what",
    type=click.Choice(TABLES),
    default="traces",
    show_default=True,
    help="Which table to write as tsv, jsonl or arrow; table and md have all of them.",
)
@click.option(
    "--level",
    type=click.FloatRange(0.5, 0.9999),
    default=0.95,
    show_default=True,
    help="Of the intervals.",
)
@click.option("--threads", type=click.IntRange(min=1), help="Default: all processors.")
@output_options
def diagnose(
    runs: tuple[Path, ...],
    suite: str | None,
    judgments: tuple[Path, ...],
    outcome: str,
    crossed: str | None,
    what: str,
    level: float,
    threads: int | None,
    form: str,
    output: Path | None,
) -> None:
    """Say where the cases of every RUN fail: first failing layer, eight layers, joint matrix.

    Replays among the runs (conditions oracle_context, frozen_context, frozen_output, with `pair`)
    attribute failures; closed_book, gold_context, retrieved and retrieved_distractors isolate
    generator and retriever. Hard gates are checked on every single trace, and reported; to fail on
    them use score --gate hard.

    \b
    Example:
      ragcore diagnose data/ka4/runs/*.arrow
      ragcore diagnose data/ka4/runs/baseline.arrow --what counts -f jsonl
    """
    beside = compile_beside()
    from ragcore.diagnose import diagnose as find
    from ragcore.diagnosis import rows
    from ragcore.report import diagnosis as report

    names = tuple(part.strip() for part in crossed.split(",")) if crossed else ()
    found = find(
        list(runs), suite=suite, judgments=list(judgments) or None, outcome=outcome, crossed=names,
        level=level, threads=threads,
    )  # fmt: skip
    if beside is not None:
        beside.wait()
    own = {run.name for run in found.observed}  # a replay need not have every case
    for run, audit in zip(found.scores.runs, found.scores.audits, strict=True):
        for sentence in audit.warnings if run.name in own else ():
            click.echo(f"warning: {run.name}: {sentence}", err=True)
    if form in FOR_PEOPLE:
        emit(report.page(found, form), form, output, level)
    else:
        emit(rows.table(found, what), form, output, level)
    click.echo(policy(found.scores), err=True)
