"""You read every head as a parser, against fixed distances, rules that know word classes, and heads that learned nothing.

After {cite:t}`clark2019`, section 4.2.
"""
