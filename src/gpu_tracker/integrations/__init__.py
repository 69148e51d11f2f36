"""Guests in other programs: thin, and loaded by nobody else at start-up."""
