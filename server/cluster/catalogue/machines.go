package catalogue

import (
	"encoding/json"
	"net"
	"regexp"
	"strconv"
	"strings"
)

// Machine is a machine of a pool.
type Machine struct {
	Address  string            `json:"address"`
	Port     int               `json:"port,omitempty"`     // of SSH; 0 is 22
	User     string            `json:"user,omitempty"`     // empty: the one of the pool
	HostKeys []string          `json:"hostkeys,omitempty"` // as in authorized_keys: type and key
	Labels   map[string]string `json:"labels,omitempty"`
}

const maxMachines = 10_000

var (
	hostForm = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$`)
	userForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9._-]*$`)
	keyForm  = regexp.MustCompile(`^(ssh|ecdsa|sk)-[a-z0-9@.-]+ [A-Za-z0-9+/]+=*( .*)?$`)
)

// Machines reads the machines of a pool: a list, or a text that has one. The fields of problems begin at the list.
func Machines(raw json.RawMessage) ([]Machine, []Problem) {
	if text, ok := textOf(raw); ok {
		if !json.Valid([]byte(text)) {
			return nil, []Problem{{Text: "the text is not JSON"}}
		}
		raw = json.RawMessage(strings.TrimSpace(text))
	}
	var found problems
	list := value{raw: raw, to: &found}.list()
	if len(found) == 0 && len(list) == 0 {
		found.add("", "a pool needs machines")
	}
	if len(list) > maxMachines {
		found.add("", "a pool has %d machines at most", maxMachines)
		return nil, found
	}
	out, seen := make([]Machine, 0, len(list)), map[string]int{}
	for i, one := range list {
		m := Machine{
			Address: one.field("address").text(), Port: one.field("port").number(), User: one.field("user").text(),
			HostKeys: one.field("hostkeys").texts(),
		}
		one.field("labels").each(func(name string, label value) {
			if m.Labels == nil {
				m.Labels = map[string]string{}
			}
			m.Labels[name] = label.plain()
		})
		m.check(one.path, &found)
		at := m.Place()
		if before, ok := seen[at]; ok && m.Address != "" {
			found.add(one.path+".address", "%.100s stands in the list twice, at first as number %d", at, before+1)
		}
		seen[at] = i
		out = append(out, m)
	}
	return out, found
}

// Place returns address and port, which no other machine of a pool has.
func (m Machine) Place() string {
	port := m.Port
	if port == 0 {
		port = 22
	}
	return net.JoinHostPort(m.Address, strconv.Itoa(port))
}

func (m Machine) check(path string, to *problems) {
	switch {
	case m.Address == "":
		to.add(path+".address", "the address of the machine is missing")
	case net.ParseIP(m.Address) == nil && (len(m.Address) > 253 || !hostForm.MatchString(m.Address)):
		to.add(path+".address", "%.100q is neither an IP address nor the name of a host", m.Address)
	}
	if m.Port < 0 || m.Port > 65535 {
		to.add(path+".port", "there is no port %d", m.Port)
	}
	if m.User != "" && !userForm.MatchString(m.User) {
		to.add(path+".user", "%.100q is no name of a user", m.User)
	}
	for i, key := range m.HostKeys {
		if !keyForm.MatchString(key) || strings.ContainsAny(key, "\r\n") {
			to.add(index(path+".hostkeys", i), "it has to be a public key, as \"ssh-ed25519 AAAA…\"")
		}
	}
}
