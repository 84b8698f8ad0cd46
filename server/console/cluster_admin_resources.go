package console

import (
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/access/audit"
	"ordain.dev/ordain/server/cluster/catalogue"
	"ordain.dev/ordain/server/store"
)

// clusterAdminResourcesPage lists the files of plug-ins, and changes them.
type clusterAdminResourcesPage struct {
	frame
	Nav      catalogueNav
	Action   string
	Shared   bool
	May      bool
	Statuses []choice
	Name     string
	Any      bool
	Rows     []resourceFileRow
	Pager    pager
	Types    []resourceTypeOption
	Staged   int
	Recalled int
}

type resourceFileRow struct {
	Plugin, Type, Name string
	Kind               string
	Version            int
	Size               string
	State              state
	Made               time.Time
	By                 string
	Shared             bool
	Stage, Recall      bool // may be done
	Delete             bool
}

type resourceTypeOption struct {
	Value, Text string
	Uses        string
}

var resourceStates = map[intent.ClusterResourceStatus]state{
	intent.ResourceActive:   {"intended", "active"},
	intent.ResourceStaged:   {"differs", "staged"},
	intent.ResourceRecalled: {"waiting", "recalled"},
	intent.ResourceInactive: {"none", "inactive"},
}

func (c *console) pluginResources(r *http.Request) (view, error) {
	s, err := c.catalogueScope(r)
	if err != nil {
		return view{}, err
	}
	f, nav, err := c.adminFrame(r, s, "Plug-in resources", "resources", crumb{Text: "Plug-in resources"})
	if err != nil {
		return view{}, err
	}
	query := r.URL.Query()
	p := clusterAdminResourcesPage{
		frame: f, Nav: nav, Action: s.base + "/plugin-resources", Shared: s.Shared,
		May:  s.may(r, access.UploadResource, access.UploadSharedResource),
		Name: strings.TrimSpace(query.Get("name")),
	}
	status := intent.ClusterResourceStatus(query.Get("status"))
	if _, known := resourceStates[status]; !known {
		status = ""
	}
	p.Any = status != "" || p.Name != ""
	p.Statuses = []choice{{Value: "", Text: "any", Selected: status == ""}}
	for _, one := range []intent.ClusterResourceStatus{
		intent.ResourceActive, intent.ResourceStaged, intent.ResourceRecalled, intent.ResourceInactive,
	} {
		p.Statuses = append(p.Statuses, choice{string(one), string(one), one == status})
	}
	all, err := c.resourceFiles.List(r.Context(), s.Project.ID, store.ClusterResourceFilter{Shared: !s.Shared})
	if err != nil {
		return view{}, err
	}
	var rows []intent.ClusterResource
	for _, one := range all {
		mine := one.Project == s.Project.ID
		if mine && one.Status() == intent.ResourceStaged {
			p.Staged++
		}
		if mine && one.Status() == intent.ResourceRecalled {
			p.Recalled++
		}
		if (status == "" || one.Status() == status) && strings.Contains(strings.ToLower(one.Name),
			strings.ToLower(p.Name)) {
			rows = append(rows, one)
		}
	}
	keep := map[string][]string{}
	if status != "" {
		keep["status"] = []string{string(status)}
	}
	if p.Name != "" {
		keep["name"] = []string{p.Name}
	}
	from, to, pages := numbered(query.Get("page"), len(rows), p.Action, keep)
	p.Pager = pages
	for _, one := range rows[from:to] {
		p.Rows = append(p.Rows, resourceFile(one, s, p.May))
	}
	catalogued, err := c.catalogue.Catalogue(r.Context(), s.Project.ID)
	if err != nil {
		return view{}, err
	}
	p.Types = resourceTypes(catalogued)
	return view{template: "cluster_admin_resources", data: p}, nil
}

func resourceFile(one intent.ClusterResource, s catalogueScope, may bool) resourceFileRow {
	may = may && one.Project == s.Project.ID
	status := one.Status()
	return resourceFileRow{
		Plugin: one.Plugin, Type: one.Type, Name: one.Name, Kind: one.Kind, Version: one.Version,
		Size: bytesText(one.Size), State: resourceStates[status], Made: one.Made, By: one.MadeBy,
		Shared: one.Project != s.Project.ID,
		Stage:  may && !one.Slated, Recall: may && one.Slated, Delete: may && status == intent.ResourceInactive,
	}
}

