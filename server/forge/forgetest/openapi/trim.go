//go:build ignore

// Trim keeps of a forge's published OpenAPI document what the fake forge answers
// for: some operations, all that they refer to, and the examples of what they
// answer. Texts for people are left out.
//
//	go run trim.go github <api.github.com.json >github.json    # npm @octokit/openapi, generated/
//	go run trim.go gitea <v1_openapi3_json.tmpl >gitea.json    # Go code.gitea.io/gitea, templates/swagger/
//	go run trim.go gitlab <openapi_v3.yaml >gitlab.json        # GitLab's repository, doc/api/openapi/
package main

import (
	"encoding/json"
	"log"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// prefix is where the paths of a repository begin, server what is before them.
var (
	prefix = map[string]string{
		"github": "/repos/{owner}/{repo}/",
		"gitea":  "/repos/{owner}/{repo}/",
		"gitlab": "/api/v4/projects/{id}/",
	}
	server = map[string]string{"github": "/api/v3", "gitea": "/api/v1", "gitlab": "/"}
)

var operations = map[string][]string{
	"github": {
		"post statuses/{sha}", "get pulls/{pull_number}", "get pulls", "post pulls",
		"get collaborators/{username}/permission",
		"get issues/{issue_number}/comments", "post issues/{issue_number}/comments",
		"patch issues/comments/{comment_id}",
		"get git/commits/{commit_sha}", "post git/blobs", "post git/trees", "post git/commits", "post git/refs",
		"patch git/refs/{ref}", "get branches/{branch}", "get rules/branches/{branch}",
	},
	"gitea": {
		"post statuses/{sha}", "get pulls/{index}", "get pulls", "post pulls",
		"get collaborators/{collaborator}/permission",
		"get issues/{index}/comments", "post issues/{index}/comments", "patch issues/comments/{id}",
		"post contents", "get pulls/{base}/{head}", "get branches/{branch}",
	},
	"gitlab": {
		"post statuses/{sha}", "get merge_requests/{merge_request_iid}", "get merge_requests",
		"post merge_requests", "get members/all/{user_id}",
		"get merge_requests/{noteable_id}/notes", "post merge_requests/{noteable_id}/notes",
		"put merge_requests/{noteable_id}/notes/{note_id}",
		"post repository/commits",
	},
}

type object = map[string]any

// named are the keys whose values are objects by name.
var named = []string{"properties", "schemas", "examples", "parameters", "responses", "headers"}

func main() {
	if len(os.Args) != 2 || operations[os.Args[1]] == nil {
		log.Fatal("usage: go run trim.go github|gitea|gitlab <document >trimmed")
	}
	kind := os.Args[1]
	var whole object
	decode := json.NewDecoder(os.Stdin).Decode
	if kind == "gitlab" {
		decode = yaml.NewDecoder(os.Stdin).Decode
	}
	if err := decode(&whole); err != nil {
		log.Fatal(err)
	}
	info, _ := whole["info"].(object)
	out := object{
		"openapi": whole["openapi"], "info": object{"title": info["title"], "version": info["version"],
			"license": info["license"]},
		"servers": []any{object{"url": server[kind]}},
	}
	paths, components := object{}, object{}
	for _, one := range operations[kind] {
		verb, path, _ := strings.Cut(one, " ")
		at := prefix[kind] + path
		full, _ := whole["paths"].(object)[at].(object)
		operation, ok := full[verb].(object)
		if !ok {
			log.Fatal("the document has no ", one)
		}
		kept := object{}
		for _, name := range []string{"operationId", "parameters", "requestBody", "responses"} {
			if operation[name] != nil {
				kept[name] = operation[name]
			}
		}
		if paths[at] == nil {
			paths[at] = object{}
		}
		if shared := full["parameters"]; shared != nil {
			paths[at].(object)["parameters"] = shared
		}
		paths[at].(object)[verb] = kept
	}
	follow(paths, whole, components)
	out["paths"], out["components"] = bare(paths, false), bare(components, false)
	text, err := json.MarshalIndent(out, "", " ")
	if err != nil {
		log.Fatal(err)
	}
	os.Stdout.Write(append(text, '\n'))
}

// follow copies what is referred to into components.
func follow(v any, whole, components object) {
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			follow(one, whole, components)
		}
	case object:
		if ref, ok := v["$ref"].(string); ok {
			parts := strings.Split(strings.TrimPrefix(ref, "#/components/"), "/")
			group, _ := components[parts[0]].(object)
			if group == nil {
				group = object{}
				components[parts[0]] = group
			}
			if group[parts[1]] == nil {
				group[parts[1]] = whole["components"].(object)[parts[0]].(object)[parts[1]]
				follow(group[parts[1]], whole, components)
			}
		}
		for _, one := range v {
			follow(one, whole, components)
		}
	}
}

// bare leaves out texts and extensions; names: the keys are names of somebody's, and all stay.
func bare(v any, names bool) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = bare(v[i], false)
		}
	case object:
		for key, inner := range v {
			_, text := inner.(string)
			switch {
			case names:
				v[key] = bare(inner, false)
			case key == "example", key == "x-github", strings.HasPrefix(key, "x-"), key == "externalDocs",
				key == "title", key == "summary", key == "deprecated",
				key == "description" && text && v["content"] == nil && v["headers"] == nil && v["schema"] == nil:
				delete(v, key)
			case key == "description":
				v[key] = "-" // a response must have one
			case key == "value", key == "default", key == "enum":
			default:
				v[key] = bare(inner, slices.Contains(named, key))
			}
		}
	}
	return v
}
