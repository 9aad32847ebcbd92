"""Settings of the random tests: no deadline, since machines are shared; a failure prints how to repeat it."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("harness", deadline=None, print_blob=True)
settings.load_profile("harness")
