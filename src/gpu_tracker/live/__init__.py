"""What the machine and a job are doing now, for a terminal."""
