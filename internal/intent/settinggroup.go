package intent

// SettingGroup is a group of settings, in which forms and lists show them.
type SettingGroup string

// The groups, in the order in which people read them.
const (
	GroupGit       SettingGroup = "git"
	GroupCompile   SettingGroup = "compile"
	GroupDeploy    SettingGroup = "deploy"
	GroupDrift     SettingGroup = "drift"
	GroupPromotion SettingGroup = "promotion"
	GroupForge     SettingGroup = "forge"
	GroupRetention SettingGroup = "retention"
	GroupAccess    SettingGroup = "access"
)

// SettingGroups holds all groups in their order.
var SettingGroups = []SettingGroup{
	GroupGit, GroupCompile, GroupDeploy, GroupDrift, GroupPromotion, GroupForge, GroupRetention, GroupAccess,
}

// Title names a group for people.
func (g SettingGroup) Title() string {
	switch g {
	case GroupGit:
		return "Git"
	case GroupCompile:
		return "Compile"
	case GroupDeploy:
		return "Deploy"
	case GroupDrift:
		return "Drift"
	case GroupPromotion:
		return "Promotion"
	case GroupForge:
		return "Forge and pull requests"
	case GroupRetention:
		return "Retention"
	case GroupAccess:
		return "Access and trust"
	}
	return "Other"
}

// Hint says what a value of the setting looks like, for somebody whose value was refused.
func (s Setting) Hint() string {
	switch {
	case len(s.Choices) > 0:
		return "choose one of " + listed(s.Choices)
	case s.Interval && s.Unit != "":
		return "write a length of time such as 10 min or 2 h, a cron expression such as 0 4 * * *, or 0 for never"
	case s.Interval:
		return "write a cron expression such as 0 4 * * *, or leave it empty for never"
	case s.Unit != "":
		return "write a number of " + string(s.Unit) + ", or " + s.Unit.example()
	case s.Type == SettingBool:
		return "write true or false"
	case s.Type == SettingInt:
		return "write a whole number"
	case s.Type == SettingFloat:
		return "write a number such as 0.5"
	case s.Type == SettingDict:
		return "write JSON such as {\"name\": {…}}"
	}
	return "correct the value; `ordain settings list` explains each setting"
}

// listed writes choices as people do: a, b or c.
func listed(choices []string) string {
	out := ""
	for i, choice := range choices {
		switch {
		case i == 0:
		case i == len(choices)-1:
			out += " or "
		default:
			out += ", "
		}
		out += choice
	}
	return out
}
