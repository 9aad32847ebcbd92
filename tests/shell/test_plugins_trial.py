"""First imports: whatever a plugin does at import, the host lives, knows who it was and keeps the verdict."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from harness_core.shell.plugins.catalogue import Catalogue
from harness_core.shell.plugins.index import Index, open_index
from harness_core.shell.plugins.policy import Named, Selection
from harness_core.shell.plugins.trial import try_imports
from harness_core.shell.ports import make_ports
from harness_hookspecs.contracts.distribution import make_distribution, offers_code
from harness_hookspecs.host import Completed, Processes
from harness_hookspecs.manifest import Flaw

PROCESSES: Processes = make_ports("threads").processes
TOOL = ({"kind": "tool", "name": "acme"},)
GOOD = offers_code(TOOL)
HOOK = "from harness_hookspecs.markers import hookimpl\nfrom harness_hookspecs.offer import Offer\n"

def forged(verdict: str) -> str:
    """A module that writes a line as the child of the trial does, as far as it can know how."""
    line = f"'\\n' + getattr(__main__, 'MARK', '') + {verdict!r} + '\\n'"
    return f"{GOOD}\nimport __main__, os\nos.write(1, ({line}).encode())"


IMPORTS = {
    "raises": ("import nothing_there", "HP030", "ModuleNotFoundError"),
    "does not parse": ("def (", "HP030", "SyntaxError"),
    "raises beyond Exception": ("class Odd(BaseException): pass\nraise Odd('x')", "HP030", "Odd: x"),
    "exits": ("import sys\nsys.exit(3)", "HP031", "SystemExit: 3"),
    "interrupts": ("raise KeyboardInterrupt", "HP031", "KeyboardInterrupt"),
    "ends the process": ("import os\nos._exit(0)", "HP031", "exit code 0"),
    "crashes": ("import ctypes\nctypes.string_at(0)", "HP031", "signal"),
    "prints": (f"print('hello')\n{GOOD}", "HP033", "'hello'"),
    "writes past Python": (f"import os\nos.write(1, b'hello')\n{GOOD}", "HP033", "'hello'"),
    "prints more than is kept": (f"print('x' * 1_048_600)\n{GOOD}", "HP033", "'xxx"),
    "prints a verdict that is none": (forged("{broken"), "HP033", "{broken"),
    "prints an empty verdict": (forged("[]"), "HP033", "[]"),
    "prints a verdict of another shape": (forged('["end", 0, [[1, 2, 3, 4, 5, 6]]]'), "HP033", "[[1, 2, 3, 4, 5, 6]]"),
    "prints a verdict and raises": (forged('["end", 0, []]') + "\nraise OSError('late')", "HP030", "OSError: late"),
    "closes standard output": ("import os\nos.close(1)", "HP031", "exit code"),
    "misspells a hook": (f"{HOOK}@hookimpl\ndef harness_provide_tolls(): return []", "HP040", "harness_provide_tolls"),
    "forgets the mark": (GOOD.replace("@implements(hooks.harness_provide_tools)\n", ""), "HP040", "not marked"),
    "takes what is not given": (GOOD.replace("_tools():", "_tools(config):"), "HP041", "takes config"),
    "takes anything": (GOOD.replace("_tools():", "_tools(*many):"), "HP041", "*"),
    "is asynchronous": (GOOD.replace("def harness_provide", "async def harness_provide"), "HP041", "asynchronous"),
    "raises in a hook": (GOOD.replace("    return [", "    raise OSError('no')\n    return ["), "HP042", "OSError"),
    "exits in a hook": (GOOD.replace("    return [", "    raise SystemExit\n    return ["), "HP042", "SystemExit"),
    "offers no offers": (GOOD.replace("    return [", "    return 3\n    return ["), "HP042", "int"),
    "offers another kind": (GOOD.replace("kind='tool'", "kind='role'"), "HP043", "as kind role"),
    "offers more": (GOOD.replace("return [", "return [Offer(kind='tool', name='b', build=build),"), "HP044", "tool:b"),
    "offers less": (GOOD.replace("    return [", "    return []\n    return ["), "HP045", "tool:acme"),
    "offers twice": (GOOD.replace("return [", "return 2 * ["), "HP008", "twice"),
    "takes settings that are not declared": (
        GOOD.replace("build=build", "build=build, settings=settings_class"), "HP047", "only the offer"
    ),
}  # fmt: skip


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return tmp_path / "site"


def index_of(site: Path, *, fresh: bool = False) -> Index:
    """The plugins of one folder, with a path on which the contract can be imported."""
    index = open_index([str(site), *sys.path], folder=str(site.parent / "cache"), fresh=fresh)
    index._records = tuple(record for record in index.records if record.id.startswith("acme"))
    return index


def flaws_of(site: Path, limit_seconds: float = 5.0, *, settings: bool = False) -> dict[str, list[Flaw]]:
    index = index_of(site)
    tried = try_imports(index.records, index.path, PROCESSES, limit_seconds=limit_seconds, settings=settings)
    return {record.id: flaws for record, flaws in zip(index.records, tried, strict=True)}


def test_whatever_an_import_does_the_host_lives_and_knows_who_it_was(site: Path) -> None:
    for number, (code, _, _) in enumerate(IMPORTS.values()):
        make_distribution(site, f"acme-{number:02}", provides=TOOL, code=code)
    make_distribution(site, "acme-good", provides=TOOL)
    found = flaws_of(site)
    assert found.pop("acme-good") == []
    for (name, (_, code, words)), flaws in zip(IMPORTS.items(), found.values(), strict=True):
        assert flaws, name
        assert (flaws[0].code, words in flaws[0].message) == (code, True), (name, flaws)


def test_a_misspelt_hook_is_told_the_nearest_name(site: Path) -> None:
    make_distribution(site, code=IMPORTS["misspells a hook"][0])
    assert flaws_of(site)["acme-tool"][0].hint == "did you mean harness_provide_tools?"


def test_roles_that_are_not_declared_are_seen(site: Path) -> None:
    promised = [{"kind": "role", "name": "acme", "roles": ["planner"]}]
    offered = [{"kind": "role", "name": "acme", "roles": ["planner", "fixer"]}]
    make_distribution(site, provides=promised, code=offers_code(offered))
    assert [flaw.code for flaw in flaws_of(site)["acme-tool"]] == ["HP046"]


def test_settings_are_compared_with_the_manifest_when_asked(site: Path) -> None:
    schema = {"type": "object", "properties": {"url": {"type": "string"}}}
    make_distribution(site, provides=[{"kind": "tool", "name": "acme", "config": schema}])
    assert flaws_of(site)["acme-tool"] == []
    [flaw] = flaws_of(site, settings=True)["acme-tool"]
    assert (flaw.code, flaw.message) == ("HP047", "settings of tool:acme: only the manifest has url")
    assert flaw.hint == "add it to the settings class, or take it out"


def test_settings_that_the_manifest_does_not_declare_are_told_where_to_be_declared(site: Path) -> None:
    make_distribution(site, code=IMPORTS["takes settings that are not declared"][0])
    [flaw] = flaws_of(site)["acme-tool"]
    assert (flaw.code, "config_file" in (flaw.hint or "")) == ("HP047", True)


def test_an_import_that_never_ends_is_ended(site: Path) -> None:
    make_distribution(site, code="while True:\n    pass")
    [flaw] = flaws_of(site, 0.5)["acme-tool"]
    assert (flaw.code, flaw.message) == ("HP032", "its import did not end within 0.5 s")


def test_nobody_bears_another_plugins_fault(site: Path) -> None:
    spoils = "import harness_hookspecs.offer as spoilt\nspoilt.Offer = None\nraise ValueError('mine')"
    make_distribution(site, "acme-a", code=spoils)
    make_distribution(site, "acme-b")
    found = flaws_of(site)
    assert (found["acme-a"][0].code, found["acme-b"]) == ("HP030", [])


class KilledAtFirst:
    """The first ``times`` children are killed by somebody else."""

    def __init__(self, times: int) -> None:
        self.left = times

    def run(self, *args: Any, **more: Any) -> Completed:
        self.left -= 1
        if self.left >= 0:
            return Completed(-signal.SIGKILL, b"", b"", timed_out=False, truncated=False)
        return PROCESSES.run(*args, **more)


@pytest.mark.parametrize(("times", "codes"), [(1, []), (2, ["HP031"])])
def test_who_kills_a_trial_once_makes_no_plugin_broken(site: Path, times: int, codes: list[str]) -> None:
    make_distribution(site)
    index = index_of(site)
    [flaws] = try_imports(index.records, index.path, KilledAtFirst(times))
    assert [flaw.code for flaw in flaws] == codes


# ----------------------------------------------------------------------------------------------- verdicts


class CountingProcesses:
    """Counts the children that were started."""

    def __init__(self) -> None:
        self.started = 0

    def run(self, *args: Any, **more: Any) -> Completed:
        self.started += 1
        return PROCESSES.run(*args, **more)


def catalogue_of(site: Path, processes: CountingProcesses) -> Catalogue:
    return Catalogue(index_of(site), processes=processes)


def test_a_verdict_is_kept_until_the_code_changes(site: Path) -> None:
    made = make_distribution(site, code="import nothing_there")
    processes = CountingProcesses()
    for _ in range(2):
        catalogue = catalogue_of(site, processes)
        catalogue.try_new()
        assert [row.status for row in catalogue.rows] == ["broken"]
    assert processes.started == 1
    (made.package / "__init__.py").write_text(offers_code(TOOL))
    catalogue = catalogue_of(site, processes)
    assert [row.status for row in catalogue.rows] == ["ok"]
    catalogue.try_new()
    assert ([row.status for row in catalogue.rows], processes.started) == (["ok"], 2)


def test_a_bad_verdict_ends_when_something_is_installed(site: Path) -> None:
    make_distribution(site, code=f"import acme_needs\n{GOOD}")
    processes = CountingProcesses()
    catalogue_of(site, processes).try_new()
    (site / "acme_needs.py").write_text("")
    catalogue = catalogue_of(site, processes)
    catalogue.try_new()
    assert [row.status for row in catalogue.rows] == ["ok"]
    (site / "something_else.py").write_text("")  # a good verdict does not end by that
    catalogue_of(site, processes).try_new()
    assert processes.started == 2


def test_what_another_program_has_tried_meanwhile_is_taken_over_and_kept(site: Path) -> None:
    make_distribution(site, code="import nothing_there")
    processes = CountingProcesses()
    early, late = catalogue_of(site, processes), catalogue_of(site, processes)
    late.try_new()
    early.index.keep_fact("anything", 1, 1)  # written by whoever knew nothing of the verdict
    for catalogue in (early, late, catalogue_of(site, processes)):
        catalogue.try_new()
        assert [row.status for row in catalogue.rows] == ["broken"]
    assert processes.started == 1


def test_a_verdict_on_code_that_has_changed_since_undoes_no_newer_one(site: Path) -> None:
    made = make_distribution(site, code=GOOD)
    processes = CountingProcesses()
    early = catalogue_of(site, processes)
    early.try_new()
    (made.package / "__init__.py").write_text(f"{GOOD}\n# the next version\n")
    catalogue_of(site, processes).try_new()
    early.index.keep_fact("anything", 1, 1)  # written by whoever tried the version before
    catalogue_of(site, processes).try_new()
    assert processes.started == 2


def test_an_index_that_is_to_trust_nothing_takes_no_verdict_over(site: Path) -> None:
    make_distribution(site, code=GOOD)
    processes = CountingProcesses()
    fresh = Catalogue(index_of(site, fresh=True), processes=processes)
    catalogue_of(site, processes).try_new()
    fresh.try_new()
    assert processes.started == 2


def test_what_does_not_take_part_is_not_tried(site: Path) -> None:
    make_distribution(site, code="open('ran', 'w')")
    selection = Selection(disable=(Named("acme-tool", "--no-plugin"),))
    processes = CountingProcesses()
    Catalogue(index_of(site), selection, processes=processes).try_new()
    assert processes.started == 0
