from helpers.chapters.surface_patterns.measures import *
