package api

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/cluster/admin"
	"ordain.dev/ordain/server/cluster/catalogue"
)

// moveCalls import and export whole catalogues.
func (s *server) moveCalls(c *calls) {
	inCatalogue(c, http.MethodPost, "/import", "import what an export has, or with the member files a folder: all or "+
		"nothing, or with partly what is right.", changeCatalogue, s.importCatalogue, uploads)
	const summary = "export the catalogue, as import takes it. Secrets are not in it."
	whole(c, http.MethodGet, sharedCatalogue+"/export", "Shared by all projects: "+summary, access.SeeSharedCatalogue,
		s.exportSharedCatalogue)
	whole(c, http.MethodGet, projectCatalogue+"/export", "Of a project: "+summary, access.SeeCatalogue,
		s.exportCatalogue)
}

type newImport struct {
	jsonBody
	Partly bool `arg:"partly"`
}

type imported struct {
	Created   []entityRef `json:"created"`
	Replaced  []entityRef `json:"replaced"`
	Unchanged []entityRef `json:"unchanged"`
	Refused   []refused   `json:"refused"`
}

type entityRef struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// refused is an entry that was not imported. From is where it stands in the body; the name is empty if it cannot be
// read.
type refused struct {
	From string `json:"from"`
	entityRef
	Problems []problem `json:"problems"`
}

func refOf(r catalogue.Ref) entityRef { return entityRef{Kind: string(r.Kind), Name: r.Name} }

// entriesOf reads the body of an import: {"services": [{…}], …}, or {"files": {"services/base.json": {…}, …}}.
func entriesOf(text []byte) ([]admin.Entry, error) {
	var folder struct {
		Files map[string]json.RawMessage `json:"files"`
	}
	if err := json.Unmarshal(text, &folder); err != nil || folder.Files == nil {
		return admin.ReadExport(text)
	}
	files := make(map[string][]byte, len(folder.Files))
	for name, content := range folder.Files {
		files[name] = content
	}
	return admin.ReadFolder(files)
}

func (s *server) importCatalogue(ctx context.Context, project intent.ProjectID, a newImport) (imported, error) {
	service, err := s.catalogueService()
	if err != nil {
		return imported{}, err
	}
	if len(a.Text) > admin.MaxImport {
		return imported{}, invalid("the import has %d bytes, and may have %d", len(a.Text), admin.MaxImport)
	}
	entries, err := entriesOf(a.Text)
	if err != nil {
		return imported{}, err
	}
	done, err := service.Import(ctx, project, entries, a.Partly)
	if err != nil {
		return imported{}, err
	}
	return imported{
		Created: listed(done.Created, refOf), Replaced: listed(done.Replaced, refOf),
		Unchanged: listed(done.Unchanged, refOf),
		Refused: listed(done.Refused, func(r admin.Refused) refused {
			return refused{From: r.From, entityRef: refOf(r.Ref), Problems: problemsOf(r.Problems)}
		}),
	}, nil
}

// exported are the entities of a catalogue, by kind.
type exported map[string][]json.RawMessage

func (s *server) exportSharedCatalogue(ctx context.Context, _ noArguments) (exported, error) {
	return s.export(ctx, uuid.Nil)
}

func (s *server) exportCatalogue(ctx context.Context, a oneProject) (exported, error) {
	return s.export(ctx, a.ID)
}

func (s *server) export(ctx context.Context, project intent.ProjectID) (exported, error) {
	service, err := s.catalogueService()
	if err != nil {
		return nil, err
	}
	text, err := service.Export(ctx, project)
	if err != nil {
		return nil, err
	}
	out := exported{}
	return out, json.Unmarshal(text, &out)
}
