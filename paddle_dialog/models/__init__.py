"""The model families, one folder each: an encoder and a decoder as Paddle networks, and their steps over arrays."""

import sys
from types import ModuleType

_names = sys.modules["paddle_dialog"].models


class _Models(ModuleType):
    """This package, which takes the place of the function `paddle_dialog.models` once it is imported."""

    def __call__(self) -> list[str]:
        """Return what that function returns."""
        return _names()


sys.modules[__name__].__class__ = _Models
