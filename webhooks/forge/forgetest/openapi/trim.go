//go:build ignore

// Trim keeps of a forge's published OpenAPI document what the fake forge answers
// for: some operations, all that they refer to, and the examples of what they
// answer. Texts for people are left out.
//
//	go run trim.go github <api.github.com.json >github.json    # npm @octokit/openapi, generated/
//	go run trim.go gitea <v1_openapi3_json.tmpl >gitea.json    # Go code.gitea.io/gitea, templates/swagger/
package main

import (
	"encoding/json"
	"log"
	"os"
	"strings"
)

const repo = "/repos/{owner}/{repo}/"

var operations = map[string][]string{
	"github": {
		"post statuses/{sha}", "get pulls/{pull_number}", "get pulls", "post pulls", "get collaborators/{username}/permission",
		"get issues/{issue_number}/comments", "post issues/{issue_number}/comments", "patch issues/comments/{comment_id}",
		"get git/commits/{commit_sha}", "post git/blobs", "post git/trees", "post git/commits", "post git/refs", "patch git/refs/{ref}",
	},
	"gitea": {
		"post statuses/{sha}", "get pulls/{index}", "get pulls", "post pulls", "get collaborators/{collaborator}/permission",
		"get issues/{index}/comments", "post issues/{index}/comments", "patch issues/comments/{id}", "post contents", "get pulls/{base}/{head}",
	},
}

type object = map[string]any

func main() {
	if len(os.Args) != 2 || operations[os.Args[1]] == nil {
		log.Fatal("usage: go run trim.go github|gitea <document >trimmed")
	}
	kind := os.Args[1]
	var whole object
	if err := json.NewDecoder(os.Stdin).Decode(&whole); err != nil {
		log.Fatal(err)
	}
	info, _ := whole["info"].(object)
	out := object{
		"openapi": whole["openapi"], "info": object{"title": info["title"], "version": info["version"], "license": info["license"]},
		"servers": []any{object{"url": map[string]string{"github": "/api/v3", "gitea": "/api/v1"}[kind]}},
	}
	paths, components := object{}, object{}
	for _, one := range operations[kind] {
		verb, path, _ := strings.Cut(one, " ")
		full, _ := whole["paths"].(object)[repo+path].(object)
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
		if paths[repo+path] == nil {
			paths[repo+path] = object{}
		}
		if shared := full["parameters"]; shared != nil {
			paths[repo+path].(object)["parameters"] = shared
		}
		paths[repo+path].(object)[verb] = kept
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
			case key == "example", key == "x-github", strings.HasPrefix(key, "x-"), key == "externalDocs", key == "title", key == "summary", key == "deprecated",
				key == "description" && text && v["content"] == nil && v["headers"] == nil && v["schema"] == nil:
				delete(v, key)
			case key == "description":
				v[key] = "-" // a response must have one
			case key == "value", key == "default", key == "enum":
			default:
				v[key] = bare(inner, key == "properties" || key == "schemas" || key == "examples" || key == "parameters" || key == "responses" || key == "headers")
			}
		}
	}
	return v
}
