package runtime

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// Bounds of an archive that this program did not make.
const (
	archiveFiles = 2000
	archiveBytes = 64 << 20
)

// Archive returns the Python runtime as a zip archive, and its hex SHA-256. Both are always the same for one program.
var Archive = sync.OnceValues(func() ([]byte, string) {
	files, _ := sources()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		head := &zip.FileHeader{
			Name: name, Method: zip.Deflate, Modified: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC),
		}
		head.SetMode(0o644)
		entry, err := w.CreateHeader(head)
		if err == nil {
			_, err = entry.Write(files[name])
		}
		if err != nil {
			panic("the Python runtime cannot be packed: " + err.Error()) // it is packed into memory
		}
	}
	if err := w.Close(); err != nil {
		panic("the Python runtime cannot be packed: " + err.Error())
	}
	sum := sha256.Sum256(out.Bytes())
	return out.Bytes(), hex.EncodeToString(sum[:])
})

// UnpackArchive is Unpack for the archive of another program, whose hash the caller has checked. The folder is named
// after the hash.
func UnpackArchive(cacheDir string, archive []byte, hash string) (string, error) {
	files, err := readArchive(archive)
	if err != nil {
		return "", fmt.Errorf("the archive of the Python runtime cannot be read: %w", err)
	}
	dir, err := unpackFiles(cacheDir, files, hash[:min(20, len(hash))])
	if err != nil {
		return "", fmt.Errorf("unpack the Python runtime: %w", err)
	}
	return dir, nil
}

func readArchive(archive []byte) (map[string][]byte, error) {
	r, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		return nil, err
	}
	if len(r.File) > archiveFiles {
		return nil, errors.New("it has too many files")
	}
	files := map[string][]byte{}
	left := int64(archiveBytes)
	for _, f := range r.File {
		if f.Mode().IsDir() {
			continue
		}
		if !f.Mode().IsRegular() || !filepath.IsLocal(f.Name) {
			return nil, fmt.Errorf("%q is not a file below the folder", f.Name)
		}
		in, err := f.Open()
		if err != nil {
			return nil, err
		}
		content, err := io.ReadAll(io.LimitReader(in, left+1))
		_ = in.Close()
		if err != nil {
			return nil, err
		}
		if left -= int64(len(content)); left < 0 {
			return nil, errors.New("it is too large")
		}
		files[f.Name] = content
	}
	if files["ordain_worker/__main__.py"] == nil {
		return nil, fmt.Errorf("it has no ordain_worker/__main__.py: %w", os.ErrNotExist)
	}
	return files, nil
}
