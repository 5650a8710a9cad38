"""Folders that hold no sound model: none is loaded, and nothing is unpickled."""

import json
import pickle
import re
import shutil
from pathlib import Path

import pytest
import torch
from conftest import small_model
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from transformers import AutoModelForMaskedLM, BertForSequenceClassification, BertTokenizer

from helpers import adapters, encoders, models, places, tokens

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", *"abcdefghijklmnopqrstuvwxyz"]
WORDS += [f"##{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"]
TINY = {"vocab_size": len(WORDS), "num_hidden_layers": 2, "max_position_embeddings": 64}


@pytest.fixture(scope="module")
def sound(tmp_path_factory) -> Path:
    """A tiny BERT and a tokenizer that knows the letters, saved as a user would save them."""
    folder = tmp_path_factory.mktemp("models") / "sound"
    small_model("bert", **TINY).save_pretrained(folder)
    BertTokenizer(vocab={word: number for number, word in enumerate(WORDS)}).save_pretrained(folder)
    return folder


@pytest.fixture
def folder(sound, tmp_path) -> Path:
    """A copy of it, to be damaged."""
    return Path(shutil.copytree(sound, tmp_path / "mine"))


def configure(folder: Path, **changes: object) -> None:
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def reweigh(folder: Path, change) -> None:
    """Change the weights by a function of their dictionary."""
    file = folder / "model.safetensors"
    weights = {name: tensor.clone() for name, tensor in load_file(file).items()}  # copies: the file is written anew
    change(weights)
    save_file(weights, file, metadata={"format": "pt"})


def tokenizer(change):
    def damage(folder: Path) -> None:
        given = json.loads((folder / "tokenizer.json").read_text())
        change(given)
        (folder / "tokenizer.json").write_text(json.dumps(given))

    return damage


