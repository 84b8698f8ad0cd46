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

// menuKeys are the keys that lead to pages, after g, by the name of the page. A page without one has no key. All
// letters are taken: further pages have digits.
var menuKeys = map[string]string{
	"home": "h", "overview": "o", "resources": "r", "drift": "d",
	"runs": "u", "git": "g", "pulls": "p", "versions": "v", "deliveries": "w",
	"clusters": "c", "agents": "a", "executors": "x", "processes": "s",
	"notifications": "n", "settings": "t", "audit": "l", "people": "e", "catalogue": "b", "account": "y",
	"graph": "i", "logs": "j", "queue": "q", "metrics": "m", "facts": "f", "parameters": "k",
	"orphans": "z", "status": "0",
}

// Key returns the letter that leads to the page of an entry, after g; nothing if there is none.
func (i navItem) Key() string { return menuKeys[i.Page] }

// Go returns the letter that leads to a page that is in no menu of an environment.
func (f frame) Go(page string) string { return menuKeys[page] }

// Menu returns the menu of the page's environment.
func (f frame) Menu() []navGroup { return environmentMenu }
