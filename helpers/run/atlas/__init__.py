"""The atlas of heads: what is measured for it, and what its page shows of all that is recorded."""
