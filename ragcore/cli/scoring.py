"""`ragcore score` and `ragcore compare`."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import click

from ragcore.cli.shared import (
    FOR_PEOPLE,
    compile_beside,
    emit,
    main,
    options,
    output_options,
    policy,
    say,
)

_SCORING = (
    click.option(
        "--suite", help="Suite folder, or its name; else the one the run's manifest names."
    ),
    click.option(
        "--qrels", type=click.Path(path_type=Path), help="Judgements: TREC, Arrow, Parquet."
    ),
    click.option(
        "--judgments",
        type=click.Path(path_type=Path),
        multiple=True,
        help="Verdicts, Arrow or Parquet; else the suite's own folder of them; may be repeated.",
    ),
    click.option(
        "-m",
        "--measure",
        "measures",
        multiple=True,
        help="nDCG@10, P(rel=2)@5, ndcg_cut_10, 'retrieval.*', ...; may be repeated.",
    ),
    click.option(
        "--by",
        multiple=True,
        metavar="SLICE",
        help="Slice by a column of the cases or of the run; may be repeated.",
    ),
    click.option(
        "--topics",
        type=click.Choice(["judged", "common"]),
        default="judged",
        show_default=True,
        help="Average over all judged cases, or those the run has.",
    ),
    click.option(
        "--no-relevant",
        type=click.Choice(["zero", "na"]),
        help="A case without relevant documents: zero (default with qrels), na (suites).",
    ),
    click.option(
        "--duplicates",
        type=click.Choice(["error", "first", "last", "max"]),
        default="error",
        show_default=True,
        help="A document twice in a ranking.",
    ),
    click.option(
        "--rel",
        type=int,
        default=1,
        show_default=True,
        help="Least grade that counts as relevant, where a measure does not say.",
    ),
    click.option(
        "--bounds",
        type=click.Choice(["ties", "holes"]),
        multiple=True,
        help="After each measure its values over all orders of tied scores (best, expected, "
        "worst), over what unjudged documents may be (best, worst); may be repeated.",
    ),
    click.option("--max-depth", type=click.IntRange(min=1), help="Ranks kept of every ranking."),
    click.option(
        "--drop-identical-ids", is_flag=True, help="Leave out the document whose id is the case's."
    ),
    click.option("--normalize-ids", type=click.Choice(["nfc"]), help="Compare ids in this form."),
    click.option("--float-grades", is_flag=True, help="Take grades like 1.0."),
    click.option("--allow-empty", is_flag=True, help="Score a run that has nothing for any case."),
    click.option("--threads", type=click.IntRange(min=1), help="Default: all processors."),
    click.option(
        "--level",
        type=click.FloatRange(0.5, 0.9999),
        default=None,
        help="Of the intervals; default 0.95, or the plan's.",
    ),
)
_GATES = (
    click.option(
        "--gate", "gates", multiple=True, metavar="EXPR",
        help="Fail with exit status 1 unless this holds: 'nDCG@10 >= 0.4', "
        "'R@5[lang=zh].ci_low >= 0.9', 'delta(R@5).ci_low > -0.01', 'Unjudged@5.count == 0'; "
        "'hard': no single trace shows an unauthorised, forbidden or deleted unit, a prohibited "
        "effect or claim, a fabricated or invalid citation, an answer where none may be given, or "
        "an unsupported high-stakes claim; one of them: 'hard.fabricated == 0'; may be repeated.",
    ),
    click.option(
        "--plan", type=click.Path(path_type=Path),
        help="TOML file with what was registered before: primary, guards, measures, gates, hard.",
    ),
)  # fmt: skip


@main.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", type=click.Path(path_type=Path))
@options(_SCORING)
@click.option("--per-case", is_flag=True, help="One row a case instead of the summary.")
@click.option(
    "--baseline",
    type=click.Path(path_type=Path),
    help="Compare every RUN with this one: adds deltas, for gates on delta(...).",
)
@options(_GATES)
@output_options
def score(runs: tuple[Path, ...], baseline: Path | None, **options: Any) -> None:
    """Score every RUN: each measure, over all cases and every slice.

    RUN is an Arrow, Feather, Parquet or TREC file (plain, gzip, zstd). Every value comes with
    its numerator and denominator, the cases it leaves out and why, and the exact interval.

    \b
    Example:
      ragcore score data/ka4/runs/*.arrow --by lang
      ragcore score data/ka4/runs/filtered.arrow --gate 'end_to_end >= 0.6'
      ragcore score run.trec --qrels qrels.txt -m nDCG@10 -m recip_rank -f jsonl
    """
    if baseline is None:
        _score(runs, **options)
    else:
        _compare(baseline, runs, brief=True, **options)


def _score(
    runs: tuple[Path, ...],
    measures: tuple[str, ...],
    by: tuple[str, ...],
    per_case: bool,
    level: float | None,
    gates: tuple[str, ...],
    plan: Path | None,
    form: str,
    output: Path | None,
    **policies: Any,
) -> None:
    """What `score` does without a baseline."""
    beside = compile_beside()
    from ragcore.gates import gates_of, registered, slices_for
    from ragcore.plan import Plan, read_plan
    from ragcore.score import score as score_runs

    given = read_plan(plan) if plan is not None else Plan()
    known = registered(given)
    asked = gates_of(given, gates, baseline=False)
    level = level or given.level or 0.95
    columns = slices_for(asked, [*by, *given.by])
    also = [*given.registered, *(gate.measure for gate in asked)]
    scores = score_runs(list(runs), measures=list(measures) or None, also=also, **policies)
    if beside is not None:
        beside.wait()
    results: list[Any] = []
    if asked:
        from ragcore.gatekeeper import Gatekeeper  # it knows comparisons, and loads their kernels

        results = Gatekeeper(scores.runs, (), level).check(asked, columns)
    if form == "arrow" or per_case:
        table = scores.table() if per_case else scores.summary(columns, level, known)
    else:
        table = scores.rows(columns, level, known)
    _warn(scores)
    _expected(scores)
    emit(table, form, output, level)
    click.echo(policy(scores), err=True)
    _finish(results, form, output)


@main.command()
@click.argument("baseline", type=click.Path(path_type=Path))
@click.argument(
    "candidates", nargs=-1, required=True, metavar="CANDIDATE...", type=click.Path(path_type=Path)
)
@options(_SCORING)
@click.option("--per-case", is_flag=True, help="One row a case: who won, by how much.")
@click.option(
    "--primary",
    multiple=True,
    metavar="MEASURE",
    help="Measure that decides; may be repeated: the first one with room for a difference does.",
)
@click.option(
    "--guard",
    "guards",
    multiple=True,
    metavar="MEASURE=MARGIN",
    help="Measure that must not fall by more than the margin; may be repeated.",
)
@click.option(
    "--pairs",
    type=click.Choice(["baseline", "all"]),
    default="baseline",
    show_default=True,
    help="Compare candidates with the baseline, or all runs with each other.",
)
@click.option(
    "--unmatched",
    type=click.Choice(["leave", "error"]),
    default="leave",
    show_default=True,
    help="Cases, languages or repeats of one run only: leave out and count, or refuse.",
)
@click.option(
    "--stratify",
    metavar="COLUMN",
    help="Resample the cases of each value of this column apart, for the interval over all cases.",
)
@options(_GATES)
@output_options
def compare(baseline: Path, candidates: tuple[Path, ...], **options: Any) -> None:
    """Compare each CANDIDATE with BASELINE, paired by case.

    Every difference comes with its exact interval, the exact two-sided sign-flip p-value, the
    cases won and lost, and how much room the baseline leaves. A plan, or --primary, gives a
    verdict with its reasons.

    \b
    Example:
      ragcore compare data/ka4/runs/baseline.arrow data/ka4/runs/filtered.arrow -m end_to_end
    """
    _compare(baseline, candidates, **options)


def _compare(
    baseline: Path,
    candidates: tuple[Path, ...],
    measures: tuple[str, ...],
    by: tuple[str, ...],
    per_case: bool,
    level: float | None,
    gates: tuple[str, ...],
    plan: Path | None,
    form: str,
    output: Path | None,
    brief: bool = False,
    **policies: Any,
) -> None:
    """What `compare`, and `score --baseline`, do."""
    beside = compile_beside("tests")
    from ragcore.compare import compare as compare_runs
    from ragcore.report import comparison as report

    if "guards" in policies:
        policies["guards"] = _margins(policies["guards"])
    found = compare_runs(
        baseline, list(candidates), measures=list(measures) or None, by=list(by), level=level,
        plan=plan, gates=gates, **policies,
    )  # fmt: skip
    if beside is not None:
        beside.wait()
    results = found.check(gates)
    level = found.settings.level
    _warn(found.scores)
    for one in found.contrasts:
        for sentence in one.unmatched.sentences():
            click.echo(f"warning: {one.after.name}: {sentence}", err=True)
    if form == "arrow":
        emit(found.cases() if per_case else found.summary(), form, output, level)
    elif per_case:
        emit(found.cases(), form, output, level)
    elif form in FOR_PEOPLE:
        emit(report.page(found, form, brief), form, output, level)
    else:
        emit(found.summary(), form, output, level)
    if form not in FOR_PEOPLE or per_case:
        for line in report.verdict_lines(found):
            click.echo(line, err=True)
    click.echo(policy(found.scores), err=True)
    _finish(results, form, output)


def _margins(texts: tuple[str, ...]) -> dict[str, float]:
    out = {}
    for text in texts:
        match = re.fullmatch(r"(.+)=([^=()@]+)", text)  # P(rel=2)@5 alone has no margin
        try:
            out[match[1] if match else text] = float(match[2]) if match else 0.0
        except ValueError:
            raise click.UsageError(f"--guard {text!r}: say MEASURE=MARGIN, as R@5=0.01") from None
    return out


def _warn(scores: Any) -> None:
    from ragcore.casewise import repeats

    for run, audit in zip(scores.runs, scores.audits, strict=True):
        label = f"{run.name}: " if len(scores.runs) > 1 else ""
        for sentence in audit.warnings:
            click.echo(f"warning: {label}{sentence}", err=True)
        if sentence := repeats(run):
            click.echo(f"note: {label}{sentence}", err=True)
        if "threshold_split" in run.manifest:
            from ragcore.contrast import taint_of

            if sentence := taint_of(run):
                click.echo(f"warning: {label}{sentence}", err=True)


def _expected(scores: Any) -> None:
    """Say how values stand to those that the suite expects; only what differs is named."""
    from ragcore.expectations import SAME, expectations

    found = expectations(scores)
    for one in found:
        if one.status != SAME:
            click.echo(f"warning: {one.sentence()}", err=True)
    if same := sum(one.status == SAME for one in found):
        click.echo(f"note: {same} of {len(found)} values as the suite expects them", err=True)


def _finish(results: list[Any], form: str, output: Path | None) -> None:
    """Print what became of the gates; exit status 1 unless all passed."""
    if not results:
        return
    from ragcore.report import comparison as report

    text = report.gate_table(results, "md" if form == "md" else "table")
    to_stdout = form in FOR_PEOPLE and output is None
    say(text, not to_stdout)
    if not all(result.met for result in results):
        sys.exit(1)
