"""Training: what a run sees, that it survives a kill, and what it leaves behind."""

import gzip
import json
import math
import signal
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from conftest import shipped, small_model
from safetensors.torch import load_file

from helpers import corpora, places
from helpers.__main__ import main
from helpers.engine import encoders, inputs, tasks
from helpers.engine.adapters import AdapterError
from helpers.run import cards, training

SETTINGS = training.Settings(
    steps=11, batch_size=4, max_length=48, evaluate_every=4, rank=4, alpha=8, rate=3e-3, warmup=3
)


@pytest.fixture
def data(tmp_path, monkeypatch) -> Path:
    """A folder of corpora of every kind that training reads, made of the book's own texts."""
    where = tmp_path / "corpora"
    for folder in ("qa", "glue/mrpc", "glue/mnli", "glue/rte", "glue/snli", "wikitext", "keyphrases"):
        (where / folder).mkdir(parents=True)
    own = places.book_data() / "encyclopedia"
    rows = (own / "paraphrase.tsv").read_text("utf-8").splitlines()
    for name in ("train.tsv", "dev.tsv", "msr_paraphrase_test.txt"):
        (where / "glue/mrpc" / name).write_text("\n".join(rows[:60]) + "\n")
    rows = (own / "entailment.tsv").read_text("utf-8").splitlines()
    table = [r.split("\t") for r in rows[:80]]
    (where / "glue/rte/train.tsv").write_text("\n".join("\t".join(r[:4]) for r in table))
    (where / "glue/mnli/train.tsv").write_text(
        "\n".join(
            "\t".join([r[0], r[1].rstrip("."), r[2].rstrip("."), "gold_label" if not n else r[4]])
            for n, r in enumerate(table)
        )
    )
    for name, column in (("s1", 1), ("s2", 2), ("labels", 4)):
        with gzip.open(where / f"glue/snli/{name}.dev.gz", "wt") as stream:
            stream.write("".join(f"{r[column]}\n" for r in table[1:30]))
    content = json.loads((own / "questions.json").read_text("utf-8"))
    for part, name in enumerate(("new_wiki_v1.0", "reddit_v1.0", "amazon_reviews_v1.0")):
        articles = content["data"][part * 12 : part * 12 + 12]
        (where / "qa" / f"{name}.json").write_text(json.dumps({"data": articles}))
    text = "".join(
        f" = {a.title} = \n" + "".join(f"{p}\n" for p in a.paragraphs)
        for a in corpora.read("encyclopedia").articles[:20]
    )
    for name in ("wiki.train.raw", "wiki.valid.raw", "wiki.test.raw"):
        (where / "wikitext" / name).write_text(text)
    for part, name in enumerate(("Training", "Validation", "Test")):
        with zipfile.ZipFile(where / "keyphrases" / f"{name}.zip", "w") as archive:
            for n, keyed in enumerate(corpora.keyphrases("encyclopedia")[part * 20 : part * 20 + 20]):
                archive.writestr(f"{n}.abstr", f"{keyed.title}\n{' '.join(keyed.text.split())}")
                archive.writestr(f"{n}.uncontr", "; ".join(keyed.keyphrases))
    monkeypatch.setenv("BOOK_DATA", str(where))
    monkeypatch.setenv("BOOK_CACHE", str(tmp_path / "cache"))
    return where


@pytest.fixture
def model(tmp_path, minilm) -> str:
    small_model("bert", hidden_dropout_prob=0.1).save_pretrained(tmp_path / "mine")
    minilm.tokenizer.save_pretrained(tmp_path / "mine")
    return str(tmp_path / "mine")


def run_of(encoder, task: str, examples, folder: Path, settings=SETTINGS) -> training.Run:
    student = training.Student.of(encoder, task, settings)
    course = training.Course(student.encoder, examples, settings)
    return training.Run(task, student, settings, course, examples[:6], folder / "work", folder / "out")


def examples_of(task: str, count: int = 18):
    return tasks.examples(task, "encyclopedia", limit=count)


# ---------------------------------------------------------------------------------------- what a run sees


