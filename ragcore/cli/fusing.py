"""`ragcore fuse`: several lists become one, cut once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ragcore.cli.shared import main


@main.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", type=click.Path(path_type=Path))
@click.option(
    "--method", type=click.Choice(["rrf", "combsum", "combmnz"]), default="rrf",
    show_default=True,
    help="Reciprocal ranks, or the sum of normalised scores, for combmnz times the number of lists "
    "that hold the document.",
)  # fmt: skip
@click.option(
    "--rrf-k", type=float, default=60, show_default=True,
    help="For rrf: each list adds weight / (K + rank), ranks from 1.",
)  # fmt: skip
@click.option(
    "--weight", "weights", type=float, multiple=True,
    help="Of each list, in their order; may be repeated; default 1.",
)  # fmt: skip
@click.option(
    "--normalise", type=click.Choice(["min-max", "z-score", "rank"]), default="min-max",
    show_default=True, help="For combsum and combmnz: how the scores of a list are scaled.",
)  # fmt: skip
@click.option(
    "--depth", type=click.IntRange(min=1),
    help="Documents kept of every fused list (context_k); default all. Nothing is cut before.",
)  # fmt: skip
@click.option(
    "--stage", "stages", multiple=True, metavar="NAME",
    help="Fuse this recorded stage instead of the final ranking: one for all runs, one for each, "
    "or several of a single run; may be repeated.",
)  # fmt: skip
@click.option(
    "--name", default="fused", show_default=True, help="Of the fused run, in its manifest."
)
@click.option("--no-stages", is_flag=True, help="Do not record the input lists in the result.")
@click.option(
    "--overlap-depth", type=click.IntRange(min=0),
    help="Depth at which pairs of lists are compared; default what is kept, else 10; 0 = not.",
)  # fmt: skip
@click.option("--threads", type=click.IntRange(min=1), help="Default: all processors.")
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), required=True,
    help="Arrow file of the fused run; it appears whole or not at all.",
)  # fmt: skip
def fuse(runs: tuple[Path, ...], output: Path, no_stages: bool, **options: Any) -> None:
    """Fuse the lists of every RUN, whole, and cut once.

    RUN is an Arrow, Feather, Parquet or TREC file (plain, gzip, zstd). Cases that only some runs
    have are kept. The result is a case batch that `ragcore score` reads.

    \b
    Example:
      ragcore fuse data/ka4/runs/baseline.arrow data/ka4/runs/filtered.arrow -o fused.arrow
      ragcore fuse data/ka4/runs/*.arrow --stage bm25 --depth 5 -o fused.arrow
    """
    from ragcore.fuse import fuse as fuse_runs

    weights = options.pop("weights")
    fused = fuse_runs(
        list(runs), weights=weights or None, stage=options.pop("stages"), stages=not no_stages,
        **options,
    )  # fmt: skip
    fused.write(output)
    for sentence in fused.warnings:
        click.echo(f"warning: {sentence}", err=True)
    for sentence in fused.notes:
        click.echo(f"note: {sentence}", err=True)
    click.echo(fused.settings.sentence(len(fused.lists)), err=True)
