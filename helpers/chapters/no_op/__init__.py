from helpers.chapters.no_op.measures import *
