from helpers.chapters.coreference_heads.measures import *
