package build

import (
	"context"
	"path/filepath"
	"strings"

	"ordain.dev/ordain/compiler/module"
	"ordain.dev/ordain/gitsync"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/build/install"
)

// Install brings the project's modules to the checkout and its requirements
// into the virtual environment.
func (b *Builder) Install(ctx context.Context, job Job, out Output) (string, error) {
	python, err := b.maker.Interpreter(ctx, "")
	if err != nil {
		return "", err
	}
	env := b.place(job)
	result, err := b.installer.Install(ctx, install.Request{
		Dir: job.ProjectDir, Venv: env.CompilerVenv(python.Minor), Update: job.Compile.Reinstall,
		Owner:   job.Environment.ID.String(),
		Refresh: job.Compile.Trigger.Type == intent.TriggerModule, Root: job.Dir,
		NoLocal: b.noLocal || !local(job.Environment.Source.URL), Reach: reach(job), Out: out,
		MaxFile: job.Environment.GitMaxFile(),
	})
	command := strings.Join(result.Commands, " && ")
	for _, line := range result.Broken {
		out("Warning: "+line+"\n", "")
	}
	if err != nil {
		return command, err
	}
	if job.Modules != nil {
		job.Modules(moduleURLs(result.Scan.Modules))
	}
	if !result.Python.Built && len(result.Downloaded) == 0 {
		out("The requirements are as before: nothing to install\n", "")
	}
	return command, env.SwitchVenv(python.Minor)
}

// moduleURLs gives the repositories that the modules of a project were cloned
// from, as their clones say.
func moduleURLs(modules []*module.Module) map[string]string {
	urls := map[string]string{}
	for _, m := range modules {
		if url := gitsync.Origin(m.Path); url != "" {
			urls[m.Name] = url
		}
	}
	return urls
}

func local(url string) bool { return filepath.IsAbs(url) || strings.HasPrefix(url, "file:") }

// reach lends the credentials of the environment's own repository to the
// repositories of modules beside it, and lets all be reached as it is.
func reach(job Job) func(string) (gitsync.Credentials, gitsync.Trust) {
	credentials, trust := job.Source.Credentials, job.Source.Trust
	return func(raw string) (gitsync.Credentials, gitsync.Trust) {
		if gitsync.SameHost(job.Environment.Source.URL, raw) {
			return credentials, trust
		}
		return gitsync.Credentials{}, trust
	}
}
