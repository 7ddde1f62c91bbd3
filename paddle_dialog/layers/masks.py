"""Which positions are real and which may be attended to: boolean masks, True = use."""

import paddle


def length_mask(lengths: paddle.Tensor, max_length: int) -> paddle.Tensor:
    """Mark the real tokens of right-padded sequences.

    Args:
        lengths: integers [B].
        max_length: T, the padded length.

    Returns:
        bool [B, T], True where the position is before the sequence's end.
    """
    positions = paddle.arange(max_length, dtype=lengths.dtype)  # [T]
    return positions.unsqueeze(0) < lengths.unsqueeze(1)  # [B, T]


def causal_mask(length: int) -> paddle.Tensor:
    """Let each position see itself and the past only (Vaswani et al. 2017, section 3.2.3).

    Args:
        length: T, the number of target positions.

    Returns:
        bool [T, T]; row i is the query at position i, True at columns 0..i.
    """
    return paddle.tril(paddle.ones([length, length], dtype="int32")).astype("bool")  # [T, T]


def additive_mask(mask: paddle.Tensor, dtype: str | paddle.dtype = "float32") -> paddle.Tensor:
    """Turn a boolean mask into a term for attention scores: 0 where True, very negative elsewhere.

    The value is half the lowest of the type: being finite, it keeps the softmax of a fully masked row
    free of NaN. Combine masks with `&` before the call, since the sum of two additive masks can leave the
    range of float16. Paddle's softmax on CPU floors at exp(-64): a masked weight is about 1e-28 there and
    not zero, so multiply by the mask where that matters.

    Args:
        mask: bool, any shape, True = may attend.
        dtype: float type of the scores.

    Returns:
        float tensor of the mask's shape.
    """
    allowed = mask.astype(dtype)
    lowest = float(paddle.finfo(allowed.dtype).min) / 2
    return paddle.scale(allowed, scale=-lowest, bias=lowest)
