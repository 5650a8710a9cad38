"""You switch off every head and layer, estimate the same from one backward pass, and remove heads for real.

After {cite:t}`michel2019`, {cite:t}`kovaleva2019`.
"""

from helpers.chapters.head_importance.agreeing import *
from helpers.chapters.head_importance.calibration import *
from helpers.chapters.head_importance.jobs import *
from helpers.chapters.head_importance.measures import *
from helpers.chapters.head_importance.pruning import *
from helpers.chapters.head_importance.sweep import *
