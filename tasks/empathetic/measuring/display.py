"""What the log of a run shows of a model at work."""

from __future__ import annotations

from paddle_dialog.bundle.trained import TrainedModel
from paddle_dialog.data.training_data import EncodedData, TrainingData
from paddle_dialog.task import Display
from tasks.empathetic.answering.prediction import EmpatheticPredictor
from tasks.empathetic.config import EmpatheticConfig
from tasks.empathetic.data.dataset import DialogueDataset
from tasks.empathetic.measuring.analysis import dev_emotion_accuracy, word_maps
from tasks.empathetic.network.emo_prepend import EmoPrepend


def display(config: EmpatheticConfig, network: EmoPrepend, data: TrainingData, count: int) -> Display:
    """Show emotions and greedy replies of the first dev, else training, contexts.

    Args:
        config: of the run.
        network: in training.
        data: of the run.
        count: contexts.

    Returns:
        Beside the texts, attention and copying in the first example, and the accuracy of the emotion.
    """
    examples = data.dev if data.dev is not None else data.train
    assert isinstance(examples, EncodedData) and isinstance(examples.dataset, DialogueDataset)
    dataset = examples.dataset
    dialogues = dataset.dialogues[:count]
    accuracy = dev_emotion_accuracy(network, dataset, config.data.batch_size)
    scalars = {} if accuracy is None else {"emotion_accuracy": accuracy}
    if not dialogues:
        return Display([], scalars=scalars)
    model = TrainedModel.of_network(network, data.vocabularies)
    predictor = EmpatheticPredictor(config, model, dataset.encoder)
    answers = predictor.greedy([d.context for d in dialogues], [d.emotion for d in dialogues])
    texts = [
        f"{dialogue.context[-1]} → [{answer.predicted_emotion}] {answer.predictions[0].text} "
        f"(reference [{dialogue.emotion}] {dialogue.target})"
        for dialogue, answer in zip(dialogues, answers, strict=True)
    ]
    maps = word_maps(network, dataset[0])
    rows = [*dataset.encoder.language.tokens_of(dialogues[0].target), "<eos>"][: len(maps["attention"])]
    return Display(texts, maps, rows, dataset.context_words(0), scalars)
