"""What is kept of what happened: so far the debug log."""
