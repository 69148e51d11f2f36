"""The base of everything else: values, figures, units, text. It imports no other part of the package."""