@pytest.mark.parametrize("task", ["qa", "paraphrase", "mlm", "keywords"])
def test_a_course_is_a_function_of_the_step(small_encoder, task):
    """The order a step is asked for in does not matter, nor does what was asked for before."""
    encoder, given = small_encoder("bert"), examples_of(task)
    forth = [training.Course(encoder, given, SETTINGS).asked(n) for n in range(10)]
    course = training.Course(encoder, given, SETTINGS)
    back = [course.asked(n) for n in reversed(range(10))][::-1]
    for one, other in zip(forth, back, strict=True):
        assert torch.equal(one.batch.ids, other.batch.ids) and torch.equal(one.targets, other.targets)
    assert course.steps_an_epoch == 5
    for epoch in (0, 1):
        assert sorted(n for batch in course._order(epoch) for n in batch) == list(range(18)), (
            "each example once an epoch"
        )
    assert course._order(0) != course._order(1)
    other = training.Course(encoder, given, replace(SETTINGS, seed=1))
    assert any(not torch.equal(a.batch.ids, other.asked(n).batch.ids) for n, a in enumerate(forth))


def test_windows_in_training_always_hold_the_answer(minilm):
    given = examples_of("qa", 60)
    course = training.Course(minilm, given, replace(SETTINGS, max_length=64, batch_size=20))
    begins = set()
    for step in range(6):
        asked = course.asked(step)
        assert (asked.targets != tasks.IGNORED).all() and asked.batch.ids.shape[1] <= 64
        for row, number in enumerate(asked.example):
            example = given[course._order(step // 3)[step % 3][number]]
            first, last = asked.targets[row].tolist()
            offset = int((asked.batch.text[row] == 1).nonzero()[0])
            spans = asked.spans[row]
            begins.add((example.id, int(spans[0, 0])))
            assert (
                example.texts[1][spans[first - offset, 0] : spans[last - offset, 1]]
                == inputs.usual_answer(example).text
            )
    assert len({i for i, _ in begins}) < len(begins), "another stretch each time"


def test_parts_share_nothing(data):
    for task in training.RECIPES:
        recipe = replace(training.RECIPES[task], dev=10)
        found, again = training.parts(task, recipe, 0), training.parts(task, recipe, 0)
        assert found == again and len(found.dev) == 10
        if task == "qa":
            assert not {e.texts[1] for e in found.train} & {e.texts[1] for e in found.dev}
        elif task == "keywords":
            assert len(found.train) == 20 and not {e.texts for e in found.train} & {e.texts for e in found.dev}
        elif task != "mlm":
            assert not {e.texts for e in found.train} & {e.texts for e in found.dev}
            assert found != training.parts(task, recipe, 1)
        if task == "entailment":
            assert all(t[-1] in ".?!\"'" for e in found.train for t in e.texts), "full stops are put back"


def test_the_book_tier_and_the_evaluations_are_not_trained_on():
    for task, recipe in training.RECIPES.items():
        evaluated = {(e.corpus, e.split) for e in recipe.evaluations}
        assert not set(recipe.train) & evaluated
        assert "encyclopedia" in {e.corpus for e in recipe.evaluations}
        assert "encyclopedia" not in {name for name, _ in recipe.train}, task


# ---------------------------------------------------------------------------------------- runs


class Killed(BaseException):
    """Stands for a kill: nothing catches it."""


@pytest.mark.parametrize("task", ["paraphrase", "qa", "mlm"])
def test_a_killed_run_ends_with_the_same_weights(small_encoder, tmp_path, monkeypatch, task):
    monkeypatch.setattr(training, "KEEP_EVERY", 3)
    monkeypatch.setattr(training, "LOG_EVERY", 1)
    changes = {"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}
    given = examples_of(task)
    whole = run_of(small_encoder("bert", **changes), task, given, tmp_path / "whole")
    assert whole.go()

    def kill_at(*steps):
        def after(step):
            if step in steps:
                torch.manual_seed(step)  # whatever state the dead process had
                raise Killed

        return after

    for steps in ((5,), (8,)):  # between two checkpoints, and on the step of an evaluation
        with pytest.raises(Killed):
            run_of(small_encoder("bert", **changes), task, given, tmp_path / "cut").go(after_step=kill_at(*steps))
    (tmp_path / "cut" / "work" / "unfinished").mkdir()
    (tmp_path / "cut" / "work" / "unfinished" / "weights.safetensors").write_bytes(b"half")
    cut = run_of(small_encoder("bert", **changes), task, given, tmp_path / "cut")
    assert cut.go() and cut.step == 11
    for name, weight in whole.student.tensors().items():
        assert torch.equal(weight, cut.student.tensors()[name]), name
    assert cut.curve == whole.curve and cut.best == whole.best
    logged = [
        [json.loads(line) for line in (tmp_path / f / "work" / "log.jsonl").read_text().splitlines()]
        for f in ("whole", "cut")
    ]
    assert [r["step"] for r in logged[0]] == [r["step"] for r in logged[1]], "each step is logged once"
    one, other = (load_file(tmp_path / f / "out" / "adapter.safetensors") for f in ("whole", "cut"))
    assert all(torch.equal(one[k], other[k]) for k in one)
    assert [f.name for f in cut.checkpoints()] == ["step-0000011"], "one checkpoint is kept"


@pytest.mark.journey
def test_a_process_killed_for_good_goes_on(data, model, tmp_path, monkeypatch):
    """kill -9 in the middle, then the same call again: the files are those of a run that was left alone."""
    changes = {"steps": 9, "batch_size": 3, "rank": 2, "evaluate_every": 3, "max_length": 48}
    monkeypatch.setattr(training, "finish", lambda *_, **__: {})
    monkeypatch.setattr(training, "KEEP_EVERY", 2)

    def train(name):
        return training.train(
            "entailment", model, device="cpu", to=tmp_path / name, work=tmp_path / f"{name}-work", **changes
        )[0]

    script = (
        "import os, signal; from pathlib import Path; from helpers.run import training\n"
        "training.KEEP_EVERY = 2; advance = training.Run.advance\n"
        "training.Run.advance = lambda run, asked: os.kill(os.getpid(), signal.SIGKILL) if run.step == 5 else advance(run, asked)\n"
        f"training.train('entailment', {model!r}, device='cpu', to=Path({str(tmp_path / 'cut')!r}), "
        f"work=Path({str(tmp_path / 'cut-work')!r}), **{changes!r})\n"
    )
    died = subprocess.run(
        [sys.executable, "-c", script], cwd=places.ROOT, capture_output=True, text=True, check=False
    )
    assert died.returncode == -signal.SIGKILL, died.stderr
    assert list((tmp_path / "cut-work").glob("step-0000004")), "what it goes on from"
    one, other = (load_file(train(name) / "adapter.safetensors") for name in ("cut", "whole"))
    assert one.keys() == other.keys() and all(torch.equal(one[k], other[k]) for k in one)
    cards = [json.loads((tmp_path / name / "adapter.json").read_text()) for name in ("cut", "whole")]
    assert cards[0]["curve"] == cards[1]["curve"] and [r["step"] for r in cards[0]["curve"]] == [3, 6, 9]


def test_the_schedule_and_what_is_trained(small_encoder, tmp_path):
    run = run_of(small_encoder("bert"), "paraphrase", examples_of("paraphrase"), tmp_path)
    rates = [run.rate(n) for n in range(12)]
    assert rates[:3] == pytest.approx([1e-3, 2e-3, 3e-3]) and max(rates) == rates[2] and rates[11] == 0
    assert np.allclose(np.diff(rates[3:]), -3e-3 / 8)
    frozen = {n: p.clone() for n, p in run.student.encoder.model.named_parameters() if not p.requires_grad}
    before = run.student.tensors()
    for _ in range(3):
        run.advance()
    after = run.student.tensors()
    assert all(not torch.equal(before[n], after[n]) for n in after)
    assert all(torch.equal(frozen[n], p) for n, p in run.student.encoder.model.named_parameters() if n in frozen)


def test_one_step_against_a_plain_one(small_encoder, tmp_path):
    """The gradient of the mean loss, clipped, through AdamW: written out for one weight."""
    settings = replace(SETTINGS, dropout=False)
    given = examples_of("qa")
    run = run_of(small_encoder("bert"), "qa", given, tmp_path, settings)
    twin = training.Student.of(small_encoder("bert"), "qa", settings)
    losses = tasks.losses(twin.encoder, training.Course(twin.encoder, given, settings).asked(0))
    losses.mean().backward()
    norm = math.sqrt(sum(float(p.grad.square().sum()) for p in twin.weights.values() if p.grad is not None))
    weight = twin.weights["head.out.weight"]
    gradient = weight.grad * min(1.0, 1.0 / (norm + 1e-6))
    with torch.no_grad():
        expected = weight * (1 - 1e-3 * settings.weight_decay) - 1e-3 * gradient / (gradient.abs() + 1e-8)
    assert run.advance() == pytest.approx(losses.mean().item(), rel=1e-5)
    torch.testing.assert_close(run.student.weights["head.out.weight"].detach(), expected, rtol=1e-3, atol=1e-6)


def test_it_stops_early_and_keeps_the_best(small_encoder, tmp_path, monkeypatch):
    run = run_of(
        small_encoder("bert"),
        "paraphrase",
        examples_of("paraphrase"),
        tmp_path,
        replace(SETTINGS, steps=100, patience=3),
    )
    losses, accuracies = iter([0.5, 0.3, 0.4, 0.35, 0.3, 0.1]), iter([0.1, 0.2, 0.9, 0.3, 0.4, 0.5])
    exported = []
    monkeypatch.setattr(run, "evaluate", lambda: {"accuracy": next(accuracies), "loss": next(losses)})
    monkeypatch.setattr(run, "export", lambda: exported.append(run.step))
    assert run.go() and run.step == 20
    assert exported == [4, 8] and (run.best, run.best_step) == (0.3, 8), "an equal loss is no lower one"


def test_a_recipe_may_let_another_score_choose(small_encoder, tmp_path, monkeypatch):
    settings = replace(SETTINGS, steps=12, choose="accuracy")
    run = run_of(small_encoder("bert"), "paraphrase", examples_of("paraphrase"), tmp_path, settings)
    losses, accuracies = iter([0.5, 0.3, 0.4]), iter([0.1, 0.9, 0.2])
    exported = []
    monkeypatch.setattr(run, "evaluate", lambda: {"accuracy": next(accuracies), "loss": next(losses)})
    monkeypatch.setattr(run, "export", lambda: exported.append(run.step))
    assert run.go() and exported == [4, 8]


def test_every_task_but_keywords_is_chosen_by_loss():
    assert {t for t, r in training.RECIPES.items() if r.settings.choose != "loss"} == {"keywords"}


def test_the_loss_of_questions_is_that_of_windows_with_the_answer(small_encoder, tmp_path):
    run = run_of(small_encoder("bert"), "qa", examples_of("qa"), tmp_path)
    found, per = run.evaluate(), []
    for asked in inputs.batches(run.student.encoder, run.dev, batch_size=1):
        if (asked.targets != inputs.IGNORED).all():
            per.append(tasks.losses(run.student.encoder, asked).item())
    assert found["loss"] == pytest.approx(np.mean(per), abs=1e-4) and set(found) == {"f1", "em", "loss"}


def test_blanked_tokens_are_those_of_the_texts(small_encoder):
    encoder, given = small_encoder("bert"), examples_of("paraphrase")
    plain = training.Course(encoder, given, SETTINGS).asked(0).batch
    course = training.Course(encoder, given, replace(SETTINGS, blanked=0.5))
    blanked = course.asked(0).batch
    changed = plain.ids != blanked.ids
    assert changed.any() and not changed[plain.text < 0].any()
    assert (blanked.ids[changed] == encoder.tokenizer.mask_token_id).all()
    assert torch.equal(blanked.ids, course.asked(0).batch.ids)


def test_batches_made_ahead_are_the_same(small_encoder):
    course = training.Course(small_encoder("bert"), examples_of("qa"), SETTINGS)
    for step, asked in enumerate(course.ahead(0, 4, workers=2)):
        own = course.asked(step)
        assert torch.equal(asked.batch.ids, own.batch.ids) and torch.equal(asked.targets, own.targets)


def test_it_learns(small_encoder, tmp_path):
    given = list(examples_of("paraphrase", 8))
    settings = replace(SETTINGS, steps=60, batch_size=8, dropout=False, rate=1e-2, patience=99)
    run = run_of(small_encoder("bert"), "paraphrase", given, tmp_path, settings)
    losses = [run.advance() for _ in range(60)]
    assert losses[-1] < 0.3 * losses[0]


def test_minutes_end_a_run_that_can_go_on(small_encoder, tmp_path):
    given = examples_of("paraphrase")
    run = run_of(small_encoder("bert"), "paraphrase", given, tmp_path)
    assert not run.go(minutes=1e-9) and run.step == 1
    again = run_of(small_encoder("bert"), "paraphrase", given, tmp_path)
    assert again.go() and again.step == 11


def test_another_number_of_steps_bends_the_schedule(small_encoder, tmp_path):
    """The rate goes on from where it is, in a straight line, to 0 at the new end."""
    given = examples_of("paraphrase")
    whole = run_of(small_encoder("bert"), "paraphrase", given, tmp_path)
    with pytest.raises(Killed):

        def kill(step):
            if step == 4:
                raise Killed

        whole.go(after_step=kill)
    run = run_of(small_encoder("bert"), "paraphrase", given, tmp_path, replace(SETTINGS, steps=7))
    assert run.resume() and run.step == 4
    assert [run.rate(n) for n in range(4)] == [whole.rate(n) for n in range(4)]
    assert [run.rate(n) for n in (4, 5, 6, 7)] == pytest.approx([whole.rate(4) * x / 3 for x in (3, 2, 1, 0)])
    assert run.go() and run.step == 7


def test_other_settings_do_not_go_on(small_encoder, tmp_path):
    given = examples_of("paraphrase")
    run_of(small_encoder("bert"), "paraphrase", given, tmp_path).go(minutes=1e-9)
    with pytest.raises(AdapterError, match=r"begun with other settings \(rate 0.003, now 0.1\).*--fresh"):
        run_of(small_encoder("bert"), "paraphrase", given, tmp_path, replace(SETTINGS, rate=0.1)).go()


def test_a_loss_that_is_no_number(small_encoder, tmp_path):
    run = run_of(small_encoder("bert"), "paraphrase", examples_of("paraphrase"), tmp_path)
    with torch.no_grad():
        run.student.weights["head.out.bias"].fill_(float("nan"))
    with pytest.raises(AdapterError, match=r"loss is nan at step 1. Train with a smaller --rate"):
        run.advance()


# ---------------------------------------------------------------------------------------- the whole way


@pytest.mark.parametrize("task", list(training.RECIPES))
def test_train_score_and_load(data, model, tmp_path, monkeypatch, task):
    monkeypatch.setenv("BOOK_ADAPTERS", str(tmp_path / "adapters"))
    recipe = training.RECIPES[task]
    few = tuple(replace(e, limit=12) for e in recipe.evaluations)
    monkeypatch.setitem(training.RECIPES, task, replace(recipe, dev=8, evaluations=few))
    changes = {"steps": 2, "batch_size": 3, "rank": 2, "alpha": 4, "evaluate_every": 1, "max_length": 48}
    if start := recipe.start:
        with pytest.raises(AdapterError, match=f"begins with the adapter for '{start}', which is not here"):
            training.train(task, model, device="cpu", work=tmp_path / "none", **changes)
        first = replace(training.RECIPES[start], dev=8, evaluations=())
        monkeypatch.setitem(training.RECIPES, start, first)
        training.train(start, model, device="cpu", progress=False, work=tmp_path / "first", **changes)
    folder, ended = training.train(task, model, device="cpu", progress=False, work=tmp_path / "work", **changes)
    assert ended and folder == tmp_path / "adapters" / f"mine-{task}"
    card = json.loads((folder / "adapter.json").read_text())
    assert len(card["curve"]) == 2 and card["settings"]["steps"] == 2
    here = [row for row in card["scores"] if not row.get("missing")]
    assert any(row["corpus"] == "encyclopedia" for row in here)
    encoder = encoders.load(model, task=task, device="cpu")
    row = next(r for r in here if r["corpus"] == "encyclopedia" and r["task"] == task)
    again = tasks.score(encoder, tasks.examples(task, "encyclopedia", limit=12))
    for name, (value, low, high) in row["scores"].items():
        assert value == pytest.approx(again.mean(name), abs=1e-4) and low <= value <= high
    text = (folder / "README.md").read_text()
    assert text.startswith("# ") and "| step |" in text
    assert ("not here when scored" in text) == (len(here) < len(card["scores"]))
    with pytest.raises(AdapterError, match=r"There is an adapter in .* already.*--to, or replace it with --fresh"):
        training.train(task, model, device="cpu", work=tmp_path / "other", **changes)


def test_the_bias_begins_at_word_frequencies(small_encoder):
    student = training.Student.of(small_encoder("bert"), "mlm", SETTINGS)
    given = [tasks.Example("mlm", "0", 0, ("the the the otter", "nothing"))]
    training.start_from_frequencies(student, given)
    bias = student.weights["head.bias"]
    the, otter, other = (
        bias[i].item() for i in student.encoder.tokenizer.convert_tokens_to_ids(["the", "otter", "shell"])
    )
    assert the - otter == pytest.approx(math.log(4 / 2)) and otter - other == pytest.approx(math.log(2 / 1))


def test_the_card_says_what_was_missed():
    card = {
        "model": "mine",
        "task": "qa",
        "rank": 2,
        "scale": 2.0,
        "head": "Spans",
        "model_sha256": "0" * 64,
        "settings": {
            "steps": 9,
            "batch_size": 4,
            "max_length": 48,
            "rate": 1e-3,
            "warmup": 1,
            "dropout": True,
            "precision": "fp32",
            "seed": 0,
        },
        "data": {"train": [["squadshifts-wiki", "train"]], "train_examples": 8, "dev_examples": 2},
        "step": 4,
        "steps_an_epoch": 2,
        "minutes": 1.5,
        "corners": [[-1, 0], [0, 1e-3], [1, 1e-3], [4, 5e-4], [9, 0]],
        "versions": {"torch": "2"},
        "curve": [{"step": 4, "loss": 1.0, "dev_f1": 0.5}],
        "notes": ["More steps were tried."],
        "scores": [
            {
                "task": "qa",
                "corpus": "xquad",
                "split": "test",
                "floors": {"f1": 0.6},
                "examples": 10,
                "scores": {"f1": [0.5, 0.4, 0.6], "em": [0.3, 0.2, 0.4]},
            },
            {"task": "qa", "corpus": "squad", "split": "dev", "floors": {}, "missing": True},
        ],
    }
    text = cards.as_markdown(card)
    for part in (
        "then through 0.0005 at step 4, 0 at step 9",
        "0.60: missed",
        "0.500 [0.400, 0.600]",
        "squad (dev) | not here when scored",
        "2.0 passes",
        "More steps were tried.",
        "| 4 | 1 | 0.5 |",
        "with the encoder's dropout",
    ):
        assert part in text


# ---------------------------------------------------------------------------------------- the command line


def test_help():
    text = CliRunner().invoke(main, ["train", "--help"]).output
    for part in (
        "mlm|qa|paraphrase|entailment|rte",
        "--model",
        "--data",
        "--to",
        "--minutes",
        "--steps",
        "--fresh",
        "--score",
        "goes on from its last checkpoint",
        "encoders.load(MODEL, task=TASK)",
    ):
        assert part in " ".join(text.split())
    assert "train" in CliRunner().invoke(main, ["--help"]).output


def test_errors_in_words(tmp_path, monkeypatch, model):
    monkeypatch.setenv("BOOK_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("BOOK_DATA", raising=False)
    monkeypatch.setenv("BOOK_ADAPTERS", str(tmp_path / "adapters"))
    run = CliRunner().invoke
    result = run(main, ["train", "qa", "--model", model])
    assert (
        result.exit_code == 1
        and "new_wiki_v1.0.json is in none of" in result.output
        and "--data DIR" in result.output
    )
    assert "Traceback" not in result.output
    assert "is not one of" in run(main, ["train", "summary"]).output
    assert run(main, ["train", "qa", "--model", "nothing/here"]).exit_code == 1
    result = run(main, ["train", "qa", "--score", "--to", str(tmp_path / "none")])
    assert result.exit_code == 1 and "adapter.json" in result.output
    assert shipped() == {}
