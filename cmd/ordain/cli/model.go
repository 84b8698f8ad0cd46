package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"ordain.dev/ordain/compiler"
	"ordain.dev/ordain/gitsync"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/provenance"
)

// explainFlags are the options of `ordain model explain`.
type explainFlags struct {
	remote
	options     compiler.Options
	environment string
	version     int
}

func newModel() *cobra.Command {
	var f explainFlags
	explain := &cobra.Command{
		Use:   "explain WHAT",
		Short: "Say who decided a value",
		Long: "Says where the attributes of a resource or an instance were set: the line, the implementations and constructors that\n" +
			"led there and, in a Git checkout, the commit and author of each line.\n\n" +
			"  ordain model explain 'fs::File[web1,path=/etc/motd].content'       a resource, one attribute\n" +
			"  ordain model explain 'web::Host[name=web1]'                        an instance, by any of its attributes\n" +
			"  ordain model explain site.owner                                    a variable of the main file\n\n" +
			"It compiles the project in the folder; with --environment it asks a server what it has stored.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError{fmt.Errorf("usage: ordain model explain WHAT")}
			}
			return nil
		},
		RunE:        func(c *cobra.Command, args []string) error { return f.run(c, args[0]) },
		Annotations: map[string]string{reports: "yes"},
	}
	flags := explain.Flags()
	projectFlags(explain, &f.options)
	flags.StringVar(&f.environment, "environment", "", "ask the server about this environment")
	flags.IntVar(&f.version, "version", 0, "version of the environment (default: the active one)")
	return f.group("model", "Look into a model", explain)
}

// question is what is asked about: a subject, and perhaps one attribute of it.
type question struct{ subject, attribute string }

// ask reads WHAT: the attribute stands behind the brackets, or behind the last
// dot where there are none.
func ask(what string) question {
	if i := strings.LastIndexByte(what, ']'); i >= 0 {
		if attribute, ok := strings.CutPrefix(what[i+1:], "."); ok {
			return question{what[:i+1], attribute}
		}
		return question{subject: what}
	}
	if i := strings.LastIndexByte(what, '.'); i >= 0 {
		return question{what[:i], what[i+1:]}
	}
	return question{subject: what}
}

// isResource tells a resource id from a selector of instances: the agent comes
// first, without a name.
func (q question) isResource() bool {
	_, inside, ok := strings.Cut(q.subject, "[")
	first, _, many := strings.Cut(inside, ",")
	return ok && many && !strings.Contains(first, "=")
}

func (f *explainFlags) run(c *cobra.Command, what string) error {
	q := ask(what)
	var e provenance.Explanation
	var err error
	if f.environment != "" {
		e, err = f.askServer(c, q)
	} else {
		e, err = f.compile(c, q)
	}
	if err != nil {
		return err
	}
	if q.attribute != "" {
		if e.Attributes, err = only(e, q); err != nil {
			return err
		}
	}
	if f.format == "json" {
		return f.showJSON(c, e)
	}
	explainer{c.OutOrStdout()}.print(e)
	return nil
}

// only keeps the attribute that was asked about.
func only(e provenance.Explanation, q question) ([]provenance.Attribute, error) {
	var names []string
	for _, a := range e.Attributes {
		if a.Name == q.attribute {
			return []provenance.Attribute{a}, nil
		}
		names = append(names, a.Name)
	}
	return nil, unmatched("attribute", q.attribute+" of "+e.Subject, closest(q.attribute, names))
}

// unmatched says that nothing is called so, and what is.
func unmatched(kind, name string, near []string) error {
	text := fmt.Sprintf("there is no %s %s", kind, printable(name))
	if len(near) > 0 {
		text += "; did you mean\n"
		for _, n := range near {
			text += "    " + printable(n) + "\n"
		}
	}
	return unknownError{errors.New(strings.TrimRight(text, "\n"))}
}

