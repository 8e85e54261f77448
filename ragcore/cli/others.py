"""The commands that explain measures and the installation, and plan a comparison."""

from __future__ import annotations

import click

from ragcore.cli.shared import main


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
