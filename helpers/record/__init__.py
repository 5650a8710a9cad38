"""Heads that go by a name, and recorded runs beside a fresh one."""
