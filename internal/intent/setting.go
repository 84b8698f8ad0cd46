package intent

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// SettingType is the type of an environment setting.
type SettingType string

// Types of settings, as the API names them.
const (
	SettingBool  SettingType = "bool"
	SettingInt   SettingType = "int"
	SettingFloat SettingType = "positive_float"
	SettingText  SettingType = "str"
	SettingDict  SettingType = "dict"
)

// ClusterChanges is the setting that says how changes that people make in Ordain get into the repository; ByPullRequest
// is its value for always by pull requests.
const (
	ClusterChanges = "cluster_changes"
	ByPullRequest  = "pull_request"
)

// RedeployFailed is the setting that makes every release deploy what failed before, too.
const RedeployFailed = "redeploy_failed_on_export"

// Setting defines one environment setting (API.md section 3).
type Setting struct {
	Name string
	// Group and Title are for people: where forms show the setting, and what they call it.
	Group   SettingGroup
	Title   string
	Type    SettingType
	Default any
	Doc     string
	// Unit is what a number counts; empty: things.
	Unit Unit
	// Interval means that the text is a number of seconds or a cron expression.
	Interval bool
	// Choices holds the allowed texts; empty: any.
	Choices []string
	// Most is the largest allowed number; 0: any.
	Most int
	// Lines means that the text may have several lines.
	Lines bool
	// People means that only people may change it, and not environment_settings in the
	// repository, because it decides whom the server trusts.
	People bool
	// Check does further checks of a text; may be nil.
	Check func(text string) error
	// CheckDict does the same for a dict.
	CheckDict func(dict map[string]any) error
}

var settings = map[string]Setting{}