def settings_only(folder: Path) -> None:
    """With a vocabulary of special tokens."""
    (folder / "tokenizer.json").unlink()
    (folder / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n")


def without_frame(folder: Path) -> None:
    """A tokenizer of no particular class that puts nothing around a text."""
    tokenizer(lambda given: given.update(post_processor=None))(folder)
    file = folder / "tokenizer_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"tokenizer_class": "PreTrainedTokenizerFast"}))


def no_tokenizer(folder: Path) -> None:
    for file in folder.glob("*token*"):
        file.unlink()


def another(model):
    """The files of another model, under the same tokenizer."""
    return lambda folder: model().save_pretrained(folder)


def compiled(weights) -> None:
    for name in list(weights):
        weights[f"_orig_mod.{name}"] = weights.pop(name)


def fill(value: float):
    return lambda weights: weights["encoder.layer.1.output.dense.bias"][:1].fill_(value)


QUERY = "encoder.layer.1.attention.self.query.weight"


DAMAGE = {
    "no layers": lambda f: configure(f, num_hidden_layers=0),
    "a short position table": lambda f: configure(f, max_position_embeddings=6),
    "quantised": lambda f: configure(f, quantization_config={"quant_method": "x"}),
    "pruned": lambda f: configure(f, pruned_heads={"1": [1, 3]}),
    "another family": lambda f: configure(f, model_type="distilbert"),
    "no model type": lambda f: configure(f, model_type=None),
    "an adapter beside the weights": lambda f: (f / "adapter_config.json").write_text("{}"),
    "a weight is missing": lambda f: reweigh(f, lambda w: w.pop(QUERY)),
    "a weight has another name": lambda f: reweigh(f, lambda w: w.update(foo=w.pop(QUERY))),
    "a weight of another shape": lambda f: reweigh(f, lambda w: w.update({QUERY: torch.zeros(32, 8)})),
    "a weight is NaN": lambda f: reweigh(f, fill(float("nan"))),
    "no weights": lambda f: (f / "model.safetensors").unlink(),
    "saved while compiled": lambda f: reweigh(f, compiled),
    "no tokenizer": no_tokenizer,
    "a tokenizer of special tokens only": settings_only,
    "a tokenizer larger than the model": tokenizer(lambda t: t["model"]["vocab"].update(zebra=400)),
    "a tokenizer that adds nothing": without_frame,
    "short texts only": another(lambda: small_model("bert", **TINY | {"max_position_embeddings": 7})),
    "a decoder": another(lambda: small_model("bert", **TINY, is_decoder=True)),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_folder_is_refused(folder, kind):
    DAMAGE[kind](folder)
    with pytest.raises((encoders.EncoderError, ValueError)):
        encoders.load(str(folder), device="cpu")


def test_a_folder_of_models_names_those_in_it(folder):
    folder.rename(folder.with_name("checkpoint-500"))
    with pytest.raises(encoders.UnknownModel, match="checkpoint-500"):
        encoders.load(str(folder.parent))


def test_a_text_is_cut_and_padded_on_the_right_whoever_saved_the_tokenizer(sound, folder):
    file = folder / "tokenizer_config.json"
    left = {"truncation_side": "left", "padding_side": "left"}
    file.write_text(json.dumps(json.loads(file.read_text()) | left))
    usual, other = (encoders.load(str(f), device="cpu") for f in (sound, folder))
    cut = [tokens.encode(e, ["a b c d e f", "a"], max_length=5, truncate=True) for e in (usual, other)]
    assert cut[0].tokens == cut[1].tokens == (("[CLS]", "a", "b", "c", "[SEP]"), ("[CLS]", "a", "[SEP]"))
    before = other.state
    assert before == usual.state
    other.tokenizer.model_input_names = ["input_ids", "attention_mask"]  # then no token types are given
    assert other.state != before


def test_a_checkpoint_with_a_head_and_without_a_pooler_loads_twice_the_same(folder):
    AutoModelForMaskedLM.from_config(small_model("bert", **TINY).config).save_pretrained(folder)
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    first = encoders.load(str(folder), device="cpu")
    assert torch.equal(torch.rand(1), expected), "the caller's generator is as it was"
    second = encoders.load(str(folder), device="cpu")
    assert all(torch.equal(a, b) for a, b in zip(first.model.parameters(), second.model.parameters(), strict=True))
    reweigh(folder, lambda w: w.update({"bert.encoder.layer.7.output.dense.bias": torch.zeros(32)}))
    with pytest.raises(models.DamagedModel, match=r"unknown bert\.encoder\.layer\.7"):
        encoders.load(str(folder), device="cpu")


def test_with_a_task_the_encoders_weights_are_looked_at_too(folder):
    config = small_model("bert", **TINY).config
    BertForSequenceClassification(config).save_pretrained(folder)
    assert encoders.load(str(folder), task="paraphrase", device="cpu").task == "paraphrase"
    with pytest.raises(adapters.AdapterError, match=r"has no head for 'qa' \(no qa_outputs"):
        encoders.load(str(folder), task="qa", device="cpu")
    reweigh(folder, lambda w: w.pop(f"bert.{QUERY}"))
    with pytest.raises(models.DamagedModel, match=f"without bert.{QUERY}"):
        encoders.load(str(folder), task="paraphrase", device="cpu")


def test_the_digest_is_that_of_the_files_that_are_read(folder):
    digest = encoders.load(str(folder), device="cpu").sha256
    shutil.copy(folder / "model.safetensors", folder / "model.old.safetensors")
    assert encoders.load(str(folder), device="cpu").sha256 == digest
    encoders.load(str(folder), device="cpu").model.save_pretrained(folder / "parts", max_shard_size="20KB")
    for file in folder.glob("*token*"):
        shutil.copy(file, folder / "parts")
    parts = sorted((folder / "parts").glob("model-*.safetensors"))
    cut_up = encoders.load(str(folder / "parts"), device="cpu")
    assert len(parts) > 2 and cut_up.sha256 == places.sha256(*parts)
    reference = load_file(folder / "model.safetensors")
    assert all(torch.equal(reference[name], weight) for name, weight in cut_up.model.state_dict().items())


@pytest.mark.parametrize(("there", "error"), [(True, SafetensorError), (False, models.DamagedModel)])
def test_nothing_is_unpickled(folder, there, error):
    class Bomb:
        def __reduce__(self):
            return (folder.joinpath("ran").write_text, ("x",))

    for name in ("model.safetensors", "pytorch_model.bin"):
        (folder / name).write_bytes(pickle.dumps(Bomb()))
    if not there:
        (folder / "model.safetensors").unlink()
    with pytest.raises(error):
        encoders.load(str(folder), device="cpu")
    assert not (folder / "ran").exists()


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_a_text_unknown_to_the_vocabulary_is_said(sound, share, recwarn):
    encoder = encoders.load(str(sound), device="cpu")
    texts = ["a b c d ж" if n < share * 20 * 5 / 2 else "a b c d e" for n in range(20)]
    assert len(list(tokens.batches(encoder, texts, batch_size=4))) == 5
    messages = [str(w.message) for w in recwarn if w.category is tokens.UnknownWords]
    assert len(messages) == (share > 0)
    if messages:
        assert re.match(r"10% of 100 tokens are unknown to the vocabulary of .*\[UNK\]; said above 5%", messages[0])
