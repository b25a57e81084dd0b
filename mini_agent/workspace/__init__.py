"""The user's files, seen safely."""
