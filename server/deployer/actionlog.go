package deployer

import (
	"bytes"
	"fmt"
	"strings"

	"ordain.dev/ordain/internal/intent"
)

// logAction writes messages of an action to resource-actions-<env>.log, one line each:
//
//	2026-11-21T12:00:00.000Z INFO     fs::File[web,path=/motd],v=3 deploy 1f0c9a2e: Deployment starts: new version 3
//
// A message of several lines becomes one, so that a program can read the file by lines and no message can pass for
// another. The lines gather until the next batch is committed.
func (d *Deployer) logAction(a intent.Action, messages []intent.LogLine) {
	if d.cfg.ActionLog == nil || len(messages) == 0 {
		return
	}
	resource := inOneLine(a.Resource.AtVersion(a.Version))
	id := a.ID.String() // whole: ids made within a minute begin with the same digits
	b := &d.actionLines
	for _, m := range messages {
		b.Write(m.Time.UTC().AppendFormat(b.AvailableBuffer(), "2006-01-02T15:04:05.000Z"))
		fmt.Fprintf(b, " %-8s ", m.Level)
		for _, text := range []string{resource, " ", string(a.Kind), " ", id, ": ", inOneLine(m.Message), "\n"} {
			b.WriteString(text)
		}
	}
}

// takeLines returns the lines that gathered since the last call.
func (d *Deployer) takeLines() []byte {
	lines := bytes.Clone(d.actionLines.Bytes())
	d.actionLines.Reset()
	return lines
}

// writeLines writes to the action log. Only one goroutine at a time calls it.
func (d *Deployer) writeLines(lines []byte) {
	if len(lines) == 0 {
		return
	}
	if _, err := d.cfg.ActionLog.Write(lines); err != nil && !d.logFailed {
		d.logFailed = true // only once: a full disk should not fill another log too
		d.log.Error("the resource action log cannot be written; the database has all of it", "error", err)
	} else if err == nil {
		d.logFailed = false
	}
}

// inOneLine escapes line breaks. Few messages have any.
func inOneLine(message string) string {
	if !strings.ContainsAny(message, "\r\n") {
		return message
	}
	return oneLine.Replace(message)
}

var oneLine = strings.NewReplacer("\r\n", `\n`, "\n", `\n`, "\r", `\r`)
