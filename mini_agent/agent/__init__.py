"""The loop that runs one turn, and the rules it goes by."""
