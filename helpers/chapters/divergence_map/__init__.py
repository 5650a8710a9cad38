"""You measure how far apart any two heads are, draw them as a map, and test whether heads of one layer are
close.

After {cite:t}`clark2019`, section 6.
"""

from helpers.chapters.divergence_map.comparing import *
from helpers.chapters.divergence_map.measures import *
from helpers.chapters.divergence_map.scaling import *