func init() {
	for _, s := range append([]Setting{
		{
			Name: AllowPushed, Group: GroupAccess, Title: "Accept versions that are not from a commit",
			People: true, Type: SettingBool, Default: false,
			Doc: "Accept versions that people compile on their own machines and send with ordain export or inmanta " +
				"export. Such versions are not from a commit, which Ordain says wherever it shows them.",
		},
		{
			Name: "auto_deploy", Group: GroupDeploy, Title: "Release versions by itself",
			Type: SettingBool, Default: true,
			Doc: "Release every version that the server compiled.",
		},
		{
			Name: "server_compile", Group: GroupCompile, Title: "Compile on the server",
			Type: SettingBool, Default: true,
			Doc: "Let the server compile this environment.",
		},
		{
			Name: "auto_full_compile", Group: GroupCompile, Title: "Recompile on a schedule",
			Type: SettingText, Default: "", Interval: true,
			Doc: "Recompile on this schedule: a cron expression in UTC, empty for never.",
		},
		{
			Name: "recompile_backoff", Group: GroupCompile, Title: "Pause between two compiles", Unit: Seconds,
			Type: SettingFloat, Default: 0.1,
			Doc: "Seconds to wait between two compiles, so that a burst of requests leads to a single one.",
		},
		{
			Name: "compile_cancel_older", Group: GroupCompile, Title: "Cancel a compile when a newer commit arrives",
			Type: SettingBool, Default: false,
			Doc: "Cancel a running compile when a newer commit arrives, if both compiles were started by new commits " +
				"on the branch (or in the followed environment) and not by a person. At most three compiles in a row " +
				"are cancelled, so that something is deployed no matter how often commits arrive.",
		},
		{
			Name: "autostart_agent_deploy_interval", Group: GroupDeploy,
			Title: "Retry what is not as intended every", Unit: Seconds,
			Type: SettingText, Default: "600", Interval: true,
			Doc: "How often to retry resources that are not as intended: seconds, or a cron expression. 0 for never.",
		},
		{
			Name: "autostart_agent_repair_interval", Group: GroupDeploy,
			Title: "Repair everything every", Unit: Seconds,
			Type: SettingText, Default: "86400", Interval: true,
			Doc: "How often to check and repair every resource: seconds, or a cron expression. 0 for never.",
		},
		{
			Name: "autostart_on_start", Group: GroupDeploy, Title: "Start the scheduler with the server",
			Type: SettingBool, Default: true,
			Doc: "Start the scheduler of this environment when the server starts.",
		},
		{
			Name: "reset_deploy_progress_on_start", Group: GroupDeploy,
			Title: "Forget unfinished deployments at a start",
			Type:  SettingBool, Default: false,
			Doc: "Forget unfinished deployments when the server starts.",
		},
		{
			Name: RedeployFailed, Group: GroupDeploy, Title: "Deploy failed resources again with a new version",
			Type: SettingBool, Default: false,
			Doc: "When a version is released, also deploy again what failed or was skipped before, and not only what " +
				"is new, changed or no longer blocked.",
		},
		{
			Name: "resource_action_logs_retention", Group: GroupRetention,
			Title: "Keep the log of resource actions", Unit: Days,
			Type: SettingInt, Default: 7,
			Doc: "How many days to keep the resource action log.",
		},
		{
			Name: "available_versions_to_keep", Group: GroupRetention, Title: "Versions to keep",
			Type: SettingInt, Default: 100,
			Doc: "How many versions to keep besides the active one.",
		},
		{
			Name: "notification_retention", Group: GroupRetention, Title: "Keep notifications", Unit: Days,
			Type: SettingInt, Default: 365,
			Doc: "How many days to keep notifications.",
		},
		{
			Name: "environment_metrics_retention", Group: GroupRetention, Title: "Keep metrics", Unit: Hours,
			Type: SettingInt, Default: 336,
			Doc: "How many hours to keep metrics. 0 keeps them forever.",
		},
		{
			Name: "protected_environment", Group: GroupAccess, Title: "Protect the environment",
			Type: SettingBool, Default: false,
			Doc: "Refuse to delete or clear this environment.",
		},
		{
			Name: "git_poll_interval", Group: GroupGit, Title: "Poll the repository every", Unit: Seconds,
			Type: SettingInt, Default: 60,
			Doc: "Seconds between two polls of the Git repository when no webhook arrives. 0 for never.",
		},
		{
			Name: "git_verify", Group: GroupAccess, Title: "Commits that must be signed",
			People: true, Type: SettingText, Default: "off", Choices: []string{"off", "tip", "all",
				"tags"},
			Doc: "What must be signed by one of git_allowed_signers before a commit is compiled: the newest commit " +
				"(tip), every commit since the deployed one (all), or the tag that the environment follows (tags).",
		},
		{
			Name: "git_allowed_signers", Group: GroupAccess, Title: "Allowed signers",
			People: true, Lines: true, Type: SettingText, Default: "",
			Doc: "Who may sign: lines in the format of OpenSSH's allowed_signers file, and armored OpenPGP public " +
				"keys.",
		},
		{
			Name: "git_rewrites", Group: GroupAccess, Title: "Rewritten history",
			People: true, Type: SettingText, Default: "refuse", Choices: []string{"refuse",
				"follow"},
			Doc: "What to do with a commit that does not descend from the deployed one, for example after a " +
				"force-push: refuse it until a person accepts it, or follow it.",
		},
		{
			Name: "git_protected_refs", Group: GroupAccess, Title: "Branches and tags that may be deployed",
			People: true, Lines: true, Type: SettingText, Default: "",
			Doc: "The only branches and tags that may be deployed: names or patterns, one per line or separated " +
				"by commas; * matches any text. Tags are written as refs/tags/NAME. Empty: any.",
		},
		{
			Name: "max_attempts", Group: GroupDeploy, Title: "Attempts before a resource is parked",
			Type: SettingInt, Default: 20,
			Doc: "Park a resource that failed this many times for one intent: it is left alone until a person or a " +
				"new intent unparks it. 0 never parks.",
		},
		{
			Name: "drift_policy", Group: GroupDrift, Title: "What a repair does about drift",
			Type: SettingText, Default: "heal", Choices: []string{"heal", "report"},
			Doc: "What a repair does about drift: heal it, or only report it.",
		},
		{
			Name: "heal_limit", Group: GroupDrift, Title: "Times to heal the same drift",
			Type: SettingInt, Default: 3,
			Doc: "Stop healing a resource and raise an alert once the same drift has been healed this many times " +
				"within heal_window. 0 for no limit.",
		},
		{
			Name: "heal_window", Group: GroupDrift, Title: "Period in which healing is counted", Unit: Seconds,
			Type: SettingInt, Default: 604800, Most: 366 * 86400,
			Doc: "The period over which heal_limit counts, in seconds.",
		},
		{
			Name: "breaker_failures", Group: GroupDeploy, Title: "Failures before an agent is held back",
			Type: SettingInt, Default: 5,
			Doc: "Hold back the deployments of an agent once its target could not be reached this many times in a " +
				"row. 0 for never.",
		},
		{
			Name: "breaker_pause", Group: GroupDeploy, Title: "Pause before a held-back agent is tried", Unit: Seconds,
			Type: SettingInt, Default: 60, Most: 3600,
			Doc: "Seconds until a single deployment tests whether such a target is back. The pause doubles each time " +
				"the target is still away, up to an hour.",
		},
		{
			Name: "prune_share", Group: GroupDeploy,
			Title: "Largest share of resources to remove unasked", Unit: Percent,
			Type: SettingInt, Default: 20, Most: 100,
			Doc: "Hold a version that removes more than this percentage of the deployed resources until a person " +
				"confirms it. With 100, only empty versions are held.",
		},
		{
			Name: "prune_minimum", Group: GroupDeploy, Title: "Removals that are never held",
			Type: SettingInt, Default: 10,
			Doc: "A version that removes fewer resources than this is not held because of prune_share.",
		},
		{
			Name: "protected_resources", Group: GroupDeploy, Title: "Resources that are never removed",
			Type: SettingText, Default: "", Check: patternsCheck,
			Doc: "Resources that are never removed: patterns of resource ids, one per line or separated by commas; " +
				"* matches any text, ? any character.",
		},
		{
			Name: "deploy_concurrency", Group: GroupDeploy, Title: "Resources to deploy at once",
			Type: SettingInt, Default: 0, Most: 100000,
			Doc: "How many resources to deploy at once in this environment. 0 for as many as the server allows.",
		},
		{
			Name: "agent_limits", Group: GroupDeploy, Title: "Limits of agents",
			Type: SettingDict, Default: map[string]any{}, CheckDict: agentLimitsCheck,
			Doc: "Limits and timers of agents: a dict from the name of an agent, or a pattern such as web*, to a " +
				"dict with concurrency (resources at once; default 1), min_gap (seconds between two starts), " +
				"deploy_interval and repair_interval (seconds or a cron expression). The most specific entry wins.",
		},
		{
			Name: "maintenance_windows", Group: GroupDeploy, Title: "Maintenance windows and freezes",
			Type: SettingDict, Default: map[string]any{}, CheckDict: windowsCheck,
			Doc: "When changes may start: a dict from the name of a window to a dict with kind (window: changes " +
				"start only inside it; freeze: none start inside it), cron, duration (seconds, or a text such as " +
				"4h), timezone (such as Europe/Brussels; default UTC), agents (a list of names or patterns; default " +
				"all) and resources (a list of patterns of resource ids; default all).",
		},
		{
			Name: "trigger_paths", Group: GroupCompile, Title: "Paths whose changes start a compile",
			Type: SettingText, Default: "", Check: scopeCheck,
			Doc: "Paths of the repository that concern this environment: patterns from its root, one per line or " +
				"separated by commas; * matches any text within a name, ** any folders, and ! excludes paths. A " +
				"push that changes no such path starts no compile. Empty: the project's folder and the modules " +
				"that it uses from the repository.",
		},
		{
			Name: "delivery_retention", Group: GroupRetention, Title: "Keep received webhooks", Unit: Days,
			Type: SettingInt, Default: 30, Most: 36600,
			Doc: "How many days to keep received webhooks.",
		},
		{
			Name: "forge", Group: GroupForge, Title: "Kind of forge",
			People: true, Type: SettingText, Default: "auto", Choices: []string{"auto", "github",
				"gitlab", "gitea", "none"},
			Doc: "The forge that hosts the repository. With the secret forge-token, Ordain sets statuses and " +
				"comments on pull requests there. auto derives it from the name of the host; gitea also means Forgejo.",
		},
		{
			Name: "forge_api", Group: GroupForge, Title: "Address of the forge's API",
			People: true, Type: SettingText, Default: "", Check: forgeAPICheck,
			Doc: "Address of the forge's API, such as https://git.example.org, if it differs from the repository's.",
		},
		{
			Name: "forge_statuses", Group: GroupForge, Title: "Report progress to the forge",
			Type: SettingBool, Default: true,
			Doc: "Report the progress of compiles and deployments of a commit to the forge, if there is a forge-token.",
		},
		{
			Name: "pull_previews", Group: GroupForge, Title: "Preview pull requests",
			People: true, Type: SettingText, Default: "off", Choices: []string{"off", "trusted",
				"all"},
			Doc: "Preview pull requests against the branch: only those of authors who may write to the repository " +
				"(trusted; those from forks and from others wait for a person's approval), or everybody's (all: " +
				"the code of strangers runs here).",
		},
		{
			Name: "pull_comment", Group: GroupForge, Title: "Comment on previewed pull requests",
			Type: SettingBool, Default: true,
			Doc: "Keep one comment on each previewed pull request up to date.",
		},
		{
			Name: ClusterChanges, Group: GroupForge, Title: "How changes get into the repository",
			People: true, Type: SettingText, Default: "commit",
			Choices: []string{"commit", ByPullRequest},
			Doc: "How changes that people make in Ordain, such as to clusters, get into the repository: as commits " +
				"on the branch (commit; by a pull request where the branch is protected), or always by pull requests.",
		},
		{
			Name: "drift_retention", Group: GroupRetention, Title: "Keep records of drift that has ended", Unit: Days,
			Type: SettingInt, Default: 90, Most: 36600,
			Doc: "How many days to keep records of drift that has ended.",
		},
	}, append(gitSettings, followSettings...)...) {
		settings[s.Name] = s
	}
}

