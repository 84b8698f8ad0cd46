package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access/audit"
	"ordain.dev/ordain/server/cluster/catalogue"
)

// Bounds of an import.
const (
	MaxImport      = 32 << 20 // bytes in all
	maxImportFiles = maxEntities
)

// Entry is an entity of an import.
type Entry struct {
	Kind catalogue.Kind
	From string // where it stands, for messages: a path, or "services[3]"
	Text []byte
}

// ReadFolder reads a folder of JSON files by their path, as services/base.json. Folders are called as the kinds are;
// in the folder plugins, files describe plug-ins with their types as Coopr's do. Other files are skipped.
func ReadFolder(files map[string][]byte) ([]Entry, error) {
	const op = "admin.ReadFolder"
	var out []Entry
	total := 0
	for _, file := range slices.Sorted(maps.Keys(files)) {
		text := files[file]
		if total += len(text); total > MaxImport {
			return nil, fault.New(op, fault.Invalid, fmt.Sprintf("the files have more than %d bytes", MaxImport))
		}
		if path.Ext(file) != ".json" {
			continue
		}
		folders := strings.Split(path.Clean("/"+file), "/")
		i := slices.IndexFunc(folders, func(f string) bool {
			return f == "plugins" || slices.Contains(catalogue.Kinds, catalogue.Kind(f))
		})
		if i < 0 || i == len(folders)-1 {
			continue
		}
		if folders[i] != "plugins" {
			out = append(out, Entry{catalogue.Kind(folders[i]), file, text})
			continue
		}
		if kind, is := singleType(files, text); is {
			out = append(out, Entry{kind, file, text})
			continue
		}
		types, err := catalogue.SplitPlugin(text)
		if err != nil {
			return nil, wrong(op, "the plug-in "+file+" cannot be read", err)
		}
		for _, kind := range catalogue.Kinds {
			for _, name := range slices.Sorted(maps.Keys(types[kind])) {
				out = append(out, Entry{kind, file + " " + name, types[kind][name]})
			}
		}
	}
	return bounded(op, out)
}

// singleType reports whether the file of a plug-in describes one type by itself, as some published catalogues have
// it, and of which kind that is: a provider type if a provider of the folder is of it, or if one with its name is
// built in.
func singleType(files map[string][]byte, text []byte) (catalogue.Kind, bool) {
	var file struct {
		Name           string          `json:"name"`
		Parameters     json.RawMessage `json:"parameters"`
		ProviderTypes  json.RawMessage `json:"providertypes"`
		AutomatorTypes json.RawMessage `json:"automatortypes"`
	}
	if json.Unmarshal(text, &file) != nil || file.Parameters == nil || file.ProviderTypes != nil ||
		file.AutomatorTypes != nil {
		return "", false
	}
	for _, t := range catalogue.BuiltIn() {
		if t.Name == file.Name {
			return t.Kind(), true
		}
	}
	for name, other := range files {
		var provider struct {
			Type string `json:"providertype"`
		}
		if path.Base(path.Dir("/"+name)) == string(catalogue.Providers) && json.Unmarshal(other, &provider) == nil &&
			provider.Type == file.Name {
			return catalogue.ProviderTypes, true
		}
	}
	return catalogue.AutomatorTypes, true
}

// ReadExport reads the JSON of Export, which is the one of Coopr: a list of entities for each kind.
func ReadExport(text []byte) ([]Entry, error) {
	const op = "admin.ReadExport"
	if len(text) > MaxImport {
		return nil, fault.New(op, fault.Invalid, fmt.Sprintf("it has %d bytes, and may have %d", len(text), MaxImport))
	}
	var kinds map[catalogue.Kind][]json.RawMessage
	if err := json.Unmarshal(text, &kinds); err != nil {
		return nil, fault.Wrap(op, fault.Invalid, err).
			Say(`an export is a JSON object with a list for each kind, as {"services": [{…}]}`)
	}
	var out []Entry
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		if !slices.Contains(catalogue.Kinds, kind) {
			return nil, fault.New(op, fault.Invalid, fmt.Sprintf("the catalogue has no %.40q", string(kind)))
		}
		for i, one := range kinds[kind] {
			out = append(out, Entry{kind, fmt.Sprintf("%s[%d]", kind, i), one})
		}
	}
	return bounded(op, out)
}

func bounded(op string, entries []Entry) ([]Entry, error) {
	switch {
	case len(entries) == 0:
		return nil, fault.New(op, fault.Invalid, "there is nothing to import").
			Hint("name folders as the kinds are, as services/base.json")
	case len(entries) > maxImportFiles:
		return nil, fault.New(op, fault.Invalid, fmt.Sprintf("there are %d entries, and may be %d", len(entries),
			maxImportFiles))
	}
	return entries, nil
}

// Imported says what an import did.
type Imported struct {
	Created, Replaced, Unchanged []catalogue.Ref
	Refused                      []Refused
}

