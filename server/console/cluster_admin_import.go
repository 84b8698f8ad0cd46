package console

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"path"
	"slices"
	"strings"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/access/audit"
	"ordain.dev/ordain/server/cluster/admin"
	"ordain.dev/ordain/server/cluster/catalogue"
)

// clusterAdminImportPage takes a catalogue in, and says what became of it.
type clusterAdminImportPage struct {
	frame
	Nav      catalogueNav
	Action   string
	Export   string
	Kinds    []choice
	Partly   bool
	Imported *importDone
	Problem  string
	Hint     string
	Refused  []refusedEntry
}

type importDone struct {
	Created, Replaced []navLink
	Unchanged         int
}

type refusedEntry struct {
	From     string
	Problems []string
}

// Bounds of what is unpacked.
const maxImportFiles = 10_000

func (c *console) importPage(r *http.Request) (view, error) {
	s, err := c.catalogueScope(r)
	if err != nil {
		return view{}, err
	}
	return c.importView(r, s, clusterAdminImportPage{})
}

func (c *console) importView(r *http.Request, s catalogueScope, p clusterAdminImportPage) (view, error) {
	var err error
	p.frame, p.Nav, err = c.adminFrame(r, s, "Import and export", "import", crumb{Text: "Catalogue", URL: s.URL()},
		crumb{Text: "Import and export"})
	p.Action, p.Export = s.URL()+"/import", s.URL()+"/export"
	for _, k := range kindTitles {
		p.Kinds = append(p.Kinds, choice{Value: string(k.kind), Text: k.title})
	}
	return view{template: "cluster_admin_import", data: p}, err
}

// exportCatalogue sends the catalogue as a file. It has no secrets.
func (c *console) exportCatalogue(w http.ResponseWriter, r *http.Request) {
	s, err := c.catalogueScope(r)
	var text []byte
	if err == nil {
		text, err = c.catalogue.Export(r.Context(), s.Project.ID)
	}
	if err != nil {
		c.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Disposition", `attachment; filename="catalogue.json"`)
	_, _ = io.WriteString(w, indented(text)+"\n") // it fails when the browser has gone away
}

// doImport serves the form of the import page.
func (c *console) doImport(w http.ResponseWriter, r *http.Request) {
	s, err := c.catalogueScope(r)
	if err != nil {
		c.fail(w, r, err)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, admin.MaxImport+maxForm)
	p := clusterAdminImportPage{}
	entries, partly, err := readImport(r)
	p.Partly = partly
	var done admin.Imported
	if err == nil {
		done, err = c.catalogue.Import(r.Context(), s.Project.ID, entries, partly)
	}
	code := http.StatusOK
	if err != nil {
		audit.Failed(r.Context(), err)
		switch fault.KindOf(err) {
		case fault.Invalid, fault.Conflict, fault.Exhausted:
			code = http.StatusUnprocessableEntity
			p.Problem, p.Hint = plainError(err)
			if len(done.Refused) > 0 {
				p.Problem = "Nothing was imported, because of what is wrong below."
			}
		default:
			c.fail(w, r, err)
			return
		}
	} else {
		p.Imported = &importDone{Unchanged: len(done.Unchanged)}
		link := func(ref catalogue.Ref) navLink {
			return navLink{Text: ref.Kind.Noun() + " " + ref.Name, URL: s.entityURL(ref.Kind, ref.Name)}
		}
		for _, ref := range done.Created {
			p.Imported.Created = append(p.Imported.Created, link(ref))
		}
		for _, ref := range done.Replaced {
			p.Imported.Replaced = append(p.Imported.Replaced, link(ref))
		}
	}
	for _, one := range done.Refused {
		entry := refusedEntry{From: one.From}
		for _, problem := range one.Problems {
			entry.Problems = append(entry.Problems, problem.String())
		}
		p.Refused = append(p.Refused, entry)
	}
	v, err := c.importView(r, s, p)
	if err != nil {
		c.fail(w, r, err)
		return
	}
	c.render(w, r, code, v)
}

// upload is the files of a form, by the path that the browser gives, and its other fields.
type upload struct {
	files  map[string][]byte
	fields map[string]string
	left   int // bytes that may still come
}

// readImport reads the form of an import: an export, a zip file, a folder, or single files of one kind.
func readImport(r *http.Request) (entries []admin.Entry, partly bool, err error) {
	const op = "console.import"
	u := upload{files: map[string][]byte{}, fields: map[string]string{}, left: admin.MaxImport}
	form, err := r.MultipartReader()
	if err != nil {
		return nil, false, fault.New(op, fault.Invalid, "the form has no files")
	}
	for {
		part, err := form.NextRawPart()
		if err == io.EOF {
			break
		}
		if err == nil {
			err = u.part(part)
		}
		if err != nil {
			return nil, false, unreadable(op, err)
		}
	}
	partly = u.fields["partly"] == "yes"
	if len(u.files) == 0 {
		return nil, partly, fault.New(op, fault.Invalid, "no file was chosen")
	}
	kind := catalogue.Kind(u.fields["kind"])
	folder := map[string][]byte{}
	for _, name := range sortedNames(u.files) {
		text := u.files[name]
		switch {
		case inFolder(name):
			folder[name] = text
		case slices.Contains(catalogue.Kinds, kind):
			folder[string(kind)+"/"+path.Base(name)] = text
		default:
			found, err := admin.ReadExport(text)
			if err != nil {
				return nil, partly, fault.Wrap(op, fault.Invalid, err).Say(name + " cannot be read").
					Hint("for files of single entities, choose their kind, or import the folder that they are in")
			}
			entries = append(entries, found...)
		}
	}
	if len(folder) > 0 {
		found, err := admin.ReadFolder(folder)
		if err != nil {
			return nil, partly, err
		}
		entries = append(entries, found...)
	}
	return entries, partly, nil
}

func unreadable(op string, err error) error {
	if fault.KindOf(err) == fault.Invalid {
		return err
	}
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return tooMuch(op)
	}
	return fault.Wrap(op, fault.Invalid, err).Say("the form cannot be read")
}

