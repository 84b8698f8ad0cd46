package forgetest

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// labDoc mends GitLab's document where it says other than what GitLab is seen to
// answer in recorded answers, and than what the pages beside it, in doc/api, say.
func labDoc(doc *openapi3.T) error {
	entity := func(name string) openapi3.Schemas { return doc.Components.Schemas["APIEntities"+name].Value.Properties }
	// Lists of others are documented as one of them.
	listed := func(in openapi3.Schemas, name string) {
		in[name] = openapi3.NewArraySchema().WithItems(in[name].Value).NewRef()
	}
	for _, name := range []string{"MergeRequest", "MergeRequestBasic"} {
		listed(entity(name), "assignees")
		listed(entity(name), "reviewers")
	}
	listed(entity("Note"), "suggestions")
	notes := doc.Paths.Find(
		"/api/v4/projects/{id}/merge_requests/{noteable_id}/notes",
	).Get.Responses.Status(http.StatusOK).Value.Content.Get("application/json")
	notes.Schema = openapi3.NewArraySchema().WithItems(notes.Schema.Value).NewRef()
	// Types that its entities do not name are documented as texts, and one the other way round.
	entity("Member")["access_level"] = openapi3.NewIntegerSchema().NewRef()
	entity("Milestone")["group_id"] = openapi3.NewIntegerSchema().NewRef()
	entity("CiPipeline")["coverage"] = openapi3.NewStringSchema().NewRef()
	// What is not there is null, of which no entity says a word; bodies of requests do.
	for kind, s := range doc.Components.Schemas {
		if strings.HasPrefix(kind, "RequestBody_") {
			continue
		}
		for name, one := range s.Value.Properties {
			maybe := *one.Value
			maybe.Nullable = true
			s.Value.Properties[name] = maybe.NewRef()
		}
	}
	// What is made is answered with 201.
	for _, path := range []string{"statuses/{sha}", "repository/commits"} {
		r := doc.Paths.Find("/api/v4/projects/{id}/" + path).Post.Responses
		r.Set("201", r.Value("200"))
		r.Delete("200")
	}
	// The body of a commit is documented as the file that GitLab's own proxy makes of it.
	raw, err := published.ReadFile("openapi/gitlab-commit.json")
	if err != nil {
		return err
	}
	var body openapi3.Schema
	if err := json.Unmarshal(raw, &body); err != nil {
		return err
	}
	commits := doc.Paths.Find("/api/v4/projects/{id}/repository/commits").Post
	commits.RequestBody.Value.Content = openapi3.NewContentWithJSONSchema(&body)
	doc.Paths.Set("/api/v4/projects/{id}/repository/branches/{branch}", branches(commits.Parameters))
	return nil
}

// branches is the operation that reads one branch, as doc/api/branches.md has it in words.
func branches(project openapi3.Parameters) *openapi3.PathItem {
	answer := openapi3.NewObjectSchema()
	for _, name := range []string{
		"merged", "protected", "default", "can_push", "developers_can_push", "developers_can_merge",
	} {
		answer.WithProperty(name, openapi3.NewBoolSchema())
	}
	answer.WithProperty("name", openapi3.NewStringSchema()).WithProperty("web_url", openapi3.NewStringSchema()).
		WithProperty("commit", openapi3.NewObjectSchema())
	name := openapi3.NewPathParameter("branch").WithSchema(openapi3.NewStringSchema())
	text := "-"
	found := &openapi3.Response{Description: &text, Content: openapi3.NewContentWithJSONSchema(answer)}
	return &openapi3.PathItem{Get: &openapi3.Operation{
		Parameters: append(project[:len(project):len(project)], &openapi3.ParameterRef{Value: name}),
		Responses:  openapi3.NewResponses(openapi3.WithStatus(http.StatusOK, &openapi3.ResponseRef{Value: found})),
	}}
}
