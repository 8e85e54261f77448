"""What commands share: the group, options, warnings, writing a table."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from ragcore import __version__
from ragcore.errors import RagcoreError

FORMATS = ("table", "tsv", "jsonl", "md", "arrow")
FOR_PEOPLE = ("table", "md")


class Group(click.Group):
    """Turns the errors that a user can cause into one message and exit status 2."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command, and say what went wrong."""
        try:
            return super().invoke(ctx)
        except RagcoreError as error:
            click.echo(f"error: {error}", err=True)
            sys.exit(error.exit_code)
        except BrokenPipeError:
            sys.stderr.close()  # the reader of our output has gone: nothing more to say
            sys.exit(0)


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
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


def policy(scores: Any) -> str:
    """One line on what the numbers rest on."""
    shown = ", ".join(f"{name.replace('_', '-')} {value}" for name, value in scores.policy.items())
    if scores.suite is None:
        return f"policy: {shown}"
    said = [f"suite {scores.suite.name}: {scores.suite.kind or 'kind not stated'}"]
    said += [f"cannot show: {limit}" for limit in scores.suite.settings.get("cannot_show", ())]
    return "\n".join([*said, f"policy: {shown}"])


def compile_beside(*parts: str) -> Any:
    """With an empty kernel cache, compile half of the kernels in another process; else None.

    `parts` are arguments of `ragcore_kernels.warm`.

    The first score of all is mostly compilation, and Python compiles on one processor only.
    """
    from ragcore.threads import default_threads
    from ragcore_kernels._jit import CACHE_DIR

    if CACHE_DIR is None or any(CACHE_DIR.glob("*.nbi")):
        return None
    if sys.stderr.isatty():
        click.echo(f"compiling the kernels, once: about {18 if parts else 11} s", err=True)
    if default_threads() < 2:
        return None
    import subprocess

    command = [sys.executable, "-m", "ragcore_kernels.warm", *parts]
    away = subprocess.DEVNULL
    try:
        return subprocess.Popen(command, stdin=away, stdout=away, stderr=away)
    except OSError:
        return None


def emit(table: Any, form: str, output: Path | None, level: float) -> None:
    """Write an Arrow table, plain rows, or text that is rendered already, where it is wanted."""
    from ragcore.report import table as report

    def write(stream: Any) -> None:
        if form == "arrow":
            report.write_arrow(table, stream)
        elif isinstance(table, bytes):
            stream.write(table)
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


def say(text: str, err: bool) -> None:
    """Print a block of text, after an empty line where it follows a table."""
    click.echo(text.rstrip("\n") if err else f"\n{text.rstrip()}", err=err)


def options(*groups: tuple[Callable[[Any], Any], ...]) -> Callable[[Any], Any]:
    """Options in the order in which they stand."""

    def decorate(command: Any) -> Any:
        for option in reversed([option for group in groups for option in group]):
            command = option(command)
        return command

    return decorate


def say_notes(notes: list[str]) -> None:
    """Print what was noticed to stderr, one line each."""
    for note in notes:
        click.echo(note, err=True)


class Progress:
    """Progress with its rate, on a terminal only, for stages that take over a second."""

    def __init__(self) -> None:
        self._stage, self._began, self._shown, self._open = "", 0.0, 0.0, False

    def __enter__(self) -> Progress:
        """Begin."""
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the line clean."""
        if self._open:
            click.echo("\r\x1b[K", nl=False, err=True)

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Show what is done of a stage."""
        if not sys.stderr.isatty():
            return
        now = time.monotonic()
        if stage != self._stage:
            self._stage, self._began, self._shown = stage, now, now
        spent = now - self._began
        if spent < 1.0 or now - self._shown < 0.2:
            return
        self._shown, self._open = now, True
        rate = done / spent
        left = f", {(total - done) / rate:.0f} s left" if rate > 0 else ""
        line = f"{stage} {done:,}/{total:,} ({rate:,.0f}/s{left})"
        click.echo(f"\r\x1b[K{line}", nl=False, err=True)
