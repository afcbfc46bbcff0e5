"""How probable each choice was."""
