"""Adapters and heads: merging, loading, refusing; and what the shipped ones score."""

import json
import shutil
from dataclasses import replace

import pytest
import torch
from conftest import SMALL, shipped, small_model
from safetensors.torch import load_file, save_file
from transformers import (
    AutoConfig,
    AutoModelForMaskedLM,
    AutoModelForQuestionAnswering,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
)

from helpers import places
from helpers.engine import adapters, attention, encoders, tasks, tokens
from helpers.engine.adapters import AdapterError
from helpers.run import cards, training

SETTINGS = training.Settings(steps=4, batch_size=4, max_length=48, evaluate_every=2, rank=4, alpha=8)
PAIRS = [
    ("The otter dived.", "An otter went under water, and it came up again."),
    ("It rained all day, all night.", "The sun shone."),
]


def trained(encoder: encoders.Encoder, task: str, seed: int = 1) -> training.Student:
    """An encoder with changes that are not zero, as after training."""
    student = training.Student.of(encoder, task, SETTINGS)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in student.weights.values():
            weight += 0.1 * torch.randn(weight.shape, generator=generator)
    student.train(False, False)
    return student


def shipped_as(student: training.Student, folder) -> None:
    """The files of an adapter, in single precision so that comparisons can be sharp."""
    folder.mkdir(parents=True)
    save_file(student.tensors(), folder / "adapter.safetensors")
    card = {
        "format": 1,
        "task": student.encoder.task,
        "model": student.encoder.name,
        "scale": student.scale,
        "model_sha256": student.encoder.sha256,
    }
    (folder / "adapter.json").write_text(json.dumps(card))


@pytest.fixture
def folder(tmp_path, minilm):
    """A tiny BERT saved as a user would save it."""
    small_model("bert").save_pretrained(tmp_path / "mine")
    minilm.tokenizer.save_pretrained(tmp_path / "mine")
    return tmp_path / "mine"


# ---------------------------------------------------------------------------------------- merging


@pytest.mark.parametrize(
    "family", ["bert", "roberta", "distilbert", "electra", "albert", "mpnet", "deberta-v2", "modernbert"]
)
def test_merging_equals_peft(small_encoder, family):
    """What readers load with plain additions computes what was trained."""
    student = trained(small_encoder(family), "paraphrase")
    batch = tokens.encode(student.encoder, PAIRS)
    with torch.no_grad():
        expected = student.encoder.logits(batch)
    plain = small_encoder(family)
    before = plain.model(**batch.inputs).last_hidden_state
    adapters.merge(plain.model, student.tensors(), student.scale)
    merged = replace(plain, head=student.head)
    torch.testing.assert_close(merged.logits(batch), expected, rtol=1e-4, atol=1e-4)
    assert not torch.allclose(plain.model(**batch.inputs).last_hidden_state, before, atol=1e-2)


def test_merging_equals_pefts_own_merge(small_encoder):
    student = trained(small_encoder("bert"), "qa")
    plain = small_encoder("bert")
    adapters.merge(plain.model, student.tensors(), student.scale)
    for path in training.linear_maps(small_encoder("bert").model):
        module = student.encoder.model.get_submodule(path)
        module.merge()
        torch.testing.assert_close(plain.model.get_submodule(path).weight, module.base_layer.weight)


def test_the_changes_are_on_all_six_maps_of_each_layer(small_encoder):
    maps = training.linear_maps(small_encoder("bert").model)
    assert len(maps) == 3 * 6 and not any("pooler" in m for m in maps)
    student = training.Student.of(small_encoder("bert"), "qa", SETTINGS)
    assert sum(n.startswith("lora.") for n in student.weights) == 2 * 3 * 6
    trainable = {id(p) for p in student.encoder.model.parameters() if p.requires_grad}
    assert trainable == {id(p) for n, p in student.weights.items() if n.startswith("lora.")}


def test_an_untrained_adapter_changes_nothing(small_encoder):
    plain, student = small_encoder("bert"), training.Student.of(small_encoder("bert"), "qa", SETTINGS)
    batch = tokens.encode(plain, PAIRS)
    torch.testing.assert_close(
        student.encoder.model(**batch.inputs).last_hidden_state, plain.model(**batch.inputs).last_hidden_state
    )


# ---------------------------------------------------------------------------------------- heads


@pytest.mark.parametrize("task", list(adapters.LABELS))
def test_shapes_and_gradients_of_each_head(small_encoder, task):
    encoder = small_encoder("bert")
    encoder = replace(encoder, head=adapters.new_head(encoder.model, task).eval())
    batch = tokens.encode(encoder, PAIRS)
    size, length = batch.ids.shape
    gate = torch.ones(encoder.heads, 1, 1, requires_grad=True)
    with attention.tap(encoder, edit=lambda layer, probabilities: probabilities * gate):
        logits = encoder.logits(batch)
    expected = {"mlm": (size, length, 30522), "qa": (size, length, 2), "keywords": (size, length, 3)}.get(
        task, (size, len(adapters.LABELS[task]))
    )
    assert logits.shape == expected and encoder.task == task
    logits.square().sum().backward()
    assert gate.grad.abs().min() > 0, "gradients reach the attention through head and encoder"


