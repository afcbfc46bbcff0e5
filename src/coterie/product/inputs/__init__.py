"""What people hand in: arms as arrays, mappings and dataframes."""
