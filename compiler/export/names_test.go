package export_test

import (
	"errors"
	"strings"
	"testing"

	"ordain.dev/ordain/compiler/export"
	"ordain.dev/ordain/compiler/plugin/plugintest"
)

// sites is a project with two sites, whose resource class is as given.
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

from inmanta.resources import PurgeableResource, resource

@resource("web::Site", agent="host", id_attribute="name")
class Site(PurgeableResource):
` + class
}

// A field that the entity does not have is told with the one that was probably meant.
func TestFieldThatTheEntityDoesNotHave(t *testing.T) {
	_, err := exported(t, write(t, sites(`    fields = ("name", "hots")
`)), plugintest.Python(t), nil)
	var failed *export.Error
	if !errors.As(err, &failed) {
		t.Fatalf("got %v", err)
	}
	if !strings.Contains(failed.Message, "'hots'") || !strings.Contains(failed.Hint, "did you mean") || !strings.Contains(failed.Hint, "host") {
		t.Errorf("got %v, hint %q", err, failed.Hint)
	}
}

// When Python goes away, the resources that it was making are named.
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
