"""Measures how fast this processor can multiply matrices of a model's shapes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import paddle

from paddle_dialog.benchmark.operations import Product

COVERED = 0.95  # share of the operations whose shapes are timed; the rest are small products
ROUNDS = 6

Shape = tuple[int, int, int]  # rows, inner, columns


@dataclass(frozen=True)
class Rates:
    """Operations a second on the products of a training step, in 10^9.

    Args:
        numpy: by NumPy's BLAS.
        paddle: by Paddle, on its current device.
        best: by the faster of both for each shape.
    """

    numpy: float
    paddle: float
    best: float


def measure_rates(products: Sequence[Product], clock: Callable[[], float]) -> Rates:
    """Time the shapes of forward and backward passes by themselves.

    Args:
        products: of a forward pass; those that do most of the work are timed.
        clock: seconds so far.
    """
    timed: list[tuple[float, float, float]] = []  # operations, seconds of NumPy and of Paddle
    for product in _largest(products):
        for shape in _passes(product):
            operations = 2.0 * math.prod(shape)
            scale = product.operations / operations  # a step has so many of this shape
            numpy_seconds, paddle_seconds = _seconds(shape, clock)
            timed.append((product.operations, scale * numpy_seconds, scale * paddle_seconds))
    operations, numpy, own = np.array(timed).T
    return Rates(
        *(float(operations.sum() / seconds.sum() / 1e9) for seconds in (numpy, own, np.minimum(numpy, own)))
    )


def _largest(products: Sequence[Product]) -> Iterator[Product]:
    """Iterate over the products with most operations that together make up `COVERED` of all."""
    missing = COVERED * sum(product.operations for product in products)
    for product in sorted(products, key=lambda product: -product.operations):
        if missing <= 0.0:
            return
        missing -= product.operations
        yield product


def _passes(product: Product) -> tuple[Shape, ...]:
    """Return the shapes of the product and of both its gradients."""
    rows, inner, columns = product.rows, product.inner, product.columns
    return (rows, inner, columns), (rows, columns, inner), (inner, rows, columns)


def _seconds(shape: Shape, clock: Callable[[], float]) -> tuple[float, float]:
    """Measure the seconds of one product of a shape by NumPy and by Paddle, the best of some rounds in turns."""
    rows, inner, columns = shape
    left, right = np.ones((rows, inner), np.float32), np.ones((inner, columns), np.float32)
    out = np.empty((rows, columns), np.float32)
    tensors = paddle.to_tensor(left), paddle.to_tensor(right)

    def by_numpy() -> None:
        np.matmul(left, right, out=out)

    def by_paddle() -> None:
        float(paddle.matmul(*tensors)[0, 0])  # reading waits for a GPU

    calls = min(20, 1 + round(1e8 / math.prod(shape)))  # small products are too short for a clock
    best = [math.inf, math.inf]
    for _ in range(ROUNDS):
        for number, multiply in enumerate((by_numpy, by_paddle)):
            began = clock()
            for _ in range(calls):
                multiply()
            best[number] = min(best[number], (clock() - began) / calls)
    return best[0], best[1]