// resourceTypes lists the types of resources of all plug-ins.
func resourceTypes(all *catalogue.Catalogue) (out []resourceTypeOption) {
	add := func(kind catalogue.Kind, plugins map[string]*catalogue.PluginType) {
		for _, plugin := range sortedNames(plugins) {
			types := plugins[plugin].ResourceTypes
			for _, name := range sortedNames(types) {
				out = append(out, resourceTypeOption{
					Value: string(kind) + "/" + plugin + "/" + name,
					Text:  plugin + ": " + name + " (" + types[name].Format + ")",
				})
			}
		}
	}
	add(catalogue.ProviderTypes, all.ProviderTypes)
	add(catalogue.AutomatorTypes, all.AutomatorTypes)
	return out
}

// uploadResource streams a file into the store of resources. The fields of the form stand before the file.
func (c *console) uploadResource(w http.ResponseWriter, r *http.Request) {
	added, s, err := c.takeUpload(r)
	if err != nil {
		audit.Failed(r.Context(), err)
		c.fail(w, r, err)
		return
	}
	audit.Subject(r.Context(),
		fmt.Sprintf("the resource %s of %s, version %d", added.Name, added.Plugin, added.Version))
	http.Redirect(w, r, s.base+"/plugin-resources?done=resourceuploaded", http.StatusSeeOther)
}

func (c *console) takeUpload(r *http.Request) (added intent.ClusterResource, s catalogueScope, err error) {
	const op = "console.upload"
	if s, err = c.catalogueScope(r); err != nil {
		return added, s, err
	}
	form, err := r.MultipartReader()
	if err != nil {
		return added, s, fault.New(op, fault.Invalid, "the form has no file")
	}
	fields := map[string]string{}
	for {
		part, err := form.NextRawPart()
		if err == io.EOF {
			return added, s, fault.New(op, fault.Invalid, "no file was chosen")
		}
		if err != nil {
			return added, s, unreadable(op, err)
		}
		if part.FormName() != "file" {
			text, err := io.ReadAll(io.LimitReader(part, 10_000))
			if err != nil {
				return added, s, unreadable(op, err)
			}
			if len(fields) < 20 {
				fields[part.FormName()] = strings.TrimSpace(string(text))
			}
			continue
		}
		_, parameters, _ := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
		if parameters["filename"] == "" {
			return added, s, fault.New(op, fault.Invalid, "no file was chosen")
		}
		ref, err := resourceOf(fields["type"], fields["name"], s.Project.ID)
		if err != nil {
			return added, s, err
		}
		added, err = c.resourceFiles.Upload(r.Context(), ref, part)
		return added, s, err
	}
}

// resourceOf reads the type of a resource, as providertypes/pool/ssh_keys.
func resourceOf(kind, name string, project intent.ProjectID) (ref intent.ClusterResourceRef, err error) {
	parts := strings.Split(kind, "/")
	if len(parts) != 3 {
		return ref, fault.New("console.resource", fault.Invalid, "choose the plug-in and the type of the resource")
	}
	return intent.ClusterResourceRef{
		Project: project, Kind: parts[0], Plugin: parts[1], Type: parts[2], Name: name,
	}, nil
}

func (c *console) doChangeResource(r *http.Request) (string, error) {
	s, err := c.catalogueScope(r)
	if err != nil {
		return "", err
	}
	ref, err := resourceOf(field(r, "type"), field(r, "name"), s.Project.ID)
	if err != nil {
		return "", err
	}
	if ref.Version, err = strconv.Atoi(field(r, "version")); err != nil {
		return "", fault.New("console.resource", fault.Invalid, "the form names no version")
	}
	audit.Subject(r.Context(), fmt.Sprintf("the resource %s of %s, version %d", ref.Name, ref.Plugin, ref.Version))
	done := ""
	switch r.PostFormValue("do") {
	case "stage":
		done = "resourcestaged"
		_, err = c.resourceFiles.Stage(r.Context(), ref)
	case "recall":
		done = "resourcerecalled"
		_, err = c.resourceFiles.Recall(r.Context(), ref)
	case "delete":
		done = "resourcedeleted"
		err = c.resourceFiles.Delete(r.Context(), ref)
	default:
		err = fault.New("console.resource", fault.Invalid, "the form does not say what to do")
	}
	return s.base + "/plugin-resources?done=" + done, err
}

func (c *console) doSyncResources(r *http.Request) (string, error) {
	s, err := c.catalogueScope(r)
	if err != nil {
		return "", err
	}
	done, err := c.resourceFiles.Sync(r.Context(), s.Project.ID)
	if err != nil {
		return "", err
	}
	changed := slices.Concat(done.Activated, done.Retired)
	audit.Subject(r.Context(), fmt.Sprintf("%d resources of plug-ins", len(changed)))
	return s.base + "/plugin-resources?done=resourcesynced", nil
}
