"""Public collections as suites: an importer a collection, read from tables or official files.

An importer is a module with `build(tables)`, from tables by name to an `Imported`; and, where the
official distribution can be read, `official(folder)`, from its files to those tables.
"""
