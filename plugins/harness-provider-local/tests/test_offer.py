"""What the distribution announces is what it offers."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import resources

import harness_provider_local
from harness_hookspecs.manifest import parse_manifest


def _read(name: str) -> bytes:
    return resources.files(harness_provider_local).joinpath(name).read_bytes()


def test_manifest_settings_and_offer_agree() -> None:
    manifest = parse_manifest(_read("harness-plugin.toml"), read=_read)
    [offer] = harness_provider_local.harness_provide_providers()
    [provided] = manifest.provides
    assert (offer.kind, offer.name) == (provided.kind, provided.name) == ("provider", "local")
    assert offer.settings is not None
    assert json.loads(json.dumps(offer.settings().model_json_schema())) == provided.config
    assert manifest.capabilities is not None
    assert manifest.capabilities.native_code


def test_listing_the_offer_imports_nothing_heavy() -> None:
    code = "import sys, harness_provider_local as p; p.harness_provide_providers(); print(sorted(sys.modules))"
    seen = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    heavy = ("pydantic", "xllamacpp", "jsonschema_rs", "psutil", "subprocess")
    assert not [name for name in heavy if f"'{name}'" in seen]
