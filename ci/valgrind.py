#!/usr/bin/env python3
"""Runs a program under valgrind, as `ci/valgrind.py PROGRAM WORD...`: status 99 if it accesses invalid memory.

Since Linux 6.4, prctl(PR_GET_AUXV) returns the auxiliary vector, under valgrind that of valgrind: rustix then looks for an ELF header
at a wrong place. If that call fails, it reads /proc/self/auxv, which valgrind emulates.
"""

import ctypes
import errno
import os
import platform
import struct
import sys

PRCTL = {"x86_64": 157, "aarch64": 167}
SUPPRESSIONS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "valgrind.supp")


def refuse_auxv() -> None:
    number = PRCTL[platform.machine()]
    load, equal, answer, allow = 0x20, 0x15, 0x06, 0x7FFF0000
    program = [
        (load, 0, 0, 0),  # the number of the system call
        (equal, 0, 3, number),
        (load, 0, 0, 16),  # its first argument
        (equal, 0, 1, 0x41555856),
        (answer, 0, 0, 0x00050000 | errno.EINVAL),
        (answer, 0, 0, allow),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *it) for it in program))
    filter_ = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(program), ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    no_new_privileges, set_seccomp, mode_filter = 38, 22, 2
    if libc.prctl(no_new_privileges, 1, 0, 0, 0) or libc.prctl(set_seccomp, mode_filter, filter_, 0, 0):
        raise OSError(ctypes.get_errno(), "no filter of system calls")


refuse_auxv()
# Fair: a thread that computes without a pause keeps the others from running otherwise, for minutes on a loaded machine.
options = ["--quiet", "--fair-sched=yes", "--undef-value-errors=no", "--error-exitcode=99", f"--suppressions={SUPPRESSIONS}", "--num-callers=30"]
os.environ["PYTHONMALLOC"] = "malloc"
os.execvp("valgrind", ["valgrind", *options, *sys.argv[1:]])
