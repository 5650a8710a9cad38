"""You put an encoder of your own beside a control or a second model, get a page about it, and run the whole book on it.

After chapters 2, 4 and 5.
"""
