package console

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
)

// settingList holds the settings of an environment as its page shows them: in groups, and of these only what the
// reader looks for.
type settingList struct {
	Groups  []settingGroup
	Find    string
	Only    bool // only those that differ from their default
	Changed int  // how many differ from their default
	None    bool // nothing is left to show
}

type settingGroup struct {
	ID, Title string
	Settings  []settingForm
	Open      bool
	Changed   int // how many differ from their default
}

// settingForm is one setting with the field that changes it.
type settingForm struct {
	Name, Title string
	Action      string // where its form is sent
	Doc         string
	Choices     []choice // the values to choose from; none: any text
	Number      bool
	Lines       bool
	Unit        string
	Value       string
	Default     string
	Changed     bool
	By          string // what sets it, when a person may not
	Problem     string // why the value was refused
	Hint        string
	Saved       bool
	ChangedBy   string // who changed it last
	ChangedAt   *time.Time
	Words       string // in which the script of the page searches
}

// settingList reads the settings of an environment. Of a refused form, it keeps the value that was typed.
func (c *console) settingList(
	r *http.Request, e intent.Environment, problem *settingsProblem,
) (settingList, error) {
	query := r.URL.Query()
	list := settingList{Find: strings.TrimSpace(query.Get("find")), Only: query.Has("changed")}
	changes := map[string]intent.Actor{}
	if access.Of(r.Context()).Decide(access.SeeAudit, access.TargetOf(e)).Allowed {
		var err error
		if changes, err = c.store.SettingChanges(r.Context(), e.ID); err != nil {
			return list, err
		}
	}
	saved := flashed(r).Part
	groups := map[intent.SettingGroup]*settingGroup{}
	for _, def := range intent.Settings() {
		s := settingFormOf(def, e)
		if by, ok := changes[def.Name]; ok {
			s.ChangedBy, s.ChangedAt = by.By, &by.At
		}
		s.Saved = saved == "setting-"+def.Name
		if problem != nil && problem.Form == "setting-"+def.Name {
			s.Value, s.Problem, s.Hint = problem.Values.Get("value"), problem.Text, problem.Hint
			for i := range s.Choices {
				s.Choices[i].Selected = s.Choices[i].Value == s.Value
			}
		}
		if s.Changed {
			list.Changed++
		}
		if !s.Saved && s.Problem == "" && (list.Only && !s.Changed || !s.matches(list.Find)) {
			continue
		}
		g := groups[def.Group]
		if g == nil {
			g = &settingGroup{ID: "group-" + string(def.Group), Title: def.Group.Title()}
			groups[def.Group] = g
		}
		g.Settings = append(g.Settings, s)
	}
	order := slices.Clone(intent.SettingGroups)
	for name := range groups {
		if !slices.Contains(order, name) {
			order = append(order, name)
		}
	}
	for _, name := range order {
		if g := groups[name]; g != nil {
			list.Groups = append(list.Groups, *g)
		}
	}
	list.None = len(list.Groups) == 0
	return list, nil
}

func settingFormOf(def intent.Setting, e intent.Environment) settingForm {
	value := def.Value(e.Settings)
	_, changed := e.Settings[def.Name]
	s := settingForm{
		Name: def.Name, Title: def.Title, Doc: def.Doc,
		Action: envURL(e.ID) + "/settings/set", Lines: def.Lines || def.Type == intent.SettingDict,
		Number: def.Type == intent.SettingInt && def.Unit == "", Unit: string(def.Unit),
		Value: settingValue(def, value), Default: settingValue(def, def.Default),
		By: e.Protected[def.Name],
	}
	s.Changed = changed && s.Value != s.Default
	if s.Title == "" {
		s.Title = def.Name
	}
	switch {
	case def.Type == intent.SettingBool:
		s.Choices = []choice{{"true", "on", value == true}, {"false", "off", value != true}}
		s.Default = map[bool]string{true: "on", false: "off"}[def.Default == true]
	case len(def.Choices) > 0:
		for _, one := range def.Choices {
			s.Choices = append(s.Choices, choice{one, one, one == value})
		}
	}
	if s.Default == "" {
		s.Default = "empty"
	}
	s.Words = strings.ToLower(strings.Join([]string{def.Name, s.Title, def.Doc, def.Group.Title()}, " "))
	return s
}

// matches reports whether a setting has all words of a search.
func (s settingForm) matches(find string) bool {
	for _, word := range strings.Fields(strings.ToLower(find)) {
		if !strings.Contains(s.Words, word) {
			return false
		}
	}
	return true
}

// settingValue writes a value as the form accepts it again: numbers with their unit, a dict as JSON.
func settingValue(def intent.Setting, value any) string {
	if def.Unit != "" {
		return def.Text(value)
	}
	return settingText(value)
}
