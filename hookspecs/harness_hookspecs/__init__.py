"""The contract between Harness and its plugins: import what you implement from here.

Names resolve on first use, so importing this package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "approver": "ApprovalAnswer ApprovalRequest Approver",
    "artifact": "ArtifactType Narrows ParsedArtifact",
    "compiler": "Compilation Compiler Surroundings VersionLock",
    "engine": "Engine EngineError EngineLimits",
    "errors": (
        "BudgetExhausted Cancelled CodecError ConfigError Diverged Drift HarnessError IllegalMove InternalError Locked "
        "NotFound PluginError ProviderError Refused RoleError RuleError StoreConflict StoreCorrupt StoreError Suspend "
        "ToolError ValidationFailed VocabularyError"
    ),
    "events": "EVENTS category_of check_payload",
    "executor": "Executor Outcome RoleCall StageInput",
    "host": "CancelToken Host Ports",
    "markers": "hookimpl hookspec implements",
    "messages": (
        "ArtifactRef ChatInput ErrorEnvelope Message OracleResponse ReasoningPart RefusalPart ResolvedModel TextPart "
        "ToolCallPart ToolCallRequest ToolReference ToolResultPart Usage"
    ),
    "mount": "HarnessRuntimeMount MemoryMount MountSource ScratchMount SkillDescriptor",
    "offer": "KINDS Offer",
    "provider": "CallContext Chunk ModelRequest Provider ToolSchema",
    "role": (
        "DelegateToDefault ExecuteStepResult ExecuteStepTask FixAttempt FixStepResult FixStepTask OrchestrateResult "
        "OrchestrateTask PlanResult PlanTask RoleContext RoleHarness Scope parse_result parse_task role_of"
    ),
    "role_manifest": "FixerManifest Manifest OrchestratorManifest PlannerManifest WorkerManifest",
    "rules": "Program Rules",
    "store": "Backup Draft Head Posted Snapshot Store StoreStats StoredEvent chain_hash verify_chain",
    "tool": "ToolContext ToolResult ToolSet ToolSpec",
    "validator": "Finding Subject Validator Verdict",
    "value": "Json Value WireModel freeze",
    "workflow": (
        "AiGenerateStep CodeRunStep DecisionStep OuterLoopContext ParallelStep Step ToolCallStep WaitStep Workflow "
        "WorkflowBashCapabilities WorkflowDefinitionSnapshot"
    ),
    "workflow_definition": "WorkflowDefinition define_workflow",
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names.split()}

__all__ = sorted(_MODULE_OF)  # noqa: PLE0605  # computed from the table above, checked by a test


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULE_OF[name]}", __name__), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
