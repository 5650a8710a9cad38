"""Adapters and heads: merging, loading, refusing."""

import json
from dataclasses import replace

import pytest
import torch
import transformers
from conftest import examples, small_config
from safetensors.torch import save_file

from helpers import adapters, attention, encoders, tokens
from helpers.adapters import AdapterError
from helpers.run import training

SETTINGS = training.DEFAULTS | {"rank": 4, "alpha": 8}
SCALE = 2
PAIRS = [example.texts for example in examples("paraphrase")]


def trained(encoder: encoders.Encoder, task: str, seed: int = 1) -> training.Student:
    """An encoder with changes that are not zero, as after training."""
    student = training.Student(encoder, task, SETTINGS).eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in student.weights.values():
            weight += 0.1 * torch.randn(weight.shape, generator=generator)
    return student


def shipped_as(student: training.Student, folder) -> None:
    """The files of an adapter, in single precision so that comparisons can be sharp."""
    folder.mkdir(parents=True)
    save_file(dict(student.weights), folder / "adapter.safetensors")
    card = {
        "format": 1,
        "task": student.encoder.task,
        "model": student.encoder.name,
        "scale": SCALE,
        "model_sha256": student.encoder.sha256,
    }
    (folder / "adapter.json").write_text(json.dumps(card))


@pytest.mark.parametrize("family", ["bert", "distilbert", "mpnet", "modernbert"])
def test_merging_equals_peft(small_encoder, family):
    """What readers load with plain additions computes what was trained."""
    student = trained(small_encoder(family), "paraphrase")
    batch = tokens.encode(student.encoder, PAIRS)
    with torch.no_grad():
        expected = student.encoder.logits(batch)
    plain = small_encoder(family)
    before = plain.model(**batch.inputs).last_hidden_state
    adapters.merge(plain.model, student.weights, SCALE)
    merged = replace(plain, head=student.head)
    torch.testing.assert_close(merged.logits(batch), expected, rtol=1e-4, atol=1e-4)
    assert not torch.allclose(plain.model(**batch.inputs).last_hidden_state, before, atol=1e-2)


@pytest.mark.parametrize("task", list(adapters.LABELS))
def test_shapes_and_gradients_of_each_head(small_encoder, task):
    encoder = encoders.with_new_head(small_encoder("bert"), task)
    batch = tokens.encode(encoder, PAIRS)
    size, length = batch.ids.shape
    gate = torch.ones(encoder.heads, 1, 1, requires_grad=True)
    with attention.tap(encoder, edit=lambda layer, probabilities: probabilities * gate):
        logits = encoder.logits(batch)
    expected = {"mlm": (length, 30522), "qa": (length, 2), "keywords": (length, 3)}
    assert logits.shape == (size, *expected.get(task, (len(adapters.LABELS[task]),))) and encoder.task == task
    logits.square().sum().backward()
    assert gate.grad.abs().min() > 0, "gradients reach the attention through head and encoder"


def test_the_pair_head_ignores_padding_and_special_tokens(small_encoder):
    encoder = encoders.with_new_head(small_encoder("bert"), "rte")
    together = encoder.logits(tokens.encode(encoder, PAIRS))
    alone = torch.cat([encoder.logits(tokens.encode(encoder, [p])) for p in PAIRS])
    torch.testing.assert_close(together, alone, rtol=1e-4, atol=1e-5)
    batch = tokens.encode(encoder, PAIRS[:1])
    hidden = torch.randn(*batch.ids.shape, 32)
    u, v = (hidden[0, batch.text[0] == side].mean(0) for side in (0, 1))
    features = torch.cat([u, v, (u - v).abs(), u * v])
    by_hand = encoder.head.out(torch.nn.functional.gelu(encoder.head.dense(features)))
    torch.testing.assert_close(encoder.head(hidden, batch)[0], by_hand, rtol=1e-4, atol=1e-5)


def test_a_token_classifier_brings_its_classes_in_the_books_order(tmp_path, minilm):
    names = {0: "B-KEY", 1: "I-KEY", 2: "O"}
    theirs = checkpoint(tmp_path / "theirs", "bert", "keywords", minilm.tokenizer, num_labels=3, id2label=names)
    encoder = encoders.load(str(tmp_path / "theirs"), task="keywords", device="cpu")
    batch = tokens.encode(encoder, PAIRS)
    expected = theirs(**batch.inputs).logits[..., [2, 0, 1]]
    torch.testing.assert_close(encoder.logits(batch), expected, rtol=1e-4, atol=1e-5)
    assert encoder.head.labels == adapters.LABELS["keywords"]


KINDS = {
    "mlm": transformers.AutoModelForMaskedLM,
    "qa": transformers.AutoModelForQuestionAnswering,
    "rte": transformers.AutoModelForSequenceClassification,
    "entailment": transformers.AutoModelForSequenceClassification,
    "keywords": transformers.AutoModelForTokenClassification,
}


