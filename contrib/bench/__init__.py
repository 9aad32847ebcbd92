"""Benchmarks: nothing goes in, one JSON line a figure comes out, beside a raw contestant measured in the same run.

``python -m contrib.bench [NAME...]`` runs them; a module here with ``NAME`` and ``run()`` is one, nothing lists them.
A figure is trusted as a ratio only: absolute times differ from machine to machine and from minute to minute.
"""
