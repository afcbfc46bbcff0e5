"""The paper's figures, tables and claims, one command each."""
