"""KEEP. The wall in the middle: left of it nothing knows what a report is, right of it nothing knows what a driver is."""
