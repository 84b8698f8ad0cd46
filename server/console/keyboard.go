package console

import "net/http"

// keyboardPage lists the keys that the script understands. The script shows the same list above a page.
type keyboardPage struct {
	frame
	Keys  []keyRow // on every page
	Pages []keyRow // after g
}

type keyRow struct {
	Keys []string
	Text string
	URL  string // of the page that the keys lead to
}

var everywhereKeys = []keyRow{
	{Keys: []string{"?"}, Text: "List the keys"},
	{Keys: []string{"/"}, Text: "Search"},
	{Keys: []string{"j"}, Text: "Next row of a list"},
	{Keys: []string{"k"}, Text: "Previous row of a list"},
	{Keys: []string{"Enter"}, Text: "Open the row"},
	{Keys: []string{"x"}, Text: "Choose the row, where rows can be chosen"},
	{Keys: []string{"Esc"}, Text: "Leave a field, a row or a menu"},
}

func (c *console) keyboard(r *http.Request) (view, error) {
	f, err := c.frame(r, "Keyboard", "keyboard", crumb{Text: "Keyboard"})
	if err != nil {
		return view{}, err
	}
	f.Live = false
	p := keyboardPage{frame: f, Keys: everywhereKeys}
	add := func(page, text, url string) {
		if key := menuKeys[page]; key != "" && url != "" {
			p.Pages = append(p.Pages, keyRow{Keys: []string{"g", key}, Text: text, URL: url})
		}
	}
	if f.Env != nil {
		for _, group := range f.Menu() {
			for _, item := range group.Items {
				add(item.Page, item.Text, f.Env.URL+item.Path)
			}
		}
	}
	add("home", "Environments", "/")
	if f.Env == nil {
		add("catalogue", "Cluster catalogue", f.Clusters)
		add("processes", "Processes", f.Process)
	}
	add("audit", "Audit trail", f.Audit)
	add("status", "Server status", f.Status)
	if f.Person != nil {
		if f.Person.People {
			add("people", "People", "/people")
		}
		add("account", "Your account", "/account")
	}
	return view{template: "keyboard", data: p}, nil
}
