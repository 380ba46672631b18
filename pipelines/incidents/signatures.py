"""Signatures: lines that tell of an episode, and that no table of silver has. Pure.

A signature names loggers and a pattern of the message's first line. The lake is asked once for all of them; lines of
one signature, broker and key that follow each other within `Signature.gap_s` are one episode (`Facts.remarks`).
"""

from __future__ import annotations

from dataclasses import dataclass

#: Lines of one kind further apart than this are of two episodes, seconds.
GAP_S = 60


@dataclass(frozen=True)
class Signature:
    """One kind of line.

    Attributes:
        name: unique; what `Facts.remarked` asks for.
        loggers: simple names of the classes that log it, in releases that renamed it all names; empty: any.
        pattern: of the whole first line of the message (RE2). A group ``key`` tells episodes apart (a peer, a topic);
            a group ``partition`` is gathered, such as ``orders-4``.
        levels: at which it is logged.
        source: class and method in apache/kafka, with releases.
        gap_s: lines further apart are of two episodes.
        is_whole: the pattern is looked for in the whole message, stack trace included; ``^`` begins a line of it.
    """

    name: str
    loggers: tuple[str, ...]
    pattern: str
    source: str
    levels: tuple[str, ...] = ("WARN", "ERROR", "FATAL")
    gap_s: int = GAP_S
    is_whole: bool = False