// Settings returns all definitions, sorted by name.
func Settings() []Setting {
	var out []Setting
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		out = append(out, settings[name])
	}
	return out
}

// SettingNamed returns the definition with this name.
func SettingNamed(name string) (Setting, bool) {
	s, ok := settings[name]
	return s, ok
}

// Convert checks a value that a client sent, converting text ("42", "true").
func (s Setting) Convert(v any) (any, error) {
	bad := func() (any, error) {
		return nil, fmt.Errorf("setting %s: %v is not of the type %s", s.Name, v, s.Type)
	}
	switch s.Type {
	case SettingBool:
		switch x := v.(type) {
		case bool:
			return x, nil
		case string:
			if b, err := strconv.ParseBool(strings.ToLower(x)); err == nil {
				return b, nil
			}
		}
	case SettingInt, SettingFloat:
		var f float64
		switch x := v.(type) {
		case float64:
			f = x
		case int:
			f = float64(x)
		case string:
			var err error
			if s.Unit != "" {
				if f, err = s.Unit.Parse(x); err != nil {
					return nil, fmt.Errorf("setting %s: %w", s.Name, err)
				}
			} else if f, err = strconv.ParseFloat(x, 64); err != nil {
				return bad()
			}
		default:
			return bad()
		}
		if f < 0 {
			return nil, fmt.Errorf("setting %s: %v is negative", s.Name, v)
		}
		if s.Type == SettingFloat {
			return f, nil
		}
		if f != float64(int(f)) {
			return bad()
		}
		if s.Most > 0 && f > float64(s.Most) {
			return nil, fmt.Errorf("setting %s: %v is more than %d", s.Name, v, s.Most)
		}
		return int(f), nil
	case SettingDict:
		return s.convertDict(v)
	case SettingText:
		var text string
		switch x := v.(type) {
		case string:
			text = x
		case float64:
			text = strconv.FormatFloat(x, 'f', -1, 64)
		case int:
			text = strconv.Itoa(x)
		default:
			return bad()
		}
		if s.Interval && text != "" {
			if n, err := s.Unit.Parse(text); s.Unit != "" && err == nil && n == float64(int(n)) {
				text = strconv.Itoa(int(n)) // 10 min is kept as 600
			}
			if _, err := ParseInterval(text); err != nil {
				return nil, fmt.Errorf("setting %s: %w", s.Name, err)
			}
		}
		if s.Check != nil {
			if err := s.Check(text); err != nil {
				return nil, fmt.Errorf("setting %s: %w", s.Name, err)
			}
		}
		if len(s.Choices) > 0 && !slices.Contains(s.Choices, text) {
			return nil, fmt.Errorf("setting %s: %q is not one of %s", s.Name, text, strings.Join(s.Choices, ", "))
		}
		return text, nil
	}
	return bad()
}

