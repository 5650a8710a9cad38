from helpers.chapters.layer_semantics.measures import *
