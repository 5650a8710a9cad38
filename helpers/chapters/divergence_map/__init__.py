"""You measure how far apart any two heads are, test which heads of one layer are close, and draw all heads as a map.

After {cite:t}`clark2019`, section 6.
"""
