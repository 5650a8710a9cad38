"""You train probes that read all heads at once, beside control tasks that show how much they memorise.

After {cite:t}`clark2019`, section 5; {cite:t}`coenen2019`; {cite:t}`hewitt2019control`.
"""

from helpers.chapters.probing_classifiers.measures import *
from helpers.chapters.probing_classifiers.pairs import *
from helpers.chapters.probing_classifiers.parsers import *
from helpers.chapters.probing_classifiers.reading import *
from helpers.chapters.probing_classifiers.structural import *
