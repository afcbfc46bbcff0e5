"""What outlives the program: the saved file, its export, the journal and the replay."""
