"""`coterie evaluate`: a log from a folder, policies from the command line, the answer in words and as JSON."""
