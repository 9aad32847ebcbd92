"""The main of a small process beside the host (Linux): it takes commands from a socket and lets each run under a guard.

A guard is a fork of this process. It ends only when its command and all that the command started are gone, whatever
session or parent they have by then. This process ends when the host does, and everything with it. It imports next to
nothing, so that it starts in a few milliseconds, and is run as a file, never imported by the host.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]  # the half of it that needs no enums
import _socket
import ctypes
import os
import select
import sys

__all__ = ["main"]

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_DEFAULT_PATH = b"/bin:/usr/bin"
_FAILED = 127
_ENDS = (signal.SIGTERM, signal.SIGHUP)  # the second is sent to who is stopped when his parent dies
_MESSAGE_BYTES = 64
_DESCRIPTORS = 6
_WORD_BYTES = 4
_prctl = ctypes.CDLL(None).prctl


class _Stopped(BaseException):
    """The host wants an end, or is dead."""


def main(socket_fd: int, host_pid: int) -> None:
    """Serve until the host closes its end of the socket or dies; then nothing of any command is left."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # the host's thread may have blocked what this process lives by
    _prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # what a guard that was killed leaves behind comes here
    server = _Server(_socket.socket(fileno=socket_fd), host_pid)
    if os.getppid() == host_pid:
        server.serve()
    _kill_rest(0, 0)
    os._exit(0)


class _Server:
    """Starts guards, tells them to end, and reaps them; a number of the host's stands for each."""

    def __init__(self, socket: _socket.socket, host_pid: int) -> None:
        self._socket = socket
        self._host_fd = _pidfd(host_pid)  # the socket may have been inherited by somebody who outlives the host
        self._wake_fd, self._told_fd = os.pipe()
        for fd in (self._wake_fd, self._told_fd):
            os.set_blocking(fd, False)
        signal.set_wakeup_fd(self._told_fd)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        self._guards: dict[int, int] = {}  # number -> pid, until it is reaped

    def serve(self) -> None:
        """Say that it begins, and do what the socket says until it says to end or there is nobody to say anything."""
        self._socket.send(b"ready")
        poll = select.poll()
        for fd in (self._socket.fileno(), self._wake_fd, self._host_fd):
            if fd >= 0:
                poll.register(fd, select.POLLIN)
        heard = True
        while heard:
            ready = {fd for fd, _ in poll.poll()}
            if self._wake_fd in ready:
                self._reap()
            if self._socket.fileno() in ready:
                heard = self._hear()
            heard = heard and self._host_fd not in ready

    def _hear(self) -> bool:
        """One message: ``run N`` with the descriptors of a guard, ``stop N``, ``kill N``; ``False`` at the end."""
        space = _socket.CMSG_SPACE(_DESCRIPTORS * _WORD_BYTES)
        message, extra, _, _ = self._socket.recvmsg(_MESSAGE_BYTES, space, _socket.MSG_CMSG_CLOEXEC)
        if message in (b"", b"end"):
            return False
        word, _, number = message.partition(b" ")
        if word == b"run":
            self._run(int(number), [fd for _, _, data in extra for fd in memoryview(data).cast("i")])
        elif int(number) in self._guards:  # a pid is its own until it is reaped, and that happens here only
            os.kill(self._guards[int(number)], signal.SIGTERM if word == b"stop" else signal.SIGKILL)
        return True

    def _run(self, number: int, fds: list[int]) -> None:
        server_pid = os.getpid()
        try:
            if len(fds) < _DESCRIPTORS:
                raise OSError(24, "too many open files")
            pid = os.fork()
            if pid == 0:
                try:
                    self._leave()
                    _guard(server_pid, fds[0], fds[1], fds[2:])
                finally:
                    os._exit(0)
            self._guards[number] = pid
        except OSError as error:
            if fds:
                _say(fds[0], b"error %d" % (error.errno or 0))
        for fd in fds:
            os.close(fd)

    def _leave(self) -> None:
        """What a fork must not keep of this process."""
        signal.set_wakeup_fd(-1)
        self._socket.close()
        for fd in (self._wake_fd, self._told_fd, self._host_fd):
            if fd >= 0:
                os.close(fd)

    def _reap(self) -> None:
        """Take leave of the guards that ended, and kill what those left that could not end in order."""
        os.read(self._wake_fd, 4096)
        gone = set()
        try:
            while pid := os.waitpid(-1, os.WNOHANG)[0]:
                gone.add(pid)
        except ChildProcessError:
            pass
        self._guards = {number: pid for number, pid in self._guards.items() if pid not in gone}
        _kill([pid for pid in _children() if pid not in self._guards.values()])


def _say(status_fd: int, word: bytes) -> None:
    try:
        os.write(status_fd, word)
    except BrokenPipeError:
        return  # nobody wants to know any more


def _pidfd(pid: int) -> int:
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return -1


# -- a guard ---


