"""A fresh run and recorded ones under short labels."""

from dataclasses import replace

from helpers import corpora
from helpers.record import beside


def test_this_run_comes_first_and_recorded_ones_after_it(minilm):
    corpus = corpora.provenance("encyclopedia", "keyphrases")
    recorded = {"minilm": {"provenance": {"corpus": {"name": "gum"}}, "values": {"a": 1}}}
    found = beside.runs({"a": 2}, replace(minilm, name="/home/me/mine"), corpus, recorded)
    assert list(found.items()) == [(f"mine, {corpus.name}", {"a": 2}), ("minilm, gum", {"a": 1})]
