"""The plugin host: folders on the path go in, a catalogue of who offers what comes out; broken plugins are named in it.

Read in this order: ``scan`` finds distributions, ``reading`` turns one into a ``Record`` without running it, ``index``
remembers records and verdicts, ``policy`` says who takes part, ``catalogue`` answers who offers what, ``trial`` tries a
first import in a child process, ``registration`` checks hooks and offers. Nothing here is imported until it is used:
``harness plugins list`` must stay light.
"""

from __future__ import annotations

__all__: list[str] = []
