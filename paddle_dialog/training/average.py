"""An exponential moving average of the weights, which generalises better than the final weights."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import paddle
from paddle import nn
from safetensors.numpy import load as parse_tensors
from safetensors.numpy import save as serialise_tensors

from paddle_dialog.errors import UserError
from paddle_dialog.models.older_names import with_present_names

STEPS = "steps"


class WeightAverage:
    """s ← d · s + (1 - d) · w after each step, from s = 0; the average is s / (1 - d^steps).

    The division corrects the bias towards zero as Adam does (Kingma and Ba 2015, section 3), so that even
    the average of a few steps is an average of actual weights.

    Args:
        network: whose trained parameters are averaged, in float32.
        decay: d, below 1; the average looks back over some 1 / (1 - d) steps.
    """

    def __init__(self, network: nn.Layer, decay: float) -> None:
        self.decay = decay
        self.steps = 0
        self._older_names = getattr(network, "older_names", {})
        self._parameters = {
            name: parameter for name, parameter in network.named_parameters() if not parameter.stop_gradient
        }
        self._sums = {
            name: paddle.zeros(parameter.shape, "float32") for name, parameter in self._parameters.items()
        }

    @paddle.no_grad()
    def update(self) -> None:
        """Add the weights after a step."""
        for name, parameter in self._parameters.items():
            self._sums[name].lerp_(parameter, 1.0 - self.decay)
        self.steps += 1

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Give the network the averaged weights within a `with` block, and its own ones back afterwards."""
        if self.steps == 0:
            yield
            return
        own = {name: parameter.detach().clone() for name, parameter in self._parameters.items()}
        weight = 1.0 - self.decay**self.steps
        for name, parameter in self._parameters.items():
            parameter.set_value(self._sums[name] / weight)
        try:
            yield
        finally:
            for name, parameter in self._parameters.items():
                parameter.set_value(own[name])

    def serialise(self) -> bytes:
        """Return the state as the content of a file."""
        arrays = {name: value.numpy() for name, value in self._sums.items()}
        return serialise_tensors({**arrays, f"::{STEPS}": paddle.to_tensor(self.steps).numpy().reshape(1)})

    def restore(self, content: bytes, where: Path) -> None:
        """Restore the state that `serialise` returned.

        Raises:
            UserError: it belongs to other parameters.
        """
        arrays = with_present_names(parse_tensors(content), self._older_names)
        steps = arrays.pop(f"::{STEPS}", None)
        if steps is None or arrays.keys() != self._sums.keys():
            raise UserError(f"{where}: the averaged weights are of another model; begin the run anew")
        self.steps = int(steps[0])
        self._sums = {name: paddle.to_tensor(value) for name, value in arrays.items()}
