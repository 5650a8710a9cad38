"""You sort single attention maps into five types with a classifier judged by labelled maps.

After {cite:t}`kovaleva2019`.
"""

from helpers.chapters.pattern_types.classifiers import *
from helpers.chapters.pattern_types.measures import *
