"""The version, and the name of the distribution."""

__version__ = "0.1.0"
DISTRIBUTION = "gput"  # not the name of the module or the command
