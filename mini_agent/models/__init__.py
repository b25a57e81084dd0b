"""Everything that is a Streamer: models, and wrappers around models."""
