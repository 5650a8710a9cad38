"""You ask which heads find what a pronoun or a name refers to, against rules.

After {cite:t}`clark2019`, section 4.3.
"""
