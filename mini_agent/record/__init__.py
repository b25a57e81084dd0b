"""What is kept of what happened: journal, sessions, ledger (none built yet)."""
