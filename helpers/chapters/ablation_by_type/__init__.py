from helpers.chapters.ablation_by_type.measures import *
