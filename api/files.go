package api

import (
	"context"
	"crypto/sha1"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strings"
)

func (s *server) fileCalls(c *calls) {
	const path, one = "/api/v1/file", "/api/v1/file/{id}"
	done[object](c, http.MethodPut, one, "Store a file under the SHA-1 of its content.", s.putFile, uploads)
	whole(c, http.MethodGet, one, "Return a file.", s.getFile)
	done[noBody](c, http.MethodHead, one, "Tell whether a file is there: 200, or 404 when it is not.", s.hasFile)
	whole(c, http.MethodPost, path, "Tell which of some files are missing.", s.missingFiles)
	whole(c, http.MethodPost, "/api/v1/filediff", "Compare two files by line.", s.diffFiles)
}

type fileEnvelope struct {
	Content string `json:"content"`
}

type filesEnvelope struct {
	Files []string `json:"files"`
}

type fileDiff struct {
	Diff []string `json:"diff"`
}

type oneFile struct {
	ID string `arg:"id,required"`
}

type newFile struct {
	oneFile
	Content base64Content `arg:"content,required"`
}

type fileIDs struct {
	Files []string `arg:"files,required"`
}

type twoFiles struct {
	From string `arg:"file_id_1,required"`
	To   string `arg:"file_id_2,required"`
}

func (s *server) putFile(ctx context.Context, a newFile) error {
	sum := sha1.Sum(a.Content)
	if hash := hex.EncodeToString(sum[:]); hash != a.ID {
		return invalid("the content has the hash %s and cannot be stored as %s", hash, a.ID)
	}
	_, err := s.store.PutFile(ctx, a.Content)
	return err
}

func (s *server) getFile(ctx context.Context, a oneFile) (fileEnvelope, error) {
	content, err := s.store.File(ctx, a.ID)
	return fileEnvelope{base64.StdEncoding.EncodeToString(content)}, err
}

func (s *server) hasFile(ctx context.Context, a oneFile) error {
	missing, err := s.store.MissingFiles(ctx, []string{a.ID})
	if err == nil && len(missing) > 0 {
		return &bare{code: http.StatusNotFound}
	}
	return err
}

func (s *server) missingFiles(ctx context.Context, a fileIDs) (filesEnvelope, error) {
	missing, err := s.store.MissingFiles(ctx, a.Files)
	return filesEnvelope{notNil(missing)}, err
}

func (s *server) diffFiles(ctx context.Context, a twoFiles) (fileDiff, error) {
	from, err := s.fileLines(ctx, a.From)
	if err != nil {
		return fileDiff{}, err
	}
	to, err := s.fileLines(ctx, a.To)
	if err != nil {
		return fileDiff{}, err
	}
	return fileDiff{unified(from, to)}, nil
}

// fileLines returns the lines of a file; the ids "" and "0" stand for an empty one.
func (s *server) fileLines(ctx context.Context, id string) ([]string, error) {
	if id == "" || id == "0" {
		return nil, nil
	}
	content, err := s.store.File(ctx, id)
	if err != nil {
		return nil, err
	}
	if strings.ContainsRune(string(content), 0) {
		return nil, invalid("a file that is not text has no diff by lines")
	}
	lines := strings.SplitAfter(string(content), "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines, nil
}
