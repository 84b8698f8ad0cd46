"""The handler of the conformance suite: it keeps a file, and notes what it did."""

import os
import time

from inmanta.agent.handler import CRUDHandler, ResourcePurged, provider
from inmanta.resources import PurgeableResource, resource


@resource("conformance::Thing", agent="agent", id_attribute="name")
class Thing(PurgeableResource):
    fields = ("name", "agent", "path", "text", "what")


def note(resource, word):
    with open(resource.path + ".log", "a") as log:
        log.write(word + "\n")


@provider("conformance::Thing", name="thing")
class ThingHandler(CRUDHandler):
    def read_resource(self, ctx, resource):
        try:
            with open(resource.path) as file:
                resource.text = file.read()
        except FileNotFoundError:
            raise ResourcePurged()

    def write(self, ctx, resource):
        note(resource, "begin")
        text = resource.text
        if resource.what == "slow":
            while not os.path.exists(resource.path + ".go"):
                time.sleep(0.05)
        elif resource.what == "big":
            for number in range(60):
                ctx.info("line %(number)s: %(text)s", number=number, text="x" * 50_000)
        elif resource.what == "file":
            text = self.get_file(resource.text).decode()
        elif resource.what == "fail":
            raise ValueError("no such luck")
        elif resource.what == "secret":
            text = str(len(os.environ["CONFORMANCE_SECRET"])) + os.environ["CONFORMANCE_PLAIN"]
        with open(resource.path, "w") as file:
            file.write(text)
        note(resource, "end")

    def create_resource(self, ctx, resource):
        self.write(ctx, resource)
        ctx.set_created()

    def update_resource(self, ctx, changes, resource):
        self.write(ctx, resource)
        ctx.set_updated()

    def delete_resource(self, ctx, resource):
        os.remove(resource.path)
        note(resource, "deleted")
        ctx.set_purged()

    def facts(self, ctx, resource):
        with open(resource.path) as file:
            return {"length": str(len(file.read()))}
