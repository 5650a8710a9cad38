"""You ask what attention to `[CLS]` and `[SEP]` is for, with gradients, lengths of vectors, and by taking it
away.

After {cite:t}`clark2019`, section 3.2; {cite:t}`kobayashi2020`.
"""

from helpers.chapters.no_op.duty import *
from helpers.chapters.no_op.measures import *
from helpers.chapters.no_op.sink import *
