"""SHOW. Documents are values; `contract` finds who renders one in the format that is asked for."""
