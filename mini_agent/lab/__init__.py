"""A provider on this machine that says what it is told to: real sockets, exact bytes, faults on command."""
