"""Measuring what the attention heads of BERT-like encoders look at. See ``python -m helpers --help``."""

import warnings

# Several libraries import tqdm's notebook bars, which ask for ipywidgets; plain bars do
warnings.filterwarnings("ignore", message="IProgress not found")

__version__ = "0.1.0"
