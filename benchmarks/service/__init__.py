"""Speed of the decision service: its parts, each beside the plain thing it is built on."""
