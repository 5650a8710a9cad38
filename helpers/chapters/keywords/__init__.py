"""You ask whether key words receive more attention, head by head and together, and what of that a rule without attention lacks.

After {cite:t}`stefaniknd`.
"""
