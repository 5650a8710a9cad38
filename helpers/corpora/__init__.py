"""Where texts come from, and what is in them: ``corpora.read``, ``corpora.documents``, … for each kind of text."""

from helpers.corpora import sources
from helpers.corpora.readers import (
    count,
    documents,
    held_out,
    keyphrases,
    notes,
    own,
    pairs,
    provenance,
    questions,
    read,
    segments,
    sentences,
    vectors,
)
from helpers.corpora.records import Answer, KeyedText, Pair
from helpers.corpora.sources import CorpusError, absolute
