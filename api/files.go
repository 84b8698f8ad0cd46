package api

import (
	"context"
	"crypto/sha1"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"ordain.dev/ordain/internal/fault"
)

type oneFile struct {
	ID string `arg:"id,required"`
}

func (s *server) files(g *gin.Engine) {
	call(s, g, http.MethodPut, "/api/v1/file/{id}", func(ctx context.Context, a struct {
		oneFile
		Content string `arg:"content,required"`
	}) (reply, error) {
		content, err := base64.StdEncoding.DecodeString(a.Content)
		if err != nil {
			return reply{}, invalid("the content is not base64: %v", err)
		}
		sum := sha1.Sum(content)
		if hash := hex.EncodeToString(sum[:]); hash != a.ID {
			return reply{}, invalid("the content has the hash %s and cannot be stored as %s", hash, a.ID)
		}
		if _, err := s.store.PutFile(ctx, content); err != nil {
			return reply{}, err
		}
		return v1(nil)
	})
	call(s, g, http.MethodGet, "/api/v1/file/{id}", func(ctx context.Context, a oneFile) (reply, error) {
		content, err := s.store.File(ctx, a.ID)
		if err != nil {
			return reply{}, err
		}
		return v1(map[string]any{"content": base64.StdEncoding.EncodeToString(content)})
	})
	call(s, g, http.MethodHead, "/api/v1/file/{id}", func(ctx context.Context, a oneFile) (reply, error) {
		missing, err := s.store.MissingFiles(ctx, []string{a.ID})
		if err != nil {
			return reply{}, err
		}
		if len(missing) > 0 {
			return reply{}, &bare{code: http.StatusNotFound}
		}
		return reply{}, nil
	})
	call(s, g, http.MethodPost, "/api/v1/file", func(ctx context.Context, a struct {
		Files []string `arg:"files,required"`
	}) (reply, error) {
		missing, err := s.store.MissingFiles(ctx, a.Files)
		if err != nil {
			return reply{}, err
		}
		if missing == nil {
			missing = []string{}
		}
		return v1(map[string]any{"files": missing})
	})
	call(s, g, http.MethodPost, "/api/v1/filediff", func(ctx context.Context, a struct {
		From string `arg:"file_id_1,required"`
		To   string `arg:"file_id_2,required"`
	}) (reply, error) {
		from, err := s.fileLines(ctx, a.From)
		if err != nil {
			return reply{}, err
		}
		to, err := s.fileLines(ctx, a.To)
		if err != nil {
			return reply{}, err
		}
		return v1(map[string]any{"diff": unified(from, to)})
	})
}

// fileLines gives a file in lines; the id "" or "0" stands for an empty one.
func (s *server) fileLines(ctx context.Context, id string) ([]string, error) {
	if id == "" || id == "0" {
		return nil, nil
	}
	content, err := s.store.File(ctx, id)
	if err != nil {
		return nil, err
	}
	if strings.ContainsRune(string(content), 0) {
		return nil, fault.New("api", fault.Invalid, "a file that is not text has no diff by lines")
	}
	lines := strings.SplitAfter(string(content), "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines, nil
}
