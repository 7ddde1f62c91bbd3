"""Writes tiny checkpoints of two layers in Hugging Face's form: Llama's and ERNIE 4.5's shapes, BPE tokenizers.

The weights are those of a seed, so that others can compute with the same file:

    .venv-pretrained/bin/python tests/pretrained/checkpoints.py FOLDER        # FOLDER/llama and FOLDER/ernie
    python tests/pretrained/checkpoints.py --ask FOLDER    # with PyTorch and Transformers: logits, tokens
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

SIZES = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-5,
    "hidden_act": "silu",
    "torch_dtype": "float32",
}
SHAPES = {
    "llama": {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "rope_theta": 10000.0,
        "tie_word_embeddings": False,
        "bos_token_id": 0,
        "eos_token_id": 2,
        "pad_token_id": 0,
    },
    "ernie": {
        "architectures": ["Ernie4_5ForCausalLM"],
        "model_type": "ernie4_5",
        "rope_theta": 500000.0,
        "tie_word_embeddings": True,
        "use_bias": False,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "pad_token_id": 0,
    },
}
TEMPLATES = {
    "llama": "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
    "ernie": "<s>{% for m in messages %}{% if m['role'] == 'user' %}User: {{ m['content'] }}\nAssistant: "
    "{% else %}{{ m['content'] }}</s>{% endif %}{% endfor %}",
}
SPECIALS = {"llama": ["<|endoftext|>", "<|im_start|>", "<|im_end|>"], "ernie": ["<unk>", "<s>", "</s>"]}
MERGED = ("春风", "明月")  # words that both tokenizers make one token of
PROMPT = [5, 9, 40, 17, 33]  # ids that `ask` reads


def write_checkpoint(
    folder,
    shape,
    texts,
    size=700,
    seed=0,
    merged=MERGED,
):
    """Write config.json, model.safetensors, tokenizer.json and tokenizer_config.json.

    Args:
        shape: `llama` (a byte-level tokenizer, as SmolLM's) or `ernie` (characters and byte fallback).
        texts: that the tokenizer learns from.
        size: of its vocabulary at most.
        seed: of the weights.
        merged: words that the tokenizer makes one token of.
    """
    from safetensors.numpy import save_file

    folder.mkdir(parents=True, exist_ok=True)
    vocab_size = _write_tokenizer(folder, shape, [*texts, *merged * 50], size)
    config = {**SIZES, **SHAPES[shape], "vocab_size": vocab_size}
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    save_file(_weights(config, seed), folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def _weights(config, seed):
    """Return weights [out, in] of a seed by Hugging Face's names."""
    generator = np.random.default_rng(seed)
    width, inner = config["hidden_size"], config["intermediate_size"]
    queries, keys = (config[f"num_{kind}_heads"] * config["head_dim"] for kind in ("attention", "key_value"))
    shapes = {"model.embed_tokens.weight": (config["vocab_size"], width)}
    for layer in range(config["num_hidden_layers"]):
        name = f"model.layers.{layer}"
        for part, shape in {"q": (queries, width), "k": (keys, width), "v": (keys, width)}.items():
            shapes[f"{name}.self_attn.{part}_proj.weight"] = shape
        shapes[f"{name}.self_attn.o_proj.weight"] = (width, queries)
        shapes[f"{name}.mlp.gate_proj.weight"] = shapes[f"{name}.mlp.up_proj.weight"] = (inner, width)
        shapes[f"{name}.mlp.down_proj.weight"] = (width, inner)
    if not config["tie_word_embeddings"]:
        shapes["lm_head.weight"] = (config["vocab_size"], width)
    weights = {
        # Tables that are large enough for a frozen model to be sure of a token.
        name: (generator.standard_normal(shape) * (shape[1] ** -0.5 if ".layers." in name else 0.5)).astype(
            np.float32
        )
        for name, shape in shapes.items()
    }
    kinds = ("input_layernorm", "post_attention_layernorm")
    norms = [f"model.layers.{layer}.{kind}.weight" for layer in range(2) for kind in kinds]
    return weights | {name: np.ones(width, np.float32) for name in [*norms, "model.norm.weight"]}


def _write_tokenizer(folder, shape, texts, size):
    """Write a BPE tokenizer and its settings; return the number of its tokens."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    specials = SPECIALS[shape]
    learned = list(texts)
    if shape == "llama":
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        characters = sorted(set("".join(texts)))
        learned += characters * 2  # so that every hanzi of the texts is a token, and only then longer ones
        alphabet = pre_tokenizers.ByteLevel.alphabet()
    else:
        bytes_ = [f"<0x{value:02X}>" for value in range(256)]
        tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True))
        tokenizer.normalizer = normalizers.Replace(" ", "▁")
        tokenizer.decoder = decoders.Sequence(
            [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
        )
        tokenizer.pre_tokenizer = pre_tokenizers.Split("\n", "isolated")
        specials, alphabet = [*specials, *bytes_], []
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=specials, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(learned, trainer)
    file = folder / "tokenizer.json"
    tokenizer.save(str(file))
    content = json.loads(file.read_text(encoding="utf-8"))
    content["added_tokens"] = content["added_tokens"][: len(SPECIALS[shape])]  # bytes are ordinary tokens
    file.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    first, last = (
        SPECIALS[shape][SHAPES[shape]["bos_token_id"]],
        SPECIALS[shape][SHAPES[shape]["eos_token_id"]],
    )
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": first,
        "eos_token": last,
        "pad_token": first,
        "unk_token": SPECIALS[shape][0],
        "chat_template": TEMPLATES[shape],
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=1))
    return tokenizer.get_vocab_size()


def ask(folder):
    """Return what Transformers computes with PyTorch: the last position's first logits, and eight greedy tokens."""
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    ids = list(PROMPT)
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0, -1]
        for _ in range(8):
            ids.append(int(model(torch.tensor([ids])).logits[0, -1].argmax()))
    return {"logits": [round(float(value), 5) for value in logits[:8]], "greedy": ids[len(PROMPT) :]}


def main(arguments):
    """Write the checkpoints that the tests compare, or ask PyTorch about them."""
    folder = Path(arguments[-1])
    texts = ["山水春秋"] * 9
    for shape in SHAPES:
        if arguments[0] == "--ask":
            print(shape, json.dumps(ask(folder / shape)))
        else:
            write_checkpoint(folder / shape, shape, texts, size=330)


if __name__ == "__main__":
    main(sys.argv[1:])
