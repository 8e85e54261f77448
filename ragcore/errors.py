"""What a user can cause, and the exit status that each error leads to."""

from __future__ import annotations

from os import PathLike


class RagcoreError(Exception):
    """Base of every error that a user can cause; the command line exits with `exit_code`."""

    exit_code = 2


class InputError(RagcoreError):
    """A file, a table or an option breaks its contract.

    Parameters
    ----------
    where : the file, or the name of the table when it came from memory.
    found, wanted : what stands there, and what was expected.
    hint : how to mend it.
    line, row : position, counted from 1; a line for text, a row for tables.
    """

    def __init__(
        self,
        where: str | PathLike[str],
        found: str,
        wanted: str,
        hint: str = "",
        *,
        line: int | None = None,
        row: int | None = None,
    ) -> None:
        self.where, self.found, self.wanted, self.hint = str(where), found, wanted, hint
        self.line, self.row = line, row
        place = f":{line}" if line is not None else f" row {row}" if row is not None else ""
        text = f"{self.where}{place}: {found}; expected {wanted}"
        super().__init__(f"{text}\n  hint: {hint}" if hint else text)


class UsageError(RagcoreError):
    """An argument that cannot be honoured: an unknown measure, slice or policy."""

    def __init__(self, message: str, hint: str = "") -> None:
        self.hint = hint
        super().__init__(f"{message}\n  hint: {hint}" if hint else message)
