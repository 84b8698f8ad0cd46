package worker

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"

	"ordain.dev/ordain/server/cluster/task"
)

// secretKey matches the names of fields whose values are masked although nobody has declared them as sensitive.
var secretKey = regexp.MustCompile(
	`(?i)pass(word|wd|phrase|_?code)|secret|token|credential|(private|api|access)[-_ ]?key|^(ssh|auth)[-_]?key$`,
)

// undeclaredMin is the length of the shortest undeclared value that is masked. A shorter one would match innocent text.
const undeclaredMin = 6

// secretsOf returns what must not appear in the output of a task: the declared secrets, the values of fields that look
// like secrets by their names, and private keys wherever they are.
func secretsOf(t task.Task) []string {
	secrets := append([]string{}, t.Secrets...)
	add := func(value string) {
		if len(value) >= undeclaredMin {
			secrets = append(secrets, value)
		}
	}
	fields := []task.Fields{t.Provider.Fields, t.Node.Facts, {"": t.Config}}
	if t.Service != nil {
		fields = append(fields, t.Service.Fields)
	}
	for _, each := range fields {
		for name, value := range each {
			walkTexts(value, secretKey.MatchString(name), add)
		}
	}
	return secrets
}

// textsOf returns the texts among the values of fields that are secret as a whole.
func textsOf(fields task.Fields) []string {
	var out []string
	for _, value := range fields {
		walkTexts(value, true, func(text string) {
			if len(text) >= undeclaredMin {
				out = append(out, text)
			}
		})
	}
	return out
}

// walkTexts calls add for the texts and numbers of a JSON value that are secret: all of them, or those below names
// that say so.
func walkTexts(value json.RawMessage, secret bool, add func(string)) {
	if len(value) == 0 {
		return
	}
	decoder := json.NewDecoder(bytes.NewReader(value))
	decoder.UseNumber()
	var decoded any
	if decoder.Decode(&decoded) == nil {
		walkValue(decoded, secret, add)
	}
}

func walkValue(value any, secret bool, add func(string)) {
	switch v := value.(type) {
	case string:
		if secret || strings.Contains(v, "PRIVATE KEY-----") {
			add(v)
		}
	case json.Number:
		if secret {
			add(v.String())
		}
	case []any:
		for _, each := range v {
			walkValue(each, secret, add)
		}
	case map[string]any:
		for name, each := range v {
			walkValue(each, secret || secretKey.MatchString(name), add)
		}
	}
}
