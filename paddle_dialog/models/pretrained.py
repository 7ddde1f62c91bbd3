"""A pre-trained causal language model as a family: PaddleFormers' network behind the interface of our search.

A vocabulary of ours represents some of the model's tokens. A source becomes a prompt; the search and the loss see the
logits of the vocabulary's tokens alone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import paddle
from paddle import Tensor, nn

from paddle_dialog.config.models import LoraConfig, PretrainedConfig
from paddle_dialog.data.batching import pad_batch
from paddle_dialog.data.files import MANIFEST
from paddle_dialog.errors import UserError
from paddle_dialog.layers.masks import causal_mask, length_mask
from paddle_dialog.models.pretrained_base import (
    SETTINGS,
    base_folder,
    characters,
    load_tokenizer,
    quiet_import,
)
from paddle_dialog.text.vocabulary import Vocabulary

BEGIN = "："  # the end of every prompt, after which the target is written
_NEVER = -1e9  # the logit of what is not text

Prompt = Callable[[Sequence[str]], Sequence[str]]


class PretrainedState(NamedTuple):
    """What was read so far; the first axis of all tensors is the row."""

    layers: list[tuple[Tensor, Tensor]]  # keys and values [N, heads, P, d] of each layer
    real: Tensor  # bool [N, P], which positions the next ones see
    place: Tensor  # the number of the next position [N]


class _KeyValues:
    """What the library asks of a cache, over the keys and values of a state, which stays as it is."""

    def __init__(self, layers: list[tuple[Tensor, Tensor]]) -> None:
        self._past = layers
        self.layers: list[tuple[Tensor, Tensor]] = []

    def get_seq_length(self) -> int:
        """Return the number of positions before the new ones."""
        return int(self._past[0][0].shape[2]) if self._past else 0

    def update(self, keys: Tensor, values: Tensor, layer: int) -> tuple[Tensor, Tensor]:
        """Return all keys and values of a layer, the new ones [N, heads, L, d] behind those before."""
        if self._past:
            before = self._past[layer]
            keys, values = (paddle.concat(pair, axis=2) for pair in zip(before, (keys, values), strict=True))
        self.layers.append((keys, values))
        return keys, values


class PretrainedLM(nn.Layer):
    """A causal language model that reads tokens after others, and implements `StepModel` in evaluation mode.

    Args:
        config: where it is, and what of it is trained.
        vocab_size: V, to be checked; 0 where no weights were tuned.
        vocabulary: ours; V tokens.
        columns: the model's token for each of them [V].
        written: bool [V], which of them a text may have besides its end and what is unknown.

    Attributes:
        weights_elsewhere: names of the weights that are frozen, which bundles leave to the model's own folder.
    """

    def __init__(
        self,
        config: PretrainedConfig,
        vocab_size: int,
        vocabulary: Vocabulary,
        columns: np.ndarray,
        written: np.ndarray,
    ) -> None:
        super().__init__()
        folder = base_folder(config)
        if vocab_size not in (0, len(vocabulary)):
            raise UserError(
                f"model.pretrained: {folder} has {len(vocabulary):,} tokens and marks, and the vocabulary of the "
                f"weights {vocab_size:,}; name the model that they were trained on"
            )
        self.vocabulary = vocabulary
        self.model = load_model(config)
        self._tokenizer = load_tokenizer(folder)
        end = self._tokenizer.eos_token_id
        self._start = [index for index in self._tokenizer("").input_ids if index != end]  # of every prompt
        # In a tuple, so that Paddle does not register the layers twice: they are those of `model`.
        self._lora = () if config.lora is None else (add_lora(self.model, config.lora),)
        self.weights_elsewhere = frozenset(
            name
            for name, tensor in self.state_dict().items()
            if config.lora is not None and tensor.stop_gradient
        )
        self._mixed = config.dtype == "bfloat16" and paddle.get_device() != "cpu"
        self.register_buffer("columns", paddle.to_tensor(columns, dtype="int64"), persistable=False)
        floor = np.where(written, 0.0, _NEVER).astype(np.float32)
        floor[[Vocabulary.unk_id, Vocabulary.eos_id]] = 0.0
        self.register_buffer("floor", paddle.to_tensor(floor), persistable=False)

    def begin(self, ids: Sequence[Sequence[int]]) -> tuple[Tensor, PretrainedState]:
        """Read the model's tokens of N texts; return hidden [N, L, D] and the state."""
        padded, lengths = pad_batch([np.asarray(row) for row in ids], 0)
        tokens, sizes = paddle.to_tensor(padded), paddle.to_tensor(lengths)
        real = length_mask(sizes, padded.shape[1])  # [N, L]
        empty = PretrainedState([], real[:, :0], paddle.zeros_like(sizes))
        hidden, state = self.extend(tokens, empty)
        return hidden, state._replace(real=real, place=sizes)

    def extend(
        self, ids: Tensor, state: PretrainedState, seen: Tensor | None = None, depth: Tensor | None = None
    ) -> tuple[Tensor, PretrainedState]:
        """Read L more of the model's tokens in every row.

        Args:
            ids: [N, L].
            state: of the tokens before.
            seen: bool [L, L], which of them each of them sees; itself and those before by default.
            depth: how far each is from the state [L]; one after the other by default.

        Returns:
            Hidden [N, L, D], and the state after them.
        """
        rows, length = ids.shape
        seen = causal_mask(length) if seen is None else seen
        depth = paddle.arange(length) if depth is None else depth
        before = state.real.unsqueeze(1).expand([rows, length, state.real.shape[1]])
        mask = paddle.concat([before, seen.unsqueeze(0).expand([rows, length, length])], axis=2)
        cache = _KeyValues(state.layers)
        with paddle.amp.auto_cast(enable=self._mixed, dtype="bfloat16"):
            hidden = self.model.model(
                ids,
                attention_mask=mask.unsqueeze(1),  # [N, 1, L, P + L]
                position_ids=state.place.unsqueeze(1) + depth,
                past_key_values=cache,
                use_cache=True,
            )[0]
        real = paddle.concat([state.real, paddle.ones([rows, length], dtype="bool")], axis=1)
        return hidden, PretrainedState(cache.layers, real, state.place + length)

    def all_logits(self, hidden: Tensor) -> Tensor:
        """Return the logits of all tokens of the model, float32 [N, L, M], for hidden [N, L, D]."""
        with paddle.amp.auto_cast(enable=self._mixed, dtype="bfloat16"):
            logits = self.model.lm_head(hidden)
        return logits.astype("float32")

    def logits(self, hidden: Tensor) -> Tensor:
        """Return the logits of our vocabulary [N, L, V] for hidden [N, L, D]."""
        return paddle.index_select(self.all_logits(hidden), self.columns, axis=2) + self.floor

    @paddle.no_grad()
    def step(self, token: np.ndarray, state: PretrainedState) -> tuple[np.ndarray, PretrainedState]:
        """Return logits [N, V] after one more token of our vocabulary [N], and the new state."""
        hidden, state = self.extend(self.columns[paddle.to_tensor(token)].unsqueeze(1), state)
        return self.logits(hidden).squeeze(1).numpy(), state

    @paddle.no_grad()
    def reorder(self, state: PretrainedState, index: np.ndarray) -> PretrainedState:
        """Return the state of the rows `index` [M]."""
        rows = paddle.to_tensor(index)
        layers = [(paddle.index_select(k, rows), paddle.index_select(v, rows)) for k, v in state.layers]
        return PretrainedState(layers, state.real[rows], state.place[rows])

    def save_whole(self, folder: Path) -> None:
        """Write the weights in Hugging Face's form, with LoRA's matrices added to theirs, and what the library adds.

        Args:
            folder: an empty one.
        """
        for lora in self._lora:
            lora.merge()
            lora.restore_original_model()
        self.model.save_pretrained(str(folder), save_to_hf=True)


