"""EmoPrepend on a pre-trained model: it writes the emotion's word after the conversation, and then the reply."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import Tensor

from paddle_dialog.config.models import PretrainedConfig
from paddle_dialog.errors import UserError
from paddle_dialog.models.pretrained import PretrainedLM, PretrainedState
from paddle_dialog.models.pretrained_base import base_folder, load_tokenizer
from paddle_dialog.tasks.empathetic.config import EmpatheticConfig
from paddle_dialog.tasks.empathetic.data.emotions import EMOTIONS_OF
from paddle_dialog.tasks.empathetic.data.encoding import (
    LISTENER_ID,
    NO_EMOTION,
    SPEAKER_ID,
    Source,
    pretrained_vocabulary,
    smallest_vocabulary,
)
from paddle_dialog.tasks.empathetic.network.emo_prepend import Outputs
from paddle_dialog.text.vocabulary import Vocabulary

ROWS = 8  # whose logits of all of the model's tokens are there at once
END_OF_LABEL = "\n"  # between the emotion's word and the reply
# Of a model without a chat template.
PLAIN = {"user": "Speaker: {}\n", "assistant": "Listener: {}\n", "reply": "Listener: "}


class PretrainedEmoPrepend(PretrainedLM):
    """Implements `StepModel` with logits for batches of `Source`, whose turns are marked.

    The turns are written in the model's own chat template. After them all labels are read at once, as a tree of their
    tokens in which each sees those before it in its label alone; the probability of a label is that of its tokens and
    of what ends it, over that of all labels. The reply is read after one label, the others are hidden from it.

    Args:
        config: sizes and switches.
        vocab_size: V, to be checked; 0 where no weights were tuned.
    """

    def __init__(self, config: EmpatheticConfig, vocab_size: int) -> None:
        assert isinstance(config.model, PretrainedConfig)
        folder, vocabulary = base_folder(config.model), pretrained_vocabulary(config)
        tokenizer = load_tokenizer(folder)
        *self._before_end, end_of_label = tokenizer.encode(END_OF_LABEL, add_special_tokens=False)
        ids, end, emotions = tokenizer.get_vocab(), tokenizer.eos_token_id, EMOTIONS_OF[config.language]
        first_word = smallest_vocabulary(emotions)
        columns = np.array(
            [ids[token] if place >= first_word else end for place, token in enumerate(vocabulary)]
        )
        columns[Vocabulary.bos_id] = end_of_label
        if tokenizer.unk_token_id is not None:
            columns[Vocabulary.unk_id] = tokenizer.unk_token_id
        written = np.arange(len(vocabulary)) >= first_word
        super().__init__(config.model, vocab_size, vocabulary, columns, written)
        self._column_list: list[int] = columns.tolist()
        self._templates: dict[int, list[list[int]]] = {}
        self._make_tree([self._label(folder, emotion) for emotion in emotions], end_of_label)

    def forward(
        self, words: Tensor, condition: Tensor, source_lengths: Tensor, target: Tensor, emotion: Tensor
    ) -> Outputs:
        """Score every next word, given the true ones before it; arguments as the fields of `DialogueBatch`.

        In training the annotated emotion precedes a reply, else that of the condition or the likeliest one.
        """
        known = paddle.where(emotion != NO_EMOTION, emotion, condition) if self.training else condition
        state, scores = self._read(words, known, source_lengths)
        hidden, _ = self.extend(self.columns[target], state)
        return Outputs.of(self.logits(hidden), scores)

    @paddle.no_grad()
    def read_contexts(self, source: Source, lengths: np.ndarray) -> tuple[PretrainedState, np.ndarray]:
        """Return the state before the first word, and probabilities [B, C] of the emotions."""
        words, condition = paddle.to_tensor(source.words), paddle.to_tensor(source.condition)
        state, scores = self._read(words, condition, paddle.to_tensor(lengths))
        return state, F.softmax(scores, axis=-1).numpy()

    def _read(self, words: Tensor, condition: Tensor, lengths: Tensor) -> tuple[PretrainedState, Tensor]:
        """Return the state behind one label, and log-probabilities [B, C] of all of them.

        Args:
            words: [B, S].
            condition: the label, a class id, or `NO_EMOTION` for the likeliest [B].
            lengths: [B].
        """
        rows = zip(words.tolist(), lengths.tolist(), strict=True)
        prompts = [self._prompt(ids[1:length]) for ids, length in rows]
        hidden, state = self.begin(prompts)
        count, places = len(prompts), state.place - 1  # [B]
        last = hidden[paddle.arange(count), places].unsqueeze(1)  # [B, 1, D]
        tree = self._tree_ids.unsqueeze(0).expand([count, len(self._tree_ids)])  # [B, K]
        inside, wide = self.extend(tree, state, self._tree_seen, self._tree_depth)  # [B, K, D]
        scores = self._label_scores(paddle.concat([last, inside], axis=1))  # [B, C]
        chosen = paddle.where(condition == NO_EMOTION, scores.argmax(axis=-1), condition)  # [B]
        paths = self._paths[chosen]  # [B, K]
        real = paddle.concat([state.real, paths], axis=1)
        return PretrainedState(wide.layers, real, state.place + paths.astype("int64").sum(1)), scores

    def _label_scores(self, hidden: Tensor) -> Tensor:
        """Return log-probabilities [B, C] of the labels from hidden [B, 1 + K, D]."""
        scores = []
        for start in range(0, len(hidden), ROWS):
            logits = self.all_logits(hidden[start : start + ROWS])  # [R, 1 + K, M]
            nodes, tokens = self._edges.unbind(1)  # [E] each
            # [R, E]
            picked = paddle.index_select(logits.flatten(1), nodes * logits.shape[2] + tokens, axis=1)
            totals = paddle.index_select(paddle.logsumexp(logits, axis=-1), nodes, axis=1)  # [R, E]
            scores.append(paddle.matmul(picked - totals, self._edges_of, transpose_y=True))
        return paddle.concat(scores)

    def _make_tree(self, labels: Sequence[Sequence[int]], end_of_label: int) -> None:
        """Make the tree of C labels of K tokens: what follows what, and which steps make up a label."""
        nodes: dict[tuple[int, ...], int] = {}
        for label in labels:
            for size in range(1, len(label) + 1):
                nodes.setdefault(tuple(label[:size]), len(nodes))
        count = len(nodes)
        seen, edges = np.zeros((count, count), dtype=bool), dict[tuple[int, int], int]()
        for path, node in nodes.items():
            seen[node, [nodes[path[:size]] for size in range(1, len(path) + 1)]] = True
        # 0 is the end of the prompt.
        numbers = {(): 0, **{path: node + 1 for path, node in nodes.items()}}
        steps = [
            [
                edges.setdefault((numbers[tuple(label[:size])], token), len(edges))
                for size, token in enumerate([*label, end_of_label])
            ]
            for label in labels
        ]
        edges_of = np.zeros((len(labels), len(edges)), dtype=np.float32)
        for row, own in zip(edges_of, steps, strict=True):
            row[own] = 1.0
        tables: dict[str, Any] = {
            "_tree_ids": np.array([path[-1] for path in nodes]),
            "_tree_seen": seen,
            "_tree_depth": np.array([len(path) - 1 for path in nodes]),
            "_paths": np.stack([seen[nodes[tuple(label)]] for label in labels]),
            "_edges": np.array(list(edges)),  # [E, 2]
            "_edges_of": edges_of,  # [C, E]
        }
        for name, table in tables.items():
            self.register_buffer(name, paddle.to_tensor(table), persistable=False)

    def _label(self, folder: Any, emotion: str) -> list[int]:
        label: list[int] = self._tokenizer.encode(emotion, add_special_tokens=False)
        if not label or self._tokenizer.unk_token_id in label:
            raise UserError(
                f"model.pretrained: the emotion '{emotion}' has no tokens in {folder}; take a model of its language"
            )
        return label + self._before_end

    def _prompt(self, words: Sequence[int]) -> list[int]:
        """Return the model's tokens of a conversation, up to the emotion's word."""
        turns: list[list[int]] = []
        for word in words:
            if word in (SPEAKER_ID, LISTENER_ID) or not turns:
                turns.append([])
            if word not in (SPEAKER_ID, LISTENER_ID):
                turns[-1].append(self._column_list[word])
        turns = turns[1 - len(turns) % 2 :]  # a listener's turn that lost the one before it
        parts = self._template(len(turns))
        return parts[0] + [
            token for turn, part in zip(turns, parts[1:], strict=True) for token in turn + part
        ]

    def _template(self, count: int) -> list[list[int]]:
        """Return the tokens before, between and behind so many turns in the chat template."""
        if count not in self._templates:
            roles = [("user", "assistant")[place % 2] for place in range(count)]
            tokenizer = self._tokenizer
            start = []
            if tokenizer.chat_template is None:
                text = "".join(PLAIN[role].format("⟦⟧") for role in roles) + PLAIN["reply"]
                start = self._start
            else:
                messages = [{"role": role, "content": "⟦⟧"} for role in roles]
                text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
            parts = [tokenizer.encode(part, add_special_tokens=False) for part in re.split("⟦⟧", text)]
            self._templates[count] = [start + parts[0], *parts[1:]]
        return self._templates[count]
