from helpers.chapters.keywords.measures import *
