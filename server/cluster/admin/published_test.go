package admin_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/cluster/admin"
	"ordain.dev/ordain/server/cluster/catalogue"
)

// The published catalogue is imported as it is, with its plug-in types; what needs a cloud or credentials that are
// not in it is refused by name, and nothing else.
func TestThePublishedFolderIsImported(t *testing.T) {
	d := open(t)
	project := intent.Project{ID: intent.ProjectID{1}, Name: "shop"}
	if err := d.store.CreateProject(d.ctx, project); err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	root := filepath.Join("..", "catalogue", "testdata", "coopr-templates")
	if err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		files[filepath.ToSlash(name)], err = os.ReadFile(path)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	entries, err := admin.ReadFolder(files)
	if err != nil {
		t.Fatal(err)
	}
	done, err := d.s.Import(d.ctx, project.ID, entries, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []catalogue.Ref{
		{Kind: catalogue.AutomatorTypes, Name: "chef-solo"}, {Kind: catalogue.ProviderTypes, Name: "aws"},
		{Kind: catalogue.Services, Name: "apache-httpd"}, {Kind: catalogue.ImageTypes, Name: "ubuntu12"},
	} {
		if !slices.Contains(done.Created, want) {
			t.Errorf("%s was not imported: %+v", want, done.Refused)
		}
	}
	for _, r := range done.Refused {
		if r.Ref.Kind == catalogue.HardwareTypes || r.Ref.Kind == catalogue.ImageTypes || r.Ref.Name == "" {
			t.Errorf("%s was refused: %v", r.From, r.Problems)
		}
	}
	t.Logf("imported %d, refused %d", len(done.Created), len(done.Refused))
	for _, r := range done.Refused {
		t.Log(r.From, r.Problems)
	}
}
