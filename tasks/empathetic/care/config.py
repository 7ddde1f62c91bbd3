"""The settings of what is answered to somebody who speaks of self-harm."""

from __future__ import annotations

from dataclasses import dataclass

from paddle_dialog.config.fields import setting

_OWN = "; null takes what ships in tasks/empathetic/care"


@dataclass(frozen=True)
class CareConfig:
    """Which turns are answered by a fixed sentence that names professional help, and by which one."""

    phrases: str | None = setting(
        None, f"a file of phrases, one a line, that speak of self-harm or suicide{_OWN}"
    )
    exceptions: str | None = setting(
        None, f"a file of idioms that have such a phrase inside and mean something else{_OWN}"
    )
    answers: str | None = setting(
        None, f"a YAML file with the sentence in each language, `en` and `zh`{_OWN}"
    )
