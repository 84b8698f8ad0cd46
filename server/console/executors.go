package console

import (
	"net/http"
	"strings"

	"ordain.dev/ordain/internal/intent"
)

// executorsPage shows the processes that run handlers, and what they take on disk.
type executorsPage struct {
	frame
	List executorList
}

type executorList struct {
	EnvURL    string
	Here      bool
	Processes []processRow
	Folders   []folderRow
	// Separation says how the environment's code is kept away from others.
	Separation string
	Disk       string // "412 MiB of at most 2.0 GiB"
}

type processRow struct {
	intent.ExecutorProcess
	State   state
	Memory  string
	Modules string
}

type folderRow struct {
	intent.ExecutorFolder
	Kind        string
	Size, Alone string
}

func (c *console) executors(r *http.Request) (view, error) {
	e, err := c.environment(r)
	if err != nil {
		return view{}, err
	}
	f, err := c.frame(r, "Executors", "executors", crumb{Text: "Executors"})
	if err != nil {
		return view{}, err
	}
	x, err := c.control.Executors(r.Context(), e.ID)
	if err != nil {
		return view{}, err
	}
	p := executorList{EnvURL: envURL(e.ID), Here: x.Here, Separation: x.Separation, Disk: bytesText(x.Disk)}
	if x.DiskMax > 0 {
		p.Disk += " of at most " + bytesText(x.DiskMax)
	}
	for _, one := range x.Processes {
		p.Processes = append(p.Processes, processRow{
			ExecutorProcess: one, State: processState(one), Memory: bytesText(one.RSS),
			Modules: strings.Join(one.Modules, ", "),
		})
	}
	for _, one := range x.Folders {
		row := folderRow{
			ExecutorFolder: one, Kind: "sources of handlers", Size: bytesText(one.Size), Alone: bytesText(one.Alone),
		}
		if one.Kind == "venv" {
			row.Kind = "virtual environment"
		}
		p.Folders = append(p.Folders, row)
	}
	return view{
		template: "executors", data: executorsPage{f, p}, fragments: []fragment{{"executorlist", "executorlist", p}},
	}, nil
}

func processState(p intent.ExecutorProcess) state {
	switch {
	case p.Ending:
		return state{"waiting", "ending"}
	case p.Running > 0:
		return state{"deploying", "working on " + plural(p.Running, "task")}
	}
	return state{"none", "idle"}
}
