"""A process that may compute and nothing else: limited time and memory, no network, no other programs, no files but its own.

Three layers, because each has holes alone. The parent ends the whole process group when the time is over. The kernel of the
operating system limits memory, processor time, file size and, where it lets us, takes the network away. An audit hook in
the process refuses what a kernel has no reason to do, with the name of the deed. What decides in the end is none of them:
whatever the process leaves behind is data, and is judged elsewhere.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from tilewright.records import record

NEW_USER, NEW_NETWORK = 0x10000000, 0x40000000  # flags of unshare(2)
MOST_FILE_BYTES = 256 * 2**20
MOST_FOLDER_BYTES, MOST_FILES = 2**30, 4096  # in all files
KEPT_ERRORS = 2**16  # bytes of standard error
POLL_SECONDS = 0.1
REFUSED = (
    "socket.", "subprocess.", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.kill", "ctypes.", "pty.",
    "os.putenv", "signal.", "urllib.", "ftplib.", "smtplib.", "webbrowser.",
)  # fmt: skip
READABLE = ("/proc/self/", "/usr/share/zoneinfo", "/dev/urandom", "/dev/null")
CHANGING = ("os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.chmod", "os.chown", "os.link", "os.symlink", "os.truncate")


@record(kw_only=True)
class Ended:
    """How a confined process ended."""

    code: int  # negative: the signal
    seconds: float  # that it had
    late: bool  # it was ended because its time was over
    full: bool  # it was ended because it wrote too much
    errors: str  # the end of what it wrote to standard error


def run(function: str, words: Sequence[str], *, folder: Path, seconds: float, memory: int) -> Ended:
    """Calls ``module:function`` with ``words`` in a confined process whose only place to write is ``folder``."""
    module, _, name = function.partition(":")
    code = f"import sys; from {module} import {name}; sys.exit({name}(sys.argv[1:]))"
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "PYTHONPATH", "XDG_CACHE_HOME") if name in os.environ}
    # Threads of numerical libraries reserve memory that counts against the limit.
    kept |= {"HOME": str(folder), "TMPDIR": str(folder), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, "-c", code, *words],
        cwd=folder,
        env=kept,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=lambda: _limits(seconds, memory),
    )
    assert process.stderr is not None
    said = bytearray()
    listener = threading.Thread(target=_keep_the_end, args=(process.stderr, said), daemon=True)
    listener.start()
    late = full = False
    until = time.monotonic() + seconds
    try:
        while process.poll() is None and not late and not full:
            time.sleep(POLL_SECONDS)
            late, full = time.monotonic() > until, _is_full(folder)
    finally:  # also if we are leaving by an exception, such as Ctrl-C; children that it may have had end with it
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    listener.join(1.0)
    late = late or process.returncode == -signal.SIGXCPU
    return Ended(code=process.returncode, seconds=seconds, late=late, full=full, errors=said.decode(errors="replace"))


def _keep_the_end(stream: IO[bytes], said: bytearray) -> None:
    """However much a process says: none of it may fill our memory, and it must not wait for a reader."""
    with stream:
        while part := os.read(stream.fileno(), KEPT_ERRORS):
            said += part
            del said[:-KEPT_ERRORS]


def _is_full(folder: Path) -> bool:
    files, size = 0, 0
    for place, _, names in os.walk(folder):
        files += len(names)
        if files > MOST_FILES:
            return True
        for name in names:
            with suppress(OSError):
                size += os.lstat(os.path.join(place, name)).st_size
    return size > MOST_FOLDER_BYTES


def _limits(seconds: float, memory: int) -> None:
    """In the child, before Python starts again."""
    import ctypes

    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 2))
    resource.setrlimit(resource.RLIMIT_FSIZE, (MOST_FILE_BYTES, MOST_FILE_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Refused in some containers; the audit hook is then the only guard of the network.
    ctypes.CDLL(None, use_errno=True).unshare(NEW_USER | NEW_NETWORK)


class Forbidden(PermissionError):
    """A deed that no kernel needs."""


def confine(folder: Path, readable: Sequence[Path] = ()) -> None:
    """From here on this process refuses what a kernel has no reason to do. There is no way back: audit hooks stay."""
    paths = {*sys.path, sys.prefix, sys.base_prefix, *sysconfig.get_paths().values()}
    libraries = tuple(os.path.realpath(path) + os.sep for path in paths if path and os.path.isdir(path))
    own = os.path.realpath(folder) + os.sep
    files = {os.path.realpath(path) for path in readable}

    def allowed(path: Any, write: bool) -> bool:
        if isinstance(path, int):
            return True  # a descriptor that is open already
        place = os.path.realpath(os.fsdecode(path))
        if (place + os.sep).startswith(own):
            return True
        return not write and (place in files or (place + os.sep).startswith((*libraries, *READABLE)))

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, mode, flags = arguments
            write = bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)) if isinstance(flags, int) else "r" not in (mode or "r")
            if path is not None and not allowed(path, write):
                raise Forbidden(f"a kernel may not {'write' if write else 'read'} {os.fsdecode(path)}")
        elif event in CHANGING:
            if not all(allowed(each, True) for each in arguments if isinstance(each, (str, bytes))):
                raise Forbidden(f"a kernel may not call {event}")
        elif event in ("os.listdir", "os.scandir"):
            if arguments[0] is not None and not allowed(arguments[0], False):
                raise Forbidden(f"a kernel may not list {arguments[0]}")
        elif event.startswith(REFUSED):
            raise Forbidden(f"a kernel may not use {event.partition('.')[0]} ({event})")

    sys.addaudithook(hook)
