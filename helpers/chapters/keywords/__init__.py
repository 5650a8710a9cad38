"""You ask whether key words receive more attention, head by head and together, and take a keyphrase tagger's
heads away.

After {cite:t}`stefaniknd`.
"""

from helpers.chapters.keywords.measures import *
from helpers.chapters.keywords.predictors import *
from helpers.chapters.keywords.tagger import *
