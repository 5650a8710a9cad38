"""You read every head as a parser, against fixed distances and heads that learned nothing.

After {cite:t}`clark2019`, section 4.2.
"""

from helpers.chapters.dependency_heads.measures import *
