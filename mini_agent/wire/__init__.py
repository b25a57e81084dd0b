"""Bytes <-> core: framing, protocol adapters, profiles; pure but for `transport`."""
