"""The few steps between a parent and the program it starts, run as `python -I -S launcher.py SPEC PROGRAM…`.

SPEC is JSON: `parent` (pid), `death_signal`, and at will `user_namespace`, `uid` and `gid`, `pipe`.
It drops privileges, makes sure that the program cannot outlive its parent, and becomes the program. Only the
standard library, and no more of it than needed: it runs before every child.

With `pipe` (a descriptor whose other end only the parent holds) it stays as a guard instead: it runs the program
in a process group of its own, and when the pipe ends, the group is signalled. That works where the kernel has no
parent-death signal, and reaches grandchildren too.
"""

import ctypes  # here: later, the user to be may not be able to read Python's own files
import json
import os
import signal
import sys
import threading

PR_SET_PDEATHSIG = 1
EXIT_NO_PARENT = 125  # as timeout(1) and docker(1): the launcher itself failed
EXIT_NOT_STARTED = 126


def main() -> None:
    spec, program = json.loads(sys.argv[1]), sys.argv[2:]
    try:
        drop_privileges(spec)
        if "pipe" in spec:
            guard(program, spec["pipe"], spec["death_signal"])
        end_with_parent(spec["parent"], spec["death_signal"])
        become(program)
    except OSError as error:
        print(f"{program[0]} could not be started: {error}", file=sys.stderr, flush=True)
        os._exit(EXIT_NOT_STARTED)


def drop_privileges(spec: dict[str, int]) -> None:
    if spec.get("user_namespace"):
        if sys.platform != "linux":
            raise OSError("user namespaces exist on Linux only")
        # Root outside is user 1000 inside: files stay root's, and PostgreSQL sees that it is not root.
        uid, gid = os.geteuid(), os.getegid()
        os.unshare(os.CLONE_NEWUSER)
        for name, line in (("setgroups", "deny"), ("uid_map", f"1000 {uid} 1"), ("gid_map", f"1000 {gid} 1")):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(line)
    elif "uid" in spec:
        os.setgroups([])
        os.setgid(spec["gid"])
        os.setuid(spec["uid"])


def end_with_parent(parent: int, death_signal: int) -> None:
    """After dropping privileges, since setuid clears it; then a look whether the parent died before."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, death_signal, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(EXIT_NO_PARENT)


def become(program: list[str]) -> None:
    # A process started in the background of a shell ignores SIGINT, and would hand that on.
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    os.execvp(program[0], program)  # noqa: S606


def guard(program: list[str], pipe: int, death_signal: int) -> None:
    child = os.fork()
    if child == 0:
        os.close(pipe)
        os.setpgid(0, 0)
        if sys.platform == "linux":
            end_with_parent(os.getppid(), signal.SIGKILL)
        become(program)
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(number, lambda received, _: _signal_group(child, received))

    def wait_for_parent() -> None:
        os.read(pipe, 1)
        _signal_group(child, death_signal)

    threading.Thread(target=wait_for_parent, daemon=True).start()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    _signal_group(child, signal.SIGKILL)  # what the program left behind in its group
    os._exit(code if code >= 0 else 128 - code)


def _signal_group(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return


if __name__ == "__main__":
    main()
