package forgetest

import (
	"fmt"
	"slices"
	"strings"
)

// refuse answers as the forge does when it does not do what it is asked.
func (s *Server) refuse(code int, message string) (int, any) {
	if s.Kind == "gitea" {
		return code, map[string]any{"message": message, "url": s.URL + "/api/swagger"}
	}
	return code, map[string]any{"message": message, "documentation_url": "https://docs.github.com/rest"}
}

func (s *Server) missing() (int, any) { return s.refuse(404, "Not Found") }

// hub speaks as GitHub does, and Gitea where it has the same paths.
func (s *Server) hub(p []string, body map[string]any) (int, any) {
	at := func(pattern string) bool { return match(p, pattern) }
	switch {
	case at("POST statuses *"):
		return s.hubStatus(p[2], body)
	case at("GET pulls *"):
		if pull := s.pullNamed(p[2]); pull != nil {
			return 200, s.hubPull(pull, false)
		}
		return s.missing()
	case at("GET pulls"):
		out := []any{}
		for n := 1; n < 1000; n++ {
			if pull := s.pulls[n]; pull != nil && pull.State == "open" {
				out = append(out, s.hubPull(pull, true))
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
		user := map[string]any{"login": p[2]}
		if s.Kind == "github" {
			user["role_name"] = level // which its example lacks
		}
		return 200, s.contract.example("GET", "collaborators/{username}/permission", "200",
			map[string]any{"permission": level, "role_name": level, "user": user})
	case at("GET issues * comments"):
		out := []any{}
		for _, c := range s.comments {
			if fmt.Sprint(c.Number) == p[2] {
				out = append(out, s.hubComment(c))
			}
		}
		return 200, out
	case at("POST issues * comments"):
		pull := s.pullNamed(p[2])
		if pull == nil {
			return s.missing()
		}
		if text(body, "body") == "" || len(text(body, "body")) > 65536 {
			return s.refuse(422, "Validation Failed")
		}
		return 201, s.hubComment(s.addComment(pull.Number, text(body, "body")))
	case at("PATCH issues comments *"):
		c := s.commentNamed(p[3])
		switch {
		case c == nil:
			return s.missing()
		case c.Author != "ordain":
			return s.refuse(403, "Must have admin rights to Repository.")
		case len(text(body, "body")) > 65536:
			return s.refuse(422, "Validation Failed")
		}
		c.Body, c.Edits = text(body, "body"), c.Edits+1
		return 200, s.hubComment(c)
	}
	if s.Kind == "gitea" {
		return s.giteaOnly(p, body)
	}
	if at("GET branches *") || at("GET rules branches *") {
		return s.hubBranch(p)
	}
	return s.hubGit(p, body)
}

// hubBranch tells how GitHub protects a branch.
func (s *Server) hubBranch(p []string) (int, any) {
	name := p[len(p)-1]
	how := s.guarded[name]
	switch {
	case p[1] == "rules" && how == GuardRuleset:
		return 200, []any{map[string]any{
			"type": "pull_request", "ruleset_source_type": "Repository", "ruleset_source": "acme/shop",
			"ruleset_id": 42,
			"parameters": map[string]any{
				"dismiss_stale_reviews_on_push": false, "require_code_owner_review": false,
				"require_last_push_approval": false, "required_approving_review_count": 1,
				"required_review_thread_resolution": false,
			},
		}}
	case p[1] == "rules":
		return 200, []any{}
	case !s.exists(name):
		return s.refuse(404, "Branch not found")
	}
	return 200, s.contract.example("GET", "branches/{branch}", "200",
		map[string]any{"name": name, "protected": how == GuardRule})
}

func (s *Server) hubStatus(commit string, body map[string]any) (int, any) {
	states := []string{"error", "failure", "pending", "success"}
	if s.Kind == "gitea" {
		states = append(states, "warning")
	}
	if !slices.Contains(states, text(body, "state")) ||
		s.Kind == "github" && len([]rune(text(body, "description"))) > 140 ||
		len(commit) != 40 {
		return s.refuse(422, "Validation Failed")
	}
	s.statuses = append(s.statuses,
		Status{commit, text(body, "context"), text(body, "state"), text(body, "description"), text(body, "target_url")})
	out := map[string]any{
		"id":          len(s.statuses),
		"context":     text(body, "context"),
		"description": text(body, "description"),
		"target_url":  text(body, "target_url"),
	}
	if s.Kind == "gitea" { // which is asked for a state and answers with a status
		out["status"] = text(body, "state")
	} else {
		out["state"] = text(body, "state")
	}
	return 201, s.contract.example("POST", "statuses/{sha}", "201", out)
}

// hubPull is a pull request, whole or as a list has it.
func (s *Server) hubPull(p *Pull, listed bool) map[string]any {
	state := "open"
	if p.State != "open" {
		state = "closed"
	}
	side := func(ref, commit string, repo int) map[string]any {
		out := map[string]any{"ref": ref, "sha": commit, "repo": map[string]any{"id": repo}}
		if s.Kind == "gitea" {
			out["repo_id"] = repo
		}
		return out
	}
	head := 1
	if p.Fork {
		head = 2
	}
	out := map[string]any{
		"id": p.Number + 1000, "number": p.Number, "state": state, "title": p.Title, "merged_at": nil,
		"html_url": fmt.Sprintf("%s/acme/shop/pulls/%d", s.URL, p.Number), "user": map[string]any{"login": p.Author},
		"head": side("feature", p.Head, head), "base": side(p.Base, strings.Repeat("0", 40), 1),
	}
	if s.Kind == "gitea" || !listed {
		out["merged"], out["mergeable"] = p.State == "merged", !p.Unmergeable
	}
	if p.State == "merged" {
		out["merged_at"] = "2026-11-22T12:00:00Z"
	} else if s.Kind == "gitea" {
		delete(out, "merged_at")
	}
	if s.Kind == "github" {
		out["requested_teams"] = []any{} // that of the example is not as the document says
	}
	if listed {
		out = s.contract.example("GET", "pulls", "200", out)
		for _, side := range []string{"head", "base"} { // nor are these
			repo, _ := out[side].(map[string]any)["repo"].(map[string]any)
			for _, name := range []string{"network_count", "subscribers_count", "template_repository"} {
				delete(repo, name)
			}
		}
		return out
	}
	number := map[string]string{"github": "{pull_number}", "gitea": "{index}"}[s.Kind]
	return s.contract.example("GET", "pulls/"+number, "200", out)
}

func (s *Server) hubComment(c *Comment) map[string]any {
	path := map[string]string{"github": "issues/comments/{comment_id}", "gitea": "issues/comments/{id}"}[s.Kind]
	return s.contract.example("PATCH", path, "200",
		map[string]any{"id": c.ID, "body": c.Body, "user": map[string]any{"login": c.Author}})
}

func (s *Server) hubOpen(body map[string]any) (int, any) {
	head := text(body, "head")
	if s.branches[head] == "" {
		return s.refuse(422, "Validation Failed")
	}
	for _, p := range s.pulls {
		if p.State == "open" && p.Head == s.branches[head] && p.Base == text(body, "base") {
			if s.Kind == "gitea" {
				return s.refuse(409, "pull request already exists for these targets")
			}
			return s.refuse(422, "A pull request already exists")
		}
	}
	s.next++
	p := &Pull{
		Number: int(s.next),
		State:  "open",
		Title:  text(body, "title"),
		Author: "ordain",
		Base:   text(body, "base"),
		Head:   s.branches[head],
	}
	s.pulls[p.Number] = p
	return 201, s.hubPull(p, false)
}

// hubGit is the part of GitHub's API that makes commits.
func (s *Server) hubGit(p []string, body map[string]any) (int, any) {
	at := func(pattern string) bool { return match(p, pattern) }
	fresh := func() string { s.next++; return fmt.Sprintf("%040x", s.next) }
	switch {
	case at("GET git commits *"):
		return 200, s.contract.example("GET", "git/commits/{commit_sha}", "200",
			map[string]any{"sha": p[3], "tree": map[string]any{"sha": strings.Repeat("7", 40)}})
	case at("POST git blobs"), at("POST git trees"), at("POST git commits"):
		return 201, s.contract.example("POST", "git/"+p[2], "201", map[string]any{"sha": fresh()})
	case at("POST git refs"):
		name := strings.TrimPrefix(text(body, "ref"), "refs/heads/")
		if s.branches[name] != "" {
			return s.refuse(422, "Reference already exists")
		}
		s.branches[name] = text(body, "sha")
		return 201, s.contract.example("POST", "git/refs", "201",
			map[string]any{"ref": text(body, "ref"), "object": map[string]any{"sha": text(body, "sha")}})
	case len(p) > 4 && at("PATCH git refs heads "+strings.Repeat("* ", len(p)-4)):
		name := strings.Join(p[4:], "/")
		s.move(name, text(body, "sha"))
		return 200, s.contract.example("PATCH", "git/refs/{ref}", "200",
			map[string]any{"ref": "refs/heads/" + name, "object": map[string]any{"sha": text(body, "sha")}})
	}
	return s.missing()
}

func (s *Server) giteaOnly(p []string, body map[string]any) (int, any) {
	if match(p, "POST contents") {
		name := text(body, "new_branch")
		if s.branches[name] != "" {
			return s.refuse(409, "branch already exists")
		}
		s.next++
		s.branches[name] = fmt.Sprintf("%040x", s.next)
		return 201, map[string]any{"commit": map[string]any{"sha": s.branches[name]}}
	}
	if match(p, "GET branches *") {
		if !s.exists(p[2]) {
			return s.missing()
		}
		how := s.guarded[p[2]]
		return 200, map[string]any{
			"name": p[2], "protected": how != GuardNone, "user_can_push": how != GuardRule, "user_can_merge": true,
		}
	}
	if len(p) >= 4 && match(p[:4], "GET pulls * *") {
		for _, one := range s.pulls {
			if one.State == "open" && one.Base == p[2] {
				return 200, s.hubPull(one, false)
			}
		}
	}
	return s.missing()
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