func tooMuch(op string) error {
	return fault.New(op, fault.Invalid, fmt.Sprintf("the files have more than %d MiB", admin.MaxImport>>20))
}

// inFolder reports whether a path has a folder that says what the files in it are.
func inFolder(name string) bool {
	folders := strings.Split(path.Dir(path.Clean("/"+name)), "/")
	return slices.ContainsFunc(folders, func(f string) bool {
		return f == "plugins" || slices.Contains(catalogue.Kinds, catalogue.Kind(f))
	})
}

// part takes one part of the form.
func (u *upload) part(part *multipart.Part) error {
	const op = "console.import"
	text, err := io.ReadAll(io.LimitReader(part, int64(u.left)+1))
	if err != nil {
		return err
	}
	if len(text) > u.left {
		return tooMuch(op)
	}
	// The name of a file in a folder that was chosen is its path; Part.FileName would only return the last part.
	_, parameters, _ := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
	name := parameters["filename"]
	if name == "" {
		if part.FormName() != "files" && part.FormName() != "folder" && len(u.fields) < 100 {
			u.fields[part.FormName()] = string(text)
		}
		return nil
	}
	if path.Ext(name) == ".zip" {
		return u.unzip(text)
	}
	return u.add(name, text)
}

func (u *upload) add(name string, text []byte) error {
	if path.Ext(name) != ".json" {
		return nil // a folder may have all kinds of files
	}
	if len(u.files) >= maxImportFiles {
		return fault.New("console.import", fault.Invalid, fmt.Sprintf("there are more than %d files", maxImportFiles))
	}
	u.left -= len(text)
	u.files[name] = text
	return nil
}

// unzip adds the files of an archive. What it unpacks to is bounded as it is read, whatever the archive says of itself.
func (u *upload) unzip(packed []byte) error {
	const op = "console.import"
	u.left -= len(packed)
	archive, err := zip.NewReader(bytes.NewReader(packed), int64(len(packed)))
	if err != nil {
		return fault.Wrap(op, fault.Invalid, err).Say("the zip file cannot be read")
	}
	for i, file := range archive.File {
		if i >= maxImportFiles {
			return fault.New(op, fault.Invalid, fmt.Sprintf("the zip file has more than %d files", maxImportFiles))
		}
		if file.FileInfo().IsDir() || path.Ext(file.Name) != ".json" {
			continue
		}
		content, err := file.Open()
		if err != nil {
			return fault.Wrap(op, fault.Invalid, err).Say("the zip file cannot be read")
		}
		text, err := io.ReadAll(io.LimitReader(content, int64(max(0, u.left))+1))
		_ = content.Close() // it was only read
		if err != nil {
			return fault.Wrap(op, fault.Invalid, err).Say("the zip file cannot be read")
		}
		if len(text) > u.left {
			return tooMuch(op)
		}
		if err := u.add(file.Name, text); err != nil {
			return err
		}
	}
	return nil
}
