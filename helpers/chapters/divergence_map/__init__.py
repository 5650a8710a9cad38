from helpers.chapters.divergence_map.measures import *
