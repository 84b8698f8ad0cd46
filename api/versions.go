package api

import (
	"context"
	"net/http"
	"strconv"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/internal/provenance"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/store"
)

func (s *server) versionCalls(c *calls) {
	const path, one = "/api/v2/desiredstate", "/api/v2/desiredstate/{version}"
	whole(c, http.MethodGet, "/api/v1/version", "List the versions, newest first.",
		access.SeeVersions, s.listVersionsV1)
	whole(c, http.MethodGet, "/api/v1/version/{id}", "Show a version with its resources.",
		access.SeeVersions, s.getVersionV1)
	whole(c, http.MethodPost, "/api/v1/version/{id}", "Release a version.", access.Release, s.releaseVersionV1)
	done[object](c, http.MethodDelete, "/api/v1/version/{id}", "Delete a version.",
		access.DeleteVersion, s.deleteVersion)
	whole(c, http.MethodGet, path, "List the versions.", access.SeeVersions, s.listVersions, pagesOf(store.VersionList))
	done[noBody](c, http.MethodPost, one+"/promote", "Release a version.", access.Release, s.promoteVersion)
	whole(c, http.MethodGet, one, "List the resources of a version.", access.SeeVersions, s.listVersionResources,
		pagesOf(store.VersionResourceList))
	v2(c, http.MethodGet, one+"/resource/{rid}", "Show a resource as a version has it.",
		access.SeeVersions, s.getVersionResource)
	v2(c, http.MethodGet, one+"/resource/{rid}/provenance",
		"Show where the attributes of a resource were set, and by whose commits.",
		access.SeeVersions, s.explainResource)
	v2(c, http.MethodGet, path+"/diff/{from}/{to}", "Compare two versions.", access.SeeVersions, s.diffVersions)
}

// version is a version in a list.
type version struct {
	Version  int                  `json:"version"`
	Date     timestamp            `json:"date"`
	Total    int                  `json:"total"`
	Labels   []versionLabel       `json:"labels"`
	Status   intent.VersionStatus `json:"status"`
	Released bool                 `json:"released"`
	Hold     *hold                `json:"hold"`
	Pushed   *pushed              `json:"pushed"`
}

type versionLabel struct {
	Name    string `json:"name"`
	Message string `json:"message"`
}

// versionV1 is a version as version 1 shows it, with the keys that clients of version 14 read.
type versionV1 struct {
	Environment                  uuid.UUID   `json:"environment"`
	Version                      int         `json:"version"`
	Date                         timestamp   `json:"date"`
	Total                        int         `json:"total"`
	Released                     bool        `json:"released"`
	VersionInfo                  versionInfo `json:"version_info"`
	Undeployable                 []string    `json:"undeployable"`
	SkippedForUndeployable       []string    `json:"skipped_for_undeployable"`
	PartialBase                  *int        `json:"partial_base"`
	PipConfig                    *struct{}   `json:"pip_config"`
	Pushed                       *pushed     `json:"pushed"`
	ProjectConstraints           *string     `json:"project_constraints"`
	IsSuitableForPartialCompiles bool        `json:"is_suitable_for_partial_compiles"`
	Deployed                     bool        `json:"deployed"`
	Done                         int         `json:"done"`
	Result                       string      `json:"result"`
	Status                       struct{}    `json:"status"`
}

type versionInfo struct {
	ExportMetadata exportMetadata `json:"export_metadata"`
}

type exportMetadata struct {
	Type    string    `json:"type"`
	Message string    `json:"message"`
	Compile uuid.UUID `json:"compile"`
	Commit  string    `json:"commit"`
	Branch  string    `json:"branch"`
	Author  string    `json:"author"`
	Subject string    `json:"subject"`
}

type versionEnvelope struct {
	Model versionV1 `json:"model"`
}

type wholeVersion struct {
	Model     versionV1          `json:"model"`
	Resources []loggedResourceV1 `json:"resources"`
	Unknowns  []struct{}         `json:"unknowns"`
}

type versionsEnvelope struct {
	Versions []versionV1 `json:"versions"`
	Start    *int        `json:"start"`
	Limit    *int        `json:"limit"`
	Count    int         `json:"count"`
}

type versionResource struct {
	resourceBase
	ResourceVersionID string `json:"resource_version_id"`
	Version           int    `json:"version"`
}

// oneVersion are the arguments of calls about a version; oneVersionV1 those of version 1, which call it id.
type oneVersion struct {
	inEnvironment
	Version int `arg:"version,required"`
}

type oneVersionV1 struct {
	inEnvironment
	ID int `arg:"id,required"`
}

type releaseV1 struct {
	oneVersionV1
	Push    bool          `arg:"push"`
	Trigger triggerMethod `arg:"agent_trigger_method"`
}

