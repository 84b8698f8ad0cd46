package intent

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"
)

// EnvironmentID identifies an environment: the unit of tenancy.
type EnvironmentID = uuid.UUID

// ProjectID identifies a project: a group of environments.
type ProjectID = uuid.UUID

// CompileID identifies a request to compile and its report.
type CompileID = uuid.UUID

// ActionID identifies an entry of the resource action log.
type ActionID = uuid.UUID

// ResourceID identifies a unit of desired state in all versions:
//
//	module::Type[agent,attribute=value]
//
// The value may contain commas, brackets and equals signs; the agent and the
// attribute name may not. The zero value identifies no resource.
type ResourceID struct {
	Type      string // fully qualified entity type, such as fs::File
	Agent     string // name of the target that the resource lives on
	Attribute string // attribute that identifies the resource on its agent
	Value     string // value of that attribute
}

// ErrResourceID means that a text is not a resource id.
var ErrResourceID = errors.New("not a resource id: want module::Type[agent,attribute=value]")

// String returns the canonical form, which ParseResourceID reads.
func (id ResourceID) String() string {
	return id.Type + "[" + id.Agent + "," + id.Attribute + "=" + id.Value + "]"
}

// Append appends what String returns.
func (id ResourceID) Append(b []byte) []byte {
	b = append(append(b, id.Type...), '[')
	b = append(append(b, id.Agent...), ',')
	b = append(append(b, id.Attribute...), '=')
	return append(append(b, id.Value...), ']')
}

// Compare orders ids by type, agent, attribute and value.
func (id ResourceID) Compare(other ResourceID) int {
	return cmp.Or(strings.Compare(id.Type, other.Type), strings.Compare(id.Agent, other.Agent),
		strings.Compare(id.Attribute, other.Attribute), strings.Compare(id.Value, other.Value))
}

// IsZero reports whether id identifies nothing.
func (id ResourceID) IsZero() bool { return id == ResourceID{} }

// AtVersion returns the form with a version, module::Type[agent,attribute=value],v=N.
func (id ResourceID) AtVersion(v int) string { return id.String() + ",v=" + strconv.Itoa(v) }

// MarshalText makes a ResourceID a string in JSON and a usable map key.
func (id ResourceID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText is the inverse of MarshalText.
func (id *ResourceID) UnmarshalText(text []byte) error {
	parsed, err := ParseResourceID(string(text))
	if err != nil {
		return err
	}
	*id = parsed
	return nil
}

// ParseResourceID reads the form without a version.
func ParseResourceID(s string) (ResourceID, error) {
	typ, rest, ok := strings.Cut(s, "[")
	if !ok || typ == "" || !strings.Contains(typ, "::") || !strings.HasSuffix(rest, "]") {
		return ResourceID{}, fmt.Errorf("%q: %w", s, ErrResourceID)
	}
	agent, rest, ok := strings.Cut(rest[:len(rest)-1], ",")
	if !ok || agent == "" {
		return ResourceID{}, fmt.Errorf("%q: %w", s, ErrResourceID)
	}
	attribute, value, ok := strings.Cut(rest, "=")
	if !ok || attribute == "" {
		return ResourceID{}, fmt.Errorf("%q: %w", s, ErrResourceID)
	}
	return ResourceID{Type: typ, Agent: agent, Attribute: attribute, Value: value}, nil
}

// ParseResourceVersionID reads module::Type[agent,attribute=value],v=N.
// The version is 0 if the text has none.
func ParseResourceVersionID(s string) (ResourceID, int, error) {
	if i := strings.LastIndex(s, "],v="); i >= 0 {
		v, err := strconv.Atoi(s[i+len("],v="):])
		if err != nil || v < 0 {
			return ResourceID{}, 0, fmt.Errorf("%q: version: %w", s, ErrResourceID)
		}
		id, err := ParseResourceID(s[:i+1])
		return id, v, err
	}
	id, err := ParseResourceID(s)
	return id, 0, err
}
