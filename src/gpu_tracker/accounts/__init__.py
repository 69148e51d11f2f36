"""Readings in, totals out. Pure."""
