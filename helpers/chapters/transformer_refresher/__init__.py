from helpers.chapters.transformer_refresher.measures import *
