from helpers.chapters.dependency_heads.measures import *
