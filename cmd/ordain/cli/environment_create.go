package cli

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// newEnvironmentFlags are the flags of `ordain environment create`.
type newEnvironmentFlags struct {
	project, repo, branch, subdir, description string
	follow                                     string
	halted                                     bool
	settings, signers, tags, secrets           []string
}

// newCreateEnvironment makes `ordain environment create`.
func newCreateEnvironment(r *remote) *cobra.Command {
	var f newEnvironmentFlags
	create := command("create NAME", "Make an environment and bind it to a repository",
		func(c *cobra.Command, args []string) error {
			body, err := f.body(c, args[0])
			if err != nil {
				return err
			}
			if body["project_id"], err = r.projectCalled(c, f.project); err != nil {
				return err
			}
			var made row
			if err := r.call(c, put, "/api/v2/environment", body, &made); err != nil {
				return err
			}
			return r.show(c, []row{made}, "name", "id", "repo_url", "repo_branch")
		},
	)
	create.Long = create.Short + ".\n\nWhat decides what is deployed is best given here: it is written in one step " +
		"with the environment, before anything is\ncompiled or deployed."
	flags := create.Flags()
	flags.StringVar(&f.project, "project", "", "name or id of the project; it is made if it does not exist")
	flags.StringVar(&f.repo, "repo", "", "URL of the repository")
	flags.StringVar(&f.branch, "branch", "", "branch (default: that of the repository)")
	flags.StringVar(&f.subdir, "subdir", "", "folder of the model in the repository (default: its root)")
	flags.StringVar(&f.description, "description", "", "what the environment is for")
	flags.StringVar(&f.follow, "follow", "",
		"deploy what this environment of the same project has deployed, instead of the tip of the branch")
	flags.BoolVar(&f.halted, "halted", false, "compile and deploy nothing until the environment is resumed")
	flags.StringArrayVar(&f.settings, "setting", nil,
		"setting as NAME=VALUE, such as follow_soak=3600; may be repeated")
	flags.StringArrayVar(&f.signers, "signer", nil,
		"who may sign commits, as a line of an allowed_signers file; may be repeated")
	flags.StringArrayVar(&f.tags, "tag", nil, "tag, which roles can be bound to; may be repeated")
	flags.StringArrayVar(&f.secrets, "secret", nil,
		"secret as NAME=FILE, where - is standard input; may be repeated")
	_ = create.MarkFlagRequired("project")
	return create
}

// body returns the body of the request, but for the project.
func (f newEnvironmentFlags) body(c *cobra.Command, name string) (row, error) {
	settings, secrets := row{}, row{}
	for _, one := range f.settings {
		name, value, ok := strings.Cut(one, "=")
		if !ok || name == "" {
			return nil, usageError{fmt.Errorf("--setting %s: write it as NAME=VALUE", printable(one))}
		}
		settings[name] = value
	}
	set := func(flag, name, value string) error {
		if _, twice := settings[name]; twice {
			return usageError{fmt.Errorf("--%s and --setting %s=… contradict each other", flag, name)}
		}
		settings[name] = value
		return nil
	}
	if f.follow != "" {
		if err := set("follow", "follow", f.follow); err != nil {
			return nil, err
		}
	}
	if len(f.signers) > 0 {
		if err := set("signer", "git_allowed_signers", strings.Join(f.signers, "\n")+"\n"); err != nil {
			return nil, err
		}
	}
	for _, one := range f.secrets {
		name, file, ok := strings.Cut(one, "=")
		if !ok || name == "" || file == "" {
			return nil, usageError{fmt.Errorf("--secret: write it as NAME=FILE; the value itself does not belong " +
				"on a command line")}
		}
		value, err := readSecretFrom(c, file)
		if err != nil {
			return nil, err
		}
		secrets[name] = value
	}
	body := row{
		"name": name, "repository": f.repo, "branch": f.branch, "subdir": f.subdir, "description": f.description,
		"halted": f.halted,
	}
	if len(settings) > 0 {
		body["settings"] = settings
	}
	if len(secrets) > 0 {
		body["secrets"] = secrets
	}
	if len(f.tags) > 0 {
		body["tags"] = f.tags
	}
	return body, nil
}

// readSecretFrom reads a secret from a file, or from standard input when that is -.
func readSecretFrom(c *cobra.Command, file string) (string, error) {
	if file == "-" {
		return readSecret(c)
	}
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	value, err := io.ReadAll(io.LimitReader(f, maxSecret))
	return strings.TrimRight(string(value), "\r\n"), err
}

// projectCalled returns the id of the project with this name or id, which is made if it does not exist.
func (r *remote) projectCalled(c *cobra.Command, name string) (string, error) {
	var projects []row
	if err := r.call(c, get, "/api/v2/project", nil, &projects); err != nil {
		return "", err
	}
	for _, p := range projects {
		if p["name"] == name || p["id"] == name {
			return p["id"].(string), nil
		}
	}
	var made row
	if err := r.call(c, put, "/api/v2/project", row{"name": name}, &made); err != nil {
		return "", err
	}
	return made["id"].(string), nil
}
