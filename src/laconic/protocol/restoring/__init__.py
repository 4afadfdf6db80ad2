"""States from records: a client or a server is the fold of what it kept, and a snapshot stands for many records."""

from laconic.protocol.restoring.restored_client import restore_client, snapshot_client
from laconic.protocol.restoring.restored_server import restore_server, snapshot_server

__all__ = ["restore_client", "restore_server", "snapshot_client", "snapshot_server"]
