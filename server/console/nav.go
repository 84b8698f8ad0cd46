package console

// navGroup is a part of the menu of an environment.
type navGroup struct {
	Title string
	Items []navItem
}

// navItem is an entry of the menu. A page is current when its frame names it.
type navItem struct {
	Page string // as in frame.Page
	Text string
	Path string // below the environment's address
}

// environmentMenu are the pages of an environment. What is asked most often comes first.
var environmentMenu = []navGroup{
	{"", []navItem{
		{"overview", "Overview", ""},
		{"resources", "Resources", "/resources"},
		{"graph", "Graph", "/graph"},
		{"drift", "Drift", "/drift"},
		{"logs", "Logs", "/logs"},
	}},
	{"Changes", []navItem{
		{"runs", "Runs", "/runs"},
		{"git", "Git", "/git"},
		{"pulls", "Pull requests", "/pulls"},
		{"versions", "Versions", "/versions"},
		{"deliveries", "Webhooks", "/deliveries"},
	}},
	{"At work", []navItem{
		{"queue", "Queue", "/queue"},
		{"metrics", "Metrics", "/metrics"},
		{"clusters", "Clusters", "/clusters"},
		{"agents", "Agents", "/agents"},
		{"executors", "Executors", "/executors"},
		{"processes", "Processes", "/processes"},
	}},
	{"Data", []navItem{
		{"facts", "Facts", "/facts"},
		{"parameters", "Parameters", "/parameters"},
		{"orphans", "Orphans", "/orphans"},
	}},
	{"About", []navItem{
		{"notifications", "Notifications", "/notifications"},
		{"settings", "Settings", "/settings"},
	}},
}

// Menu returns the menu of the page's environment.
func (f frame) Menu() []navGroup { return environmentMenu }