// Refused is an entry that was not imported.
type Refused struct {
	From     string
	Ref      catalogue.Ref // without a name: it could not be read
	Problems []catalogue.Problem
}

// Import writes all entries, or none: the error has what is wrong with each. When partly is set, it writes what is
// right, and refuses the rest and what depends on that.
func (s *Service) Import(
	ctx context.Context, project intent.ProjectID, entries []Entry, partly bool,
) (Imported, error) {
	const op = "admin.Import"
	if _, err := bounded(op, entries); err != nil {
		return Imported{}, err
	}
	if err := s.note(ctx, project, "the catalogue"); err != nil {
		return Imported{}, err
	}
	unread, drafts, from := readEntries(entries)
	var done Imported
	err := s.write(ctx, op, project, func(now *snapshot) (*plan, error) {
		done = Imported{Refused: slices.Clone(unread)}
		rest := slices.Clone(drafts)
		for {
			p, err := s.plan(ctx, project, now, rest)
			if err != nil {
				return nil, err
			}
			for _, ref := range slices.SortedFunc(maps.Keys(p.wrong), compareRefs) {
				done.Refused = append(done.Refused, Refused{from[ref], ref, p.wrong[ref]})
			}
			if !partly && len(done.Refused) > 0 {
				return nil, refuse(op, done.Refused)
			}
			if len(p.wrong) > 0 {
				rest = slices.DeleteFunc(rest, func(d draft) bool { return len(p.wrong[d.Ref]) > 0 })
				continue
			}
			done.take(p)
			audit.Change(ctx, nil, map[string]int{
				"created": len(done.Created), "replaced": len(done.Replaced), "unchanged": len(done.Unchanged),
				"refused": len(done.Refused),
			})
			return p, nil
		}
	})
	if err != nil {
		return Imported{Refused: done.Refused}, err
	}
	return done, nil
}

// readEntries decodes entries, and returns those that cannot be read, the others, and where they stand.
func readEntries(entries []Entry) (unread []Refused, drafts []draft, from map[catalogue.Ref]string) {
	from = map[catalogue.Ref]string{}
	for _, e := range entries {
		d, err := decodeDraft(e.Kind, e.Text)
		if err != nil {
			unread = append(unread, Refused{e.From, catalogue.Ref{Kind: e.Kind}, catalogue.Problems(err)})
			continue
		}
		if first, twice := from[d.Ref]; twice {
			unread = append(unread, Refused{e.From, d.Ref, []catalogue.Problem{
				{Field: "name", Text: fmt.Sprintf("%s is in the import twice, at first in %s", d.Ref, first)},
			}})
			continue
		}
		from[d.Ref] = e.From
		drafts = append(drafts, d)
	}
	slices.SortStableFunc(drafts, func(a, b draft) int { return compareRefs(a.Ref, b.Ref) })
	return unread, drafts, from
}

// take sorts the drafts of a plan by what they do, and takes those out of it that change nothing.
func (i *Imported) take(p *plan) {
	var rows []int
	for n, d := range p.drafts {
		_, there := p.now.in(p.project)[d.Ref]
		switch {
		case p.same[d.Ref]:
			i.Unchanged = append(i.Unchanged, d.Ref)
			continue
		case there:
			i.Replaced = append(i.Replaced, d.Ref)
		default:
			i.Created = append(i.Created, d.Ref)
		}
		rows = append(rows, n)
	}
	kept := p.rows[:0]
	for _, n := range rows {
		kept = append(kept, p.rows[n])
	}
	p.rows = kept
}

// refuse makes the error of an import.
func refuse(op string, refused []Refused) error {
	var all []catalogue.Problem
	for _, r := range refused {
		for _, p := range r.Problems {
			all = append(all, catalogue.Problem{Field: strings.TrimSuffix(r.From+" "+p.Field, " "), Text: p.Text})
		}
	}
	return wrong(op, "nothing was imported", &catalogue.Invalid{Problems: all})
}

// Export returns what a project has of its own, or with a zero project what is shared, as JSON that Import reads.
// Secrets are not in it: the marker stands for them.
func (s *Service) Export(ctx context.Context, project intent.ProjectID) ([]byte, error) {
	now, err := s.snapshot(ctx, "admin.Export", project)
	if err != nil {
		return nil, err
	}
	out := map[catalogue.Kind][]json.RawMessage{}
	for _, kind := range catalogue.Kinds {
		out[kind] = []json.RawMessage{}
	}
	mine := now.in(project)
	for _, ref := range slices.SortedFunc(maps.Keys(mine), compareRefs) {
		item, err := now.item(mine[ref].ClusterEntity)
		if err != nil {
			return nil, err
		}
		out[ref.Kind] = append(out[ref.Kind], item.Content)
	}
	return json.Marshal(out)
}
