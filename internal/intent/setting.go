package intent

import (
	"fmt"
	"maps"
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
)

// Setting defines one environment setting (API.md section 3).
type Setting struct {
	Name    string
	Type    SettingType
	Default any
	Doc     string
	// Interval: the text is a number of seconds or a cron expression.
	Interval bool
}

var settings = map[string]Setting{}

func init() {
	for _, s := range []Setting{
		{Name: "auto_deploy", Type: SettingBool, Default: true, Doc: "Release every version that the server compiled."},
		{Name: "server_compile", Type: SettingBool, Default: true, Doc: "Let the server compile this environment."},
		{Name: "auto_full_compile", Type: SettingText, Default: "", Interval: true, Doc: "Recompile on this schedule: a cron expression in UTC, empty for never."},
		{Name: "recompile_backoff", Type: SettingFloat, Default: 0.1, Doc: "Seconds to wait between two compiles, so that a burst of requests becomes one."},
		{Name: "autostart_agent_deploy_interval", Type: SettingText, Default: "600", Interval: true, Doc: "How often resources that are not as intended are tried again: seconds, or a cron expression. 0 for never."},
		{Name: "autostart_agent_repair_interval", Type: SettingText, Default: "86400", Interval: true, Doc: "How often every resource is verified and repaired: seconds, or a cron expression. 0 for never."},
		{Name: "autostart_on_start", Type: SettingBool, Default: true, Doc: "Start the scheduler of this environment with the server."},
		{Name: "reset_deploy_progress_on_start", Type: SettingBool, Default: false, Doc: "Forget half-done deployments when the server starts."},
		{Name: "resource_action_logs_retention", Type: SettingInt, Default: 7, Doc: "Days to keep the resource action log."},
		{Name: "available_versions_to_keep", Type: SettingInt, Default: 100, Doc: "Versions to keep beside the active one."},
		{Name: "notification_retention", Type: SettingInt, Default: 365, Doc: "Days to keep notifications."},
		{Name: "environment_metrics_retention", Type: SettingInt, Default: 336, Doc: "Hours to keep metrics; 0 keeps them for ever."},
		{Name: "protected_environment", Type: SettingBool, Default: false, Doc: "Refuse to delete or clear this environment."},
		{Name: "git_poll_interval", Type: SettingInt, Default: 60, Doc: "Seconds between two looks at the Git repository, when no webhook arrives; 0 for never."},
	} {
		settings[s.Name] = s
	}
}

// Settings lists all definitions by name.
func Settings() []Setting {
	var out []Setting
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		out = append(out, settings[name])
	}
	return out
}

// SettingNamed finds a definition.
func SettingNamed(name string) (Setting, bool) {
	s, ok := settings[name]
	return s, ok
}

// Convert checks a value that a client sent, converting text ("42", "true").
func (s Setting) Convert(v any) (any, error) {
	bad := func() (any, error) {
		return nil, fmt.Errorf("setting %s: %v is not a %s", s.Name, v, s.Type)
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
			if f, err = strconv.ParseFloat(x, 64); err != nil {
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
		return int(f), nil
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
			if _, err := ParseInterval(text); err != nil {
				return nil, fmt.Errorf("setting %s: %w", s.Name, err)
			}
		}
		return text, nil
	}
	return bad()
}

// ParseInterval reads a number of seconds or a cron expression (five fields,
// UTC) as a schedule. Zero seconds and the empty text give nil: never.
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
	return schedule, nil
}

func secondsDuration(n int) time.Duration { return time.Duration(n) * time.Second }

// Value gives what is set in an environment's settings, else the default.
func (s Setting) Value(set map[string]any) any {
	if v, ok := set[s.Name]; ok {
		if converted, err := s.Convert(v); err == nil {
			return converted
		}
	}
	return s.Default
}

// Bool reads a boolean setting of an environment.
func (e Environment) Bool(name string) bool {
	b, _ := settings[name].Value(e.Settings).(bool)
	return b
}

// Int reads a whole-number setting of an environment.
func (e Environment) Int(name string) int {
	n, _ := settings[name].Value(e.Settings).(int)
	return n
}

// Float reads a decimal setting of an environment.
func (e Environment) Float(name string) float64 {
	f, _ := settings[name].Value(e.Settings).(float64)
	return f
}

// Text reads a text setting of an environment.
func (e Environment) Text(name string) string {
	s, _ := settings[name].Value(e.Settings).(string)
	return s
}
