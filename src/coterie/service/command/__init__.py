"""What the shell's command does: settings from flags and a file, what it prints, the demonstration, tables to load."""
