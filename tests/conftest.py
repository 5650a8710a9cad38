"""Shared by all tests: no network, shapes checked at run time, results never in the tracked files."""

import ast
import json
import os
import random
import sys
from functools import cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from threading import Thread
from types import SimpleNamespace

from jaxtyping import install_import_hook

os.environ["TQDM_DISABLE"] = "1"  # tqdm reads it when it is imported

# What is recorded is the book's, whatever was run here; each test has a folder of its own, below
os.environ["BOOK_RESULTS"] = str(Path(__file__).parent / "no results of runs")

os.environ.setdefault("OMP_NUM_THREADS", "1")  # workers share the cores; threads of each would slow the others down

OFFLINE = str(Path(__file__).parent / "offline")
os.environ["PYTHONPATH"] = os.pathsep.join([OFFLINE, *filter(None, [os.environ.get("PYTHONPATH")])])
sys.path.insert(0, OFFLINE)
import sitecustomize  # noqa: E402

if not hasattr(sitecustomize, "NetworkBlocked"):  # the interpreter came with one of its own
    exec((Path(OFFLINE) / "sitecustomize.py").read_text("utf-8"))
sys.path.remove(OFFLINE)

_house = Path(__file__).parent.parent
_modules = [  # those that state shapes
    ".".join(file.relative_to(_house).with_suffix("").parts)
    for file in (_house / "helpers").rglob("*.py")
    if "jaxtyping" in file.read_text("utf-8")
]
if not any(name in sys.modules for name in _modules):
    install_import_hook(_modules, "beartype.beartype")

import numpy as np  # noqa: E402
import pytest  # noqa: E402
import yaml  # noqa: E402
from filelock import FileLock  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402

from helpers import places  # noqa: E402

# What takes seconds to import is imported where it is used: the process that hands out the tests needs none of it.


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """One process more than cores: some tests only wait."""
    return min(8, (os.cpu_count() or 1) + 1)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """A file is one process's work, so that what its tests share is made once; chapters are handed out one by one."""
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            file, _, test = nodeid.partition("::")
            return nodeid if file.endswith("test_chapters.py") and "[" in test else file

    config.option.loadscopereorder = False
    return Scheduling(config, log)


# No deadline and no check of speed: how busy the machine is decides nothing. No database: the seed alone decides.
_clockless = {"deadline": None, "database": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("same", derandomize=True, **_clockless)
settings.register_profile("explore", derandomize=False, print_blob=True, **_clockless)


def pytest_configure(config):
    """The same examples every time; with ``--hypothesis-seed`` those of the seed (``make test-random``)."""
    settings.load_profile("same" if config.getoption("--hypothesis-seed") is None else "explore")


def pytest_collection_modifyitems(items):
    """Tests with real corpora are slow, others are of built pages; files that take long go first, or in the end all processes would wait for one."""
    for item in items:
        if "real_data" in item.fixturenames:
            item.add_marker(pytest.mark.slow)
        if {"chromium", "site"} & set(item.fixturenames):
            item.add_marker(pytest.mark.pages)
    long = ("pages", "chapters", "course", "live", "measure", "head_importance", "atlas", "card", "report")
    order = {f"test_{name}.py": place for place, name in enumerate(long)}
    items.sort(key=lambda item: order.get(item.path.name, len(long)))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Whatever ran before, a test and its fixtures draw the same weights; with ``--hypothesis-seed`` those of the seed."""
    import torch

    seed = int(item.config.getoption("--hypothesis-seed") or 0)
    for start in (random.seed, np.random.seed, torch.manual_seed):
        start(seed)


@pytest.fixture(autouse=True)
def _figures_are_closed():
    """pyplot keeps every figure until it is closed, and warns of the twenty-first; a test that ran a chapter's cells leaves no style."""
    yield
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")
        pyplot.rcdefaults()


@pytest.fixture(autouse=True)
def _results_elsewhere(tmp_path, monkeypatch):
    monkeypatch.setenv("BOOK_RESULTS", str(tmp_path / "results"))


@pytest.fixture
def real_data(monkeypatch) -> Path:
    """The folder of real corpora, named by BOOK_DATA or beside the checkout; without one the test is skipped."""
    folder = Path(os.environ.get("BOOK_DATA") or places.ROOT.parent / "shared" / "data")
    if not folder.is_dir():
        pytest.skip("real corpora are not here (set BOOK_DATA)")
    monkeypatch.setenv("BOOK_DATA", str(folder))
    return folder


@pytest.fixture(scope="session")
def minilm():
    from helpers import encoders

    return encoders.load("minilm", device="cpu")


@pytest.fixture(scope="session")
def methods():
    """Factory: the functions and constants that a chapter's page defines in cells tagged ``method``."""

    def make(chapter: str) -> SimpleNamespace:
        page = json.loads((places.ROOT / "notebooks" / f"{chapter}.ipynb").read_text("utf-8"))
        cells = [cell for cell in page["cells"] if cell["cell_type"] == "code"]
        defining = [cells[1], *(c for c in cells if "method" in c["metadata"].get("tags", []))]  # [1] imports
        tree = ast.parse("\n".join("".join(cell["source"]) for cell in defining))
        kept = [
            node
            for node in tree.body
            if isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef)
            or (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]).isupper())
        ]
        names: dict[str, object] = {}
        exec(compile(ast.Module(kept, []), f"{chapter}.ipynb", "exec"), names)
        return SimpleNamespace(**names)

    return make


