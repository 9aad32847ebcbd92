"""Benchmarks: nothing goes in, one JSON line a figure comes out, beside a raw contestant measured in the same run.

``python -m contrib.bench [NAME...]`` runs them; a module here with ``NAME`` and ``run()`` is one, nothing lists them.
``python -m contrib.bench.modes MODE [COUNT]`` does one thing once and prints one line, to run other runtimes beside it.
A figure is trusted as a ratio only: absolute times differ from machine to machine and from minute to minute.
"""
