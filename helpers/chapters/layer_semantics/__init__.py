"""You locate four tasks in the layers with probes that read hidden states, and follow two sentences from layer
to layer.

After {cite:t}`tenney2019`.
"""

from helpers.chapters.layer_semantics.measures import *
from helpers.chapters.layer_semantics.probes import *
from helpers.chapters.layer_semantics.states import *
from helpers.chapters.layer_semantics.texts import *
