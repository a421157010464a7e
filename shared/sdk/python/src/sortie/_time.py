"""RFC 3339 times.

``datetime.fromisoformat`` of Python 3.10 refuses ``Z`` and fractions that have
neither three nor six digits.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

_FORM = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:([Zz])|([+-])(\d\d):(\d\d))",
    re.ASCII,
)


def parse_time(text: str) -> datetime:
    """Return an aware datetime. Digits behind the microsecond are cut off.

    Raises ValueError if the text is no RFC 3339 time with a zone.
    """
    match = _FORM.fullmatch(text)
    if match is None:
        raise ValueError(f"not an RFC 3339 time: {text!r}")
    year, month, day, hour, minute, second = (int(match[i]) for i in range(1, 7))
    microsecond = int((match[7] or "")[:6].ljust(6, "0"))
    zone = timezone.utc
    if match[9]:
        offset = timedelta(hours=int(match[10]), minutes=int(match[11]))
        zone = timezone(-offset if match[9] == "-" else offset)
    leap = second == 60  # datetime has no leap seconds
    at = datetime(year, month, day, hour, minute, 59 if leap else second, microsecond, zone)
    return at + timedelta(seconds=1) if leap else at


def format_time(at: datetime) -> str:
    """Return an aware datetime as an RFC 3339 time in UTC.

    Raises ValueError for a datetime without a zone.
    """
    if at.tzinfo is None:
        raise ValueError("want a datetime with a time zone")
    utc = at.astimezone(timezone.utc)
    text = utc.strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0")
    if utc.microsecond:
        text += f".{utc.microsecond:06d}".rstrip("0")
    return text + "Z"


def now() -> str:
    """Return the current time as RFC 3339."""
    return format_time(datetime.now(timezone.utc))
