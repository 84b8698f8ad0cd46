"""The Python half of Ordain: a worker process that speaks frames with the server.

PROTOCOL.md, beside the Go package pyworker, is the contract.
"""
