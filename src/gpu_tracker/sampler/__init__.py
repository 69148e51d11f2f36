"""The process that measures, and the tracker's handle on it."""
