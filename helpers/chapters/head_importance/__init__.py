from helpers.chapters.head_importance.measures import *
