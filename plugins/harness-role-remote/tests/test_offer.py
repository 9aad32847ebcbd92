"""What the distribution announces is what it offers."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import resources

import harness_role_remote
from harness_hookspecs.manifest import parse_manifest
from harness_hookspecs.offer import EXECUTOR_ROLES


def _read(name: str) -> bytes:
    return resources.files(harness_role_remote).joinpath(name).read_bytes()


def test_manifest_settings_and_offer_agree() -> None:
    manifest = parse_manifest(_read("harness-plugin.toml"), read=_read)
    [offer] = harness_role_remote.harness_provide_roles()
    [provided] = manifest.provides
    assert (offer.kind, offer.name) == (provided.kind, provided.name) == ("role", "remote")
    assert offer.roles == provided.roles == EXECUTOR_ROLES
    assert not provided.default  # installing it changes nobody
    assert offer.settings is not None
    assert json.loads(json.dumps(offer.settings().model_json_schema())) == provided.config


def test_it_declares_that_it_uses_the_network_and_secrets() -> None:
    manifest = parse_manifest(_read("harness-plugin.toml"), read=_read)
    assert manifest.capabilities is not None
    assert manifest.capabilities.network == ("${url}",)
    assert manifest.capabilities.secrets == ("${bearer}", "${headers}")


def test_listing_the_offer_imports_nothing_heavy() -> None:
    code = "import sys, harness_role_remote as p; p.harness_provide_roles(); print(sorted(sys.modules))"
    seen = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    heavy = ("pydantic", "http.client", "ssl", "jsonschema_rs", "subprocess")
    assert not [name for name in heavy if f"'{name}'" in seen]


def test_building_it_imports_no_client() -> None:
    code = "import sys, harness_role_remote.role; print(sorted(sys.modules))"
    seen = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not [name for name in ("http.client", "ssl") if f"'{name}'" in seen]
