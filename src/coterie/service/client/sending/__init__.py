"""Where requests go, what an answer or none means, and when to try again."""
