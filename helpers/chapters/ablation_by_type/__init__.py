"""You switch off or flatten whole types of heads while the model answers questions, beside types dealt by
chance.

After {cite:t}`guan2020`, section 5.
"""

from helpers.chapters.ablation_by_type.edits import *
from helpers.chapters.ablation_by_type.measures import *