type promotedVersion struct {
	oneVersion
	Trigger promoteTrigger `arg:"trigger_method"`
}

type versionPage struct {
	oneVersion
	paging
}

type oneVersionResource struct {
	oneVersion
	ID intent.ResourceID `arg:"rid,required"`
}

type twoVersions struct {
	inEnvironment
	From int `arg:"from,required"`
	To   int `arg:"to,required"`
}

type versionRows struct {
	inEnvironment
	Start *int `arg:"start"`
	Limit *int `arg:"limit"`
}

type versionWithLogs struct {
	oneVersionV1
	IncludeLogs bool   `arg:"include_logs"`
	LogFilter   string `arg:"log_filter"`
	Limit       int    `arg:"limit"`
}

func (s *server) releaseVersionV1(ctx context.Context, a releaseV1) (versionEnvelope, error) {
	if err := s.release(ctx, a.Env, a.ID, a.Push, a.Trigger); err != nil {
		return versionEnvelope{}, as404(err, "The request version does not exist.")
	}
	v, err := s.store.Version(ctx, a.Env, a.ID)
	if err != nil {
		return versionEnvelope{}, err
	}
	p, err := s.progress(ctx, a.Env)
	return versionEnvelope{versionV1Of(v, p)}, err
}

func (s *server) deleteVersion(ctx context.Context, a oneVersionV1) error {
	return as400(s.control.DeleteVersion(ctx, a.Env, a.ID), fault.Conflict) // it is the active one
}

func (s *server) listVersions(ctx context.Context, a pageIn) (page[version], error) {
	q, err := a.query(store.VersionList)
	if err != nil {
		return page[version]{}, err
	}
	found, err := s.store.Versions(ctx, a.Env, q)
	return pageOf(address{path: "/api/v2/desiredstate", list: store.VersionList}, q, found, versionOf,
		func(v intent.Version) place { return at(strconv.Itoa(v.Number), "") }), err
}

func (s *server) promoteVersion(ctx context.Context, a promotedVersion) error {
	push, how := a.Trigger.split()
	return as404(s.release(ctx, a.Env, a.Version, push, how), "The request version does not exist.")
}

func (s *server) listVersionResources(ctx context.Context, a versionPage) (page[resourceLine], error) {
	q, err := a.query(store.VersionResourceList)
	if err != nil {
		return page[resourceLine]{}, err
	}
	if _, err := s.store.Version(ctx, a.Env, a.Version); err != nil {
		return page[resourceLine]{}, err
	}
	found, err := s.store.VersionResourcePage(ctx, a.Env, a.Version, q)
	where := address{path: "/api/v2/desiredstate/" + strconv.Itoa(a.Version), list: store.VersionResourceList}
	return pageOf(where, q, found,
		func(r intent.Resource) resourceLine { return resourceLineOf(r.ID, r.Version, r.Requires) },
		func(r intent.Resource) place { return resourcePlace(q.Sort, r.ID, "") }), err
}

func (s *server) getVersionResource(ctx context.Context, a oneVersionResource) (versionResource, error) {
	r, err := s.store.VersionResource(ctx, a.Env, a.Version, a.ID)
	return versionResource{resourceBaseOf(r), r.ID.AtVersion(r.Version), r.Version}, err
}

func (s *server) explainResource(ctx context.Context, a oneVersionResource) (provenance.Explanation, error) {
	return s.control.Explain(ctx, a.Env, a.Version, a.ID)
}

func (s *server) diffVersions(ctx context.Context, a twoVersions) ([]resourceDiff, error) {
	diffs, err := s.control.DiffVersions(ctx, a.Env, a.From, a.To)
	if err != nil {
		return nil, err
	}
	out := listed(diffs, diffOf)
	return out, s.addLines(ctx, a.Env, diffs, func(i int) map[string]attributeDiff { return out[i].Attributes })
}

// listVersionsV1 lists versions from the newest on; start counts rows.
func (s *server) listVersionsV1(ctx context.Context, a versionRows) (versionsEnvelope, error) {
	out := versionsEnvelope{Versions: []versionV1{}, Start: a.Start, Limit: a.Limit}
	if a.Limit == nil && a.Start != nil {
		return out, invalid("start needs a limit too")
	}
	q, err := paging{}.query(store.VersionList)
	if err != nil {
		return out, err
	}
	start, limit := 0, store.MaxPage
	if a.Start != nil {
		start = max(0, *a.Start)
	}
	if a.Limit != nil {
		if *a.Limit > store.MaxPage || *a.Limit < 0 {
			return out, invalid("the parameter limit can not exceed %d", store.MaxPage)
		}
		if *a.Limit > 0 {
			limit = *a.Limit
		}
	}
	progress, err := s.progress(ctx, a.Env)
	if err != nil {
		return out, err
	}
	for seen := 0; ; {
		found, err := s.store.Versions(ctx, a.Env, q)
		if err != nil {
			return out, err
		}
		out.Count = found.Total
		for _, v := range found.Items {
			if seen >= start && len(out.Versions) < limit {
				out.Versions = append(out.Versions, versionV1Of(v, progress))
			}
			seen++
		}
		if len(out.Versions) == limit || found.After == 0 || len(found.Items) == 0 {
			return out, nil
		}
		last := strconv.Itoa(found.Items[len(found.Items)-1].Number)
		q.Before = &intent.Bound{Value: &last}
	}
}

