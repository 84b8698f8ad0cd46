package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/intent"
)

// functions are the functions that templates may call.
func functions(now func() time.Time) template.FuncMap {
	return template.FuncMap{
		"ago":      func(t time.Time) string { return ago(now(), t) },
		"relative": func(text string) template.HTML { return withRelativeTimes(now(), text) },
		"iso":      func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) },
		"exact":    exact,
		"clock":    func(t time.Time) string { return t.UTC().Format("15:04:05.000") },
		"count":    count,
		"plural":   plural,
		"ticks":    codeParts,
		"duration": duration,
		"short":    short,
		"since":    func(t time.Time) time.Duration { return now().Sub(t) },
	}
}

// ago says roughly how long ago a time is.
func ago(now, t time.Time) string {
	d := now.Sub(t)
	if d < 0 {
		if d > -5*time.Second {
			return "just now"
		}
		return "in " + coarse(-d)
	}
	if d < 5*time.Second {
		return "just now"
	}
	return coarse(d) + " ago"
}

func coarse(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

// bytesText writes a size for people.
func bytesText(n int64) string {
	const unit = 1024
	size, names := float64(n), []string{"bytes", "KiB", "MiB", "GiB", "TiB"}
	for size >= unit && len(names) > 1 {
		size, names = size/unit, names[1:]
	}
	if names[0] == "bytes" || size >= 10 {
		return fmt.Sprintf("%.0f %s", size, names[0])
	}
	return fmt.Sprintf("%.1f %s", size, names[0])
}

func exact(t time.Time) string { return t.UTC().Format("2 January 2006, 15:04:05 UTC") }

// duration writes a length of time with units.
func duration(d time.Duration) string {
	switch {
	case d < 0:
		return "0 s"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
}

// count writes a number with separators.
func count(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// plural writes a number with its noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return count(n) + " " + noun + "s"
}

func short(commit string) string { return intent.Revision{Commit: commit}.Short() }

// attribute is a name with a value as text. A long value gets a block of its own.
type attribute struct {
	Name  string
	Value string
	Long  bool
}

// attributesOf lists the members of a JSON object in the order in which they were written.
func attributesOf(raw json.RawMessage) []attribute {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return nil
	}
	var out []attribute
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return out
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return out
		}
		text := rawText(value)
		out = append(out, attribute{Name: fmt.Sprint(name), Value: text, Long: isLong(text)})
	}
	return out
}

func isLong(text string) bool { return strings.Contains(text, "\n") || len(text) > 120 }

// maxShown is how many bytes of a value a page shows.
const maxShown = 64 << 10

// rawText writes a JSON value for people: a text without quotes, anything else as JSON. Of a very large value it writes
// the beginning.
func rawText(raw json.RawMessage) string {
	text := wholeText(raw)
	if len(text) <= maxShown {
		return text
	}
	more := (len(text) - maxShown) >> 10
	return strings.ToValidUTF8(text[:maxShown], "") + fmt.Sprintf("\n… %d KiB more; the API returns all of it", more)
}

// wholeText writes a JSON value for people.
func wholeText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil && string(raw) != "null" {
		return text
	}
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	compact := strings.Join(strings.Fields(b.String()), " ")
	if len(compact) <= 60 && !strings.Contains(string(raw), `\`) {
		return string(raw)
	}
	return b.String()
}

// valueText writes a value of a change for people.
func valueText(v any) string {
	if v == nil {
		return "–"
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(v) == nil {
		raw = bytes.TrimSpace(b.Bytes())
	}
	return rawText(raw)
}

// Addresses of pages.

func envURL(id uuid.UUID) string { return "/e/" + id.String() }

func runURL(env, run uuid.UUID) string { return envURL(env) + "/runs/" + run.String() }

func versionURL(env uuid.UUID, n int) string { return envURL(env) + "/versions/" + strconv.Itoa(n) }

func resourceURL(env uuid.UUID, id intent.ResourceID) string {
	return envURL(env) + "/resource?id=" + template.URLQueryEscaper(id.String())
}
