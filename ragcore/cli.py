"""The command line: parse, call, print. Data to stdout, everything else to stderr."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from ragcore import __version__
from ragcore.errors import RagcoreError

FORMATS = ("table", "tsv", "jsonl", "md", "arrow")


class _Group(click.Group):
    """Turns the errors that a user can cause into one message and exit status 2."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except RagcoreError as error:
            click.echo(f"error: {error}", err=True)
            sys.exit(error.exit_code)
        except BrokenPipeError:
            sys.stderr.close()  # the reader of our output has gone: nothing more to say
            sys.exit(0)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version")
def main() -> None:
    """Score retrieval-augmented generation, exactly and fast.

    \b
    Example:
      ragcore score data/ka4/runs/*.arrow
    """


def output_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """-f and -o, the same for every command that gives a table."""
    command = click.option(
        "-o", "--output", type=click.Path(dir_okay=False, path_type=Path),
        help="Write to this file instead of stdout; it appears whole or not at all.",
    )(command)  # fmt: skip
    return click.option(
        "-f", "--format", "form", type=click.Choice(FORMATS), default="table", show_default=True,
        help="jsonl and arrow: all columns at full precision; tsv: four places.",
    )(command)  # fmt: skip


@main.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", type=click.Path(path_type=Path))
@click.option("--suite", help="Suite folder, or its name; else the one the run's manifest names.")
@click.option("--qrels", type=click.Path(path_type=Path), help="Judgements: TREC, Arrow, Parquet.")
@click.option(
    "-m",
    "--measure",
    "measures",
    multiple=True,
    help="nDCG@10, P(rel=2)@5, ndcg_cut_10, 'retrieval.*', ...; may be repeated.",
)
@click.option(
    "--by",
    multiple=True,
    metavar="SLICE",
    help="Slice by a column of the cases or of the run; may be repeated.",
)
@click.option("--per-case", is_flag=True, help="One row a case instead of the summary.")
@click.option(
    "--topics",
    type=click.Choice(["judged", "common"]),
    default="judged",
    show_default=True,
    help="Average over all judged cases, or those the run has.",
)
@click.option(
    "--no-relevant",
    type=click.Choice(["zero", "na"]),
    help="A case without relevant documents: zero (default with qrels), na (suites).",
)
@click.option(
    "--duplicates",
    type=click.Choice(["error", "first", "last", "max"]),
    default="error",
    show_default=True,
    help="A document twice in a ranking.",
)
@click.option(
    "--rel",
    type=int,
    default=1,
    show_default=True,
    help="Least grade that counts as relevant, where a measure does not say.",
)
@click.option(
    "--bounds",
    type=click.Choice(["ties", "holes"]),
    multiple=True,
    help="After each measure its values over all orders of tied scores (best, expected, "
    "worst), over what unjudged documents may be (best, worst); may be repeated.",
)
@click.option("--max-depth", type=click.IntRange(min=1), help="Ranks kept of every ranking.")
@click.option(
    "--drop-identical-ids", is_flag=True, help="Leave out the document whose id is the case's."
)
@click.option("--normalize-ids", type=click.Choice(["nfc"]), help="Compare ids in this form.")
@click.option("--float-grades", is_flag=True, help="Take grades like 1.0.")
@click.option("--allow-empty", is_flag=True, help="Score a run that has nothing for any case.")
@click.option(
    "--level",
    type=click.FloatRange(0.5, 0.9999),
    default=0.95,
    show_default=True,
    help="Of the intervals.",
)
@click.option("--threads", type=click.IntRange(min=1), help="Default: all processors.")
@output_options
def score(
    runs: tuple[Path, ...],
    suite: str | None,
    qrels: Path | None,
    measures: tuple[str, ...],
    by: tuple[str, ...],
    per_case: bool,
    level: float,
    form: str,
    output: Path | None,
    **policies: Any,
) -> None:
    """Score every RUN: each measure, over all cases and every slice.

    RUN is an Arrow, Feather, Parquet or TREC file (plain, gzip, zstd). Every value comes with
    its numerator and denominator, the cases it leaves out and why, and the exact interval.

    \b
    Example:
      ragcore score data/ka4/runs/*.arrow --by lang
      ragcore score run.trec --qrels qrels.txt -m nDCG@10 -m recip_rank -f jsonl
    """
    beside = _compile_beside()
    from ragcore.score import score as score_runs

    scores = score_runs(
        list(runs), suite=suite, qrels=qrels, measures=list(measures) or None, **policies
    )
    if beside is not None:
        beside.wait()
    if form == "arrow" or per_case:
        table = scores.table() if per_case else scores.summary(by, level)
    else:
        table = scores.rows(by, level)
    for run, audit in zip(scores.runs, scores.audits, strict=True):
        label = f"{run.name}: " if len(scores.runs) > 1 else ""
        for sentence in audit.warnings:
            click.echo(f"warning: {label}{sentence}", err=True)
    _emit(table, form, output, level)
    click.echo(_policy(scores), err=True)


