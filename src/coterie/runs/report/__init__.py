"""What a study says: figures, comparison and one page."""
