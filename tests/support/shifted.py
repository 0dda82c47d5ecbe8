"""A machine whose wall clock is wrong: a library that is loaded before libc and shifts CLOCK_REALTIME.

The clocks that run since boot stay unchanged, as on a real machine with a wrong date.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.support import needs

_SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec *at) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int code = real(clock, at);
    if (code == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) at->tv_sec += SHIFT;
    return code;
}

int gettimeofday(struct timeval *at, void *zone) {
    struct timespec now;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &now)) return -1;
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}
"""


def shifted_clock(directory: Path, seconds: int) -> dict[str, str]:
    """The environment of a process tree whose wall clock is this many seconds ahead."""
    needs("gcc")
    directory.mkdir(parents=True, exist_ok=True)
    source, library = directory / "shifted.c", directory / f"shifted{seconds:+}.so"
    source.write_text(_SOURCE)
    command = ["gcc", "-shared", "-fPIC", "-O1", f"-DSHIFT=({seconds})", "-o", str(library), str(source), "-ldl"]
    subprocess.run(command, check=True, capture_output=True)
    return {"LD_PRELOAD": str(library)}
