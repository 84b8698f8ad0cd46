package shell

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"ordain.dev/ordain/server/cluster/provisioner/plugin"
	"ordain.dev/ordain/server/cluster/provisioner/target"
)

// Files of this package in the working folder.
const (
	own        = ".ordain"
	taskFile   = own + "/task.json"
	cooprFile  = own + "/coopr.json"
	valuesFile = own + "/values"
	lookupFile = own + "/bin/coopr_lookup_key"
)

type object = map[string]any

// ordainTask is the content of ORDAIN_TASK. What the provider knows stays here: its fields have credentials of other
// machines, and facts may be sealed.
func ordainTask(c plugin.Call) object {
	node := c.Node
	node.Facts = nil
	return object{
		"id": c.ID, "attempt": c.Attempt, "action": c.Action, "cluster": c.Cluster, "node": node, "service": c.Service,
		"config": config(c), "nodes": c.Nodes, "provider": object{"name": c.Provider.Name, "type": c.Provider.Type},
	}
}

// cooprTask is the content of COOPR_CONFIG.
func cooprTask(c plugin.Call) object {
	nodes := object{}
	for number, peer := range c.Nodes {
		nodes[strconv.Itoa(number)] = object{
			"hostname": peer.Hostname, "ipaddresses": addresses(peer.Addresses), "services": peer.Services,
			"nodenum": number,
		}
	}
	return object{
		"taskId": c.ID, "clusterId": c.Cluster.ID, "taskName": strings.ToUpper(string(c.Action)),
		"nodeId": strconv.Itoa(c.Node.Number),
		"config": object{
			"cluster": config(c), "hostname": c.Node.Hostname, "ipaddresses": addresses(c.Node.Addresses),
			"nodenum": c.Node.Number, "sshuser": c.Node.SSHUser, "hardwaretype": c.Node.HardwareType,
			"imagetype": c.Node.ImageType, "flavor": c.Node.Flavor, "image": c.Node.Image, "services": c.Node.Services,
			"nodes": nodes, "provider": object{"name": c.Provider.Name, "providertype": c.Provider.Type},
			"service": object{
				"name": c.Service.Name, "action": object{"type": c.Service.Type, "fields": c.Service.Fields},
			},
		},
	}
}

func addresses(a map[string]string) map[string]string {
	if a == nil {
		return map[string]string{}
	}
	return a
}

func config(c plugin.Call) json.RawMessage {
	if len(c.Config) == 0 {
		return json.RawMessage("{}")
	}
	return c.Config
}

// lookup is the command that prints a value of COOPR_CONFIG by its path. It needs no JSON on the machine.
const lookup = `#!/bin/sh
while IFS='	' read -r key value; do
	if [ "$key" = "$1" ]; then
		printf '%b\n' "$value"
		exit 0
	fi
done <"${0%/*}/../values"
echo "coopr_lookup_key: the task has no $1" >&2
exit 1
`

func putTask(ctx context.Context, c plugin.Call, t *target.Target) error {
	mine, err := json.MarshalIndent(ordainTask(c), "", "  ")
	if err != nil {
		return fmt.Errorf("the task as JSON: %w", err)
	}
	theirs, err := json.MarshalIndent(cooprTask(c), "", "  ")
	if err != nil {
		return fmt.Errorf("the task as JSON: %w", err)
	}
	var tree any
	numbers := json.NewDecoder(bytes.NewReader(theirs))
	numbers.UseNumber()
	if err := numbers.Decode(&tree); err != nil {
		return fmt.Errorf("the task as JSON: %w", err)
	}
	var values strings.Builder
	flatten(&values, "", tree)
	for _, f := range []struct {
		name    string
		content string
	}{
		{taskFile, string(mine)}, {cooprFile, string(theirs)}, {valuesFile, values.String()},
	} {
		if err := t.Write(ctx, f.name, 0o600, []byte(f.content)); err != nil {
			return err
		}
	}
	return t.Write(ctx, lookupFile, 0o700, []byte(lookup))
}

// flatten writes a line with path and value for each plain value, and for each list of plain values, which are
// separated by spaces. Values are escaped for printf's %b.
func flatten(w *strings.Builder, at string, value any) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			flatten(w, strings.TrimPrefix(at+"/"+key, "/"), v[key])
		}
	case []any:
		var words []string
		for i, element := range v {
			switch element.(type) {
			case map[string]any, []any:
				flatten(w, fmt.Sprintf("%s/%d", at, i), element)
			default:
				words = append(words, plain(element))
			}
		}
		line(w, at, strings.Join(words, " "))
	default:
		line(w, at, plain(value))
	}
}

func plain(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	text, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return string(text)
}

var escape = strings.NewReplacer("\\", `\\`, "\n", `\n`, "\r", `\r`, "\t", `\t`, "\x00", "")

func line(w *strings.Builder, key, value string) {
	if strings.ContainsAny(key, "\t\r\n") {
		return // nobody can ask for it
	}
	w.WriteString(key + "\t" + escape.Replace(value) + "\n")
}