// convertDict takes a dict, or JSON text of one.
func (s Setting) convertDict(v any) (any, error) {
	dict, ok := v.(map[string]any)
	if text, isText := v.(string); isText {
		if strings.TrimSpace(text) == "" {
			text = "{}"
		}
		if err := json.Unmarshal([]byte(text), &dict); err != nil || dict == nil {
			return nil, fmt.Errorf("setting %s: it must be a dict, written as JSON such as {\"name\": {…}}: %s",
				s.Name, jsonTrouble(text, err))
		}
		ok = true
	}
	if !ok {
		return nil, fmt.Errorf("setting %s: %v is not of the type %s", s.Name, v, s.Type)
	}
	if dict == nil {
		dict = map[string]any{}
	}
	if s.CheckDict != nil {
		if err := s.CheckDict(dict); err != nil {
			return nil, fmt.Errorf("setting %s: %w", s.Name, err)
		}
	}
	return dict, nil
}

// jsonTrouble says where a text is not the JSON of a dict.
func jsonTrouble(text string, err error) string {
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return fmt.Sprintf("line %d: %s", 1+strings.Count(text[:min(int(syntax.Offset), len(text))], "\n"), syntax)
	case err != nil:
		return "it holds something else"
	}
	return "it holds null"
}

func windowsCheck(dict map[string]any) error {
	_, err := ParseWindows(dict)
	return err
}

