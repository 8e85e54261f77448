"""`ragcore sweep`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ragcore.cli.shared import FOR_PEOPLE, Progress, emit, main, output_options, say_notes


@main.command()
@click.argument("file", metavar="SWEEP.toml", type=click.Path(path_type=Path))
@click.option(
    "--state", type=click.Path(file_okay=False, path_type=Path), metavar="DIR",
    help="Folder that keeps finished steps, so that a killed sweep goes on; default: beside "
    "SWEEP.toml, with the ending .sweep.",
)  # fmt: skip
@click.option("--curve", is_flag=True, help="Give the curve of the threshold instead of the rows.")
@click.option("--threads", type=click.IntRange(min=1), help="Default: all processors.")
@output_options
def sweep(
    file: Path, state: Path | None, curve: bool, threads: int | None, form: str,
    output: Path | None,
) -> None:  # fmt: skip
    """Run the experiments of SWEEP.toml, each one named deviation from production.

    One wide run is searched and recorded, or one that was recorded is replayed; every row is
    replayed from it, scored, and compared with production, paired by case. Rows that were finished
    before are not computed again.

    \b
    Example:
      ragcore sweep sweep.toml
    """
    from ragcore.experiments.verb import sweep as run
    from ragcore.report import sweep as report

    with Progress() as progress:
        found = run(file, state=state, threads=threads, progress=progress)
    say_notes([f"warning: {line}" for line in found.warnings])
    say_notes([f"note: {line}" for line in found.notes])
    level = found.about["level"]
    table: Any = found.thresholds() if curve else found.table()
    if form in FOR_PEOPLE:
        emit(report.curve_page(found, form) if curve else report.page(found, form), form, output,
             level)  # fmt: skip
    else:
        emit(table, form, output, level)
    steps = ", ".join(f"{n} {kind}" for kind, n in found.kept.items() if n)
    if steps:
        click.echo(f"kept from before: {steps}", err=True)