class PretrainedSeq2Seq(PretrainedLM):
    """Source to target, character by character; implements `StepModel` with logits.

    Args:
        config: where the model is, and what of it is trained.
        vocab_size: V, to be checked; 0 where no weights were tuned.
        vocabulary: characters, each a token of the model, and marks.
        prompt: makes the prompt of a source's tokens, as characters and phrases, all but its end `BEGIN`.
    """

    def __init__(
        self, config: PretrainedConfig, vocab_size: int, vocabulary: Vocabulary, prompt: Prompt
    ) -> None:
        folder = base_folder(config)
        known, tokenizer = characters(folder), load_tokenizer(folder)
        # The last token of `BEGIN` begins the target; the prompt ends with those before it.
        *self._end, begin = tokenizer.encode(BEGIN, add_special_tokens=False)
        end = tokenizer.eos_token_id
        special = {Vocabulary.bos_id: begin, Vocabulary.unk_id: tokenizer.unk_token_id}
        columns = [known.get(token, special.get(index)) for index, token in enumerate(vocabulary)]
        # A character without a token takes any column: `written` rules it out.
        columns = [end if column is None else column for column in columns]
        written = np.array([token in known for token in vocabulary])
        super().__init__(config, vocab_size, vocabulary, np.array(columns), written)
        self._characters, self._prompt = known, prompt

    def forward(self, source: Tensor, source_lengths: Tensor, target: Tensor) -> Tensor:
        """Return logits of every next token, given the true ones before it.

        Args:
            source: ids [B, S].
            source_lengths: real tokens of each source [B].
            target: ids [B, T], begin token first.

        Returns:
            Logits [B, T, V].
        """
        return self.logits(self.extend(self.columns[target], self._read(source, source_lengths))[0])

    @paddle.no_grad()
    def encode(self, source: np.ndarray, lengths: np.ndarray) -> PretrainedState:
        """Return the state before the target, for sources [B, S] of the given lengths [B], end token last."""
        return self._read(source, lengths)

    def _read(self, source: Any, lengths: Any) -> PretrainedState:
        rows = zip(source.tolist(), lengths.tolist(), strict=True)
        return self.begin([self._prompted(ids[: length - 1]) for ids, length in rows])[1]

    def _prompted(self, source: Sequence[int]) -> list[int]:
        """Return the model's tokens of the prompt of a source without its end token."""
        ids = list(self._start)
        for piece in self._prompt(self.vocabulary.decode(source)):
            known = self._characters.get(piece)
            ids += self._tokenizer.encode(piece, add_special_tokens=False) if known is None else [known]
        return ids + self._end


