from helpers.chapters.pattern_types.measures import *
