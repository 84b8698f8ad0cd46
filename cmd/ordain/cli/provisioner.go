package cli

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"ordain.dev/ordain/internal/isolation"
	"ordain.dev/ordain/server/cluster/provisioner/client"
	"ordain.dev/ordain/server/cluster/provisioner/link"
	"ordain.dev/ordain/server/cluster/provisioner/member"
	"ordain.dev/ordain/server/cluster/provisioner/plugins"
	"ordain.dev/ordain/server/cluster/provisioner/worker"
)

// newProvisioner makes `ordain provisioner`.
func newProvisioner() *cobra.Command {
	f := &provisionerFlags{}
	c := &cobra.Command{
		Use:   "provisioner",
		Short: "Provisioners: they make machines of clusters and install services on them",
		Long: "A server starts provisioners by itself, one for each project that has something to do. Others run\n" +
			"where machines can be reached that the server cannot reach. They join with a token, once:\n\n" +
			"  ordain provisioner --join - --state-dir DIR < token\n\n" +
			"and then need only the folder: ordain provisioner --state-dir DIR.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if f.descriptor < 0 && f.folder == "" && f.join == "" {
				return c.Help()
			}
			return f.run(c)
		},
	}
	l := c.Flags()
	l.IntVar(&f.descriptor, "desk-fd", -1, "descriptor of the inherited connection to a server; servers use it")
	_ = l.MarkHidden("desk-fd") // it is there
	l.StringVar(&f.join, "join", "", "join a server with this token, then run ('-': read it from standard input)")
	l.StringVar(&f.folder, "state-dir", "", "the folder of the provisioner alone: identity, resources, running tasks")
	l.StringVar(&f.python, "python", "",
		"the Python interpreter for Ansible, 3.11 or newer; one is searched for otherwise")
	l.IntVar(&f.room, "room", 4, "tasks that run at a time")
	l.StringVar(&f.plugins, "plugins", "", "the folder of further plug-ins")
	l.StringVar(&f.isolation, "isolation", "on", "confine plug-ins to the files of their task: on, off or require")
	c.AddCommand(newProvisionerConformance())
	c.AddCommand(remoteProvisioners()...)
	return c
}

// provisionerFlags are those of a provisioner that runs.
type provisionerFlags struct {
	descriptor      int
	folder, plugins string
	join, python    string
	room            int
	isolation       string
}

// desk is how a provisioner reaches the desk of its server.
type desk struct {
	client *client.Client
	// lost is closed when the desk is gone for good; nil: it always comes back.
	lost <-chan struct{}
	// grace is how long tasks may go on after the provisioner was asked to stop.
	grace time.Duration
}

// inherited reaches the desk over the connection that the server made. A server that wants the provisioner to end after
// its tasks answers so when it asks for more, and one that wants it to end at once ends the connection.
func (f *provisionerFlags) inherited() (desk, error) {
	http, lost, err := link.Connect(f.descriptor)
	if err != nil {
		return desk{}, err
	}
	c, err := client.New(client.Config{Base: link.Base, HTTP: http})
	return desk{client: c, lost: lost, grace: graceOfServer}, err
}

// graceOfServer is longer than any task may take: whether tasks go on is for the server to say.
const graceOfServer = 24 * time.Hour

// endPatience is how long a provisioner may take to end its plug-ins after its server is gone.
const endPatience = 20 * time.Second

// joined reaches the desk over the network, as the provisioner that the folder says it is. It joins first if it got a
// token. The caller stops the member, which renews the certificate.
func (f *provisionerFlags) joined(c *cobra.Command, log *slog.Logger) (desk, *member.Member, error) {
	if token := f.join; token != "" {
		if token == "-" {
			var err error
			if token, err = readSecretFrom(c, "-"); err != nil {
				return desk{}, nil, err
			}
		}
		if err := member.Join(c.Context(), token, f.folder); err != nil {
			return desk{}, nil, err
		}
		fmt.Fprintln(c.OutOrStdout(), "Joined. The identity is in "+f.folder+"; the token is used up.")
	}
	m, err := member.Open(f.folder, log)
	if err != nil {
		return desk{}, nil, err
	}
	if err := m.Start(c.Context()); err != nil {
		return desk{}, nil, err
	}
	reach, err := client.New(client.Config{Base: m.Base(), HTTP: m.HTTP()})
	if err != nil {
		m.Stop()
	}
	return desk{client: reach, grace: graceElsewhere}, m, err
}

// graceElsewhere is how long tasks of a provisioner that runs elsewhere may go on after it was asked to stop.
const graceElsewhere = 30 * time.Second

func (f *provisionerFlags) run(c *cobra.Command) error {
	if f.folder == "" {
		return usageError{fmt.Errorf("--state-dir is missing")}
	}
	var err error
	if f.folder, err = filepath.Abs(f.folder); err != nil {
		return err
	}
	log := slog.New(slog.NewJSONHandler(c.ErrOrStderr(), nil)) // a server passes it on
	var d desk
	if f.descriptor >= 0 {
		d, err = f.inherited()
	} else {
		log = slog.New(slog.NewTextHandler(c.ErrOrStderr(), nil))
		var m *member.Member
		if d, m, err = f.joined(c, log); err == nil {
			defer m.Stop()
		}
	}
	if err != nil {
		return err
	}
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		select {
		case <-d.lost:
		case <-ended:
			return
		}
		select {
		case <-time.After(endPatience):
			log.Error("the provisioner does not end by itself, although its server is gone")
			os.Exit(1)
		case <-ended:
		}
	}()
	cell, err := f.cell(log)
	if err != nil {
		return err
	}
	return f.work(c.Context(), d, cell, log)
}

// cell returns what confines plug-ins. A provisioner that its server confined can only keep them apart from each
// other's files, and that as far as Landlock goes: it must not make namespaces, or become other users.
func (f *provisionerFlags) cell(log *slog.Logger) (*isolation.Cell, error) {
	if f.isolation == "on" && f.descriptor >= 0 {
		support := isolation.Detect()
		if support.None() {
			return nil, nil
		}
		return isolation.Config{Support: support}.Cell(0), nil
	}
	config, err := (&agentFlags{isolation: f.isolation}).confinement(log, "plug-ins")
	if config == nil || err != nil {
		return nil, err
	}
	return config.Cell(0), nil
}

// work carries out tasks until the context ends or the desk is lost.
func (f *provisionerFlags) work(ctx context.Context, d desk, cell *isolation.Cell, log *slog.Logger) error {
	all, err := plugins.Load(plugins.Config{
		Folder: f.plugins, Tools: filepath.Join(f.folder, "tools"), Python: f.python, Cell: cell, Logger: log,
	})
	if err != nil {
		return err
	}
	w, err := worker.New(worker.Config{
		Client: d.client, Plugins: all, Folder: f.folder, Room: f.room, Logger: log, Program: "ordain " + Version,
		Grace: d.grace, Lost: d.lost,
	})
	if err != nil {
		return err
	}
	return w.Run(ctx)
}
