"""Takes the models of the project, writes their JSON Schemas into the package's data, or says which are out of date.

``python contrib/schemas.py`` writes, ``--check`` only compares (exit 1). To be run with the project installed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from harness_core.cli.published import file_name, generated

__all__ = ["main"]

FOLDER = Path(__file__).resolve().parent.parent / "harness_core" / "schemas"


def main(argv: Sequence[str] | None = None) -> int:
    """Write or compare; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args(argv).check
    wanted = {file_name(name): _text(schema) for name, schema in generated().items()}
    present = {file.name: file.read_text(encoding="utf-8") for file in FOLDER.glob("*.json")}
    stale = sorted(name for name in wanted.keys() | present.keys() if wanted.get(name) != present.get(name))
    for name in stale:
        print(f"{'stale' if check else 'written' if name in wanted else 'removed'}: {name}")
        if not check:
            _put(FOLDER / name, wanted.get(name))
    return 1 if stale and check else 0


def _text(schema: object) -> str:
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _put(file: Path, text: str | None) -> None:
    if text is None:
        file.unlink()
    else:
        file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
