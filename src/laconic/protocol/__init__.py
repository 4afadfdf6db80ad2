"""The protocol, without input or output: messages, codec, phases, client and server as state machines, the ledger."""
