package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"ordain.dev/ordain/internal/fault"
)

const sharedCatalogue = "/api/v2/cluster"

// place is the catalogue that a command is about: the one of a project, or the one that all projects share.
type place struct {
	*remote
	project string
	shared  bool
	path    string // of the catalogue; empty: it was not looked for
}

func (p *place) flags(c *cobra.Command) {
	l := c.PersistentFlags()
	l.StringVar(&p.project, "project", os.Getenv("ORDAIN_PROJECT"),
		"project of the catalogue (or ORDAIN_PROJECT); not needed if there is only one")
	l.BoolVar(&p.shared, "shared", false, "the catalogue that all projects share")
}

// base returns the path of the catalogue.
func (p *place) base(c *cobra.Command) (string, error) {
	if p.path != "" {
		return p.path, nil
	}
	p.path = sharedCatalogue
	if p.shared {
		if c.Flags().Changed("project") {
			return "", usageError{errors.New("--project and --shared cannot be combined")}
		}
		return p.path, nil
	}
	id, err := p.projectID(c, p.project)
	p.path += "/project/" + id
	return p.path, err
}

// projectID returns the id of the project with a name or an id; without a name, of the only one.
func (r *remote) projectID(c *cobra.Command, name string) (string, error) {
	var projects []row
	if err := r.call(c, get, "/api/v2/project", nil, &projects); err != nil {
		return "", err
	}
	if name == "" {
		if len(projects) == 1 {
			return cell(projects[0], "id"), nil
		}
		var names []string
		for _, one := range projects {
			names = append(names, cell(one, "name"))
		}
		return "", usageError{fmt.Errorf("say which project with --project, or --shared; there are %s", someOf(names))}
	}
	i := slices.IndexFunc(projects, func(one row) bool { return one["name"] == name || one["id"] == name })
	if i < 0 {
		return "", fmt.Errorf("there is no project called %s; see ordain project list", name)
	}
	return cell(projects[i], "id"), nil
}

// at sends a request to a path below the catalogue.
func (p *place) at(c *cobra.Command, method, path string, body, out any) error {
	base, err := p.base(c)
	if err != nil {
		return err
	}
	return p.call(c, method, base+path, body, out)
}

// catalogueKinds are the kinds of the catalogue, with what else people call them.
var catalogueKinds = map[string][]string{
	"providers":        {"provider"},
	"hardwaretypes":    {"hardwaretype", "hardware"},
	"imagetypes":       {"imagetype", "image", "images"},
	"services":         {"service"},
	"clustertemplates": {"clustertemplate", "template", "templates"},
	"partialtemplates": {"partialtemplate", "partial", "partials"},
	"providertypes":    {"providertype"},
	"automatortypes":   {"automatortype"},
}

// catalogueKind returns a kind by one of its names.
func catalogueKind(name string) (string, error) {
	for kind, others := range catalogueKinds {
		if kind == name || slices.Contains(others, name) {
			return kind, nil
		}
	}
	return "", usageError{fmt.Errorf("there is no kind %s; there are %s", name,
		strings.Join(sortedKeys(catalogueKinds), ", "))}
}

// newCatalogue makes `ordain cluster catalogue`.
func newCatalogue(r *remote) *cobra.Command {
	p := &place{remote: r}
	var version int
	versioned := func(path string) string {
		if version > 0 {
			path += "/" + strconv.Itoa(version)
		}
		return path
	}
	show := command("show KIND NAME", "Print the JSON of an entity; a marker stands for secrets",
		func(c *cobra.Command, args []string) error {
			one, err := p.entity(c, args[0], versioned("/"+escape(args[1])))
			if err != nil {
				return err
			}
			if r.format == "json" {
				return r.showJSON(c, one)
			}
			return r.showJSON(c, one["content"])
		})
	del := command("delete KIND NAME", "Delete an entity that nothing uses; with --version, an old version",
		func(c *cobra.Command, args []string) error {
			kind, err := catalogueKind(args[0])
			if err != nil {
				return err
			}
			return p.at(c, remove, versioned("/"+kind+"/"+escape(args[1])), nil, nil)
		})
	for _, one := range []*cobra.Command{show, del} {
		one.Flags().IntVar(&version, "version", 0, "this version; the newest by default")
	}
	g := &cobra.Command{
		Use:   "catalogue",
		Short: "What clusters are made of: templates, services, providers and others",
	}
	g.Long = "A project uses what is in its own catalogue and in the shared one. A kind is one of\n" +
		strings.Join(sortedKeys(catalogueKinds), ", ") + "."
	p.flags(g)
	g.AddCommand(
		command("list KIND", "List what there is of a kind", func(c *cobra.Command, args []string) error {
			kind, err := catalogueKind(args[0])
			if err != nil {
				return err
			}
			var rows []row
			if err := p.at(c, get, "/"+kind, nil, &rows); err != nil {
				return err
			}
			if r.format == "json" {
				return r.showJSON(c, rows)
			}
			for _, one := range rows {
				one["from"] = origin(one)
			}
			return r.show(c, rows, "name", "version", "from", "made", "made_by", "content.description")
		}),
		show,
		command("versions KIND NAME", "List the versions of an entity, newest first",
			func(c *cobra.Command, args []string) error {
				kind, err := catalogueKind(args[0])
				if err != nil {
					return err
				}
				var rows []row
				if err := p.at(c, get, "/"+kind+"/"+escape(args[1])+"/versions", nil, &rows); err != nil {
					return err
				}
				return r.show(c, rows, "version", "made", "made_by", "deleted")
			}),
		command("create KIND FILE", "Create an entity from a file with its JSON; - is standard input",
			func(c *cobra.Command, args []string) error { return p.write(c, post, args[0], "", args[1]) }),
		command("replace KIND NAME FILE", "Write a new version of an entity from a file; - is standard input",
			func(c *cobra.Command, args []string) error {
				return p.write(c, put, args[0], "/"+escape(args[1]), args[2])
			}),
		del)
	return g
}

