"""Bugs on purpose, each in a module of its own that replaces one function; a test finds every one of them."""
