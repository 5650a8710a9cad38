"""Where texts come from, and what is in them."""

from helpers.corpora.readers import *
