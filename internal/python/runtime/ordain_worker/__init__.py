"""The Python end of the worker protocol, which ../../worker/PROTOCOL.md describes."""
