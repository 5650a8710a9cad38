"""You get one page about an encoder of your own, beside a second model, and run the whole book on it.

After chapters 2, 4, 5, 7 and 8.
"""

from helpers.chapters.your_own_model.measures import *
