from helpers.chapters.distance_features.measures import *
