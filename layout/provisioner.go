package layout

import (
	"path/filepath"

	"github.com/google/uuid"
)

// Provisioners is the folder of the provisioners that the server runs.
func (l *Layout) Provisioners() string { return filepath.Join(l.state, "provisioners") }

// Provisioner has the paths of the provisioner of one project.
type Provisioner struct{ root string }

// Provisioner returns the paths of a project's provisioner. It makes no folder.
func (l *Layout) Provisioner(project uuid.UUID) Provisioner {
	return Provisioner{root: filepath.Join(l.Provisioners(), project.String())}
}

// Dir is the folder for all of it.
func (p Provisioner) Dir() string { return p.root }

// Data is the folder of the provisioner itself, which it can write to. Its owner is the user that the provisioner
// runs as.
func (p Provisioner) Data() string { return filepath.Join(p.root, "data") }

// Runs is the folder of the private folder of its process.
func (p Provisioner) Runs() string { return filepath.Join(p.root, "runs") }
