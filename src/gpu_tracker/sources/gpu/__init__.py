"""GPUs, one module per interface."""
