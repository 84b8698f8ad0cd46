package forgetest

import (
	"fmt"
	"slices"
	"strings"
)

var missing = map[string]any{"message": "Not Found"}

// hub speaks as GitHub does, and Gitea where it has the same paths.
func (s *Server) hub(p []string, body map[string]any) (int, any) {
	at := func(pattern string) bool { return match(p, pattern) }
	switch {
	case at("POST statuses *"):
		return s.hubStatus(p[2], body)
	case at("GET pulls *"):
		if pull := s.pullNamed(p[2]); pull != nil {
			return 200, s.hubPull(pull)
		}
		return 404, missing
	case at("GET pulls"):
		out := []any{}
		for n := 1; n < 1000; n++ {
			if pull := s.pulls[n]; pull != nil && pull.State == "open" {
				out = append(out, s.hubPull(pull))
			}
		}
		return 200, out
	case at("POST pulls"):
		return s.hubOpen(body)
	case at("GET collaborators * permission"):
		level := "read"
		if s.writers[p[2]] {
			level = "write"
		}
		return 200, map[string]any{"permission": level, "role_name": level, "user": map[string]any{"login": p[2]}}
	case at("GET issues * comments"):
		out := []any{}
		for _, c := range s.comments {
			if fmt.Sprint(c.Number) == p[2] {
				out = append(out, hubComment(c))
			}
		}
		return 200, out
	case at("POST issues * comments"):
		pull := s.pullNamed(p[2])
		if pull == nil {
			return 404, missing
		}
		if text(body, "body") == "" || len(text(body, "body")) > 65536 {
			return 422, map[string]any{"message": "Validation Failed"}
		}
		return 201, hubComment(s.addComment(pull.Number, text(body, "body")))
	case at("PATCH issues comments *"):
		c := s.commentNamed(p[3])
		switch {
		case c == nil:
			return 404, missing
		case c.Author != "ordain":
			return 403, map[string]any{"message": "Must have admin rights to Repository."}
		case len(text(body, "body")) > 65536:
			return 422, map[string]any{"message": "Validation Failed"}
		}
		c.Body, c.Edits = text(body, "body"), c.Edits+1
		return 200, hubComment(c)
	}
	if s.Kind == "gitea" {
		return s.giteaOnly(p, body)
	}
	return s.hubGit(p, body)
}

func (s *Server) hubStatus(commit string, body map[string]any) (int, any) {
	states := []string{"error", "failure", "pending", "success"}
	if s.Kind == "gitea" {
		states = append(states, "warning")
	}
	if !slices.Contains(states, text(body, "state")) || s.Kind == "github" && len([]rune(text(body, "description"))) > 140 || len(commit) != 40 {
		return 422, map[string]any{"message": "Validation Failed"}
	}
	s.statuses = append(s.statuses, Status{commit, text(body, "context"), text(body, "state"), text(body, "description"), text(body, "target_url")})
	return 201, map[string]any{"id": len(s.statuses), "state": text(body, "state"), "context": text(body, "context")}
}

func (s *Server) hubPull(p *Pull) map[string]any {
	state := "open"
	if p.State != "open" {
		state = "closed"
	}
	head := 1
	if p.Fork {
		head = 2
	}
	return map[string]any{
		"id": p.Number + 1000, "number": p.Number, "state": state, "title": p.Title, "merged": p.State == "merged",
		"mergeable": !p.Unmergeable, "html_url": fmt.Sprintf("%s/acme/shop/pulls/%d", s.URL, p.Number), "user": map[string]any{"login": p.Author},
		"head": map[string]any{"ref": "feature", "sha": p.Head, "repo_id": head, "repo": map[string]any{"id": head}},
		"base": map[string]any{"ref": p.Base, "sha": strings.Repeat("0", 40), "repo_id": 1, "repo": map[string]any{"id": 1}},
	}
}

func hubComment(c *Comment) map[string]any {
	return map[string]any{"id": c.ID, "body": c.Body, "user": map[string]any{"login": c.Author}}
}

func (s *Server) hubOpen(body map[string]any) (int, any) {
	head := text(body, "head")
	if s.branches[head] == "" {
		return 422, map[string]any{"message": "Validation Failed"}
	}
	for _, p := range s.pulls {
		if p.State == "open" && p.Head == s.branches[head] && p.Base == text(body, "base") {
			if s.Kind == "gitea" {
				return 409, map[string]any{"message": "pull request already exists for these targets"}
			}
			return 422, map[string]any{"message": "A pull request already exists"}
		}
	}
	s.next++
	p := &Pull{Number: int(s.next), State: "open", Title: text(body, "title"), Author: "ordain", Base: text(body, "base"), Head: s.branches[head]}
	s.pulls[p.Number] = p
	return 201, s.hubPull(p)
}

// hubGit is the part of GitHub's API that makes commits.
func (s *Server) hubGit(p []string, body map[string]any) (int, any) {
	at := func(pattern string) bool { return match(p, pattern) }
	fresh := func() string { s.next++; return fmt.Sprintf("%040x", s.next) }
	switch {
	case at("GET git commits *"):
		return 200, map[string]any{"sha": p[3], "tree": map[string]any{"sha": strings.Repeat("7", 40)}}
	case at("POST git blobs"), at("POST git trees"), at("POST git commits"):
		return 201, map[string]any{"sha": fresh()}
	case at("POST git refs"):
		name := strings.TrimPrefix(text(body, "ref"), "refs/heads/")
		if s.branches[name] != "" {
			return 422, map[string]any{"message": "Reference already exists"}
		}
		s.branches[name] = text(body, "sha")
		return 201, map[string]any{"ref": text(body, "ref"), "object": map[string]any{"sha": text(body, "sha")}}
	case len(p) > 4 && at("PATCH git refs heads "+strings.Repeat("* ", len(p)-4)):
		s.branches[strings.Join(p[4:], "/")] = text(body, "sha")
		return 200, map[string]any{"ref": "x", "object": map[string]any{"sha": text(body, "sha")}}
	}
	return 404, missing
}

func (s *Server) giteaOnly(p []string, body map[string]any) (int, any) {
	if match(p, "POST contents") {
		name := text(body, "new_branch")
		if s.branches[name] != "" {
			return 409, map[string]any{"message": "branch already exists"}
		}
		s.next++
		s.branches[name] = fmt.Sprintf("%040x", s.next)
		return 201, map[string]any{"commit": map[string]any{"sha": s.branches[name]}}
	}
	if len(p) >= 4 && match(p[:4], "GET pulls * *") {
		for _, one := range s.pulls {
			if one.State == "open" && one.Base == p[2] {
				return 200, s.hubPull(one)
			}
		}
	}
	return 404, missing
}

// match compares words with a pattern, in which * is any word.
func match(p []string, pattern string) bool {
	words := strings.Fields(pattern)
	if len(words) != len(p) {
		return false
	}
	for i, w := range words {
		if w != "*" && w != p[i] {
			return false
		}
	}
	return true
}
