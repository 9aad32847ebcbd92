"""The runs of a simulation of which none goes on by itself in, what the record does not say of them done to them."""

from __future__ import annotations

from collections.abc import Sequence

from harness_core.kernel.commands import Record as Recorded
from harness_core.kernel.state import SessionState

from .simulate_loop import Asked, RoleRun
from .simulate_record import Record

__all__ = ["unsaid"]


def unsaid(runs: Sequence[RoleRun], asked: list[Asked], state: SessionState, record: Record) -> bool:
    """Have the first of these happen that can: a cancel is heard, its grace is over, an approval is waited for no
    longer, the process of a call without an end dies, what nobody recorded is shown, an approval turns out to have been
    waited for no longer when it was granted, a result turns out never to have been written by who had it, or a process
    dies of which the record has something else next.

    Args:
        runs: Those that are alive.
        asked: What they wait to have written; a result that is lost is taken out.
        state: Folded up to where they stand.
        record: The session's.

    Returns:
        Whether anything happened.
    """
    if _cancelled(runs, state) or sum(_leave(run, state, record) for run in runs):
        return True
    dead = [run for run in runs if run.answers.lost and not record.dies_later(run.answers.role_call_id)]
    held = [] if dead else [run for run in runs if not run.answers.shown]
    if not dead and not held:
        if any(run.answers.leave_granted() for run in runs) or _lose(asked, record):
            return True
        dead = [run for run in runs if run.began_at < record.seq]
    for run in dead:
        run.alive = False
    for run in held:
        run.answers.shown = True
    return bool(dead or held)


def _cancelled(runs: Sequence[RoleRun], state: SessionState) -> bool:
    """Have a cancel heard, or its grace be over; whether anybody is told of it now."""
    if state.cancelling is None:
        return False
    for tokens in ([run.cancel for run in runs], [run.late_cancel for run in runs]):
        waiting = [token for token in tokens if not token.cancelled]
        for token in waiting:
            token.cancel(state.cancelling)
        if waiting:
            return True
    return False


def _leave(run: RoleRun, state: SessionState, record: Record) -> bool:
    """Have a role call's approvals waited for no longer: first those that it was suspended by or beside."""
    answers = run.answers
    asked = [
        one.approval_id
        for one in state.pending.values()
        if one.payload.get("role_call_id") == answers.role_call_id and one.approval_id not in answers.left
    ]
    in_vain = [one for one in asked if not record.is_answered(answers.role_call_id, one)]
    answers.left.update(in_vain or asked)
    return bool(asked)


def _lose(asked: list[Asked], record: Record) -> bool:
    """Have the last of the results that wait be lost with its process, which the call is made again after: until then
    its place is free for another call."""
    last: tuple[int, Asked] | None = None
    for one in asked:
        command = one.command
        if isinstance(command, Recorded) and command.results:
            seq = record.kept_in_memory(command.role_call_id, command.results[0])
            if seq is not None and (last is None or seq > last[0]):
                last = seq, one
    if last is None:
        return False
    seq, lost = last
    record.dies_before(lost.command.role_call_id, seq)
    asked.remove(lost)
    lost.flag.set()
    return True
