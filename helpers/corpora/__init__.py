"""Where texts come from, and what is in them: ``corpora.read``, ``corpora.documents``, … for each kind of text."""

from helpers.corpora import sources
from helpers.corpora.formats import (
    TASKS,
    read_encyclopedia,
    read_inspec,
    read_keyphrases,
    read_pairs,
    read_plain_text,
    read_squad,
)
from helpers.corpora.readers import (
    COUNTS,
    documents,
    held_out,
    keyphrases,
    notes,
    overview,
    own,
    pairs,
    provenance,
    questions,
    read,
    segments,
    sentences,
    vectors,
)
from helpers.corpora.records import Answer, Article, Corpus, KeyedText, Pair, Question, Segment, Vectors, sample
from helpers.corpora.sources import CorpusError, absolute, locate