// getVersionV1 shows a version with its resources and, when they are asked for, what was done to these.
func (s *server) getVersionV1(ctx context.Context, a versionWithLogs) (wholeVersion, error) {
	v, err := s.store.Version(ctx, a.Env, a.ID)
	if err != nil {
		return wholeVersion{}, err
	}
	all, err := s.store.VersionResources(ctx, a.Env, a.ID)
	if err != nil {
		return wholeVersion{}, err
	}
	states, err := s.statuses(ctx, a.Env)
	if err != nil {
		return wholeVersion{}, err
	}
	var logs map[intent.ResourceID][]intent.Action
	if a.IncludeLogs {
		if logs, err = s.actionsOfVersion(ctx, a.Env, a.ID, intent.ActionKind(a.LogFilter), a.Limit); err != nil {
			return wholeVersion{}, err
		}
	}
	p, err := s.progress(ctx, a.Env)
	return wholeVersion{versionV1Of(v, p), listed(all, func(r intent.Resource) loggedResourceV1 {
		one := loggedResourceV1{resourceV1: resourceV1Of(a.Env, r, states[r.ID])}
		if a.IncludeLogs {
			one.Actions = new(listed(logs[r.ID], actionOf))
		}
		return one
	}), []struct{}{}}, err
}

// progress is how far the active version is deployed, which clients of version 14 read.
type progress struct {
	active int
	counts map[intent.Status]int
}

func (s *server) progress(ctx context.Context, env intent.EnvironmentID) (progress, error) {
	var p progress
	active, err := s.store.ActiveVersion(ctx, env)
	if err != nil || active == nil {
		return p, err
	}
	p.active = active.Number
	p.counts, err = s.store.ResourceCounts(ctx, env)
	return p, err
}

// of returns the keys deployed, done and result of a version.
func (p progress) of(v intent.Version) (deployed bool, done int, result string) {
	if v.Released == nil {
		return false, 0, "pending"
	}
	if v.Number != p.active {
		return true, v.Total, "success"
	}
	result = "success"
	for status, n := range p.counts {
		switch status {
		case intent.StatusAvailable, intent.StatusDeploying:
			if n > 0 {
				result = "deploying"
			}
			continue
		case intent.StatusDeployed:
		default:
			if n > 0 && result == "success" {
				result = "failed"
			}
		}
		done += n
	}
	return result != "deploying", done, result
}

func versionV1Of(v intent.Version, p progress) versionV1 {
	out := versionV1{
		Environment: v.Environment, Version: v.Number, Date: stamp(v.Created), Total: v.Total,
		Released: v.Released != nil, Undeployable: []string{}, SkippedForUndeployable: []string{},
	}
	out.Deployed, out.Done, out.Result = p.of(v)
	from := v.Provenance
	out.VersionInfo.ExportMetadata = exportMetadata{
		Type: from.Trigger.Type, Message: from.Trigger.Message, Compile: from.Compile, Commit: from.Commit,
		Branch: from.Branch, Author: from.Author, Subject: from.Subject,
	}
	if p := from.Pushed; p != nil {
		out.Pushed, out.ProjectConstraints = pushedOf(p), orNull(p.Constraints)
	}
	if from.PartialBase > 0 {
		out.PartialBase = &from.PartialBase
	}
	return out
}

func versionOf(v intent.Version) version {
	out := version{
		Version: v.Number, Date: stamp(v.Created), Total: v.Total, Labels: []versionLabel{}, Status: v.Status,
		Released: v.Released != nil,
	}
	if t := v.Provenance.Trigger; t.Type != "" {
		out.Labels = append(out.Labels, versionLabel{Name: t.Type, Message: t.Message})
	}
	if p := v.Provenance.Pushed; p != nil {
		out.Pushed = pushedOf(p)
		out.Labels = append(out.Labels, versionLabel{Name: "not from a commit", Message: p.Words()})
	}
	if v.Hold != nil {
		out.Hold = new(holdOf(v))
	}
	return out
}