func agentLimitsCheck(dict map[string]any) error {
	_, err := ParseAgentLimits(dict)
	return err
}

// ParseInterval reads a number of seconds or a cron expression (five fields,
// UTC) as a schedule. It returns nil, which means never, for zero seconds and the
// empty text.
func ParseInterval(text string) (cron.Schedule, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, nil
	}
	if seconds, err := strconv.Atoi(text); err == nil {
		if seconds < 0 {
			return nil, fmt.Errorf("%q: an interval cannot be negative", text)
		}
		if seconds == 0 {
			return nil, nil
		}
		return cron.Every(secondsDuration(seconds)), nil
	}
	schedule, err := cron.ParseStandard("CRON_TZ=UTC " + text)
	if err != nil {
		return nil, fmt.Errorf("%q is neither a number of seconds nor a cron expression: %w", text, err)
	}
	// Next looks five years ahead, which is enough except for a leap day around a
	// century that has none.
	if schedule.Next(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, fmt.Errorf("%q never comes: no month has such a day", text)
	}
	return schedule, nil
}

func forgeAPICheck(text string) error {
	u, err := url.Parse(text)
	if text != "" &&
		(err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil ||
			u.RawQuery != "" || u.Fragment != "") {
		return fmt.Errorf("it must be an address such as https://git.example.org, without user name, query or fragment")
	}
	return nil
}

func patternsCheck(text string) error {
	_, err := ParsePatterns(text)
	return err
}

func secondsDuration(n int) time.Duration { return time.Duration(n) * time.Second }

// Value returns the value in an environment's settings, or the default.
func (s Setting) Value(set map[string]any) any {
	if v, ok := set[s.Name]; ok {
		if converted, err := s.Convert(v); err == nil {
			return converted
		}
	}
	return s.Default
}

// Bool returns the value of a boolean setting.
func (e Environment) Bool(name string) bool {
	b, _ := settings[name].Value(e.Settings).(bool)
	return b
}

// Int returns the value of a whole-number setting.
func (e Environment) Int(name string) int {
	n, _ := settings[name].Value(e.Settings).(int)
	return n
}

// Float returns the value of a decimal setting.
func (e Environment) Float(name string) float64 {
	f, _ := settings[name].Value(e.Settings).(float64)
	return f
}

// Text returns the value of a text setting.
func (e Environment) Text(name string) string {
	s, _ := settings[name].Value(e.Settings).(string)
	return s
}

// Dict returns the value of a dict setting, which must not be changed.
func (e Environment) Dict(name string) map[string]any {
	d, _ := settings[name].Value(e.Settings).(map[string]any)
	return d
}

// Windows returns the windows of the setting maintenance_windows, which was checked when it was set.
func (e Environment) Windows() (Windows, error) { return ParseWindows(e.Dict("maintenance_windows")) }

// AgentLimits returns the limits of the setting agent_limits, which was checked when it was set.
func (e Environment) AgentLimits() (AgentLimits, error) {
	return ParseAgentLimits(e.Dict("agent_limits"))
}
