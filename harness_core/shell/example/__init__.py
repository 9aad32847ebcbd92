"""The demonstration's project, as package data: a small history for git and the files of its ``.harness``."""
