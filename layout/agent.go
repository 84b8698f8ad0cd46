package layout

import "path/filepath"

// Agent has the paths of what a remote agent keeps beside the folders of its environment.
type Agent struct{ root string }

// Agent returns the paths of a remote agent. Only the agent may read below them. It makes no folder.
func (l *Layout) Agent() Agent { return AgentIn(l.state) }

// AgentIn returns the paths of a remote agent with this state directory.
func AgentIn(stateDir string) Agent { return Agent{filepath.Join(stateDir, "agent")} }

// Dir is the folder of all of them.
func (a Agent) Dir() string { return a.root }

// Identity is the agent's key and certificate.
func (a Agent) Identity() string { return filepath.Join(a.root, "identity.pem") }

// CA is the certificate of the server's authority.
func (a Agent) CA() string { return filepath.Join(a.root, "ca.pem") }

// About says which server, environment and name the agent has.
func (a Agent) About() string { return filepath.Join(a.root, "agent.json") }

// Journal is the list of the commands that arrived.
func (a Agent) Journal() string { return filepath.Join(a.root, "journal") }

// Answers is the folder of the answers that the server has not recorded.
func (a Agent) Answers() string { return filepath.Join(a.root, "answers") }

// Contents is the folder of the contents by their hashes.
func (a Agent) Contents() string { return filepath.Join(a.root, "contents") }
