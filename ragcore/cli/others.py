"""The commands that explain measures and the installation, and plan a comparison."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from ragcore.cli.shared import FOR_PEOPLE, emit, main, output_options


@main.command()
@click.argument("measure", required=False, metavar="[MEASURE | SCORES CASE]")
@click.argument("case", required=False, metavar="")
def explain(measure: str | None, case: str | None) -> None:
    """Say what MEASURE is: formula, when it is not applicable, needs, source, other names.

    Without MEASURE, list them all. With a file of SCORES and a CASE, say why the case got its
    scores: the arithmetic, layer by layer, and the first layer that fails.

    \b
    Example:
      ragcore explain nDCG@10
      ragcore explain scores.arrow stale-premise
    """
    if measure is not None and case is not None:
        from ragcore.explain_case import explain_case

        click.echo(explain_case(measure, case))
        return
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


@main.command()
@click.option("-n", "--cases", type=click.IntRange(min=1), help="Cases that there are.")
@click.option("--difference", type=float, help="Mean difference that is to be found.")
@click.option(
    "--discordance",
    type=float,
    required=True,
    help="Share of cases that are won or lost.",
)
@click.option("--power", "target", type=float, default=0.8, show_default=True,
              help="Probability of finding the difference.")  # fmt: skip
@click.option(
    "--level",
    type=click.FloatRange(0.5, 0.9999),
    default=0.95,
    show_default=True,
    help="Of the interval; the test has size 1 - level.",
)
@click.option(
    "--test",
    "tests",
    type=click.Choice(["interval", "sign-flip"]),
    multiple=True,
    help="How it is found: the exact interval lies above 0, or the exact p-value is small "
    "enough; default both.",
)
@output_options
def power(
    cases: int | None,
    difference: float | None,
    discordance: float,
    target: float,
    level: float,
    tests: tuple[str, ...],
    form: str,
    output: Path | None,
) -> None:
    """The smallest difference that some cases show, or the cases that a difference needs.

    For outcomes of 0 or 1, paired by case; exact, without simulation. With --cases and
    --difference both, the probability of finding it.

    \b
    Example:
      ragcore power --cases 200 --discordance 0.2
      ragcore power --difference 0.05 --discordance 0.2
    """
    from ragcore import power as exact

    if cases is None and difference is None:
        raise click.UsageError("say --cases, --difference, or both")
    rows = []
    for test in tests or exact.TESTS:
        if cases is None:
            assert difference is not None
            found = exact.cases_needed(difference, discordance, level, target, test)
        elif difference is None:
            found = exact.detectable(cases, discordance, level, target, test)
        else:
            found = exact.Power(
                test, cases, discordance, difference,
                exact.power_of(cases, discordance, difference, level, test), level, target,
            )  # fmt: skip
        rows.append(asdict(found))
    emit(
        _power_table(rows, form) if form in FOR_PEOPLE else _power_arrow(rows), form, output, level
    )


def _power_table(rows: list[dict[str, Any]], form: str) -> bytes:
    from ragcore.report.table import aligned, markdown

    head = ["test", "cases", "discordance", "difference", "power", "reason"]
    body = [
        [
            row["test"], "-" if row["n"] is None else str(row["n"]), f"{row['discordance']:g}",
            "-" if row["difference"] is None else f"{row['difference']:.6f}",
            "-" if row["power"] is None else f"{row['power']:.4f}", row["reason"],
        ]
        for row in rows
    ]  # fmt: skip
    if not any(row["reason"] for row in rows):
        head, body = head[:-1], [line[:-1] for line in body]
    lines = markdown(head, body) if form == "md" else aligned(head, body)
    return "".join(f"{line.rstrip()}\n" for line in lines).encode()


def _power_arrow(rows: list[dict[str, Any]]) -> Any:
    import pyarrow as pa

    from ragcore import schema

    return pa.Table.from_pylist(rows, schema=schema.POWER)
