"""Measuring what the attention heads of BERT-like encoders look at. See ``python -m helpers --help``."""

import warnings
from importlib.metadata import PackageNotFoundError, version

# Several libraries import tqdm's notebook bars, which ask for ipywidgets; plain bars do
warnings.filterwarnings("ignore", message="IProgress not found")

try:
    __version__ = version("attention-heads-book")  # setup.py takes it from the tag
except PackageNotFoundError:  # a checkout that is not installed
    __version__ = "0"
