"""The faces: a terminal, piped text, stream-json."""
