"""Errors that a user can cause: where, what was found, what was expected, and how to mend it."""

import pytest

from ragcore.errors import InputError, RagcoreError, UsageError


def test_input_error__says_where_what_and_how():
    error = InputError("run.trec", "5 fields", "6 fields", "add a tag", line=7)
    assert str(error) == "run.trec:7: 5 fields; expected 6 fields\n  hint: add a tag"
    assert (error.where, error.line, error.row) == ("run.trec", 7, None)
    assert (
        str(InputError("run 1", "null id", "an id", row=3))
        == "run 1 row 3: null id; expected an id"
    )
    assert str(InputError("x", "a", "b")) == "x: a; expected b"


def test_usage_error__has_a_hint_or_none():
    assert (
        str(UsageError("no such measure", "see the list"))
        == "no such measure\n  hint: see the list"
    )
    assert str(UsageError("no")) == "no"


@pytest.mark.parametrize("kind", [InputError, UsageError])
def test_errors__share_a_base_and_an_exit_status(kind):
    assert issubclass(kind, RagcoreError)
    assert kind.exit_code == 2
