"""Joy at what the speaker denied: words of a stored reply that match a turn do not see its "not"."""

from __future__ import annotations

import re

_DENIED = re.compile(
    r"(?:\b(?:not|never|no longer|cannot)|n['’]t)(?: \w+){0,2} "
    r"(?:happy|glad|good|great|well|okay|pass(?:ed)?|win|won|proud|excited|fun|better)\b"
    r"|[不没](?:.{0,2})(?:开心|高兴|快乐|幸福|考上|考过|通过|录取|赢|成功|中奖|升职|好转)"
    r"|(?:开心|高兴|快乐)不起来",
    re.IGNORECASE,
)
_JOY = re.compile(
    r"congrat|wonderful|lovely|awesome|amazing|fantastic|great news|good news|(?:happy|glad|excited) (?:for|with) you"
    r"|恭喜|祝贺|太棒|真棒|太好了|真好|为你高兴|为你开心|替你高兴|替你开心",
    re.IGNORECASE,
)


def rejoices_at_denied(reply: str, turn: str) -> bool:
    """Return whether a reply rejoices where a turn says that something good is not so, in English or Chinese."""
    return bool(_DENIED.search(turn) and _JOY.search(reply))
