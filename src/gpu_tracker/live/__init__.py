"""What the machine is doing now, as text or on a terminal."""
