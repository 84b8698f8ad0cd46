package compiler

import "context"

// RunFailing runs a compile in the midst of which fail is called.
func RunFailing(project string, fail func()) *Outcome {
	return Run(context.Background(), Options{Project: project, NoStd: true, onCompile: fail})
}
