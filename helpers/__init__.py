"""Measuring what the attention heads of BERT-like encoders look at. See ``python -m helpers --help``."""

import warnings
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version

# Several libraries import tqdm's notebook bars, which ask for ipywidgets; plain bars do
warnings.filterwarnings("ignore", message="IProgress not found")

#: What a head may be for; :data:`helpers.adapters.LABELS` has its classes.
TASKS = ("mlm", "qa", "paraphrase", "entailment", "rte", "keywords")
#: What a model can compute in. In half precision the weights of a row would sum to 1 only within a hundredth.
DTYPES = ("float32", "float64")

try:
    __version__ = version("attention-heads-book")  # setup.py takes it from the tag
except PackageNotFoundError:  # a checkout that is not installed
    __version__ = "0"


def __getattr__(name: str) -> object:
    """``from helpers import card``; what it needs takes seconds to import, and comes with its first use."""
    if name == "card":
        return import_module("helpers.run.card").card
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
