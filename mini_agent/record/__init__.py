"""What is kept of what happened: a journal for each session, and the debug log."""