def _guard(server_pid: int, status_fd: int, spec_fd: int, place: list[int]) -> None:
    """Run the command that ``spec_fd`` tells; on ``status_fd`` comes ``error N`` or, at the very end, ``ended S``.

    ``place`` is its folder and its three pipes.
    """
    child, status = 0, int(signal.SIGKILL)
    try:
        signal.signal(signal.SIGTERM, _stop)
        if signal.getsignal(signal.SIGHUP) == signal.SIG_DFL:  # else the host ignores it, and so shall the command
            signal.signal(signal.SIGHUP, _stop)
        os.setpgid(0, 0)  # else what kills the group of the server leaves nobody to end the command
        _prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # orphans become children of this process
        _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        try:
            if os.getppid() == server_pid:  # else it died before the signal of its death was asked for
                child = _start(*_spec(spec_fd), status_fd, place)
                status = _wait_for(child)
        finally:
            _ignore_ends()  # what they ask for is about to happen anyway
    except _Stopped:
        pass
    except OSError as error:  # no process or descriptor is left
        child = -1
        _say(status_fd, b"error %d" % (error.errno or 0))
    status = _kill_rest(child, status)
    if child >= 0:
        _say(status_fd, b"ended %d" % status)


def _stop(_: int, __: object) -> None:
    _ignore_ends()
    raise _Stopped


def _ignore_ends() -> None:
    for number in _ENDS:
        signal.signal(number, signal.SIG_IGN)


def _spec(fd: int) -> tuple[list[bytes], dict[bytes, bytes]]:
    """The command and its environment; one that was not told to its end is not run.

    What is to come is counted and not read to the end of the pipe, which a fork of the host may hold.
    """
    with open(fd, "rb") as file:
        size_bytes, argc = map(int, file.readline().split() or (-1, 0))
        told = file.read(size_bytes) if size_bytes > 0 else b""
    if len(told) != size_bytes:  # the host died amid it
        raise _Stopped
    words = told.split(b"\0")[:-1]
    return words[:argc], dict(zip(words[argc::2], words[argc + 1 :: 2], strict=True))


def _start(argv: list[bytes], env: dict[bytes, bytes], status_fd: int, place: list[int]) -> int:
    """Start the command in a session of its own; the number is negative when that failed."""
    guard_pid = os.getpid()
    failed_fd, tell_fd = os.pipe()  # closed by a successful exec
    child = os.fork()
    if child == 0:
        try:
            _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)  # where guard and server are killed at once
            if os.getppid() != guard_pid:
                return _FAILED
            os.setsid()
            for number in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores
                signal.signal(number, signal.SIG_DFL)
            os.write(tell_fd, b"%d" % _execute(argv, env, *place))
        finally:
            os._exit(_FAILED)
    for fd in (tell_fd, *place):  # the pipes are the command's alone
        os.close(fd)
    error = os.read(failed_fd, 16)
    if error:
        _say(status_fd, b"error " + error)
        return -1
    return child


def _execute(argv: list[bytes], env: dict[bytes, bytes], folder_fd: int, *pipes: int) -> int:
    """Become the command; when it cannot be, why: the number of the first error that says more than "not here"."""
    program = argv[0]
    folders = [b""] if b"/" in program else env.get(b"PATH", _DEFAULT_PATH).split(b":")
    telling = 0
    try:
        os.fchdir(folder_fd)
    except OSError as error:
        return error.errno or 0
    for fd, pipe in enumerate(pipes):
        os.dup2(pipe, fd)
    for folder in folders:
        try:
            os.execve(os.path.join(folder, program), argv, env)
        except OSError as error:
            if not isinstance(error, FileNotFoundError | NotADirectoryError):
                telling = telling or error.errno or 0
        except ValueError:  # a word that no program can be given
            return 22
    return telling or 2


def _wait_for(child: int) -> int:
    while child > 0:
        pid, status = os.waitpid(-1, 0)  # orphans that end meanwhile are reaped too
        if pid == child:
            return status
    return 0


# -- the end of everything ---


def _kill_rest(child: int, status: int) -> int:
    """Kill children until there are none; the children of each become ours, and have their turn."""
    while True:
        _kill(_children())
        try:
            pid, ended = os.waitpid(-1, 0)
        except ChildProcessError:
            return status
        if pid == child:
            status = ended


def _kill(pids: list[int]) -> None:
    for pid in pids:
        for kill in (os.killpg, os.kill):  # a whole group at once, before it can grow
            try:
                kill(pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                continue  # it leads no group, or runs as somebody else and is waited for


def _children() -> list[int]:
    try:
        with open("/proc/thread-self/children", "rb") as file:
            return [int(pid) for pid in file.read().split()]
    except OSError:
        return [int(name) for name in os.listdir("/proc") if name.isdecimal() and _parent_of(name) == os.getpid()]


def _parent_of(pid: str) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1])
    except OSError:
        return 0


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
