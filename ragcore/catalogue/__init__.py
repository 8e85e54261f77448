"""The suites that there are: where they lie, what they say of themselves, how they are run."""