@pytest.fixture(scope="module")
def page(request, methods) -> SimpleNamespace:
    """What the page of the test file's chapter defines."""
    from helpers import results

    return methods(results.notebooks()[request.module.__name__.removeprefix("test_")])


@pytest.fixture
def assemble(monkeypatch):
    """What the built pages have beside their sources."""
    monkeypatch.syspath_prepend(places.ROOT / "book" / "_ext")
    return import_module("assemble")


BOOK, FULL, MPNET = ("book", "minilm"), ("full", "minilm"), ("full", "mpnet")
"""Profile and model of the runs that the pages speak of."""
RUNS = {"book": BOOK, "full": FULL, "mpnet": MPNET}
"""As ``tests/data/prose.yml`` names them."""


@cache
def recorded(chapter: str, run: tuple[str, str] = BOOK):
    """What a chapter has recorded in a run; many tests read the same table."""
    from helpers import results

    return results.recorded(chapter, profile=run[0], model=run[1])


HOSTILE = "</script><img src=x onerror=\"document.title='taken'\">"
"""A text that runs where it is not taken for one."""


def estimate(value, low, high):
    """A number with an interval and without replicates."""
    from helpers.stats import Estimate

    return Estimate.from_record({"value": value, "low": low, "high": high})


def from_data(name: str):
    """What a YAML file in ``tests/data`` holds."""
    return yaml.safe_load((Path(__file__).parent / "data" / f"{name}.yml").read_text("utf-8"))


def examples(task: str):
    """Examples of a task, one a document, from ``tests/data/examples.yml``."""
    from helpers.corpora import Answer
    from helpers.examples import Example

    collected = []
    for number, row in enumerate(from_data("examples")[task]):
        answers = tuple(Answer(answer, row["texts"][1].index(answer)) for answer in row.get("answers", ()))
        known = {"label": row.get("label", ""), "keyphrases": tuple(row.get("keyphrases", ()))}
        texts = tuple(row["texts"])
        collected.append(Example(task.split()[0], str(number), number, texts, answers=answers, **known))
    return collected


@pytest.fixture(scope="session")
def site(tmp_path_factory) -> Path:
    """The pages, built once from the stored outputs with warnings as errors, for a repository that somebody might have."""
    from helpers.run import pages

    pytest.importorskip("jupyter_book")
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "site"
    with FileLock(f"{folder}.lock"), pytest.MonkeyPatch.context() as patch:
        if not (folder / "built").exists():
            patch.setenv("BOOK_REPOSITORY", "https://github.com/example/attention")
            patch.setenv("BOOK_RESULTS", str(places.book_data() / "results"))
            pages.stage(folder / "stage", places.ROOT / "notebooks")
            pages.build(folder / "stage", folder)
            (folder / "built").touch()
    return folder / "_build" / "html"


@pytest.fixture(scope="module")
def chromium():
    """A tab of a headless Chromium that reaches no network; without Chromium the test is skipped."""
    from browser import CHROMIUM, browser

    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    with browser() as tab:
        yield tab


TREE_WORDS = ["the", "unbelievable", "cat", "sat", "on", "its", "mat", "photosynthesis", "'s", ","]
UPOS = {"sat": "VERB", "on": "ADP", "'s": "PART", ",": "PUNCT"}


def random_tree(rng, document: int = 0):
    """A sentence of up to eight words with a random tree."""
    from helpers.corpora.treebanks import Sentence

    words = tuple(str(word) for word in rng.choice(TREE_WORDS, int(rng.integers(1, 9))))
    order, governors = rng.permutation(len(words)), [-1] * len(words)
    for place, word in enumerate(order[1:], 1):
        governors[word] = int(order[rng.integers(0, place)])
    names = ("nsubj", "obj", "det", "case", "nmod:poss", "obl", "punct")
    relations = tuple("root" if governor < 0 else str(rng.choice(names)) for governor in governors)
    upos = tuple(UPOS.get(word, "NOUN") for word in words)
    return Sentence("", words, upos=upos, governors=tuple(governors), relations=relations, document=document)


MENTION_WORDS = ("the", "unbelievable", "cat", "she", "it", "her", "photosynthesis", "Mary", "cats", ",")