def test_the_output_embedding_is_the_models_own(small_encoder):
    encoder = small_encoder("bert")
    head = adapters.new_head(encoder.model, "mlm")
    assert not any(weight.shape[0] == 30522 and weight.dim() == 2 for weight in head.state_dict().values())
    hidden = torch.randn(2, 5, 32)
    words = encoder.model.get_input_embeddings().weight
    by_hand = (
        head.norm(torch.nn.functional.gelu(hidden @ head.dense.weight.T + head.dense.bias)) @ words.T + head.bias
    )
    torch.testing.assert_close(head(hidden), by_hand)
    torch.testing.assert_close(head(hidden)[:, 2], head(hidden[:, 2]))  # position by position


def test_the_pair_head_ignores_padding_and_special_tokens(small_encoder):
    encoder = small_encoder("bert")
    encoder = replace(encoder, head=adapters.new_head(encoder.model, "rte").eval())
    together = encoder.logits(tokens.encode(encoder, PAIRS))
    alone = torch.cat([encoder.logits(tokens.encode(encoder, [p])) for p in PAIRS])
    torch.testing.assert_close(together, alone, rtol=1e-4, atol=1e-5)
    batch = tokens.encode(encoder, PAIRS[:1])
    hidden = torch.randn(*batch.ids.shape, 32)
    u, v = (hidden[0, batch.text[0] == side].mean(0) for side in (0, 1))
    features = torch.cat([u, v, (u - v).abs(), u * v])
    by_hand = encoder.head.out(torch.nn.functional.gelu(encoder.head.dense(features)))
    torch.testing.assert_close(encoder.head(hidden, batch)[0], by_hand, rtol=1e-4, atol=1e-5)


def test_the_head_for_keyphrases_works_position_by_position(small_encoder):
    encoder = small_encoder("bert")
    head = adapters.new_head(encoder.model, "keywords").eval()
    hidden = torch.randn(2, 5, 32)
    torch.testing.assert_close(head(hidden), hidden @ head.out.weight.T + head.out.bias)
    assert head.labels == ("outside", "begin", "inside")


# ---------------------------------------------------------------------------------------- checkpoints with a head


def test_a_token_classifier_brings_its_classes_in_the_books_order(tmp_path, minilm):
    names = {0: "B-KEY", 1: "I-KEY", 2: "O"}
    config = AutoConfig.for_model(
        "bert", **SMALL, num_labels=3, id2label=names, label2id={n: i for i, n in names.items()}
    )
    torch.manual_seed(0)
    theirs = AutoModelForTokenClassification.from_config(config).eval()
    theirs.save_pretrained(tmp_path / "theirs")
    minilm.tokenizer.save_pretrained(tmp_path / "theirs")
    encoder = encoders.load(str(tmp_path / "theirs"), task="keywords", device="cpu")
    batch = tokens.encode(encoder, PAIRS)
    expected = theirs(**batch.inputs).logits[..., [2, 0, 1]]
    torch.testing.assert_close(encoder.logits(batch), expected, rtol=1e-4, atol=1e-5)
    assert encoder.head.labels == adapters.LABELS["keywords"]


KINDS = {
    "mlm": AutoModelForMaskedLM,
    "qa": AutoModelForQuestionAnswering,
    "rte": AutoModelForSequenceClassification,
    "entailment": AutoModelForSequenceClassification,
}
OWN = {
    "distilbert": {"dim": 32, "n_layers": 3, "n_heads": 4, "hidden_dim": 48},
    "roberta": {"max_position_embeddings": 65},
    "electra": {"embedding_size": 24},
    "albert": {"embedding_size": 24},
    "mpnet": {"pad_token_id": 1, "max_position_embeddings": 66},
}


def checkpoint(folder, family: str, task: str, tokenizer, **changes: object):
    """A tiny model of the library's own task class, saved."""
    settings = SMALL | OWN.get(family, {}) | changes
    if family == "distilbert":
        settings = {
            k: v
            for k, v in settings.items()
            if k not in ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
        }
    torch.manual_seed(0)
    model = KINDS[task].from_config(AutoConfig.for_model(family, **settings), attn_implementation="eager").eval()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model


