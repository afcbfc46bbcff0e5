"""What a study on logs says: numbers, tables, words, pictures and the page."""