def _policy(scores: Any) -> str:
    """One line on what the numbers rest on."""
    shown = ", ".join(f"{name.replace('_', '-')} {value}" for name, value in scores.policy.items())
    if scores.suite is None:
        return f"policy: {shown}"
    return f"suite {scores.suite.name}: {scores.suite.kind or 'kind not stated'}\npolicy: {shown}"


def _compile_beside() -> Any:
    """With an empty kernel cache, compile half of the kernels in another process; else None.

    The first score of all is mostly compilation, and Python compiles on one processor only.
    """
    from ragcore.threads import default_threads
    from ragcore_kernels._jit import CACHE_DIR

    if CACHE_DIR is None or any(CACHE_DIR.glob("*.nbi")):
        return None
    if sys.stderr.isatty():
        click.echo("compiling the kernels, once: about 8 s", err=True)
    if default_threads() < 2:
        return None
    import subprocess

    command = [sys.executable, "-m", "ragcore_kernels.warm"]
    away = subprocess.DEVNULL
    try:
        return subprocess.Popen(command, stdin=away, stdout=away, stderr=away)
    except OSError:
        return None


def _emit(table: Any, form: str, output: Path | None, level: float) -> None:
    """Write an Arrow table, or plain rows, where it is wanted."""
    from ragcore.report import table as report

    def write(stream: Any) -> None:
        if form == "arrow":
            report.write_arrow(table, stream)
        else:
            rows = table if isinstance(table, list) else table.to_pylist()
            stream.write(report.render(rows, form, level))

    if output is not None:
        with report.whole_file(output) as file:
            write(file)
        return
    if form == "arrow" and sys.stdout.isatty():
        raise click.UsageError("arrow is binary: give -o FILE")
    try:
        stdout = sys.stdout.buffer
        write(stdout)
        stdout.flush()
    except BrokenPipeError:
        raise
    except (OSError, AttributeError) as error:  # no room, or closed
        sys.stdout = None  # else what is left in it fails again at exit
        reason = error if isinstance(error, OSError) else "it is closed"
        raise RagcoreError(f"stdout cannot be written: {reason}") from None


@main.command()
@click.argument("measure", required=False)
def explain(measure: str | None) -> None:
    """Say what MEASURE is: formula, when it is not applicable, needs, source, other names.

    Without MEASURE, list them all.

    \b
    Example:
      ragcore explain nDCG@10
    """
    from ragcore.explain import explain_measure, list_measures
    from ragcore.measures import registry

    if measure is None:
        click.echo(list_measures(registry.definitions()))
    else:
        click.echo("\n\n".join(explain_measure(m) for m in registry.parse([measure])))


@main.command()
@click.option("--warm", is_flag=True, help="Compile every kernel now and keep it.")
def doctor(warm: bool) -> None:
    """Versions, threads and the kernel cache; --warm compiles the kernels ahead.

    \b
    Example:
      ragcore doctor --warm
    """
    from ragcore.doctor import examine, warm_up

    if warm:
        click.echo(warm_up(), err=True)
    click.echo(examine())
