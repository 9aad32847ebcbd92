"""The driver: what the store loads of peewee, and what everybody else finds of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PSYCOPG = {
    "__init__.py": "",
    "pq.py": "class TransactionStatus:\n    IDLE = INERROR = UNKNOWN = 0\n",
    "types/__init__.py": "",
    "types/json.py": "Json = Jsonb = dict\n",
}
STORE = "import sys; sys.path.insert(0, sys.argv[1]); import harness_store_sqlite.store as store; "


def said(folder: Path, code: str) -> str:
    for name, content in PSYCOPG.items():
        file = folder / "psycopg" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8")
    return subprocess.run([sys.executable, "-c", code, folder], check=True, capture_output=True, text=True).stdout


def test_the_store_loads_no_driver_of_another_database(tmp_path: Path) -> None:
    assert said(tmp_path, f"{STORE} print('psycopg' in sys.modules)") == "False\n"


def test_who_imports_peewee_beside_the_store_gets_every_driver(tmp_path: Path) -> None:
    assert said(tmp_path, f"{STORE} import peewee; print(peewee.psycopg.__path__[0])") == f"{tmp_path / 'psycopg'}\n"


def test_the_store_takes_the_peewee_that_somebody_has_imported(tmp_path: Path) -> None:
    code = f"import peewee; {STORE} print(store.SqliteDatabase is peewee.SqliteDatabase)"
    assert said(tmp_path, code) == "True\n"