def checkpoint(folder, family: str, task: str, tokenizer, **changes: object):
    """A tiny model of the library's own task class, saved."""
    torch.manual_seed(0)
    model = KINDS[task].from_config(small_config(family, **changes), attn_implementation="eager").eval()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model


@pytest.mark.parametrize("task", ["mlm", "qa", "rte"])
@pytest.mark.parametrize("family", ["bert", "distilbert", "mpnet"])
def test_a_checkpoints_own_head_says_what_the_library_says(tmp_path, minilm, family, task):
    model = checkpoint(tmp_path / "mine", family, task, minilm.tokenizer)
    encoder = encoders.load(str(tmp_path / "mine"), task=task, device="cpu")
    batch = tokens.encode(encoder, PAIRS)
    output = model(**batch.inputs)
    expected = torch.stack([output.start_logits, output.end_logits], -1) if task == "qa" else output.logits
    torch.testing.assert_close(encoder.logits(batch), expected, rtol=1e-4, atol=1e-5)
    assert type(encoder.model).__name__.endswith("Model") and encoder.task == task
    seen = []
    with attention.tap(encoder, observe=lambda layer, *_: seen.append(layer)):
        encoder.logits(batch)
    assert seen == [0, 1, 2], "one pass through the tapped encoder"


def test_classes_of_a_checkpoint_by_name(tmp_path, minilm):
    names = {0: "CONTRADICTION", 1: "NEUTRAL", 2: "ENTAILMENT"}
    checkpoint(tmp_path / "a", "bert", "entailment", minilm.tokenizer, id2label=names)
    encoder = encoders.load(str(tmp_path / "a"), task="entailment")
    assert encoder.head.labels == tuple(name.lower() for name in names.values())
    with pytest.raises(AdapterError, match=r"classes of .* are contradiction, neutral, entailment; 'rte' needs"):
        encoders.load(str(tmp_path / "a"), task="rte")
    checkpoint(tmp_path / "b", "bert", "rte", minilm.tokenizer, id2label={0: "not_equivalent", 1: "equivalent"})
    assert encoders.load(str(tmp_path / "b"), task="paraphrase").head.labels == ("not_paraphrase", "paraphrase")


def test_an_adapter_is_found_by_its_folder_and_by_model_and_task(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("BOOK_ADAPTERS", str(tmp_path / "adapters"))
    student, where = trained(encoders.load(str(folder), device="cpu"), "entailment"), tmp_path / "adapters"
    shipped_as(student, where / "mine-entailment")
    for task in (str(where / "mine-entailment"), "entailment"):
        encoder = encoders.load(str(folder), task=task, device="cpu")
        batch = tokens.encode(encoder, PAIRS)
        with torch.no_grad():
            torch.testing.assert_close(encoder.logits(batch), student.encoder.logits(batch), rtol=1e-4, atol=1e-4)
        assert encoder.task == "entailment" and "head for 'entailment'" in repr(encoder)
        assert encoder.head.sha256 == adapters.read(where / "mine-entailment").sha256 != ""
        assert encoder.sha256 == student.encoder.sha256
        assert not any(p.requires_grad for p in encoder.head.parameters())


def test_an_adapter_of_other_weights_is_refused(folder, tmp_path, small_encoder):
    shipped_as(trained(small_encoder("bert"), "qa"), tmp_path / "adapter")
    with pytest.raises(AdapterError, match=r"(?s)made for 'small-bert'.*made for sha256.*found    sha256") as caught:
        encoders.load(str(folder), task=str(tmp_path / "adapter"))
    assert "python -m helpers train qa --model" in str(caught.value)


def test_a_model_with_neither_adapter_nor_head(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("BOOK_ADAPTERS", str(tmp_path / "none"))
    with pytest.raises(AdapterError, match=r"has no head for 'qa' \(no qa_outputs.*-m helpers train qa --model"):
        encoders.load(str(folder), task="qa")
    with pytest.raises(AdapterError, match=r"no task 'summary'.*The tasks are mlm, qa"):
        encoders.load(str(folder), task="summary")
    with pytest.raises(AdapterError, match="random weights"):
        encoders.load("minilm@random", task="qa")


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("adapter.safetensors", "no", "cannot be read"),
        ("adapter.safetensors", None, "cannot be read"),
        ("adapter.json", "{", "cannot be read"),
        ("adapter.json", '{"format": 2, "task": "qa"}', "not an adapter of format 1"),
    ],
)
def test_damaged_adapters_are_refused(folder, tmp_path, file, content, message):
    shipped_as(trained(encoders.load(str(folder), device="cpu"), "qa"), tmp_path / "adapter")
    (tmp_path / "adapter" / file).unlink()
    if content:
        (tmp_path / "adapter" / file).write_text(content)
    with pytest.raises(AdapterError, match=message):
        encoders.load(str(folder), task=str(tmp_path / "adapter"))
