package builder

import (
	"context"
	"net/url"
	"path/filepath"
	"strings"

	"ordain.dev/ordain/gitsync"
	"ordain.dev/ordain/internal/control"
	"ordain.dev/ordain/internal/install"
)

// Install brings the project's modules to the checkout and its requirements
// into the virtual environment.
func (b *Builder) Install(ctx context.Context, job control.BuildJob, out control.Output) (string, error) {
	python, err := b.maker.Interpreter(ctx, "")
	if err != nil {
		return "", err
	}
	env := b.layout.Environment(job.Environment.ID)
	result, err := b.installer.Install(ctx, install.Request{
		Dir: job.ProjectDir, Venv: env.CompilerVenv(python.Minor), Update: job.Compile.Reinstall, Root: job.Dir,
		NoLocal: !local(job.Environment.Source.URL), Credentials: sameHost(job), Out: out,
	})
	command := strings.Join(result.Commands, " && ")
	for _, line := range result.Broken {
		out("Warning: "+line+"\n", "")
	}
	if err != nil {
		return command, err
	}
	if !result.Python.Built && len(result.Downloaded) == 0 {
		out("The requirements are as before: nothing to install\n", "")
	}
	return command, env.SwitchVenv(python.Minor)
}

func local(url string) bool { return filepath.IsAbs(url) || strings.HasPrefix(url, "file:") }

// sameHost lends the credentials of the environment's own repository to the
// repositories of modules beside it.
func sameHost(job control.BuildJob) func(string) gitsync.Credentials {
	own := job.Credentials
	return func(raw string) gitsync.Credentials {
		a, errA := url.Parse(job.Environment.Source.URL)
		b, errB := url.Parse(raw)
		if errA != nil || errB != nil || a.Host == "" || a.Scheme != b.Scheme || !strings.EqualFold(a.Host, b.Host) {
			return gitsync.Credentials{}
		}
		return gitsync.Credentials{Username: own.Username, Password: own.Password}
	}
}
