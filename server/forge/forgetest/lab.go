package forgetest

import (
	"fmt"
	"hash/fnv"
	"net/http"
	"net/url"
	"slices"
)

// gitlab speaks as GitLab does.
func (s *Server) gitlab(r *http.Request, p []string, body map[string]any) (int, any) {
	at := func(pattern string) bool { return match(p, pattern) }
	switch {
	case at("POST statuses *"):
		return s.labStatus(p[2], body)
	case at("GET merge_requests *"):
		if pull := s.pullNamed(p[2]); pull != nil {
			return 200, s.labPull(pull)
		}
		return 404, map[string]any{"message": "404 Not found"}
	case at("GET merge_requests"):
		return s.labPulls(r.URL.Query())
	case at("GET members all *"):
		for name := range s.writers {
			if fmt.Sprint(userID(name)) == p[3] {
				return 200, map[string]any{
					"id":           userID(name),
					"username":     name,
					"name":         name,
					"state":        "active",
					"access_level": 30,
					"expires_at":   nil,
				}
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
		return 200, out
	case at("POST merge_requests * notes"):
		pull := s.pullNamed(p[2])
		if pull == nil || text(body, "body") == "" {
			return 404, map[string]any{"message": "404 Not found"}
		}
		return 201, labNote(s.addComment(pull.Number, text(body, "body")))
	case at("PUT merge_requests * notes *"):
		c := s.commentNamed(p[4])
		if c == nil {
			return 404, map[string]any{"message": "404 Not found"}
		}
		if c.Author != "ordain" {
			return 403, map[string]any{"message": "403 Forbidden"}
		}
		c.Body, c.Edits = text(body, "body"), c.Edits+1
		return 200, labNote(c)
	case at("POST repository commits"):
		s.next++
		head := fmt.Sprintf("%040x", s.next)
		s.move(text(body, "branch"), head)
		return 201, map[string]any{"id": head, "message": text(body, "commit_message")}
	case at("POST merge_requests"):
		return s.labOpen(body)
	case at("GET repository branches *"):
		return s.labBranch(p[3])
	}
	return 404, map[string]any{"error": "404 Not Found"}
}

func (s *Server) labBranch(name string) (int, any) {
	if !s.exists(name) {
		return 404, map[string]any{"message": "404 Branch Not Found"}
	}
	recorded, err := published.ReadFile("openapi/gitlab-branch.json")
	if err != nil {
		s.t.Error(err)
	}
	how := s.guarded[name]
	return 200, filled(s.t, recorded,
		map[string]any{"name": name, "protected": how != GuardNone, "can_push": how != GuardRule})
}

func (s *Server) labStatus(commit string, body map[string]any) (int, any) {
	state := text(body, "state")
	if !slices.Contains([]string{"pending", "running", "success", "failed", "canceled", "skipped"}, state) {
		return 400, map[string]any{"error": "state does not have a valid value"}
	}
	if len([]rune(text(body, "description"))) > 255 {
		return 400, map[string]any{
			"message": map[string]any{"description": []string{"is too long (maximum is 255 characters)"}},
		}
	}
	for i := len(s.statuses) - 1; i >= 0; i-- {
		if last := s.statuses[i]; last.Commit == commit && last.Context == text(body, "name") {
			if last.State == state {
				return 400, map[string]any{
					"message": fmt.Sprintf(
						"Cannot transition status via :run from :%s (Reason(s): Status cannot transition via \"run\")",
						state,
					),
				}
			}
			break
		}
	}
	s.statuses = append(s.statuses,
		Status{commit, text(body, "name"), state, text(body, "description"), text(body, "target_url")})
	return 201, map[string]any{
		"id":          len(s.statuses),
		"sha":         commit,
		"status":      state,
		"name":        text(body, "name"),
		"description": text(body, "description"),
		"target_url":  text(body, "target_url"),
	}
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
		"id": p.Number + 1000, "iid": p.Number, "state": state, "title": p.Title, "target_branch": p.Base,
		"source_branch": "feature", "sha": p.Head,
		"source_project_id": source, "target_project_id": 1, "has_conflicts": p.Unmergeable,
		"web_url": fmt.Sprintf("%s/acme/shop/-/merge_requests/%d", s.URL,
			p.Number), "author": map[string]any{"id": userID(p.Author), "username": p.Author},
	})
}

// labPulls lists what is open. A list tells less of each than its own page does.
func (s *Server) labPulls(query url.Values) (int, any) {
	out := []any{}
	for n := 1; n < 1000; n++ {
		pull := s.pulls[n]
		if pull == nil || pull.State != "open" ||
			query.Has("target_branch") && query.Get("target_branch") != pull.Base ||
			query.Has("source_branch") && s.branches[query.Get("source_branch")] != pull.Head {
			continue
		}
		one := s.labPull(pull)
		for _, name := range []string{
			"subscribed", "changes_count", "latest_build_started_at", "latest_build_finished_at",
			"first_deployed_to_production_at", "pipeline", "head_pipeline",
			"diff_refs", "merge_error", "first_contribution", "user",
		} {
			delete(one, name)
		}
		out = append(out, one)
	}
	return 200, out
}

func labNote(c *Comment) map[string]any {
	return map[string]any{
		"id":     c.ID,
		"body":   c.Body,
		"system": false,
		"author": map[string]any{"id": userID(c.Author), "username": c.Author},
	}
}

func (s *Server) labOpen(body map[string]any) (int, any) {
	head := s.branches[text(body, "source_branch")]
	for _, p := range s.pulls {
		if p.State == "open" && p.Head == head {
			return 409, map[string]any{
				"message": []string{"Another open merge request already exists for this source branch"},
			}
		}
	}
	s.next++
	p := &Pull{
		Number: int(s.next),
		State:  "open",
		Title:  text(body, "title"),
		Author: "ordain",
		Base:   text(body, "target_branch"),
		Head:   head,
	}
	s.pulls[p.Number] = p
	return 201, s.labPull(p)
}

// userID is the number of a user.
func userID(name string) int64 {
	h := fnv.New32a()
	h.Write([]byte(name))
	return int64(h.Sum32())
}
