"""``python -m harness_core`` is the command ``harness``."""

from harness_core.cli.main import main

raise SystemExit(main())
