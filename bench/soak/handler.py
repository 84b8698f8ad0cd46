import os
import time

from inmanta.agent.handler import CRUDHandler, ResourcePurged, provider
from inmanta.resources import PurgeableResource, resource

SITE = "@SITE@"


def note(ctx, resource, what, value):
    """One line of the journal; a short write at the end of a file is never torn."""
    line = f"{what} {time.time_ns()} {ctx.action_id} {resource.agent} {resource.name} {value}\n"
    journal = os.open(os.path.join(SITE, "journal"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(journal, line.encode())
    finally:
        os.close(journal)


@resource("bench::Item", agent="agent", id_attribute="name")
class Item(PurgeableResource):
    fields = ("agent", "name", "value")


@provider("bench::Item", name="journal")
class Journal(CRUDHandler[Item]):
    """A file with the value; says before and after what it does. Edition @EDITION@."""

    def _path(self, resource):
        return os.path.join(SITE, "items", resource.name)

    def _write(self, resource):
        with open(self._path(resource), "w") as item:
            item.write(resource.value)

    def read_resource(self, ctx, resource):
        note(ctx, resource, "begin", resource.value)
        try:
            with open(self._path(resource)) as item:
                resource.value = item.read()
        except FileNotFoundError:
            raise ResourcePurged()

    def create_resource(self, ctx, resource):
        self._write(resource)
        ctx.set_created()

    def update_resource(self, ctx, changes, resource):
        self._write(resource)
        ctx.set_updated()

    def post(self, ctx, resource):
        note(ctx, resource, "end", resource.value)
