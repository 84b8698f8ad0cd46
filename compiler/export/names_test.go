package export_test

import (
	"errors"
	"strings"
	"testing"

	"ordain.dev/ordain/compiler/export"
	"ordain.dev/ordain/compiler/plugin/plugintest"
)

// sites returns a project with two sites and the given resource class.
func sites(class string) string {
	return std + `-- main.cf --
import web
web::Site(name="shop", host="a")
web::Site(name="mill", host="a")
-- libs/web/module.yml --
name: web
version: 1.0
license: none
-- libs/web/model/_init.cf --
entity Site extends std::PurgeableResource:
  string name
  string host
end
implement Site using std::none
-- libs/web/plugins/__init__.py --
import os

from inmanta.resources import IgnoreResourceException, PurgeableResource, resource

@resource("web::Site", agent="host", id_attribute="name")
class Site(PurgeableResource):
` + class
}

// The error about a field that the entity does not have suggests a similar one.
func TestFieldThatTheEntityDoesNotHave(t *testing.T) {
	_, err := exported(t, write(t, sites(`    fields = ("name", "hots")
`)), plugintest.Python(t), nil)
	var failed *export.Error
	if !errors.As(err, &failed) {
		t.Fatalf("got %v", err)
	}
	if !strings.Contains(failed.Message, "'hots'") || !strings.Contains(failed.Hint, "did you mean") ||
		!strings.Contains(failed.Hint, "host") {
		t.Errorf("got %v, hint %q", err, failed.Hint)
	}
}

// When Python dies, the error names the resources that it was making.
func TestWorkerThatEndsIsToldWithItsResources(t *testing.T) {
	_, err := exported(t, write(t, sites(`    fields = ("name", "host", "port")

    @staticmethod
    def get_port(exporter, site):
        os._exit(7)
`)), plugintest.Python(t), nil)
	var failed *export.Error
	if !errors.As(err, &failed) || failed.Code != export.CodeWorker {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{"exit status 7", "2 resources", "web::Site[a,name=shop]", "web::Site[a,name=mill]"} {
		if !strings.Contains(failed.Message, want) {
			t.Errorf("%q does not name %q", failed.Message, want)
		}
	}
}

// Every failing field of a resource is reported, in the order of the fields, with the
// place on a line of its own. The first error is the one that the reference reports. Each
// error counts the resources that fail in the same way.
func TestEveryFieldThatFailsIsTold(t *testing.T) {
	_, err := exported(
		t,
		write(t, sites(`    fields = ("name", "host", "port", "path", "again", "fine", "owner", "none")

    @staticmethod
    def get_port(exporter, site):
        return int(site.name)

    @staticmethod
    def get_path(exporter, site):
        return shared(site)

    @staticmethod
    def get_again(exporter, site):
        return shared(site)

    @staticmethod
    def get_fine(exporter, site):
        return 1

    @staticmethod
    def get_none(exporter, site):
        raise IgnoreResourceException()

def shared(site):
    raise LookupError("no path for " + site.host)
`)),
		plugintest.Python(t),
		nil,
	)
	wantErrors(t, err, []string{"'port'", "'path'", "'owner'"}, 1)
}

// Every value that JSON cannot represent is reported too.
func TestEveryValueThatIsNoJSONIsTold(t *testing.T) {
	_, err := exported(t, write(t, sites(`    fields = ("name", "host", "port", "path")
    map = {"port": lambda exporter, site: {1}, "path": lambda exporter, site: object}
`)), plugintest.Python(t), nil)
	wantErrors(t, err, []string{"field port of web::Site[a,name=shop]", "field path of web::Site[a,name=shop]",
		"field port of web::Site[a,name=mill]", "field path of web::Site[a,name=mill]"}, 0)
}

// wantErrors checks that each error has a text, as it is shown, and how many more resources
// have the same error.
func wantErrors(t *testing.T, err error, texts []string, repeats int) {
	t.Helper()
	var said []string
	told := export.Diagnostics(err)
	for _, d := range told {
		said = append(said, d.Render())
	}
	for n, want := range texts {
		if len(said) != len(texts) || !strings.Contains(said[n], want) || told[n].Repeats != repeats {
			t.Fatalf("got %d errors:\n%s\nthe one at %d should say %q, for %d more", len(said),
				strings.Join(said, "\n"), n, want, repeats)
		}
	}
}
