from helpers.chapters.your_own_model.measures import *