def load_model(config: PretrainedConfig) -> Any:
    """Return PaddleFormers' network with its weights; that of a bundle is without, as the bundle brings them."""
    folder = base_folder(config)
    in_bundle = (folder / MANIFEST).is_file()
    with quiet_import():
        from paddleformers.nn.attention.interface import AttentionInterface
        from paddleformers.transformers import AutoConfig, AutoModelForCausalLM
        from paddleformers.utils.log import logger as library_logger

    library_logger.set_level("ERROR")
    logging.getLogger("paddle.distributed.fleet.utils.log_util").setLevel(logging.ERROR)
    settings = AutoConfig.from_pretrained(str(folder))
    settings.fuse_rms_norm = False  # the fused kernel is registered for GPUs alone
    settings._attn_implementation = "sdpa"  # the one of the library's that takes any mask
    if paddle.get_device() == "cpu":
        AttentionInterface.register("grouped", grouped_attention)
        settings._attn_implementation = "grouped"
    if in_bundle:
        model = AutoModelForCausalLM.from_config(settings, dtype="float32")
    else:
        held = "float32" if paddle.get_device() == "cpu" else config.dtype
        # The library writes a file next to the weights and trusts one that it finds there, so it gets links to them.
        with TemporaryDirectory() as links:
            for path in [folder / SETTINGS, *folder.glob("*.safetensors*")]:
                (Path(links) / path.name).symlink_to(path.resolve())
            model = AutoModelForCausalLM.from_pretrained(
                links, config=settings, convert_from_hf=True, dtype=held
            )
    return model


def grouped_attention(
    layer: nn.Layer, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **settings: Any
) -> tuple[Tensor, None]:
    """Attend with G heads of keys for H of queries (Ainslie et al. 2023, "GQA"), as the library calls it.

    On a CPU the library's own copies each head of keys H / G times, over strided arrays, which takes a hundred times
    as long as the products of one step.

    Args:
        layer: in whose training mode weights are dropped, by `settings["dropout"]`.
        query: [N, H, L, d].
        key: [N, G, P, d].
        value: [N, G, P, d].
        attention_mask: added to the scores [N, 1, L, P]; None where all see all.

    Returns:
        [N, L, H · d], and None in the place of the weights.
    """
    rows, heads, length, size = query.shape
    shared = key.shape[1]
    grouped = (query * size**-0.5).reshape([rows, shared, heads // shared * length, size])
    scores = paddle.matmul(grouped, key, transpose_y=True).reshape([rows, heads, length, -1])  # [N, H, L, P]
    weights = nn.functional.softmax(scores if attention_mask is None else scores + attention_mask)
    weights = nn.functional.dropout(weights, settings["dropout"], training=layer.training)
    read = paddle.matmul(weights.reshape([rows, shared, heads // shared * length, -1]), value)
    read = read.reshape([rows, heads, length, size]).transpose([0, 2, 1, 3])  # [N, L, H, d]
    return read.reshape([rows, length, heads * size]), None


def add_lora(model: Any, lora: LoraConfig) -> Any:
    """Freeze a network, add small trainable matrices to its linear layers, and return what merges them."""
    from paddleformers.peft import LoRAConfig, LoRAModel

    wanted = sorted(
        {name.rpartition(".")[2] for name, layer in model.named_sublayers() if isinstance(layer, nn.Linear)}
    )
    options = {"r": lora.rank, "lora_alpha": lora.alpha, "lora_dropout": lora.dropout, "dtype": "float32"}
    return LoRAModel(model, LoRAConfig(target_modules=[rf".*\.{target}" for target in wanted], **options))
