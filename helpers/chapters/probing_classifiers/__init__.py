"""You train probes that read all heads at once, beside control tasks that show how much they learn about words.

After {cite:t}`clark2019`, section 5; {cite:t}`coenen2019`; {cite:t}`hewitt2019control`.
"""
