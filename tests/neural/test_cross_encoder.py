"""A small BERT with random weights learns from our losses, by sentence-transformers' own trainer."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("sentence_transformers")

from sentence_transformers import CrossEncoder  # noqa: E402 - skipped without
from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast  # noqa: E402 - likewise

from ltr_objectives import LTRError, evaluate  # noqa: E402 - likewise
from ltr_objectives.adapters import cross_encoder_loss  # noqa: E402 - likewise

WORDS = ["red", "green", "blue", "cat", "dog", "tree", "sun", "sea"]


@pytest.fixture
def model(tmp_path):
    torch.manual_seed(0)
    (tmp_path / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]))
    BertTokenizerFast(str(tmp_path / "vocab.txt")).save_pretrained(tmp_path)
    small = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    config = BertConfig(vocab_size=5 + len(WORDS), num_labels=1, hidden_dropout_prob=0.0,
                        attention_probs_dropout_prob=0.0, **small)  # fmt: skip
    BertForSequenceClassification(config).save_pretrained(tmp_path)
    return CrossEncoder(str(tmp_path), device="cpu")


def batch():
    """Return queries and documents of words: a relevant one has a word of the query. The last have no order."""
    rng = np.random.default_rng(0)
    queries = [" ".join(rng.choice(WORDS, 2, replace=False)) for _ in range(12)]
    documents = [[" ".join(rng.choice(WORDS, 3)) for _ in range(rng.integers(2, 7))] for _ in queries]
    labels = [
        torch.tensor([float(bool(set(text.split()) & set(query.split()))) for text in texts])
        for query, texts in zip(queries, documents, strict=True)
    ]
    labels[-2], documents[-1], labels[-1] = torch.ones(len(documents[-2])), ["sun"], torch.ones(1)
    return [queries, documents], labels


@pytest.mark.parametrize("objective", ["yetiloss:map", "lambdamart:mrr", "listnet"])
def test_the_loss_falls(model, objective):
    inputs, labels = batch()
    loss, whole = cross_encoder_loss(model, objective, mini_batch_size=7), cross_encoder_loss(model, objective)
    first = loss(inputs, labels)
    assert torch.allclose(first, whole(inputs, labels))
    optimiser = torch.optim.Adam(model.parameters(), 0.005)
    for _ in range(20):
        optimiser.zero_grad()
        value = loss(inputs, labels)
        value.backward()
        assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())
        optimiser.step()
    assert value < first


def test_its_own_trainer_takes_it(model, tmp_path):
    datasets = pytest.importorskip("datasets")
    from sentence_transformers.cross_encoder import CrossEncoderTrainer, CrossEncoderTrainingArguments

    (queries, documents), labels = batch()
    rows = {"query": queries, "docs": documents, "labels": [y.tolist() for y in labels]}
    options = {"max_steps": 20, "per_device_train_batch_size": 12, "learning_rate": 0.005, "report_to": "none"}
    arguments = CrossEncoderTrainingArguments(output_dir=str(tmp_path / "out"), use_cpu=True, **options)

    def map_now():
        pairs = [(query, text) for query, texts in zip(queries, documents, strict=True) for text in texts]
        sizes = [len(texts) for texts in documents]
        return evaluate("map", model.predict(pairs), torch.cat(labels).numpy(), sizes)

    before = map_now()
    loss = cross_encoder_loss(model, "yetiloss:map")
    CrossEncoderTrainer(model, arguments, train_dataset=datasets.Dataset.from_dict(rows), loss=loss).train()
    assert map_now() > before


def test_bad_input_is_refused(model):
    with pytest.raises(LTRError, match="one list of documents and one label for each"):
        cross_encoder_loss(model, "listnet")([["a", "b"], [["c"], ["d", "e"]]], [torch.ones(2), torch.ones(1)])
    model.model.classifier = torch.nn.Linear(16, 2)
    with pytest.raises(LTRError, match="scores"):
        cross_encoder_loss(model, "listnet")([["a"], [["b", "c"]]], [torch.ones(2)])
