"""Measures of claims against references and context."""

from __future__ import annotations

from ragcore.measures.definitions import Definition

DEFINITIONS: tuple[Definition, ...] = ()
