import os

from inmanta.agent.handler import CRUDHandler, ResourcePurged, provider
from inmanta.resources import PurgeableResource, resource

ITEMS = "@ITEMS@"


@resource("bench::Item", agent="agent", id_attribute="name")
class Item(PurgeableResource):
    fields = ("agent", "name", "value")


@provider("bench::Item", name="file")
class File(CRUDHandler[Item]):
    """A file with the value."""

    def _write(self, resource):
        with open(os.path.join(ITEMS, resource.name), "w") as item:
            item.write(resource.value)

    def read_resource(self, ctx, resource):
        if resource.value == "fail":
            raise Exception("this one always fails")
        try:
            with open(os.path.join(ITEMS, resource.name)) as item:
                resource.value = item.read()
        except FileNotFoundError:
            raise ResourcePurged()

    def create_resource(self, ctx, resource):
        self._write(resource)
        ctx.set_created()

    def update_resource(self, ctx, changes, resource):
        self._write(resource)
        ctx.set_updated()
