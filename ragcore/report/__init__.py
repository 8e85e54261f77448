"""Tables for people and for programs."""
