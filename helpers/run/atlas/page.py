def write(to): return to