// compile compiles the project and looks into the model.
func (f *explainFlags) compile(c *cobra.Command, q question) (provenance.Explanation, error) {
	o := f.options
	o.Export = q.isResource()
	if err := chooseCache(&o.CacheDir); err != nil {
		return provenance.Explanation{}, err
	}
	o.OnOutput = func(_, line string) { fmt.Fprintln(c.ErrOrStderr(), line) }
	if o.Python != "" {
		o.SitePackages = compiler.PackagesOf(o.Python)
	} else if err := chooseInterpreter(c.Context(), &o); err != nil {
		return provenance.Explanation{}, err
	}
	out := compiler.Run(c.Context(), o)
	if !out.Document.Success {
		say := sayer{format: f.format}
		return provenance.Explanation{}, say.outcome(c, out)
	}
	var e provenance.Explanation
	var err error
	if o.Export {
		e, err = explainResource(out, q)
	} else {
		e, err = explainInstance(out, q)
	}
	if err != nil {
		return e, err
	}
	fields := make([]provenance.Field, len(e.Attributes))
	for i := range e.Attributes {
		fields[i] = e.Attributes[i].Field
	}
	provenance.Attach(fields, blameBelow(c.Context(), o.Project))
	return e, nil
}

// blameBelow asks Git about files, relative ones in a folder.
func blameBelow(ctx context.Context, dir string) provenance.Blamer {
	return func(file string) provenance.Blame {
		if !filepath.IsAbs(file) {
			file = filepath.Join(dir, file)
		}
		lines, err := gitsync.BlameFile(ctx, file)
		if err != nil {
			return nil // it is in no repository: there is nobody to name
		}
		return lines
	}
}

func explainResource(out *compiler.Outcome, q question) (provenance.Explanation, error) {
	e := provenance.Explanation{Subject: q.subject}
	var ids []string
	for _, r := range out.Document.Resources {
		id := r.ID.String()
		if id != q.subject {
			ids = append(ids, id)
			continue
		}
		var values map[string]json.RawMessage
		if err := json.Unmarshal(r.Attributes, &values); err != nil {
			return e, err
		}
		if out.Document.Provenance != nil {
			fields, _ := out.Document.Provenance.Explain(id)
			e.Attributes = provenance.WithValues(fields, values)
		}
		return e, nil
	}
	return e, unmatched("resource", q.subject, closest(q.subject, ids))
}

// askServer asks what a server has stored.
func (f *explainFlags) askServer(c *cobra.Command, q question) (provenance.Explanation, error) {
	var e provenance.Explanation
	if !q.isResource() {
		return e, usageError{
			fmt.Errorf(
				"a server knows resources, such as mod::Type[agent,name=x]; instances are known where the project is",
			),
		}
	}
	version := strconv.Itoa(f.version)
	if f.version == 0 {
		var active []struct {
			Version int `json:"version"`
		}
		if err := f.in(c, f.environment, get, "/api/v2/desiredstate?limit=1&filter.status=active", nil, &active); err != nil {
			return e, err
		}
		if len(active) == 0 {
			return e, fmt.Errorf("the environment %s has no active version; --version names another", f.environment)
		}
		version = strconv.Itoa(active[0].Version)
	}
	err := f.in(c, f.environment, http.MethodGet,
		"/api/v2/desiredstate/"+version+"/resource/"+escape(q.subject)+"/provenance", nil, &e)
	if fault.Is(err, fault.NotFound) {
		if near := f.near(c, version, q.subject); len(near) > 0 && near[0] != q.subject {
			return e, unmatched("resource", q.subject+" in version "+version, near)
		}
	}
	return e, err
}

// near gives resources of a version with ids like that.
func (f *explainFlags) near(c *cobra.Command, version, id string) []string {
	kind, _, _ := strings.Cut(id, "[")
	var ids []string
	for _, filter := range []string{"&filter.resource_type=" + escape(kind), ""} {
		var rows []struct {
			ID string `json:"resource_id"`
		}
		if err := f.in(c, f.environment, get, "/api/v2/desiredstate/"+version+"?limit=1000"+filter, nil, &rows); err != nil {
			return nil // the first error says more
		}
		for _, r := range rows {
			ids = append(ids, r.ID)
		}
		if len(ids) > 0 {
			break
		}
	}
	return closest(id, ids)
}
