"""EXPLAIN. Pure functions from recordings to figures."""