// origin says where an entity is from.
func origin(one row) string {
	switch {
	case one["built_in"] == true:
		return "built in"
	case one["project"] == nil:
		return "shared"
	}
	return "project"
}

func (p *place) entity(c *cobra.Command, kind, path string) (one row, err error) {
	if kind, err = catalogueKind(kind); err != nil {
		return nil, err
	}
	return one, p.at(c, get, "/"+kind+path, nil, &one)
}

// maxEntity bounds how much is read of an entity.
const maxEntity = 4 << 20

// write sends the JSON of an entity.
func (p *place) write(c *cobra.Command, method, kind, path, file string) error {
	kind, err := catalogueKind(kind)
	if err != nil {
		return err
	}
	text, err := readEntity(c, file)
	if err != nil {
		return err
	}
	var one row
	if err := p.at(c, method, "/"+kind+path, text, &one); err != nil {
		return err
	}
	return p.show(c, []row{one}, "kind", "name", "version")
}

// readEntity reads a file with JSON, which is sent as it is.
func readEntity(c *cobra.Command, file string) (json.RawMessage, error) {
	text, err := readInput(c, file, maxEntity)
	if err != nil {
		return nil, err
	}
	return text, checkJSON(file, text)
}

// checkJSON says where a file is not JSON.
func checkJSON(file string, text []byte) error {
	var any json.RawMessage
	err := json.Unmarshal(text, &any)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		line := 1 + strings.Count(string(text[:min(int(syntax.Offset), len(text))]), "\n")
		return fmt.Errorf("%s:%d: this is not JSON: %w", file, line, err)
	}
	return err
}

// newClusterTemplate makes `ordain cluster template`.
func newClusterTemplate(r *remote) *cobra.Command {
	p := &place{remote: r}
	var size int
	var services []string
	var provider, hardware, image string
	try := command("try FILE|NAME", "Check a template and show the machines that it gives; nothing is kept",
		func(c *cobra.Command, args []string) error {
			template, err := p.template(c, args[0])
			if err != nil {
				return err
			}
			body := row{"template": template, "services": services, "provider": provider, "hardwaretype": hardware,
				"imagetype": image}
			if c.Flags().Changed("size") {
				body["numMachines"] = size
			}
			var tried row
			if err := p.at(c, post, "/clustertemplates/try", body, &tried); err != nil {
				return err
			}
			return p.tried(c, tried)
		})
	l := try.Flags()
	l.IntVar(&size, "size", 0, "how many machines; without it, the template is only checked")
	l.StringSliceVar(&services, "services", nil, "services, a,b; those of the template by default")
	l.StringVar(&provider, "provider", "", "who provides the machines")
	l.StringVar(&hardware, "hardware", "", "hardware type of all machines")
	l.StringVar(&image, "image", "", "image type of all machines")
	p.flags(try)
	g := &cobra.Command{Use: "template", Short: "Try templates of clusters"}
	g.AddCommand(try)
	return g
}

// template returns the JSON of a template: of a file, or else of the template with this name.
func (p *place) template(c *cobra.Command, name string) (any, error) {
	if _, err := os.Stat(name); name == "-" || err == nil {
		return readEntity(c, name)
	}
	one, err := p.entity(c, "clustertemplates", "/"+escape(name))
	if fault.Is(err, fault.NotFound) {
		return nil, fmt.Errorf("there is no file %s, and %w", name, err)
	}
	return one["content"], err
}

// tried prints the machines that a template gives, or why it gives none.
func (p *place) tried(c *cobra.Command, tried row) error {
	if p.format == "json" {
		if err := p.showJSON(c, tried); err != nil {
			return err
		}
	}
	switch reasons, _ := tried["reasons"].([]any); {
	case tried["reasons"] != nil:
		if p.format != "json" {
			fmt.Fprintln(c.ErrOrStderr(), "ordain: the template gives no such cluster")
			for _, reason := range reasons {
				fmt.Fprintf(c.ErrOrStderr(), "  %s\n", printable(fmt.Sprint(reason)))
			}
			if hint := cell(tried, "hint"); hint != "" {
				fmt.Fprintln(c.ErrOrStderr(), hint)
			}
		}
		return errPrinted
	case p.format == "json":
		return nil
	case tried["nodes"] == nil:
		fmt.Fprintln(c.OutOrStdout(), "the template is right; say --size to see machines")
		return nil
	}
	return p.show(c, rowsOf(tried["nodes"]), "number", "hardwaretype", "imagetype", "services")
}
