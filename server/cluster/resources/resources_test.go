package resources_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"ordain.dev/ordain/internal/bus"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/secret"
	"ordain.dev/ordain/internal/service"
	"ordain.dev/ordain/internal/service/servicetest"
	"ordain.dev/ordain/internal/testing/moto"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/cluster/catalogue"
	"ordain.dev/ordain/server/cluster/resources"
	"ordain.dev/ordain/server/cluster/resources/blob"
	"ordain.dev/ordain/server/cluster/task"
	"ordain.dev/ordain/server/store"
	"ordain.dev/ordain/server/store/storetest"
)

// offer is the same catalogue for everybody: the built-in plug-ins, and chef-solo.
type offer struct{ all *catalogue.Catalogue }

func (o offer) Catalogue(context.Context, intent.ProjectID) (*catalogue.Catalogue, error) {
	return o.all, nil
}

// world is a service with its parts.
type world struct {
	*resources.Service
	t     *testing.T
	store *store.Store
	blobs blob.Store
	acme  intent.ProjectID
	other intent.ProjectID
}

var shared = intent.ProjectID{}

func newWorld(t *testing.T, blobs blob.Store, change func(*resources.Config)) *world {
	t.Helper()
	var entities []catalogue.Entity
	for kind, types := range catalogue.Optional() {
		for _, text := range types {
			e, err := catalogue.Decode(kind, text)
			if err != nil {
				t.Fatal(err)
			}
			entities = append(entities, e)
		}
	}
	s := storetest.Open(t)
	c := resources.Config{
		Store: s, Catalogues: offer{catalogue.New(entities...)}, Blobs: blobs, Bus: &bus.Bus{},
		Logger: storetest.Logger(t),
	}
	if change != nil {
		change(&c)
	}
	made, err := resources.New(c)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{Service: made, t: t, store: s, blobs: c.Blobs, acme: uuid.New(), other: uuid.New()}
	for id, name := range map[intent.ProjectID]string{w.acme: "acme", w.other: "other"} {
		if err := s.CreateProject(t.Context(), intent.Project{ID: id, Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func folder(t *testing.T) blob.Store {
	t.Helper()
	key, err := secret.OpenKey(filepath.Join(t.TempDir(), "key"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := blob.NewFolder(filepath.Join(t.TempDir(), "resources"), key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func s3(t *testing.T) blob.Store {
	t.Helper()
	service := moto.Start(t)
	client, err := minio.New(strings.TrimPrefix(service, "http://"), &minio.Options{
		Creds: credentials.NewStaticV4("admin", "admin", ""), Region: "us-east-1",
	})
	if err == nil {
		err = client.MakeBucket(t.Context(), "resources", minio.MakeBucketOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	key, err := secret.OpenKey(filepath.Join(t.TempDir(), "key"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := blob.NewS3(blob.S3Config{
		Endpoint: service, Bucket: "resources", Region: "us-east-1", AccessKey: "a", SecretKey: "s", Key: key,
		Spool: t.TempDir(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// script is a name of a script for the shell.
func script(project intent.ProjectID, name string) intent.ClusterResourceRef {
	return intent.ClusterResourceRef{
		Project: project, Kind: "automatortypes", Plugin: "shell", Type: "scripts", Name: name,
	}
}

// key is a name of a private key for a pool.
func key(project intent.ProjectID, name string) intent.ClusterResourceRef {
	return intent.ClusterResourceRef{
		Project: project, Kind: "providertypes", Plugin: "pool", Type: "ssh_keys", Name: name,
	}
}

// cookbooks is a name of an archive for Chef.
func cookbooks(name string) intent.ClusterResourceRef {
	return intent.ClusterResourceRef{Kind: "automatortypes", Plugin: "chef-solo", Type: "cookbooks", Name: name}
}

func (w *world) upload(ref intent.ClusterResourceRef, content string) intent.ClusterResource {
	w.t.Helper()
	r, err := w.Upload(w.t.Context(), ref, strings.NewReader(content))
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func (w *world) stage(r intent.ClusterResource) {
	w.t.Helper()
	if _, err := w.Stage(w.t.Context(), r.ClusterResourceRef); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) recall(r intent.ClusterResource) {
	w.t.Helper()
	if _, err := w.Recall(w.t.Context(), r.ClusterResourceRef); err != nil {
		w.t.Fatal(err)
	}
}

// sync returns what changed, as "+name 2" and "-name 1".
func (w *world) sync(project intent.ProjectID) string {
	w.t.Helper()
	c, err := w.Sync(w.t.Context(), project)
	if err != nil {
		w.t.Fatal(err)
	}
	var out []string
	for _, r := range c.Activated {
		out = append(out, fmt.Sprintf("+%s %d %s", r.Name, r.Version, r.Status()))
	}
	for _, r := range c.Retired {
		out = append(out, fmt.Sprintf("-%s %d %s", r.Name, r.Version, r.Status()))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// active uploads, stages and syncs.
func (w *world) active(ref intent.ClusterResourceRef, content string) intent.ClusterResource {
	w.t.Helper()
	r := w.upload(ref, content)
	w.stage(r)
	w.sync(ref.Project)
	return r
}

// statuses lists the versions of a name.
func (w *world) statuses(ref intent.ClusterResourceRef) string {
	w.t.Helper()
	all, err := w.List(w.t.Context(), ref.Project, store.ClusterResourceFilter{
		Kind: ref.Kind, Plugin: ref.Plugin, Type: ref.Type, Name: ref.Name,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	var out []string
	for _, r := range all {
		out = append(out, fmt.Sprintf("%d %s", r.Version, r.Status()))
	}
	return strings.Join(out, ", ")
}

func (w *world) expect(ref intent.ClusterResourceRef, want string) {
	w.t.Helper()
	if got := w.statuses(ref); got != want {
		w.t.Fatalf("%s: %s\nwant %s", ref.Name, got, want)
	}
}

// contents lists the hashes that the blob store has.
func (w *world) contents() (out []string) {
	w.t.Helper()
	err := w.blobs.List(w.t.Context(), func(i blob.Info) error { out = append(out, i.Hash); return nil })
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

// served returns what a provisioner of a project gets for a hash.
func (w *world) served(project intent.ProjectID, hash string) (string, error) {
	w.t.Helper()
	r, size, err := w.OpenHash(w.t.Context(), project, hash)
	if err != nil {
		return "", err
	}
	defer r.Close()
	content, err := io.ReadAll(r)
	if err == nil && int64(len(content)) != size {
		w.t.Errorf("%d bytes of %d", len(content), size)
	}
	return string(content), err
}

// A script is uploaded, tried, replaced and deleted; plug-ins get what the last sync said, and only that. It is the
// same for both stores of contents.
func TestLife(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T) blob.Store{"folder": folder, "S3": s3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, open(t), nil)
			ref := script(w.acme, "setup.sh")
			ctx := access.With(t.Context(), access.Principal{Kind: access.Person, Name: "noor"})
			first, err := w.Upload(ctx, ref, strings.NewReader("echo one"))
			if err != nil || first.Version != 1 || first.Size != 8 || first.MadeBy != "noor" || first.Made.IsZero() {
				t.Fatalf("%+v, %v", first, err)
			}
			w.expect(ref, "1 inactive")
			if _, err := w.served(w.acme, first.Hash); !fault.Is(err, fault.NotFound) {
				t.Fatal(err)
			}
			w.stage(first)
			w.stage(first)
			w.expect(ref, "1 staged")
			w.recall(first)
			w.expect(ref, "1 inactive")
			if got := w.sync(w.acme); got != "" {
				t.Fatal(got)
			}
			w.stage(first)
			if got := w.sync(w.acme); got != "+setup.sh 1 active" {
				t.Fatal(got)
			}
			if got, err := w.served(w.acme, first.Hash); got != "echo one" {
				t.Fatal(got, err)
			}

			second := w.upload(ref, "echo two")
			w.stage(second)
			w.expect(ref, "2 staged, 1 recalled")
			active, err := w.Active(t.Context(), w.acme, ref.Kind, ref.Plugin)
			want := []task.Resource{{
				Kind: "automatortypes", Plugin: "shell", Type: "scripts", Name: "setup.sh", Version: 1, Format: "file",
				Hash: first.Hash, Size: 8,
			}}
			if err != nil || !slices.Equal(active, want) {
				t.Fatalf("%+v, %v", active, err)
			}
			third := w.upload(ref, "echo three")
			w.stage(third) // in place of the second
			w.expect(ref, "3 staged, 2 inactive, 1 recalled")
			w.stage(first) // as if nothing had been
			w.expect(ref, "3 inactive, 2 inactive, 1 active")
			w.stage(second)
			if got := w.sync(w.acme); got != "+setup.sh 2 active, -setup.sh 1 inactive" {
				t.Fatal(got)
			}
			if _, err := w.served(w.acme, first.Hash); !fault.Is(err, fault.NotFound) {
				t.Fatal(err)
			}

			if err := w.Delete(t.Context(), second.ClusterResourceRef); !fault.Is(err, fault.Conflict) {
				t.Fatal(err)
			}
			w.recall(second)
			if err := w.Delete(t.Context(), second.ClusterResourceRef); !fault.Is(err, fault.Conflict) {
				t.Fatal(err)
			}
			if got := w.sync(w.acme); got != "-setup.sh 2 inactive" {
				t.Fatal(got)
			}
			for _, r := range []intent.ClusterResource{third, second} {
				if err := w.Delete(t.Context(), r.ClusterResourceRef); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Delete(t.Context(), third.ClusterResourceRef); !fault.Is(err, fault.NotFound) {
				t.Fatal(err)
			}
			if got := w.contents(); !slices.Equal(got, []string{first.Hash}) {
				t.Fatal(got)
			}
			// People look at what they do not stage by chance: the number 3 does not come back.
			if fourth := w.upload(ref, "echo four"); fourth.Version != 4 {
				t.Fatal(fourth.Version)
			}
			r, content, err := w.Open(t.Context(), first.ClusterResourceRef)
			if err != nil {
				t.Fatal(err)
			}
			defer content.Close()
			if text, err := io.ReadAll(content); string(text) != "echo one" || r.Status() != intent.ResourceInactive {
				t.Fatal(string(text), r, err)
			}
		})
	}
}

// What a project has hides what is shared, for this project only. A provisioner of another project gets nothing of it,
// even if it knows the hash.
func TestProjectsDoNotSeeEachOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t, folder(t), nil)
	common := w.active(key(shared, "id"), "common key")
	own := w.active(key(w.acme, "id"), "key of acme")
	more := w.active(key(shared, "more"), "another key")
	find := func(project intent.ProjectID) (out []string) {
		all, err := w.Active(t.Context(), project, "providertypes", "pool")
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range all {
			if r.Permissions != "0400" || r.Format != "file" {
				t.Errorf("%+v", r)
			}
			out = append(out, r.Hash)
		}
		return out
	}
	if got := find(w.acme); !slices.Equal(got, []string{own.Hash, more.Hash}) {
		t.Error(got)
	}
	for _, project := range []intent.ProjectID{w.other, shared} {
		if got := find(project); !slices.Equal(got, []string{common.Hash, more.Hash}) {
			t.Error(got)
		}
	}
	for _, project := range []intent.ProjectID{w.other, shared} {
		if got, err := w.served(project, own.Hash); !fault.Is(err, fault.NotFound) {
			t.Errorf("another project got %q, %v", got, err)
		}
		if got, err := w.served(project, common.Hash); got != "common key" {
			t.Errorf("%q, %v", got, err)
		}
	}
	// The same content in both: it is served because of the project's own record, and no longer than that is active.
	copied := w.active(key(w.other, "mine"), "key of acme")
	if got, err := w.served(w.other, own.Hash); got != "key of acme" {
		t.Fatal(got, err)
	}
	w.recall(copied)
	w.sync(w.other)
	if err := w.Delete(t.Context(), copied.ClusterResourceRef); err != nil {
		t.Fatal(err)
	}
	if _, err := w.served(w.other, own.Hash); !fault.Is(err, fault.NotFound) {
		t.Fatal(err)
	}
	if got, err := w.served(w.acme, own.Hash); got != "key of acme" {
		t.Fatal("the content went with another project's version of it:", got, err)
	}
	if _, err := w.Get(t.Context(), func() intent.ClusterResourceRef {
		ref := own.ClusterResourceRef
		ref.Project = w.other
		return ref
	}()); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	all, err := w.List(t.Context(), w.acme, store.ClusterResourceFilter{Shared: true, Status: intent.ResourceActive})
	if err != nil || len(all) != 3 || all[0].Hash != own.Hash || all[1].Hash != common.Hash {
		t.Errorf("%+v, %v", all, err)
	}
	_, err = w.List(t.Context(), w.acme, store.ClusterResourceFilter{Status: "lively"})
	if !fault.Is(err, fault.Invalid) {
		t.Error(err)
	}
	for _, hash := range []string{"", "..", "../../etc/passwd", strings.ToUpper(own.Hash)} {
		if _, err := w.served(w.acme, hash); !fault.Is(err, fault.Invalid) {
			t.Errorf("%q: %v", hash, err)
		}
	}
}

// Several people upload one name at once: each gets a number of their own, and none is left out.
func TestUploadsOfOneName(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T) blob.Store{"folder": folder, "S3": s3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, open(t), nil)
			var (
				all sync.WaitGroup
				mu  sync.Mutex
				got = map[int]string{}
			)
			for i := range 12 {
				all.Go(func() {
					content := fmt.Sprintf("key %d", i/2) // each content twice
					r, err := w.Upload(t.Context(), key(shared, "id"), strings.NewReader(content))
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					defer mu.Unlock()
					got[r.Version] = content
				})
			}
			all.Wait()
			for version := 1; version <= 12; version++ {
				ref := key(shared, "id")
				ref.Version = version
				_, content, err := w.Open(t.Context(), ref)
				if err != nil {
					t.Fatal(err)
				}
				text, err := io.ReadAll(content)
				_ = content.Close()
				if err != nil || string(text) != got[version] || got[version] == "" {
					t.Errorf("version %d: %q, %v; want %q", version, text, err, got[version])
				}
			}
		})
	}
}

// While people upload and stage new versions of two files that belong together, and others sync, plug-ins get at every
// moment a whole version of each, and a sync takes a name over in one step.
func TestSyncWhileUploading(t *testing.T) {
	t.Parallel()
	w := newWorld(t, folder(t), nil)
	w.active(script(w.acme, "a.sh"), "a 0")
	w.active(script(w.acme, "b.sh"), "b 0")
	ctx, stop := context.WithCancel(t.Context())
	var others sync.WaitGroup
	for range 2 {
		others.Go(func() {
			for ctx.Err() == nil {
				if _, err := w.Sync(t.Context(), w.acme); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	others.Go(func() {
		for ctx.Err() == nil {
			all, err := w.Active(t.Context(), w.acme, "automatortypes", "shell")
			if err != nil || len(all) != 2 || all[0].Name != "a.sh" || all[1].Name != "b.sh" {
				t.Errorf("%+v, %v", all, err)
				return
			}
		}
	})
	var uploads sync.WaitGroup
	for _, name := range []string{"a.sh", "b.sh"} {
		uploads.Go(func() {
			for i := range 15 {
				r, err := w.Upload(t.Context(), script(w.acme, name), strings.NewReader(fmt.Sprint(name, i)))
				if err == nil {
					_, err = w.Stage(t.Context(), r.ClusterResourceRef)
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	uploads.Wait()
	stop()
	others.Wait()
	w.sync(w.acme)
	all, err := w.List(t.Context(), w.acme, store.ClusterResourceFilter{Status: intent.ResourceActive})
	if err != nil || len(all) != 2 || all[0].Version != 16 || all[1].Version != 16 {
		t.Fatalf("%+v, %v", all, err)
	}
}

// One sync changes everything that is staged and recalled, and what it changes no reader sees by halves.
func TestSyncIsOneMoment(t *testing.T) {
	t.Parallel()
	w := newWorld(t, folder(t), nil)
	const files = 20
	for round := range 2 {
		for i := range files {
			w.stage(w.upload(script(w.acme, fmt.Sprintf("%02d.sh", i)), fmt.Sprint(i, round)))
		}
		if round == 0 {
			w.sync(w.acme)
		}
	}
	done, seen := make(chan struct{}), map[int]bool{}
	go func() {
		defer close(done)
		for !seen[2] {
			all, err := w.Active(t.Context(), w.acme, "automatortypes", "shell")
			if err != nil || len(all) != files {
				t.Errorf("%d files, %v", len(all), err)
				return
			}
			for _, r := range all {
				if r.Version != all[0].Version {
					t.Errorf("version %d of %s beside version %d", r.Version, r.Name, all[0].Version)
					return
				}
			}
			seen[all[0].Version] = true
		}
	}()
	if got := strings.Count(w.sync(w.acme), "+"); got != files {
		t.Error(got)
	}
	<-done
}

// A file may be as large as the limit and not a byte more, whatever the sender says; empty ones are a mistake. Nothing
// is kept of what is refused.
func TestSizes(t *testing.T) {
	t.Parallel()
	const limit = 1<<20 + 10
	w := newWorld(t, folder(t), func(c *resources.Config) { c.MaxSize, c.MaxTotal = limit, 2*limit })
	refused := func(r io.Reader, kind fault.Kind, words ...string) {
		t.Helper()
		_, err := w.Upload(t.Context(), script(w.acme, "x"), r)
		if !fault.Is(err, kind) {
			t.Fatal(err)
		}
		for _, word := range words {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%v lacks %q", err, word)
			}
		}
	}
	refused(&endless{}, fault.Invalid, "larger than 1048586 bytes", "max-resource-size")
	refused(io.LimitReader(&endless{}, limit+1), fault.Invalid)
	refused(strings.NewReader(""), fault.Invalid, "empty")
	if got := w.contents(); len(got) != 0 {
		t.Fatal(got)
	}
	for i := range 2 {
		content := io.MultiReader(strings.NewReader(fmt.Sprint(i)), io.LimitReader(&endless{}, limit-1))
		if r, err := w.Upload(t.Context(), script(w.acme, "x"), content); err != nil || r.Size != limit {
			t.Fatal(r, err)
		}
	}
	unread := &endless{}
	refused(unread, fault.Conflict, "together", "max-resource-total")
	if unread.read {
		t.Error("all of it was sent before it was refused")
	}
	if _, err := w.Upload(t.Context(), script(w.other, "x"), strings.NewReader("x")); err != nil {
		t.Fatal("the other project has room:", err)
	}
	few := newWorld(t, folder(t), func(c *resources.Config) { c.MaxVersions = 1 })
	few.upload(script(few.acme, "x"), "1")
	_, err := few.Upload(t.Context(), script(few.acme, "y"), strings.NewReader("2"))
	if !fault.Is(err, fault.Conflict) {
		t.Fatal(err)
	}
}

// endless returns zeros for ever.
type endless struct{ read bool }

func (e *endless) Read(p []byte) (int, error) {
	e.read = true
	clear(p)
	return len(p), nil
}

// Two uploads at once do not exceed the total together.
func TestTotalOfUploadsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, folder(t), func(c *resources.Config) { c.MaxTotal = 1000 })
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			_, err := w.Upload(t.Context(), script(w.acme, "x"), strings.NewReader(strings.Repeat(fmt.Sprint(i), 400)))
			if err != nil && !fault.Is(err, fault.Conflict) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	use, err := w.store.ClusterResourceUse(t.Context(), w.acme)
	if err != nil || use.Bytes != 800 || use.Versions != 2 {
		t.Fatal(use, err)
	}
}

func archiveOf(t *testing.T, files ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, name := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: 3}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte("abc")); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Archives are checked while they are read: their top folder has the name of the resource, and nothing leaves it.
func TestArchives(t *testing.T) {
	t.Parallel()
	w := newWorld(t, folder(t), func(c *resources.Config) { c.MaxSize = 8 << 20 })
	good := archiveOf(t, "mysql/recipes/default.rb", "mysql/metadata.rb")
	many := make([]string, 20_001)
	for i := range many {
		many[i] = fmt.Sprint("mysql/", i)
	}
	for name, content := range map[string][]byte{
		"no archive": []byte("echo hello"), "another top folder": archiveOf(t, "apache/metadata.rb"),
		"leaves it": archiveOf(t, "mysql/../../etc/cron.d/x"), "cut": good[:len(good)/2-100],
		"garbage at first": append([]byte("x"), good...), "too many": archiveOf(t, many...),
		"only zeros":            make([]byte, 1<<20),
		"larger than the limit": append(bytes.Clone(good), make([]byte, 8<<20)...),
	} {
		_, err := w.Upload(t.Context(), cookbooks("mysql"), bytes.NewReader(content))
		if !fault.Is(err, fault.Invalid) || fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	stop := errors.New("the connection broke")
	broken := io.MultiReader(bytes.NewReader(good[:600]), &failing{stop})
	if _, err := w.Upload(t.Context(), cookbooks("mysql"), broken); !errors.Is(err, stop) {
		t.Error(err)
	}
	if got := w.contents(); len(got) != 0 {
		t.Fatal(got)
	}
	r, err := w.Upload(t.Context(), cookbooks("mysql"), bytes.NewReader(good))
	if err != nil {
		t.Fatal(err)
	}
	w.stage(r)
	w.sync(shared)
	if got, err := w.served(w.acme, r.Hash); got != string(good) {
		t.Error(len(got), err)
	}
}

type failing struct{ err error }

func (f *failing) Read([]byte) (int, error) { return 0, f.err }

// What no plug-in declares is refused, with what there is instead.
func TestUnknown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, folder(t), nil)
	of := func(kind, plugin, resource string) intent.ClusterResourceRef {
		return intent.ClusterResourceRef{Kind: kind, Plugin: plugin, Type: resource, Name: "x"}
	}
	for _, c := range []struct {
		ref   intent.ClusterResourceRef
		kind  fault.Kind
		words string
	}{
		{of("services", "shell", "scripts"), fault.NotFound, "services"},
		{of("providertypes", "shell", "scripts"), fault.NotFound, "pool"},
		{of("automatortypes", "shell", "keys"), fault.NotFound, "scripts"},
		{script(uuid.New(), "x"), fault.NotFound, "project"},
		{script(shared, ""), fault.Invalid, "missing"},
		{script(shared, ".."), fault.Invalid, "name"},
		{script(shared, "../../etc/passwd"), fault.Invalid, "name"},
		{script(shared, "a/b"), fault.Invalid, "name"},
		{script(shared, "a\x00b"), fault.Invalid, "name"},
		{script(shared, "a\nb"), fault.Invalid, "name"},
		{script(shared, "Größe"), fault.Invalid, "name"},
		{script(shared, "a b; rm -rf"), fault.Invalid, "name"},
		{script(shared, strings.Repeat("x", 10_000)), fault.Invalid, "name"},
		{of("automatortypes", "../shell", "scripts"), fault.Invalid, "name"},
		{of("automatortypes", "shell", "'"), fault.Invalid, "name"},
	} {
		_, err := w.Upload(t.Context(), c.ref, strings.NewReader("x"))
		if !fault.Is(err, c.kind) || !strings.Contains(err.Error(), c.words) || len(err.Error()) > 500 {
			t.Errorf("%.100q: %v", fmt.Sprint(c.ref), err)
		}
	}
	if got := w.contents(); len(got) != 0 {
		t.Error(got)
	}
	if all, err := w.Active(t.Context(), w.acme, "automatortypes", "unknown"); err != nil || len(all) != 0 {
		t.Error(all, err)
	}
	nothing := script(shared, "x")
	nothing.Version = 1
	for _, f := range []func(context.Context, intent.ClusterResourceRef) (intent.ClusterResource, error){
		w.Stage, w.Recall, w.Get,
	} {
		if _, err := f(t.Context(), nothing); !fault.Is(err, fault.NotFound) {
			t.Error(err)
		}
	}
}

// A content goes with its last version, and contents that nobody recorded go once they are old. What a version has, and
// what is young, stays.
func TestTidy(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T) blob.Store{"folder": folder, "S3": s3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			now := time.Now()
			w := newWorld(t, open(t), func(c *resources.Config) {
				c.Now = func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
			})
			one := w.upload(script(w.acme, "a"), "same")
			two := w.upload(script(w.acme, "b"), "same")
			if err := w.Delete(t.Context(), one.ClusterResourceRef); err != nil {
				t.Fatal(err)
			}
			if len(w.contents()) != 1 {
				t.Fatal("the content went with the first of two versions")
			}
			if err := w.Delete(t.Context(), two.ClusterResourceRef); err != nil {
				t.Fatal(err)
			}
			if got := w.contents(); len(got) != 0 {
				t.Fatal(got)
			}

			kept := w.upload(script(w.acme, "a"), "kept")
			w.upload(script(w.other, "a"), "of a project that goes")
			if _, _, err := w.blobs.Put(t.Context(), strings.NewReader("not recorded")); err != nil {
				t.Fatal(err)
			}
			if err := w.store.DeleteProject(t.Context(), w.other); err != nil {
				t.Fatal(err)
			}
			if n, err := w.Tidy(t.Context()); err != nil || n != 0 {
				t.Fatal("young contents were deleted:", n, err)
			}
			mu.Lock()
			now = now.Add(2 * time.Hour)
			mu.Unlock()
			if n, err := w.Tidy(t.Context()); err != nil || n != 2 {
				t.Fatal(n, err)
			}
			if got := w.contents(); !slices.Equal(got, []string{kept.Hash}) {
				t.Fatal(got)
			}
		})
	}
}

// meddling is a store where something happens after each Put.
type meddling struct {
	blob.Store
	after func(hash string)
}

func (m *meddling) Put(ctx context.Context, r io.Reader) (string, int64, error) {
	hash, size, err := m.Store.Put(ctx, r)
	if err == nil {
		m.after(hash)
	}
	return hash, size, err
}

// The last version with a content is deleted while the same content is uploaded again. The upload fails, rather than
// leave a version without content; the next one works.
func TestDeletedWhileUploading(t *testing.T) {
	t.Parallel()
	store := &meddling{Store: folder(t), after: func(string) {}}
	w := newWorld(t, store, nil)
	first := w.upload(script(w.acme, "x"), "the same")
	store.after = func(string) {
		if err := w.Delete(t.Context(), first.ClusterResourceRef); err != nil {
			t.Error(err)
		}
	}
	_, err := w.Upload(t.Context(), script(w.acme, "x"), strings.NewReader("the same"))
	if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "upload it again") {
		t.Fatal(err)
	}
	w.expect(script(w.acme, "x"), "")
	store.after = func(string) {}
	w.upload(script(w.acme, "x"), "the same")
	w.expect(script(w.acme, "x"), "2 inactive")
}

// A version whose content was lost cannot be staged, and says why.
func TestLostContent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, folder(t), nil)
	r := w.upload(script(w.acme, "x"), "x")
	if err := w.blobs.Delete(t.Context(), r.Hash); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Stage(t.Context(), r.ClusterResourceRef); !fault.Is(err, fault.NotFound) {
		t.Fatal(err)
	}
	w.expect(script(w.acme, "x"), "1 inactive")
}

// Changes are told to pages that are open.
func TestEvents(t *testing.T) {
	t.Parallel()
	events := &bus.Bus{}
	w := newWorld(t, folder(t), func(c *resources.Config) { c.Bus = events })
	told := events.Subscribe(func(e bus.Event) bool { return e.Topic == bus.Cluster })
	defer told.Close()
	for _, act := range []func(){
		func() { w.upload(script(w.acme, "x"), "x") },
		func() { w.sync(w.acme) }, // nothing
		func() {
			ref := script(w.acme, "x")
			ref.Version = 1
			if err := w.Delete(t.Context(), ref); err != nil {
				t.Error(err)
			}
		},
	} {
		act()
	}
	if n := len(told.Events()); n != 2 {
		t.Errorf("%d events", n)
	}
}

func TestService(t *testing.T) {
	t.Parallel()
	servicetest.Test(t, func(t *testing.T) service.Service {
		return newWorld(t, folder(t), nil).Service
	})
}
