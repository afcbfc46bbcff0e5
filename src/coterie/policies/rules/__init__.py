"""How a belief becomes a choice: scores, widths, draws, ties."""
