package blob_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/secret"
	"ordain.dev/ordain/internal/testing/moto"
	"ordain.dev/ordain/server/cluster/resources/blob"
)

func newKey(t testing.TB) *secret.Key {
	t.Helper()
	key, err := secret.OpenKey(filepath.Join(t.TempDir(), "key"))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// place is where contents lie, as somebody sees it who has no key.
type place interface {
	names() []string
	read(name string) []byte
	write(name string, content []byte)
}

// suite holds a store to the contract of blob.Store.
func suite(t *testing.T, open func(t *testing.T, key *secret.Key) (blob.Store, place)) {
	t.Run("sizes", func(t *testing.T) {
		s, _ := open(t, newKey(t))
		for _, size := range []int{0, 1, 1<<20 - 1, 1 << 20, 1<<20 + 1, 3<<20 + 77} {
			content := random(size)
			hash, got, err := s.Put(t.Context(), bytes.NewReader(content))
			if err != nil || got != int64(size) || hash != hashOf(content) {
				t.Fatalf("%d: %s, %d, %v", size, hash, got, err)
			}
			read, err := readAll(t, s, hash)
			if err != nil || !bytes.Equal(read, content) {
				t.Fatalf("%d bytes were read of %d, %v", len(read), size, err)
			}
			info, err := s.Stat(t.Context(), hash)
			old := time.Since(info.Modified).Abs() > 10*time.Minute
			if err != nil || info.Hash != hash || info.Stored < got || old {
				t.Fatalf("%+v, %v", info, err)
			}
		}
	})
	t.Run("life", func(t *testing.T) {
		s, _ := open(t, newKey(t))
		hash := put(t, s, []byte("a content"))
		if again := put(t, s, []byte("a content")); again != hash {
			t.Fatal(again)
		}
		other := put(t, s, []byte("another one"))
		want := []string{hash, other}
		slices.Sort(want)
		if got := list(t, s); !slices.Equal(got, want) {
			t.Fatal(got)
		}
		stop := errors.New("enough")
		if err := s.List(t.Context(), func(blob.Info) error { return stop }); !errors.Is(err, stop) {
			t.Fatal(err)
		}
		for range 2 {
			if err := s.Delete(t.Context(), hash); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.Open(t.Context(), hash); !fault.Is(err, fault.NotFound) {
			t.Fatal(err)
		}
		if _, err := s.Stat(t.Context(), hash); !fault.Is(err, fault.NotFound) {
			t.Fatal(err)
		}
		if got := list(t, s); !slices.Equal(got, []string{other}) {
			t.Fatal(got)
		}
	})
	t.Run("hostile hashes", func(t *testing.T) {
		s, _ := open(t, newKey(t))
		for _, hash := range []string{
			"", "..", "../../etc/passwd", strings.Repeat("A", 64), strings.Repeat("/", 64),
			strings.Repeat("a", 63) + "\x00",
		} {
			_, err := s.Open(t.Context(), hash)
			_, err2 := s.Stat(t.Context(), hash)
			for _, err := range []error{err, err2, s.Delete(t.Context(), hash)} {
				if !fault.Is(err, fault.Invalid) {
					t.Errorf("%q: %v", hash, err)
				}
			}
		}
	})
	t.Run("a broken upload leaves nothing", func(t *testing.T) {
		s, where := open(t, newKey(t))
		stop := errors.New("the connection broke")
		broken := io.MultiReader(bytes.NewReader(random(2<<20)), &failing{stop})
		if _, _, err := s.Put(t.Context(), broken); !errors.Is(err, stop) {
			t.Fatal(err)
		}
		given, cancel := context.WithCancel(t.Context())
		cancel()
		if _, _, err := s.Put(given, bytes.NewReader(random(10))); !fault.Is(err, fault.Unavailable) {
			t.Fatal(err)
		}
		if got := list(t, s); len(got) != 0 {
			t.Fatal(got)
		}
		if got := where.names(); len(got) != 0 {
			t.Fatal(got)
		}
	})
	t.Run("the same at once", func(t *testing.T) {
		s, _ := open(t, newKey(t))
		content := random(2 << 20)
		hash := put(t, s, content)
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if _, _, err := s.Put(t.Context(), bytes.NewReader(content)); err != nil {
					t.Error(err)
				}
			})
			all.Go(func() {
				if got, err := readAll(t, s, hash); err != nil || !bytes.Equal(got, content) {
					t.Errorf("%d bytes, %v", len(got), err)
				}
			})
		}
		all.Wait()
	})
	// Who has the bucket or the disk sees no content, and cannot change one, or exchange two, without being noticed.
	t.Run("sealed", func(t *testing.T) {
		key := newKey(t)
		s, where := open(t, key)
		content := slices.Concat([]byte("-----BEGIN PRIVATE KEY-----"), bytes.Repeat([]byte("0123456789"), 300_000))
		hash := put(t, s, content)
		name := where.names()[0]
		stored := where.read(name)
		if bytes.Contains(stored, []byte("PRIVATE")) || bytes.Contains(stored, []byte("0123456789")) {
			t.Fatal("the content can be read")
		}
		const chunk = 1<<20 + 29
		header := len(stored) - len(content)%(1<<20) - 29 - len(content)/(1<<20)*chunk
		swapped := bytes.Clone(stored)
		copy(swapped[header:], stored[header+chunk:header+2*chunk])
		copy(swapped[header+chunk:], stored[header:header+chunk])
		flipped := bytes.Clone(stored)
		flipped[len(flipped)-100] ^= 1
		other := put(t, s, bytes.Repeat([]byte("9876543210"), 300_000))
		otherName := where.names()[0]
		if otherName == name {
			otherName = where.names()[1]
		}
		mixed := slices.Concat(stored[:header], where.read(otherName)[header:])
		for what, wrong := range map[string][]byte{
			"empty": {}, "half a header": stored[:20], "only a header": stored[:header], "other magic": append(
				[]byte("x"), stored[1:]...),
			"a chunk is missing": stored[:header+chunk], "half a chunk": stored[:len(stored)-5], "swapped": swapped,
			"flipped": flipped, "that of another": where.read(otherName), "chunks of another": mixed,
		} {
			where.write(name, wrong)
			if got, err := readAll(t, s, hash); err == nil || len(got) == len(content) {
				t.Errorf("%s: %d bytes, %v", what, len(got), err)
			} else if !fault.Is(err, fault.Internal) {
				t.Errorf("%s: %v", what, err)
			}
		}
		where.write(name, stored)
		if _, err := readAll(t, s, hash); err != nil {
			t.Fatal(err)
		}
		if _, err := readAll(t, s, other); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("what is not ours stays", func(t *testing.T) {
		s, where := open(t, newKey(t))
		where.write("README", []byte("Please do not delete."))
		put(t, s, []byte("x"))
		if got := list(t, s); len(got) != 1 {
			t.Fatal(got)
		}
		if err := s.Sweep(t.Context(), time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		if got := string(where.read("README")); got != "Please do not delete." {
			t.Fatal(got)
		}
	})
}

type failing struct{ err error }

func (f *failing) Read([]byte) (int, error) { return 0, f.err }

func random(size int) []byte {
	out, source := make([]byte, size), rand.NewChaCha8([32]byte{byte(size)})
	_, _ = source.Read(out)
	return out
}

func hashOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

func put(t *testing.T, s blob.Store, content []byte) string {
	t.Helper()
	hash, _, err := s.Put(t.Context(), bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	return hash
}

func readAll(t *testing.T, s blob.Store, hash string) ([]byte, error) {
	t.Helper()
	c, err := s.Open(t.Context(), hash)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	got, err := io.ReadAll(c)
	if err == nil && int64(len(got)) != c.Size {
		t.Errorf("%d bytes of %d", len(got), c.Size)
	}
	return got, err
}

func list(t *testing.T, s blob.Store) []string {
	t.Helper()
	var out []string
	if err := s.List(t.Context(), func(i blob.Info) error { out = append(out, i.Hash); return nil }); err != nil {
		t.Fatal(err)
	}
	slices.Sort(out)
	return out
}

// disk is the folder of a Folder.
type disk struct {
	t   *testing.T
	dir string
}

func (d disk) names() (out []string) {
	err := filepath.WalkDir(d.dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			name, _ := filepath.Rel(d.dir, path)
			out = append(out, name)
		}
		return err
	})
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		d.t.Fatal(err)
	}
	return out
}

