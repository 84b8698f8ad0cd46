"""Plug-ins, resource class and handler of the site module."""

import html
import os
import re

from inmanta.agent.handler import CRUDHandler, HandlerContext, ResourcePurged, provider
from inmanta.plugins import plugin
from inmanta.resources import PurgeableResource, resource


@plugin
def slug(title: "string") -> "string":
    """Turn a title into the name of a file."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


@plugin
def menu_entries(pages: "site::Page[]") -> "dict":
    """List the pages of a site: titles by address."""
    return {f"{slug(p.title)}.html": p.title for p in sorted(pages, key=lambda p: p.title)}


@plugin
def render(page: "site::Page") -> "string":
    """Write a page as HTML."""
    site = page.site
    return (
        f"<!doctype html>\n<title>{html.escape(page.title)} | {html.escape(site.name)}</title>\n"
        f"<h1>{html.escape(page.title)}</h1>\n<p>{html.escape(page.text)}</p>\n"
        f"<footer>{html.escape(site.contact)}</footer>\n"
    )


@resource("site::Menu", agent="host.name", id_attribute="path")
class Menu(PurgeableResource):
    fields = ("path", "entries")
    path: str
    entries: dict[str, str]


@provider("site::Menu", name="menu")
class MenuHandler(CRUDHandler[Menu]):
    """Keeps the menu file: one `address<TAB>title` a line."""

    def read_resource(self, ctx: HandlerContext, resource: Menu) -> None:
        if not os.path.exists(resource.path):
            raise ResourcePurged()
        with open(resource.path, encoding="utf-8") as menu:
            lines = [line.rstrip("\n").split("\t", 1) for line in menu if "\t" in line]
        resource.entries = dict(lines)

    def _write(self, resource: Menu) -> None:
        lines = [f"{address}\t{title}\n" for address, title in sorted(resource.entries.items())]
        with open(resource.path, "w", encoding="utf-8") as menu:
            menu.writelines(lines)

    def create_resource(self, ctx: HandlerContext, resource: Menu) -> None:
        self._write(resource)
        ctx.info("Wrote a menu of %(pages)d pages", pages=len(resource.entries))
        ctx.set_created()

    def update_resource(self, ctx: HandlerContext, changes: dict[str, dict[str, object]], resource: Menu) -> None:
        self._write(resource)
        ctx.info("Rewrote the menu: %(pages)d pages", pages=len(resource.entries))
        ctx.set_updated()

    def delete_resource(self, ctx: HandlerContext, resource: Menu) -> None:
        os.remove(resource.path)
        ctx.set_purged()