@pytest.mark.parametrize("task", ["mlm", "qa", "rte"])
@pytest.mark.parametrize("family", ["bert", "roberta", "distilbert", "electra", "albert", "mpnet", "deberta-v2"])
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
    assert encoders.load(str(tmp_path / "a"), task="entailment").head.labels == (
        "contradiction",
        "neutral",
        "entailment",
    )
    with pytest.raises(AdapterError, match=r"classes of .* are contradiction, neutral, entailment; 'rte' needs"):
        encoders.load(str(tmp_path / "a"), task="rte")
    checkpoint(tmp_path / "b", "bert", "rte", minilm.tokenizer, id2label={0: "not_equivalent", 1: "equivalent"})
    assert encoders.load(str(tmp_path / "b"), task="paraphrase").head.labels == ("not_paraphrase", "paraphrase")


def test_scores_follow_the_names_of_the_classes(tmp_path, minilm):
    """The same checkpoint with its classes in another order scores the same."""
    orders = [("entailment", "neutral", "contradiction"), ("contradiction", "entailment", "neutral")]
    given = [tasks.Example("entailment", str(n), n, pair, "neutral") for n, pair in enumerate(PAIRS)]
    model = checkpoint(tmp_path / "a", "bert", "entailment", minilm.tokenizer, id2label=dict(enumerate(orders[0])))
    turn = [orders[0].index(name) for name in orders[1]]
    with torch.no_grad():
        model.classifier.weight.copy_(model.classifier.weight[turn].clone())
        model.classifier.bias.copy_(model.classifier.bias[turn].clone())
    model.config.id2label = dict(enumerate(orders[1]))
    model.save_pretrained(tmp_path / "b")
    minilm.tokenizer.save_pretrained(tmp_path / "b")
    first, second = (
        tasks.score(encoders.load(str(tmp_path / f), task="entailment", device="cpu"), given) for f in "ab"
    )
    assert first.values["loss"] == pytest.approx(second.values["loss"]) and first.predictions == second.predictions


# ---------------------------------------------------------------------------------------- loading


def test_a_folder_with_an_adapter(folder, tmp_path):
    student = trained(encoders.load(str(folder), device="cpu"), "entailment")
    shipped_as(student, tmp_path / "adapter")
    encoder = encoders.load(str(folder), task=str(tmp_path / "adapter"), device="cpu")
    batch = tokens.encode(encoder, PAIRS)
    with torch.no_grad():
        torch.testing.assert_close(encoder.logits(batch), student.encoder.logits(batch), rtol=1e-4, atol=1e-4)
    assert encoder.task == "entailment" and "head for 'entailment'" in repr(encoder)
    assert encoder.head.sha256 == adapters.read(tmp_path / "adapter").sha256 != ""
    assert encoder.sha256 == student.encoder.sha256 and not any(p.requires_grad for p in encoder.head.parameters())
    assert (encoder.layers, encoder.heads) == (3, 4)


