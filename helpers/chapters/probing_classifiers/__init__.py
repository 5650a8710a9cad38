from helpers.chapters.probing_classifiers.measures import *
