package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/cluster/manifest"
)

// Concerned reports whether a folder of a project has cluster files, or the environment has clusters.
func (s *Service) Concerned(ctx context.Context, e intent.Environment, folder fs.FS) (bool, error) {
	_, err := fs.Stat(folder, manifest.Folder)
	if err == nil {
		return true, nil
	}
	known, err := s.c.Store.Clusters(ctx, e.ID, false)
	return len(known) > 0, err
}

// Read reads the cluster files of a commit, checks and solves them, and returns the manifests by name, as JSON; nil:
// there are none, and the environment has no clusters. out is told what was found. The error names every file that is
// wrong.
//
// A file whose nodes follow from the rest is taken as it is. Else its nodes are solved again, from those that stand
// in it: a person who edits the size by hand gets what "ordain cluster amend" would have committed.
func (s *Service) Read(
	ctx context.Context, e intent.Environment, folder fs.FS, out func(line string),
) (json.RawMessage, error) {
	files, err := fs.ReadDir(folder, manifest.Folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Wrap("cluster.Read", fault.Unavailable, err)
	}
	known, err := s.c.Store.Clusters(ctx, e.ID, false)
	if err != nil || len(files) == 0 && len(known) == 0 {
		return nil, err
	}
	r := reader{Service: s, e: e, folder: folder, out: out, known: map[string]intent.Cluster{}}
	for _, c := range known {
		r.known[c.Name] = c
	}
	found := map[string]json.RawMessage{}
	for _, f := range files {
		name := manifest.NameOf(f.Name())
		if name == "" || !f.Type().IsRegular() {
			continue
		}
		if len(found) >= manifest.MaxFiles {
			return nil, invalid("%s has more than %d clusters", manifest.Folder, manifest.MaxFiles)
		}
		m, err := r.file(ctx, name)
		if err != nil {
			if fault.Is(err, fault.Unavailable) || ctx.Err() != nil {
				return nil, err
			}
			r.wrong = append(r.wrong, manifest.PathOf(name)+": "+err.Error())
			continue
		}
		if found[name], err = encodeManifest(m); err != nil {
			return nil, fault.Wrap("cluster.Read", fault.Internal, err)
		}
	}
	if len(r.wrong) > 0 {
		return nil, fault.New("cluster.Read", fault.Invalid, strings.Join(r.wrong, "\n")).
			Hint("mend the files; the clusters stay as they are")
	}
	for _, name := range slices.Sorted(maps.Keys(r.known)) {
		if found[name] == nil {
			out(manifest.PathOf(name) + ": gone; the cluster is to be deleted\n")
		}
	}
	return json.Marshal(found)
}

// reader reads the files of one commit.
type reader struct {
	*Service
	e      intent.Environment
	folder fs.FS
	out    func(string)
	known  map[string]intent.Cluster
	wrong  []string
}

// maxRead is one byte more than a file may have, so that a longer one is noticed.
const maxRead = manifest.MaxFile + 1

func (r *reader) file(ctx context.Context, name string) (*manifest.Manifest, error) {
	text, err := readBounded(r.folder, path.Join(manifest.Folder, name+".yaml"))
	if err != nil {
		return nil, err
	}
	m, err := manifest.Read(name, text)
	if err != nil {
		return nil, err
	}
	c := r.known[name]
	if len(m.Catalogue) == 0 {
		// Without versions of its own, it keeps those that the cluster has.
		if before, err := decodeManifest(c.Wanted); err == nil && before != nil && before.Template == m.Template {
			m.Catalogue = before.Catalogue
		}
	}
	d, err := Define(ctx, r.c.Catalogues, r.e.ProjectID, m)
	if err != nil {
		return nil, err
	}
	kept, err := r.c.Store.ClusterSecrets(ctx, r.e.ID, name)
	if err != nil {
		return nil, err
	}
	if err := d.checkFields(slices.Collect(maps.Keys(kept))); err != nil {
		return nil, err
	}
	if err := r.checkLease(d, c); err != nil {
		return nil, err
	}
	before := len(m.Nodes)
	if wrong := d.wrong(); len(wrong) > 0 {
		if err := d.solve(ctx); err != nil {
			return nil, err
		}
		r.out(fmt.Sprintf("%s: %d nodes, solved again from the %d in the file, since %s\n", manifest.PathOf(name),
			len(m.Nodes), before, wrong[0]))
	} else {
		r.out(fmt.Sprintf("%s: %d nodes\n", manifest.PathOf(name), before))
	}
	d.pin()
	return m, nil
}

// checkLease refuses a lease that the template does not allow.
func (r *reader) checkLease(d *Definition, c intent.Cluster) error {
	if c.ID == uuid.Nil && d.Manifest.Expires != nil && d.Manifest.Expires.Before(r.c.Now()) {
		return invalid("expires is %s, which is in the past", stamp(*d.Manifest.Expires))
	}
	most := d.Template.Administration.Lease.Max
	if most == 0 || d.Manifest.Expires == nil {
		return nil
	}
	made := c.Made
	if made.IsZero() {
		made = r.c.Now()
	}
	if end := made.Add(time.Duration(most)); d.Manifest.Expires.After(end) {
		return invalid("expires is %s, and the template allows %s at most", stamp(*d.Manifest.Expires), stamp(end))
	}
	return nil
}

func readBounded(folder fs.FS, name string) ([]byte, error) {
	f, err := folder.Open(name)
	if err != nil {
		return nil, fault.Wrap("cluster.Read", fault.Unavailable, err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxRead))
	if err != nil {
		return nil, fault.Wrap("cluster.Read", fault.Unavailable, err)
	}
	return text, nil
}