def test_an_adapter_is_found_by_model_and_task(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("BOOK_ADAPTERS", str(tmp_path / "adapters"))
    shipped_as(trained(encoders.load(str(folder), device="cpu"), "qa"), tmp_path / "adapters" / "mine-qa")
    assert encoders.load(str(folder), task="qa", device="cpu").task == "qa"
    assert list(shipped()) == ["mine-qa"]


def test_loading_needs_no_peft(folder, tmp_path, monkeypatch):
    shipped_as(trained(encoders.load(str(folder), device="cpu"), "qa"), tmp_path / "adapter")
    monkeypatch.setitem(__import__("sys").modules, "peft", None)
    assert encoders.load(str(folder), task=str(tmp_path / "adapter"), device="cpu").task == "qa"
    with pytest.raises(places.BookError, match=r"Training .* needs peft.*\[train\]"):
        training.Student.of(encoders.load(str(folder), device="cpu"), "qa", SETTINGS)


def test_an_adapter_of_other_weights_is_refused(folder, tmp_path, small_encoder):
    shipped_as(trained(small_encoder("bert"), "qa"), tmp_path / "adapter")
    with pytest.raises(
        AdapterError, match=r"made for 'small-bert'(.|\n)*made for sha256(.|\n)*found    sha256"
    ) as caught:
        encoders.load(str(folder), task=str(tmp_path / "adapter"))
    assert "python -m helpers train qa --model" in str(caught.value)


def test_a_model_with_neither_adapter_nor_head(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("BOOK_ADAPTERS", str(tmp_path / "none"))
    with pytest.raises(
        AdapterError, match=r"has no head for 'qa' \(no qa_outputs.*python -m helpers train qa --model"
    ):
        encoders.load(str(folder), task="qa")
    with pytest.raises(AdapterError, match=r"no task 'summary'.*The tasks are mlm, qa"):
        encoders.load(str(folder), task="summary")
    with pytest.raises(AdapterError, match="random weights"):
        encoders.load("minilm@random", task="qa")


def test_an_encoder_without_a_task_has_no_logits(minilm):
    assert minilm.task is None and minilm.head is None
    with pytest.raises(encoders.EncoderError, match="loaded without a task; load it with task= one of mlm"):
        minilm.logits(tokens.encode(minilm, PAIRS))


def test_damaged_adapters_are_refused(folder, tmp_path):
    student = trained(encoders.load(str(folder), device="cpu"), "qa")
    good = tmp_path / "good"
    shipped_as(student, good)

    def broken(name, change):
        shutil.copytree(good, tmp_path / name)
        change(tmp_path / name)
        return str(tmp_path / name)

    def card(**changes):
        def change(where):
            content = json.loads((where / "adapter.json").read_text()) | changes
            (where / "adapter.json").write_text(json.dumps({k: v for k, v in content.items() if v is not None}))

        return change

    def without(key):
        def change(where):
            tensors = load_file(where / "adapter.safetensors")
            save_file({k: v for k, v in tensors.items() if k != key}, where / "adapter.safetensors")

        return change

    some = next(n for n in student.weights if n.endswith(".B"))
    for found, message in [
        (broken("a", lambda w: (w / "adapter.safetensors").write_bytes(b"no")), "cannot be read"),
        (broken("b", lambda w: (w / "adapter.safetensors").unlink()), "cannot be read"),
        (broken("c", lambda w: (w / "adapter.json").write_text("{")), "cannot be read"),
        (broken("d", card(scale=None)), "not an adapter of format 1 .without scale"),
        (broken("e", card(format=2)), "another format or task"),
        (broken("f", without("head.out.bias")), "head in .* does not fit"),
        (broken("g", without(some)), "change of .* does not fit"),
    ]:
        with pytest.raises(AdapterError, match=message):
            encoders.load(str(folder), task=found)


# ---------------------------------------------------------------------------------------- the shipped ones


SHIPPED = sorted(shipped())


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_adapter_is_small_and_says_what_it_is(name):
    where = shipped()[name]
    card = json.loads((where / "adapter.json").read_text("utf-8"))
    assert f"{card['model']}-{card['task']}" == name
    assert sorted(f.name for f in where.iterdir()) == ["README.md", "adapter.json", "adapter.safetensors"]
    assert 0.5e6 < (where / "adapter.safetensors").stat().st_size < 3.5e6
    assert all(t.dtype == torch.float16 for t in load_file(where / "adapter.safetensors").values())
    assert (where / "README.md").read_text("utf-8") == cards.as_markdown(card)
    assert card["curve"] and card["scores"] and not any(row.get("missing") for row in card["scores"])
    choose = card["settings"].get("choose", "f1" if card["task"] == "keywords" else "loss")
    best = (min if choose == "loss" else max)(card["curve"], key=lambda row: row[f"dev_{choose}"])
    assert best["step"] == card["step"], "what is shipped is the best on the development part"
    assert "encyclopedia" not in str(card["data"]), "the book tier is for evaluation only"


@pytest.mark.parametrize("name", SHIPPED)
def test_floors_are_reached_or_the_card_says_what_was_tried(name):
    card = json.loads((shipped()[name] / "adapter.json").read_text("utf-8"))
    floors = [(row["scores"][k][0], floor) for row in card["scores"] for k, floor in row["floors"].items()]
    assert floors
    assert all(value >= floor for value, floor in floors) or card.get("notes")


@pytest.mark.journey
@pytest.mark.slow
@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_adapter_scores_what_its_card_says(name):
    """On a fixed sample of the book tier, drawn anew; within what a sample of that size may differ."""
    card = json.loads((shipped()[name] / "adapter.json").read_text("utf-8"))
    row = next(r for r in card["scores"] if r["corpus"] == "encyclopedia" and r["task"] == card["task"])
    encoder = encoders.load(card["model"], task=card["task"], device="cpu")
    size = {"mlm": 12, "qa": 30, "keywords": 25}.get(card["task"], 60)
    scores = tasks.score(encoder, tasks.examples(card["task"], "encyclopedia", limit=size, seed=1))
    metric = next(iter(scores.values))
    value = row["scores"][metric][0]
    tolerance = 4 * (value * (1 - value) / scores.weights.sum()) ** 0.5 + 0.01
    assert abs(scores.mean(metric) - value) < tolerance


def test_the_page_has_every_card_and_names_what_is_missing():
    page = (places.adapters() / "README.md").read_text("utf-8")
    assert page == cards.index(places.adapters())
    for task in ("mlm", "qa", "paraphrase", "entailment"):
        assert (
            f"## minilm-{task}" in page
            or f"`minilm` yet: {task}" in page
            or f", {task}" in page.split("None for")[1].split(".")[0]
        )
    assert all(path.is_relative_to(places.book_data()) for path in shipped().values())
