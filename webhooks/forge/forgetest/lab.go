package forgetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/http"
	"slices"

	gitlab "gitlab.com/gitlab-org/api/client-go"
)

// lab answers what GitLab's own client can read, with no field that it does not know.
func (s *Server) lab(code int, answer, as any) (int, any) {
	text, err := json.Marshal(answer)
	if err == nil {
		strict := json.NewDecoder(bytes.NewReader(text))
		strict.DisallowUnknownFields()
		err = strict.Decode(as)
	}
	if err != nil {
		s.t.Errorf("GitLab does not answer so: %v\n%s", err, text)
	}
	return code, answer
}

// gitlab speaks as GitLab does.
func (s *Server) gitlab(r *http.Request, p []string, body map[string]any) (int, any) {
	at := func(pattern string) bool { return match(p, pattern) }
	switch {
	case at("POST statuses *"):
		return s.labStatus(p[2], body)
	case at("GET merge_requests *"):
		if pull := s.pullNamed(p[2]); pull != nil {
			return s.lab(200, s.labPull(pull), &gitlab.MergeRequest{})
		}
		return 404, map[string]any{"message": "404 Not found"}
	case at("GET merge_requests"):
		out := []any{}
		for n := 1; n < 1000; n++ {
			if pull := s.pulls[n]; pull != nil && pull.State == "open" && (r.URL.Query().Get("target_branch") == "" || r.URL.Query().Get("target_branch") == pull.Base) {
				out = append(out, s.labPull(pull))
			}
		}
		return s.lab(200, out, &[]gitlab.MergeRequest{})
	case at("GET members all *"):
		for name := range s.writers {
			if fmt.Sprint(userID(name)) == p[3] {
				return s.lab(200, map[string]any{"id": userID(name), "username": name, "name": name, "state": "active", "access_level": 30, "expires_at": nil}, &gitlab.ProjectMember{})
			}
		}
		return 404, map[string]any{"message": "404 Not found"}
	case at("GET merge_requests * notes"):
		out := []any{}
		for _, c := range s.comments {
			if fmt.Sprint(c.Number) == p[2] {
				out = append(out, labNote(c))
			}
		}
		return s.lab(200, out, &[]gitlab.Note{})
	case at("POST merge_requests * notes"):
		pull := s.pullNamed(p[2])
		if pull == nil || text(body, "body") == "" {
			return 404, map[string]any{"message": "404 Not found"}
		}
		return s.lab(201, labNote(s.addComment(pull.Number, text(body, "body"))), &gitlab.Note{})
	case at("PUT merge_requests * notes *"):
		c := s.commentNamed(p[4])
		if c == nil {
			return 404, map[string]any{"message": "404 Not found"}
		}
		if c.Author != "ordain" {
			return 403, map[string]any{"message": "403 Forbidden"}
		}
		c.Body, c.Edits = text(body, "body"), c.Edits+1
		return s.lab(200, labNote(c), &gitlab.Note{})
	case at("POST repository commits"):
		s.next++
		s.branches[text(body, "branch")] = fmt.Sprintf("%040x", s.next)
		return s.lab(201, map[string]any{"id": s.branches[text(body, "branch")], "message": text(body, "commit_message")}, &gitlab.Commit{})
	case at("POST merge_requests"):
		return s.labOpen(body)
	}
	return 404, map[string]any{"error": "404 Not Found"}
}

func (s *Server) labStatus(commit string, body map[string]any) (int, any) {
	state := text(body, "state")
	if !slices.Contains([]string{"pending", "running", "success", "failed", "canceled", "skipped"}, state) {
		return 400, map[string]any{"error": "state does not have a valid value"}
	}
	for i := len(s.statuses) - 1; i >= 0; i-- {
		if last := s.statuses[i]; last.Commit == commit && last.Context == text(body, "name") {
			if last.State == state {
				return 400, map[string]any{"message": fmt.Sprintf("Cannot transition status via :run from :%s (Reason(s): Status cannot transition via \"run\")", state)}
			}
			break
		}
	}
	s.statuses = append(s.statuses, Status{commit, text(body, "name"), state, text(body, "description"), text(body, "target_url")})
	return s.lab(201, map[string]any{"id": len(s.statuses), "sha": commit, "status": state, "name": text(body, "name"), "description": text(body, "description"), "target_url": text(body, "target_url")},
		&gitlab.CommitStatus{})
}

func (s *Server) labPull(p *Pull) map[string]any {
	state := p.State
	if state == "open" {
		state = "opened"
	}
	source := 1
	if p.Fork {
		source = 2
	}
	recorded, err := published.ReadFile("openapi/gitlab-merge-request.json")
	if err != nil {
		s.t.Error(err)
	}
	return filled(s.t, recorded, map[string]any{
		"id": p.Number + 1000, "iid": p.Number, "state": state, "title": p.Title, "target_branch": p.Base, "source_branch": "feature", "sha": p.Head,
		"source_project_id": source, "target_project_id": 1, "has_conflicts": p.Unmergeable,
		"web_url": fmt.Sprintf("%s/acme/shop/-/merge_requests/%d", s.URL, p.Number), "author": map[string]any{"id": userID(p.Author), "username": p.Author},
	})
}

func labNote(c *Comment) map[string]any {
	return map[string]any{"id": c.ID, "body": c.Body, "system": false, "author": map[string]any{"id": userID(c.Author), "username": c.Author}}
}

func (s *Server) labOpen(body map[string]any) (int, any) {
	head := s.branches[text(body, "source_branch")]
	for _, p := range s.pulls {
		if p.State == "open" && p.Head == head {
			return 409, map[string]any{"message": []string{"Another open merge request already exists for this source branch"}}
		}
	}
	s.next++
	p := &Pull{Number: int(s.next), State: "open", Title: text(body, "title"), Author: "ordain", Base: text(body, "target_branch"), Head: head}
	s.pulls[p.Number] = p
	return s.lab(201, s.labPull(p), &gitlab.MergeRequest{})
}

// userID is the number of a user.
func userID(name string) int64 {
	h := fnv.New32a()
	h.Write([]byte(name))
	return int64(h.Sum32())
}
