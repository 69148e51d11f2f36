"""SHOW. Documents are values; `contract` finds the renderer for a document and a format."""
