"""Options of scripts, and what reads their texts."""

import contextlib
import difflib
import math
import os
import pathlib
import re
import typing

UNITS = {"ms": 1e-3, "s": 1, "m": 60, "h": 3600}  # seconds of each


def meant(text, names):
    """"did you mean NAME? " of the shortest one that contains the text, or else the closest one; or nothing."""
    containing = sorted((name for name in names if text.lower() in name.lower()), key=len)
    close = containing or difflib.get_close_matches(text, names, 1)
    return f"did you mean {close[0]}? " if close else ""


def known_text(text, names):
    return f"{meant(text, names)}known: {', '.join(names)}"


class Option(typing.NamedTuple):
    """`read` makes the value of the text behind an option, or raises ValueError with what that must be, or OSError. A flag
    has none. An option whose default is [] may be repeated."""

    default: typing.Any
    read: typing.Optional[typing.Callable]


FLAG = Option(False, None)


def count(default, least=1):
    def read(text):
        if not re.fullmatch("[0-9]+", text) or int(text) < least:
            raise ValueError(f"a number from {least} on")
        return int(text)
    return Option(default, read)


def number(default, what="a number above 0", allows=lambda value: value > 0):
    def read(text):
        with contextlib.suppress(ValueError):
            if allows(float(text)) and math.isfinite(float(text)):
                return float(text)
        raise ValueError(what)
    return Option(default, read)


def duration(default, allows=lambda seconds: seconds > 0):
    """Reads seconds, written as the program's options take them; in_seconds() is the way back."""
    def read(text):
        parts = re.findall(r"([0-9]+\.?[0-9]*|\.[0-9]+)(ms|s|m|h|$)", text)
        if "".join(map("".join, parts)) == text and (len(parts) == 1 or all(unit for _, unit in parts)):
            seconds = sum(float(value) * UNITS[unit or "s"] for value, unit in parts)
            if parts and allows(seconds) and math.isfinite(seconds):
                return seconds
        raise ValueError("a duration such as 500ms, 90s, 8m or 1h30m, or a number of seconds")
    return Option(default, read)


def in_seconds(value):
    return f"{value:g}s"


def words(known, default=None):
    """Reads some of the known words, with commas between. Without a default it is all of them."""
    def read(text):
        if not set(text.split(",")) <= set(known):
            raise ValueError(f"of {', '.join(known)}")
        return text.split(",")
    return Option(default or list(known), read)


def readable(path):
    open(path, "rb").close()
    return path


def folder(default):
    """Reads the path of a folder that can be written to, or made."""
    def read(text):
        path = pathlib.Path(text).absolute()
        there = next(parent for parent in (path, *path.parents) if parent.exists())
        if not there.is_dir() or not os.access(there, os.W_OK):
            raise ValueError("a folder to write to")
        return path
    return Option(default, read)
