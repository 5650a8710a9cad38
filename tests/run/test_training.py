"""Training: a task is learned, an interrupted run goes on, an adapter is loaded as it was scored, what is missing is named."""

import json

import pytest
import torch
from click.testing import CliRunner

from helpers import encoders, places, tasks
from helpers.__main__ import main
from helpers.adapters import AdapterError
from helpers.run import training

FEW = {"steps": 6, "batch_size": 3, "rank": 2, "evaluate_every": 2}


@pytest.fixture
def rte(tmp_path, monkeypatch):
    """The book's own pairs in the place of the training part of RTE; its development part is not on this machine."""
    rows = (places.book_data() / "encyclopedia" / "entailment.tsv").read_text("utf-8").splitlines()[:60]
    file = tmp_path / "corpora" / "glue" / "rte" / "train.tsv"
    file.parent.mkdir(parents=True)
    file.write_text("\n".join("\t".join(row.split("\t")[:4]) for row in rows), "utf-8")
    for variable, folder in (("BOOK_DATA", "corpora"), ("BOOK_CACHE", "cache"), ("BOOK_ADAPTERS", "adapters")):
        monkeypatch.setenv(variable, str(tmp_path / folder))
    monkeypatch.setattr(places, "build", lambda: tmp_path / "_build")
    recipe = training.RECIPES["rte"]
    few = [evaluation | {"limit": 12} for evaluation in recipe["evaluations"]]
    monkeypatch.setitem(training.RECIPES, "rte", recipe | {"dev": 8, "evaluations": few})


@pytest.mark.slow
@pytest.mark.parametrize("task", sorted(training.RECIPES))
def test_a_task_is_learned_and_the_encoder_stays_as_it_is(small_encoder, tmp_path, task):
    settings = training.DEFAULTS | {"steps": 12, "batch_size": 8, "max_length": 64, "rate": 2e-2, "warmup": 1}
    student = training.Student(small_encoder("bert"), task, settings | {"evaluate_every": 12, "hidden": 0.5})
    examples = tasks.examples(task, "encyclopedia", limit=8)
    frozen = {name: weight.clone() for name, weight in student.model.named_parameters() if not weight.requires_grad}
    with torch.no_grad():
        before = student.eval()(student.batches(examples))["loss"]
    training.trainer(student, examples, examples[:2], tmp_path).train()
    with torch.no_grad():
        assert student.eval()(student.batches(examples))["loss"] < 0.98 * before
    now = dict(student.model.named_parameters())
    assert frozen and all(torch.equal(weight, now[name]) for name, weight in frozen.items())


@pytest.mark.slow
def test_an_interrupted_run_goes_on_and_the_adapter_is_loaded_as_it_was_scored(rte, folder, tmp_path, monkeypatch):
    steps, model = [], str(folder)
    advance = training.TaskTrainer.training_step

    def interrupted(trainer, *given, **options):
        if len(steps) == 5:  # one step after the second checkpoint
            steps.append(None)
            raise KeyboardInterrupt
        steps.append(trainer.state.global_step)
        return advance(trainer, *given, **options)

    monkeypatch.setattr(training.TaskTrainer, "training_step", interrupted)
    with pytest.raises(KeyboardInterrupt):
        training.train("rte", model, **FEW)
    [work] = (tmp_path / "_build" / "training").iterdir()
    (work / "checkpoint-6").mkdir()  # one that a kill left half-written
    card = training.train("rte", model, **FEW)
    assert steps == [0, 1, 2, 3, 4, None, 4, 5]
    assert [row["step"] for row in card["curve"]] == [2, 4, 6] and card["step"] in (2, 4, 6)

    adapter = tmp_path / "adapters" / "mine-rte"
    assert json.loads((adapter / "adapter.json").read_text("utf-8")) == card
    away, book = card["scores"]
    assert away["missing"] and "not here when scored" in (adapter / "README.md").read_text("utf-8")
    encoder = encoders.load(model, task="rte", device="cpu")
    again = tasks.score(encoder, tasks.examples("rte", "encyclopedia", limit=12))
    for name, (value, low, high) in book["scores"].items():
        assert value == pytest.approx(again.mean(name), abs=1e-4) and low <= value <= high
    with pytest.raises(AdapterError, match=r"There is an adapter in .* already"):
        training.train("rte", model, **FEW)
    training.RECIPES["rte"]["evaluations"] = [{"corpus": "encyclopedia", "limit": 1}]
    [row] = training.score(adapter, model)["scores"]
    assert row["scores"]["accuracy"][1:] == [None, None], "one document has no interval"
    assert "NaN" not in (adapter / "adapter.json").read_text("utf-8")


def test_nothing_is_scored_on_what_it_was_trained_on(rte):
    for task, recipe in training.RECIPES.items():
        scored = [(row["corpus"], row.get("split")) for row in recipe["evaluations"]]
        assert not {tuple(row) for row in recipe["train"]} & set(scored), task
        assert "encyclopedia" not in {name for name, _ in recipe["train"]}, task
    train, dev = training.read_examples("rte")
    assert dev and train and not {example.texts for example in train} & {example.texts for example in dev}


def test_the_stored_cards_say_what_is_recorded():
    for file in (places.book_data() / "adapters").glob("*/adapter.json"):
        card = json.loads(file.read_text("utf-8"))
        assert training.as_markdown(card) == file.with_name("README.md").read_text("utf-8"), file


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["qa"], "new_wiki_v1.0.json is in none of"),
        (["summary"], "is not one of"),
        (["qa", "--score", "--to", "nowhere"], "adapter.json"),
        (["qa", "-p", "rat", "1"], "There is no setting 'rat'. Did you mean 'rate'?"),
    ],
)
def test_what_is_missing_is_named(folder, tmp_path, monkeypatch, arguments, says):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BOOK_DATA", raising=False)
    monkeypatch.setenv("BOOK_CACHE", str(tmp_path / "cache"))
    done = CliRunner().invoke(main, ["train", *arguments, "--model", str(folder)])
    assert done.exit_code and says in done.output and "Traceback" not in done.output