@pytest.fixture(scope="session")
def passages() -> list:
    """Random words with random mentions of four things; two may have the same head word."""
    from helpers.measurements.coreference import KINDS, Passage, Placed

    rng, made = np.random.default_rng(1), []
    values = (["", "Sing", "Plur"], ["", "Masc", "Fem"], ["1", "3"])
    for document in range(12):
        words, mentions = [str(word) for word in rng.choice(MENTION_WORDS, 25)], []
        for _ in range(int(rng.integers(0, 12))):
            start = int(rng.integers(0, 22))
            end = start + int(rng.integers(1, 4))
            head, features = int(rng.integers(start, end)), tuple(str(rng.choice(v)) for v in values)
            chain, kind = str(rng.integers(0, 4)), str(rng.choice(KINDS[1:]))
            text = " ".join(words[start:end]).lower()
            mentions.append(Placed(start, end, head, chain, kind, text, words[head].lower(), features))
        made.append(Passage(tuple(words), tuple(sorted(mentions, key=lambda m: m.head)), document))
    return made


def unit_maps(maps, unit: list[int]):
    """Maps between words, after all special tokens as one, in loops: the sum to a word's pieces, the mean from them."""
    words = np.zeros((*maps.shape[:2], max(unit) + 1, max(unit) + 1))
    for i, row in enumerate(unit):
        for j, column in enumerate(unit):
            words[..., row, column] += maps[..., i, j] / unit.count(row)
    return words


def word_maps(maps, unit: list[int]):
    """Maps between words without special tokens."""
    return unit_maps(maps, unit)[..., 1:, 1:]


# The smallest model of a family: 3 layers, 4 heads, 32 numbers a token. Vocabulary as minilm's, so that its tokenizer
# serves them all.
SMALL = {
    "vocab_size": 30522,
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
}
_families = yaml.safe_load((places.ROOT / "helpers" / "families.yml").read_text("utf-8"))
FAMILIES = {family: given.get("small", {}) for family, given in _families.items()}
"""The families that are said to work, and how the smallest model of each differs from :data:`SMALL`."""
USUAL = list(FAMILIES)[:10]
EVERY = [family if family in USUAL else pytest.param(family, marks=pytest.mark.slow) for family in FAMILIES]
"""All of them, for what takes long: quickly on the best known, and on the others in the slow tests."""
WITH_VALUES = [family for family, given in _families.items() if given.get("values", True)]
"""Those that show the vectors that attention weighs."""


def small_config(family: str, **changes: object):
    """The configuration of the smallest model of a family."""
    from transformers import CONFIG_MAPPING, AutoConfig

    if family not in CONFIG_MAPPING:
        pytest.skip(f"this version of transformers has no {family}")
    settings = SMALL | FAMILIES.get(family, {}) | changes
    if family == "distilbert":
        for name in ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size"):
            settings.pop(name)
    return AutoConfig.for_model(family, **settings)


def small_model(family: str, **changes: object):
    """A tiny randomly initialised model of a family, in eval mode."""
    import torch
    from transformers import AutoModel

    config = small_config(family, **changes)
    torch.manual_seed(0)
    model = AutoModel.from_config(config, attn_implementation="eager").eval()
    with torch.no_grad():  # larger weights than the usual 0.02: attention that is far from even
        for name, weight in model.named_parameters():
            if weight.dim() == 2 and "embeddings" not in name:
                weight.mul_(8)
    return model


@pytest.fixture
def server(tmp_path):
    """A server on this machine: its ``url``, the ``folder`` that it gives out, and the paths that it was ``asked`` for."""
    asked, folder = [], tmp_path / "www"
    folder.mkdir()

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            asked.append(self.path)

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as running:
        Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
        yield SimpleNamespace(url=f"http://127.0.0.1:{running.server_port}", folder=folder, asked=asked)
        running.shutdown()


@pytest.fixture
def folder(tmp_path, minilm) -> Path:
    """A tiny BERT saved as a user would save it."""
    small_model("bert").save_pretrained(tmp_path / "mine")
    minilm.tokenizer.save_pretrained(tmp_path / "mine")
    return tmp_path / "mine"


@pytest.fixture
def headed(small_encoder):
    """Factory: a tiny encoder with an untrained head for a task, whose answers are far from even."""
    import torch

    from helpers import encoders

    def make(task: str = "paraphrase", family: str = "bert", **changes: object) -> encoders.Encoder:
        encoder = encoders.with_new_head(small_encoder(family, **changes), task, seed=1)
        torch.manual_seed(1)
        with torch.no_grad():
            for weight in encoder.head.parameters():
                weight.add_(torch.randn_like(weight) * 0.3)
        return encoder

    return make


@pytest.fixture(scope="session")
def small_encoder(minilm):
    """Factory: a tiny encoder of a family, with minilm's tokenizer."""

    from helpers import encoders

    def make(family: str = "bert", **changes: object) -> encoders.Encoder:
        return encoders.wrap(small_model(family, **changes), minilm.tokenizer, name=f"small-{family}", device="cpu")

    return make
