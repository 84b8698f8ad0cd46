package cli

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"ordain.dev/ordain/compiler"
	"ordain.dev/ordain/compiler/export"
)

// exportFlags holds the options of `ordain export`.
type exportFlags struct {
	compileFlags
	remote      remote
	environment string
	message     string
	deploy      bool
	allowCode   bool
}

// newExport makes `ordain export`: compile here, deploy there.
func newExport() *cobra.Command {
	f := &exportFlags{}
	c := &cobra.Command{
		Use:   "export",
		Short: "Compile a project here and send the version to a server",
		Long: "Compiles the project in a folder and sends the result to a server as a version, which is marked\n" +
			"there as not from a commit. The environment has to allow it with the setting allow_pushed_versions.\n" +
			"Exit status: 0 the version is stored, 1 the model does not compile or the server refused it.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c) },
	}
	flags := c.Flags()
	projectFlags(c, &f.options)
	f.remote.add(c)
	flags.StringVarP(&f.environment, "environment", "e", os.Getenv("ORDAIN_ENVIRONMENT"),
		"environment to send the version to: its name or id (or ORDAIN_ENVIRONMENT)")
	flags.StringVarP(&f.message, "message", "m", "", "what the version is for; it is kept with it")
	flags.BoolVar(&f.deploy, "deploy", false,
		"deploy the version, even if the environment does not deploy automatically")
	flags.BoolVar(&f.options.Partial, "partial", false, "export only the resource sets that are present")
	flags.StringArrayVar(&f.options.DeleteSets, "delete-resource-set", nil,
		"resource set to remove with a partial export")
	flags.BoolVar(&f.allowCode, "allow-handler-code-update", false,
		"with --partial: use the new code for resources of other resource sets too")
	return c
}

func (f *exportFlags) run(c *cobra.Command) error {
	if f.environment == "" {
		return usageError{errors.New("name the environment with --environment")}
	}
	if f.options.DeleteSets != nil && !f.options.Partial {
		return usageError{errors.New("--delete-resource-set needs --partial")}
	}
	server, err := f.remote.client()
	if err != nil {
		return err
	}
	e, err := server.Find(c.Context(), f.environment)
	if err != nil {
		return err
	}
	if err := chooseCache(&f.options.CacheDir); err != nil {
		return err
	}
	if err := f.limits(); err != nil {
		return err
	}
	f.options.Export, f.options.Environment = true, e.ID
	f.options.OnOutput = func(_, line string) { fmt.Fprintln(c.ErrOrStderr(), line) }
	if f.options.Python != "" {
		f.options.SitePackages = compiler.PackagesOf(f.options.Python)
	}
	out := f.compile(c.Context())
	if !out.Document.Success {
		return f.printer.outcome(c, out)
	}
	if err := f.upload(c, out.Document); err != nil {
		return err
	}
	out.Document.Files = nil
	from := f.origin(c)
	from["client"] = "ordain export " + Version
	var stored struct {
		Version  int    `json:"version"`
		Released bool   `json:"released"`
		Why      string `json:"not_released_because"`
	}
	if err := f.remote.in(c, e.ID, "PUT", "/api/v2/version/document", row{
		"document": out.Document, "from": from, "allow_handler_code_update": f.allowCode,
	}, &stored); err != nil {
		return err
	}
	fmt.Fprintf(c.OutOrStdout(), "Version %d with %d resources is stored in %s; it is not from a commit.\n",
		stored.Version, len(out.Document.Resources), printable(e.Name))
	if f.deploy && !stored.Released && stored.Why == "" {
		path := "/api/v2/desiredstate/" + strconv.Itoa(stored.Version) + "/promote"
		if err := f.remote.in(c, e.ID, post, path, nil, nil); err != nil {
			return err
		}
		stored.Released = true
	}
	switch {
	case stored.Released:
		fmt.Fprintln(c.OutOrStdout(), "It is being deployed.")
	case stored.Why != "":
		fmt.Fprintln(c.OutOrStdout(), "It is not deployed: "+printable(stored.Why))
		if f.deploy {
			return errors.New("the version is stored and not deployed")
		}
	default:
		fmt.Fprintf(c.OutOrStdout(), "Deploy it with: ordain version release %s %d\n", printable(e.Name),
			stored.Version)
	}
	return nil
}

// upload sends the files that the server does not have yet.
func (f *exportFlags) upload(c *cobra.Command, doc *export.Document) error {
	hashes := slices.Sorted(maps.Keys(doc.Files))
	if len(hashes) == 0 {
		return nil
	}
	server, err := f.remote.client()
	if err != nil {
		return err
	}
	var missing struct {
		Files []string `json:"files"`
	}
	if err := server.Call(c.Context(), post, "/api/v1/file", "", row{"files": hashes}, &missing); err != nil {
		return err
	}
	for _, hash := range missing.Files {
		content, ours := doc.Files[hash]
		if !ours {
			return fmt.Errorf("the server asks for the file %s, which is not part of the version", printable(hash))
		}
		if err := server.Call(c.Context(), "PUT", "/api/v1/file/"+hash, "",
			row{"content": base64.StdEncoding.EncodeToString(content)}, nil); err != nil {
			return err
		}
	}
	return nil
}

// origin says what is compiled: the user, the machine, and what Git knows of the project's folder. Without Git, or
// outside of a repository, nothing is said about commits.
func (f *exportFlags) origin(c *cobra.Command) row {
	from := row{"user": userName(), "message": f.message}
	if host, err := os.Hostname(); err == nil {
		from["host"] = host
	}
	git := func(args ...string) (string, bool) {
		out, err := exec.CommandContext(c.Context(), "git",
			append([]string{"-C", f.options.Project, "-c", "core.fsmonitor=false"}, args...)...).Output()
		return strings.TrimSpace(string(out)), err == nil
	}
	commit, ok := git("rev-parse", "HEAD")
	if !ok {
		return from
	}
	from["commit"] = commit
	if branch, ok := git("symbolic-ref", "--short", "-q", "HEAD"); ok {
		from["branch"] = branch
	}
	if changes, ok := git("status", "--porcelain"); ok {
		from["dirty"] = changes != ""
	}
	return from
}
