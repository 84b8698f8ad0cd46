package peer

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// JournalPlugins returns the Python code of a module whose handler writes each item as a
// file of the folder site, and a line into a journal there after each write.
func JournalPlugins(site string) string { return strings.ReplaceAll(journalHandler, "@SITE@", site) }

// WrittenTwice reads the journal of a site. It lists each value that was written more than
// once, as "item3 5, 2 times".
func WrittenTwice(site string) (twice []string, err error) {
	journal, err := os.ReadFile(filepath.Join(site, "journal"))
	if err != nil {
		return nil, err
	}
	times := map[string]int{}
	for line := range strings.Lines(string(journal)) {
		times[strings.TrimSpace(line)]++
	}
	for _, line := range slices.Sorted(maps.Keys(times)) {
		if times[line] > 1 {
			twice = append(twice, fmt.Sprintf("%s, %d times", line, times[line]))
		}
	}
	return twice, nil
}

const journalHandler = `import os

from inmanta.agent.handler import CRUDHandler, ResourcePurged, provider
from inmanta.resources import PurgeableResource, resource

SITE = "@SITE@"


@resource("bench::Item", agent="agent", id_attribute="name")
class Item(PurgeableResource):
    fields = ("agent", "name", "value")


@provider("bench::Item", name="journal")
class Journal(CRUDHandler[Item]):
    def _path(self, resource):
        return os.path.join(SITE, resource.name)

    def _write(self, resource):
        path = self._path(resource)
        with open(path + ".new", "w") as item:
            item.write(resource.value)
        os.rename(path + ".new", path)
        journal = os.open(os.path.join(SITE, "journal"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(journal, f"{resource.name} {resource.value}\n".encode())
        finally:
            os.close(journal)

    def read_resource(self, ctx, resource):
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
`
