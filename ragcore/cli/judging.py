"""`ragcore judges`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ragcore.cli.shared import FOR_PEOPLE, emit, main, options, output_options, say_notes

_WHAT = (
    click.option("--suite", help="Suite folder or name: its cases, and the rung that each needs."),
    click.option("--against", type=click.Choice(
                     ["rule", "reference", "model", "human", "domain", "authority"]),
                 default="human", show_default=True,
                 help="Least rung that judges below it are held against."),
    click.option("--compare", nargs=2, metavar="JUDGE JUDGE",
                 help="Two judges on the same items; judge@version where there are several."),
    click.option("--run", "runs", type=click.Path(path_type=Path), multiple=True,
                 help="Run whose frozen outputs count as what they replay, and the run that they "
                 "replay; may be repeated."),
    click.option("-m", "--measure", "measures", multiple=True,
                 help="With --compare, --suite and --run: score it with the verdicts of either "
                 "judge alone; may be repeated."),
    click.option("--judge", "declared", default="",
                 help="The judge that counts among equals; else the suite's."),
    click.option("--level", type=click.FloatRange(0.5, 0.9999, min_open=True), default=0.95,
                 show_default=True, help="Of the intervals."),
)  # fmt: skip
_FILES = (
    click.option("--queue", type=click.Path(dir_okay=False, path_type=Path),
                 help="Write what people have to settle to this file: .arrow, .jsonl or .tsv."),
    click.option("--sample", type=click.Path(dir_okay=False, path_type=Path),
                 help="Write the cases to audit to this file: .arrow, .jsonl or .tsv."),
    click.option("--seed", type=click.IntRange(0, 2**64 - 1),
                 help="Of the audit sample; to be declared with the release."),
)  # fmt: skip


@main.command()
@click.argument("judgments", nargs=-1, required=True, type=click.Path(path_type=Path))
@options(_WHAT, _FILES)
@output_options
def judges(
    judgments: tuple[Path, ...], form: str, output: Path | None, **given: Any
) -> None:  # fmt: skip
    """Look at the judges behind the verdicts of JUDGMENTS.

    What is decided on which rung; agreement of every pair; each judge against a higher rung, with
    the share that people would give; what changes with the judge; what people have to settle.

    \b
    Example:
      ragcore judges data/mosaic/judgments/*.arrow --suite data/mosaic --queue queue.jsonl
      ragcore judges data/mosaic/judgments/*.arrow --compare literal@1 quantities@1
    """
    from ragcore.errors import UsageError
    from ragcore.judges.review import review

    if (given["sample"] is None) != (given["seed"] is None):
        raise UsageError("an audit sample needs a file and a seed", "--sample FILE --seed N")
    for name in ("queue", "sample"):
        _form_of(given[name])
    found = review(
        list(judgments), suite=given["suite"], against=given["against"],
        compare=given["compare"] or None, runs=given["runs"], seed=given["seed"],
        measures=given["measures"], declared=given["declared"], level=given["level"],
    )  # fmt: skip
    from ragcore.judges.queue import rows_of_text
    from ragcore.report import judges as pages

    if given["queue"] is not None:
        _write(given["queue"], found.queue(), rows_of_text)
    if found.audit is not None:
        _write(given["sample"], found.audit.table, lambda table: table.to_pylist())
    table = pages.page(found, form) if form in FOR_PEOPLE else found.table()
    emit(table, form, output, given["level"])
    say_notes(found.notes)


def _form_of(path: Path | None) -> str:
    """The format that the ending of a file names."""
    from ragcore.errors import UsageError

    form = "arrow" if path is None else path.suffix.lower().lstrip(".")
    if form not in ("arrow", "jsonl", "tsv"):
        raise UsageError(f"format of {path}", "a file that ends in .arrow, .jsonl or .tsv")
    return form


def _write(path: Path, table: Any, flat: Any) -> None:
    form = _form_of(path)
    emit(flat(table) if form == "tsv" else table, form, path, 0.95)
