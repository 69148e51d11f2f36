"""The version, and the name under which the package is installed, in one place."""

__version__ = "0.1.0"
DISTRIBUTION = "gput"  # the module and the command are called otherwise
