"""What a run shows about itself: one rule per function, one table. Pure."""
