"""Time our search against CTranslate2's on the same Transformer: float32, one thread, one line at a time.

python tools/compare_ctranslate2.py --weights pretrained/couplet --data dev.tsv

CTranslate2 is not a dependency of the project: `pip install ctranslate2` first. It supports neither an input aligned
to the source nor rules, so both sides do without, and every answer is as long as its line.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
import tempfile
import time
from statistics import median
from typing import Any

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")  # read when NumPy is imported

from paddle_dialog.command_line import OneLineParser, integer_from, run_tool
from paddle_dialog.errors import UserError


def main(arguments: argparse.Namespace) -> None:
    """Print the median milliseconds of a line, their ratio, and how far the scores of our answers differ."""
    import numpy as np

    from paddle_dialog.bundle.folder import load_bundle
    from paddle_dialog.config.models import TransformerConfig
    from paddle_dialog.decoding import SearchOptions, decode
    from paddle_dialog.decoding.processors import MinimumLength
    from paddle_dialog.models.numpy_seq2seq import NumpySeq2Seq
    from paddle_dialog.models.older_names import SEQ2SEQ_NAMES, with_present_names
    from paddle_dialog.recipes import config_from_text
    from tasks.couplet.couplets import read_couplets

    bundle = load_bundle(arguments.weights)
    vocabulary = bundle.vocabularies["text"]
    config = config_from_text(bundle.config_text, arguments.weights)[1].model
    if not isinstance(config, TransformerConfig) or config.norm != "pre" or not config.tie_output:
        raise UserError(f"{arguments.weights}: is no pre-norm Transformer with a tied output")
    weights = {name: array.astype(np.float32) for name, array in bundle.weights.items()}
    weights = with_present_names(weights, SEQ2SEQ_NAMES)
    weights.pop("decoder.aligned_projection.weight", None)
    size = arguments.length
    lines = [pair.first for pair in read_couplets(arguments.data) if len(pair.first) == size][
        : arguments.lines
    ]
    if not lines:
        raise UserError(f"{arguments.data}: holds no 上联 of {size} characters")

    model = NumpySeq2Seq(dataclasses.replace(config, aligned_input=False), len(vocabulary), weights)
    minimum = MinimumLength(size, vocabulary.eos_id)
    options = SearchOptions(beam_size=arguments.beam, max_length=size, processors=[minimum])

    translator = ctranslate2_translator(config, weights, list(vocabulary.tokens))
    sources = [[*vocabulary.encode(line), vocabulary.eos_id] for line in lines]
    tokens = [[vocabulary.decode(ids)] for ids in sources]
    limits = {"min_decoding_length": size, "max_decoding_length": size}
    milliseconds, errors = ([], []), []
    for _ in range(arguments.repeats):
        for ids, source in zip(sources, tokens, strict=True):
            began = time.perf_counter()
            answer = decode(model, np.array([ids]), np.array([len(ids)]), options)[0][0]
            between = time.perf_counter()
            translator.translate_batch(source, beam_size=arguments.beam, length_penalty=0, **limits)
            milliseconds[0].append(1000 * (between - began))
            milliseconds[1].append(1000 * (time.perf_counter() - between))
            scores = translator.score_batch(source, [vocabulary.decode(answer.tokens)])[0].log_probs
            errors.append(abs(sum(scores) - answer.log_prob))
    own, other = map(median, milliseconds)
    print(f"ours {own:.2f} ms, CTranslate2 {other:.2f} ms, ratio {own / other:.2f}")
    print(f"log-probabilities of our answers differ by at most {max(errors):.1e}")


def ctranslate2_translator(config: Any, weights: dict[str, Any], tokens: list[str]) -> Any:
    """Return the weights as a CTranslate2 translator of one thread."""
    try:
        import ctranslate2  # type: ignore[import-untyped,import-not-found,unused-ignore]
    except ImportError as error:
        raise UserError("ctranslate2 is not installed; run `pip install ctranslate2`") from error
    spec = ctranslate2.specs.TransformerSpec.from_config(
        (config.encoder_layers, config.decoder_layers), config.num_heads
    )
    fill_stack(spec.encoder, spec.encoder.embeddings[0], "encoder", "source_embedding", config, weights)
    table = "source_embedding" if config.share_embeddings else "own_target_embedding"
    fill_stack(spec.decoder, spec.decoder.embeddings, "decoder", table, config, weights)
    spec.decoder.projection.weight = weights[f"{table}.table.weight"]
    if config.bias:
        spec.decoder.projection.bias = weights["output.bias"]
    spec.register_source_vocabulary(tokens)
    spec.register_target_vocabulary(tokens)
    spec.config.unk_token, spec.config.bos_token, spec.config.eos_token = tokens[1:4]
    spec.config.decoder_start_token = spec.config.bos_token
    spec.validate()
    with tempfile.TemporaryDirectory() as folder:
        spec.save(folder)
        return ctranslate2.Translator(folder, compute_type="float32", inter_threads=1, intra_threads=1)


def fill_stack(
    spec: Any, embedding: Any, stack: str, table: str, config: Any, weights: dict[str, Any]
) -> None:
    """Fill CTranslate2's encoder or decoder."""
    from paddle_dialog.layers.sinusoids import sinusoids

    def linear(part: Any, name: str) -> None:
        part.weight = weights[f"{name}.weight"].T.copy()
        if config.bias:
            part.bias = weights[f"{name}.bias"]

    def norm(part: Any, name: str) -> None:
        part.gamma, part.beta = weights[f"{name}.weight"], weights[f"{name}.bias"]

    embedding.weight = weights[f"{table}.table.weight"]
    learned = weights.get(f"{stack}.positions.weight")
    encodings = sinusoids(max_length=config.max_positions, width=config.width) if learned is None else learned
    spec.position_encodings.encodings = encodings
    norm(spec.layer_norm, f"{stack}.stack.final_norm")
    for number, layer in enumerate(spec.layer):
        name = f"{stack}.stack.layers.{number}"
        attentions = [("self_attention", layer.self_attention, ["query_key_value", "output"])]
        if stack == "decoder":
            attentions.append(("cross_attention", layer.attention, ["query", "key_value", "output"]))
        for attention, part, projections in attentions:
            norm(part.layer_norm, f"{name}.{attention}_norm")
            for target, projection in zip(part.linear, projections, strict=True):
                linear(target, f"{name}.{attention}.{projection}")
        norm(layer.ffn.layer_norm, f"{name}.feed_forward_norm")
        linear(layer.ffn.linear_0, f"{name}.feed_forward.expand")
        linear(layer.ffn.linear_1, f"{name}.feed_forward.contract")


if __name__ == "__main__":
    purpose, _, example = (__doc__ or "").partition("\n\n")
    parser = OneLineParser(description=purpose, epilog=f"example: {example.strip()}")
    parser.add_argument("--weights", required=True, metavar="DIR", help="a bundle of a couplet Transformer")
    parser.add_argument("--data", required=True, metavar="FILE", help="couplets")
    for name, default in {"length": 7, "lines": 8, "beam": 5, "repeats": 10}.items():
        parser.add_argument(f"--{name}", type=integer_from(1), default=default, metavar="N")
    sys.exit(run_tool(main, parser))
