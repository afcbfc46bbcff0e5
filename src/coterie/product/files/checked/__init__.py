"""What a saved file is checked for before it is used."""
