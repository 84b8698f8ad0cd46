package api

import (
	"context"
	"crypto/sha1"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/access"
)

func (s *server) fileCalls(c *calls) {
	const path, one = "/api/v1/file", "/api/v1/file/{id}"
	done[object](c, http.MethodPut, one, "Store a file under the SHA-1 of its content.",
		access.PutFiles, s.putFile, uploads)
	whole(c, http.MethodGet, one, "Return a file.", access.SeeFiles, s.getFile)
	done[noBody](c, http.MethodHead, one, "Tell whether a file is there: 200, or 404 when it is not.",
		access.SeeFiles, s.hasFile)
	whole(c, http.MethodPost, path, "Tell which of some files are missing.", access.SeeFiles, s.missingFiles)
	whole(c, http.MethodPost, "/api/v1/filediff", "Compare two files by line.", access.SeeFiles, s.diffFiles)
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

// fileProjects returns the projects in which the sender may do a verb about files; all is true for those who may do it
// on the whole server. Forbidden when there is none.
func (s *server) fileProjects(ctx context.Context, v access.Verb) (projects []uuid.UUID, all bool, err error) {
	p := access.Of(ctx)
	if p.Decide(v, access.Target{}).Allowed {
		return nil, true, nil
	}
	environments, err := s.store.Environments(ctx)
	if err != nil {
		return nil, false, err
	}
	for _, e := range environments {
		if p.Decide(v, access.TargetOf(e)).Allowed && !slices.Contains(projects, e.ProjectID) {
			projects = append(projects, e.ProjectID)
		}
	}
	if len(projects) == 0 {
		return nil, false, access.Check(ctx, v, access.Target{}, nil)
	}
	return projects, false, nil
}

// readable returns those files that the sender may read. It does not say which of them are stored.
func (s *server) readable(ctx context.Context, ids []string) ([]string, error) {
	projects, all, err := s.fileProjects(ctx, access.SeeFiles)
	if err != nil || all {
		return ids, err
	}
	return s.store.ReadableFiles(ctx, ids, projects)
}

// file returns the content of a file that the sender may read.
func (s *server) file(ctx context.Context, id string) ([]byte, error) {
	readable, err := s.readable(ctx, []string{id})
	if err != nil {
		return nil, err
	}
	if len(readable) == 0 {
		return nil, fault.New("api", fault.NotFound, "there is no such file")
	}
	return s.store.File(ctx, id)
}

func (s *server) putFile(ctx context.Context, a newFile) error {
	projects, _, err := s.fileProjects(ctx, access.PutFiles)
	if err != nil {
		return err
	}
	sum := sha1.Sum(a.Content)
	if hash := hex.EncodeToString(sum[:]); hash != a.ID {
		return invalid("the content has the hash %s and cannot be stored as %s", hash, a.ID)
	}
	_, err = s.store.PutFile(ctx, a.Content, projects...)
	return err
}

func (s *server) getFile(ctx context.Context, a oneFile) (fileEnvelope, error) {
	content, err := s.file(ctx, a.ID)
	return fileEnvelope{base64.StdEncoding.EncodeToString(content)}, err
}

func (s *server) hasFile(ctx context.Context, a oneFile) error {
	missing, err := s.missingFiles(ctx, fileIDs{Files: []string{a.ID}})
	if err == nil && len(missing.Files) > 0 {
		return &bare{code: http.StatusNotFound}
	}
	return err
}

func (s *server) missingFiles(ctx context.Context, a fileIDs) (filesEnvelope, error) {
	readable, err := s.readable(ctx, a.Files)
	if err != nil {
		return filesEnvelope{}, err
	}
	missing, err := s.store.MissingFiles(ctx, a.Files)
	if err != nil {
		return filesEnvelope{}, err
	}
	// A file of another project counts as missing: uploading it again lets this project read it.
	out := filesEnvelope{[]string{}}
	for _, id := range a.Files {
		if slices.Contains(missing, id) || !slices.Contains(readable, id) {
			out.Files = append(out.Files, id)
		}
	}
	return out, nil
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
	content, err := s.file(ctx, id)
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
