"""`python -m ragcore`."""

from ragcore.cli import main

main()
