"""Training: a task is learned, an interrupted run goes on, an adapter is loaded as it was scored, what is missing is named."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from conftest import small_model
from safetensors.torch import load_file

from helpers import encoders, places, tasks
from helpers.__main__ import main
from helpers.adapters import AdapterError
from helpers.run import training

FEW = {"device": "cpu", "precision": "fp32", "steps": 6, "batch_size": 3, "rank": 2, "evaluate_every": 3}


@pytest.fixture
def model(tmp_path, minilm):
    """A folder with a tiny encoder that has dropout."""
    small_model("bert", hidden_dropout_prob=0.1).save_pretrained(tmp_path / "mine")
    minilm.tokenizer.save_pretrained(tmp_path / "mine")
    return str(tmp_path / "mine")


@pytest.fixture
def rte(tmp_path, monkeypatch):
    """The book's own pairs in the place of the training part of RTE; its development part is not on this machine."""
    rows = (places.book_data() / "encyclopedia" / "entailment.tsv").read_text("utf-8").splitlines()[:60]
    file = tmp_path / "corpora" / "glue" / "rte" / "train.tsv"
    file.parent.mkdir(parents=True)
    file.write_text("\n".join("\t".join(row.split("\t")[:4]) for row in rows), "utf-8")
    for variable, folder in (("BOOK_DATA", "corpora"), ("BOOK_CACHE", "cache"), ("BOOK_ADAPTERS", "adapters")):
        monkeypatch.setenv(variable, str(tmp_path / folder))
    recipe = training.RECIPES["rte"]
    few = tuple(replace(evaluation, limit=12) for evaluation in recipe.evaluations)
    monkeypatch.setitem(training.RECIPES, "rte", replace(recipe, dev=8, evaluations=few))


@pytest.mark.slow
@pytest.mark.parametrize("task", ["paraphrase", "keywords"])
def test_a_task_is_learned_and_the_encoder_stays_as_it_is(small_encoder, tmp_path, task):
    settings = training.Settings(steps=40, batch_size=8, max_length=64, evaluate_every=99, rate=1e-2, warmup=1)
    student = training.Student.of(small_encoder("bert"), task, settings)
    examples = tasks.examples(task, "encyclopedia", limit=8)
    frozen = {n: p.clone() for n, p in student.encoder.model.named_parameters() if not p.requires_grad}
    course = training.Course(student.encoder, examples, settings)
    run = training.Run(task, student, settings, course, examples, tmp_path / "work", tmp_path / "out")
    losses = [run.advance() for _ in range(settings.steps)]
    assert np.mean(losses[-5:]) < 0.7 * np.mean(losses[:5])
    assert all(torch.equal(frozen[n], p) for n, p in student.encoder.model.named_parameters() if n in frozen)


@pytest.mark.slow
def test_an_interrupted_run_ends_with_the_same_weights(rte, model, tmp_path, monkeypatch):
    def train(name):
        return training.train("rte", model, to=tmp_path / name, work=tmp_path / f"{name}-work", **FEW)

    advance = training.Run.advance

    def interrupted(run, asked):
        if run.step == 4:  # one step after a checkpoint
            raise KeyboardInterrupt
        return advance(run, asked)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(training.Run, "advance", interrupted)
        train("cut")
    folders = [train(name)[0] for name in ("cut", "whole")]
    cut, whole = (load_file(folder / "adapter.safetensors") for folder in folders)
    assert cut.keys() == whole.keys() and all(torch.equal(cut[name], whole[name]) for name in whole)
    curves = [json.loads((folder / "adapter.json").read_text("utf-8"))["curve"] for folder in folders]
    assert curves[0] == curves[1] and [row["step"] for row in curves[0]] == [3, 6]


@pytest.mark.slow
def test_minutes_end_a_run_that_goes_on_with_the_same_settings_only(rte, model, tmp_path):
    given = FEW | {"to": tmp_path / "out", "work": tmp_path / "work", "evaluate_every": 1}
    assert not training.train("rte", model, minutes=1e-9, **given)[1]
    with pytest.raises(AdapterError, match=r"other settings \(rate 0.001, now 0.1\).*--fresh"):
        training.train("rte", model, **given, rate=0.1)
    assert training.train("rte", model, **given)[1]


@pytest.mark.slow
def test_an_adapter_is_loaded_as_it_was_scored(rte, model, tmp_path):
    folder, ended = training.train("rte", model, work=tmp_path / "work", **FEW)
    assert ended and folder == tmp_path / "adapters" / "mine-rte"
    away, book = json.loads((folder / "adapter.json").read_text("utf-8"))["scores"]
    assert away["missing"] and "not here when scored" in (folder / "README.md").read_text("utf-8")
    encoder = encoders.load(model, task="rte", device="cpu")
    again = tasks.score(encoder, tasks.examples("rte", "encyclopedia", limit=12))
    for name, (value, low, high) in book["scores"].items():
        assert value == pytest.approx(again.mean(name), abs=1e-4) and low <= value <= high
    with pytest.raises(AdapterError, match=r"There is an adapter in .* already"):
        training.train("rte", model, work=tmp_path / "other", **FEW)


def test_nothing_is_scored_on_what_it_was_trained_on(rte):
    for task, recipe in training.RECIPES.items():
        assert not set(recipe.train) & {(e.corpus, e.split) for e in recipe.evaluations}, task
        assert "encyclopedia" not in {name for name, _ in recipe.train}, task
    parts = training.parts("rte", training.RECIPES["rte"], seed=0)
    assert parts.dev and not {e.texts for e in parts.train} & {e.texts for e in parts.dev}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["qa"], "new_wiki_v1.0.json is in none of"),
        (["summary"], "is not one of"),
        (["qa", "--score", "--to", "nowhere"], "adapter.json"),
    ],
)
def test_what_is_missing_is_named(model, tmp_path, monkeypatch, arguments, says):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BOOK_DATA", raising=False)
    monkeypatch.setenv("BOOK_CACHE", str(tmp_path / "cache"))
    done = CliRunner().invoke(main, ["train", *arguments, "--model", model])
    assert done.exit_code and says in done.output and "Traceback" not in done.output
