"""What was learned, in words and pictures."""
