"""The resource figures of this process, for the metrics of the report."""

from __future__ import annotations

import sys

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]


def usage() -> dict[str, int]:
    """Return the figures that the system reports. Children count once they were waited for."""
    figures: dict[str, int] = {}
    peak = 0
    if resource is not None:
        cpu = 0.0
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
            u = resource.getrusage(who)
            cpu += u.ru_utime + u.ru_stime
            if who == resource.RUSAGE_CHILDREN or sys.platform != "linux":
                peak = max(peak, u.ru_maxrss if sys.platform == "darwin" else u.ru_maxrss << 10)
        figures["cpuTimeMs"] = int(cpu * 1000)
    # On Linux ru_maxrss survives exec, so it may be that of the parent.
    peak = max(peak, _field("/proc/self/status", "VmHWM:") << 10)
    if peak:
        figures["peakMemoryBytes"] = peak
    for name, key in (("ioReadBytes", "rchar:"), ("ioWriteBytes", "wchar:")):
        value = _field("/proc/self/io", key)
        if value:
            figures[name] = value
    return figures


def _field(path: str, key: str) -> int:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            for line in file:
                words = line.split()
                if len(words) > 1 and words[0] == key:
                    return int(words[1])
    except (OSError, ValueError):
        pass
    return 0
