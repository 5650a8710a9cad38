"""Executing, reporting, timing, training."""

import sys

# With notebooks comes a validator of JSON, and with that, where it is installed, a grammar of addresses in all alphabets that takes
# longer to build than all the rest; nothing here is checked against it.
if "jsonschema" not in sys.modules and "rfc3987_syntax" not in sys.modules:
    sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]
    try:
        import jsonschema
    finally:
        del sys.modules["rfc3987_syntax"]