func (d disk) read(name string) []byte {
	content, err := os.ReadFile(filepath.Join(d.dir, name))
	if err != nil {
		d.t.Fatal(err)
	}
	return content
}

func (d disk) write(name string, content []byte) {
	if err := os.MkdirAll(d.dir, 0o755); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(d.dir, name), content, 0o600); err != nil {
		d.t.Fatal(err)
	}
}

func TestFolder(t *testing.T) {
	suite(t, func(t *testing.T, key *secret.Key) (blob.Store, place) {
		dir := filepath.Join(t.TempDir(), "resources")
		s, err := blob.NewFolder(dir, key)
		if err != nil {
			t.Fatal(err)
		}
		return s, disk{t, dir}
	})
}

// Only the server reads the files, and what a crash left goes once nobody can be writing it any more.
func TestFilesOfAFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "resources")
	s, err := blob.NewFolder(dir, newKey(t))
	if err != nil {
		t.Fatal(err)
	}
	put(t, s, []byte("x"))
	err = filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if info, err := e.Info(); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(dir, ".put-123")
	if err := os.WriteFile(left, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Sweep(t.Context(), time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(left); err != nil {
		t.Fatal("a new file was taken for an old one:", err)
	}
	if err := s.Sweep(t.Context(), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
}

// bucket is what an S3 store has in its bucket.
type bucket struct {
	t       *testing.T
	client  *minio.Client
	name    string
	prefix  string
	spooled string
}

func (b bucket) names() (out []string) {
	for o := range b.client.ListObjectsIter(b.t.Context(), b.name, minio.ListObjectsOptions{Recursive: true}) {
		if o.Err != nil {
			b.t.Fatal(o.Err)
		}
		out = append(out, strings.TrimPrefix(o.Key, b.prefix))
	}
	return append(out, disk{b.t, b.spooled}.names()...)
}

func (b bucket) read(name string) []byte {
	o, err := b.client.GetObject(b.t.Context(), b.name, b.prefix+name, minio.GetObjectOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	content, err := io.ReadAll(o)
	if err != nil {
		b.t.Fatal(err)
	}
	return content
}

func (b bucket) write(name string, content []byte) {
	_, err := b.client.PutObject(b.t.Context(), b.name, b.prefix+name, bytes.NewReader(content), int64(len(content)),
		minio.PutObjectOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
}

const region = "eu-central-1"

func makeBucket(t *testing.T, service, name string) *minio.Client {
	t.Helper()
	u, err := url.Parse(service)
	if err != nil {
		t.Fatal(err)
	}
	client, err := minio.New(u.Host, &minio.Options{
		Creds: credentials.NewStaticV4("admin", "admin", ""), Region: region,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.MakeBucket(t.Context(), name, minio.MakeBucketOptions{Region: region}); err != nil {
		t.Fatal(err)
	}
	return client
}

func TestS3(t *testing.T) {
	service := moto.Start(t)
	for i, prefix := range []string{"", "ordain/resources"} {
		t.Run(fmt.Sprintf("prefix %q", prefix), func(t *testing.T) {
			var count atomic.Int32
			suite(t, func(t *testing.T, key *secret.Key) (blob.Store, place) {
				name := fmt.Sprintf("bucket-%d-%d", i, count.Add(1))
				client := makeBucket(t, service, name)
				spooled := filepath.Join(t.TempDir(), "spool")
				s, err := blob.NewS3(blob.S3Config{
					Endpoint: service, Bucket: name, Prefix: prefix, Region: region, AccessKey: "ordain",
					SecretKey: "geheim", Key: key, Spool: spooled,
				})
				if err != nil {
					t.Fatal(err)
				}
				if prefix != "" {
					return s, bucket{t, client, name, prefix + "/", spooled}
				}
				return s, bucket{t, client, name, "", spooled}
			})
		})
	}
}

// The service is reached by TLS, with a certificate that must be right; and everything that it refuses has a reason
// and advice, without the secret key.
func TestTroubleWithS3(t *testing.T) {
	service := moto.Start(t)
	makeBucket(t, service, "bucket")
	target, err := url.Parse(service)
	if err != nil {
		t.Fatal(err)
	}
	var refuse atomic.Int32 // status
	var cut atomic.Bool
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host
	}}
	front := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if status := refuse.Load(); status != 0 {
			w.WriteHeader(int(status))
			_, _ = io.WriteString(w, "<Error><Code>AccessDenied</Code><Message>no</Message></Error>")
			return
		}
		if cut.Load() && r.Method == http.MethodGet {
			w.Header().Set("Content-Length", "3000000")
			w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
			w.Header().Set("ETag", `"x"`)
			_, _ = w.Write(make([]byte, 1000))
			panic(http.ErrAbortHandler)
		}
		proxy.ServeHTTP(w, r)
	}))
	front.Config.ErrorLog = nil
	defer front.Close()
	config := blob.S3Config{
		Endpoint: front.URL, Bucket: "bucket", Region: region, AccessKey: "ordain", SecretKey: "geheim", Key: newKey(t),
		Spool: t.TempDir(), Transport: front.Client().Transport,
	}
	open := func(change func(*blob.S3Config)) blob.Store {
		c := config
		change(&c)
		s, err := blob.NewS3(c)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	fails := func(what string, err error, kind fault.Kind, words ...string) {
		t.Helper()
		if !fault.Is(err, kind) {
			t.Errorf("%s: %v", what, err)
			return
		}
		for _, w := range append(words, "") {
			if !strings.Contains(err.Error(), w) || strings.Contains(err.Error(), "geheim") {
				t.Errorf("%s: %v lacks %q, or has a secret", what, err, w)
			}
		}
	}
	good := open(func(*blob.S3Config) {})
	hash := put(t, good, random(3<<20))
	if _, err := readAll(t, good, hash); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, err = open(func(c *blob.S3Config) { c.Transport = nil }).Stat(short, hash)
	fails("a certificate of an unknown authority", err, fault.Unavailable, "certificate")
	_, _, err = open(func(c *blob.S3Config) { c.Bucket = "another" }).Put(t.Context(), strings.NewReader("x"))
	fails("no bucket", err, fault.Unavailable, "there is no bucket another", "s3-bucket")
	refuse.Store(http.StatusForbidden)
	_, _, err = good.Put(t.Context(), strings.NewReader("x"))
	fails("refused", err, fault.Unavailable, "refuses", "s3-access-key-file")
	_, err = good.Open(t.Context(), hash)
	fails("refused", err, fault.Unavailable, "refuses")
	fails("refused", good.List(t.Context(), func(blob.Info) error { return nil }), fault.Unavailable, "refuses")
	refuse.Store(0)
	cut.Store(true)
	_, err = readAll(t, good, hash)
	if err == nil {
		t.Error("half an answer was taken for a content")
	}
	for _, endpoint := range []string{"", "s3.example.org", "ftp://s3.example.org", "https://u:p@s3.example.org",
		"https://s3.example.org/bucket"} {
		c := config
		c.Endpoint = endpoint
		if _, err := blob.NewS3(c); !fault.Is(err, fault.Invalid) || strings.Contains(err.Error(), "u:p") {
			t.Errorf("%q: %v", endpoint, err)
		}
	}
}
