"""Measures of what the generator made of its context."""

from __future__ import annotations

from ragcore.measures.definitions import Definition

DEFINITIONS: tuple[Definition, ...] = ()
