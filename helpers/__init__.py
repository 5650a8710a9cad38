"""Measuring what the attention heads of BERT-like encoders look at. See ``python -m helpers --help``."""

__version__ = "0.1.0"
