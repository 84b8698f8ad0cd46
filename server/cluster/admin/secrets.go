package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/cluster/catalogue"
	"ordain.dev/ordain/server/store"
)

// hidden is the value that people see of a secret.
var hidden = json.RawMessage(`"` + catalogue.Hidden + `"`)

// sealedFor is what the secrets of a provider are sealed for.
func sealedFor(project intent.ProjectID, name string) string {
	return "cluster provider " + project.String() + "/" + name
}

// open returns the secrets of a version of a provider, by field.
func (s *Service) open(row store.ClusterEntity) (map[string]json.RawMessage, error) {
	out := map[string]json.RawMessage{}
	if row.Sealed == nil {
		return out, nil
	}
	plain, err := s.c.Key.Open(row.Sealed, sealedFor(row.Project, row.Name))
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(plain, &out); err != nil {
		return nil, fault.New("admin.open", fault.Internal, "the secrets of the provider "+row.Name+" cannot be read").
			Hint("set them again")
	}
	return out, nil
}

// split takes the secrets out of the text of a provider. The marker keeps what before has. all has the type of the
// provider, if it exists. Other kinds pass unchanged.
func (s *Service) split(
	now *snapshot, all *catalogue.Catalogue, e catalogue.Entity, text []byte, before *kept,
) (content []byte, secrets map[string]json.RawMessage, wrong []catalogue.Problem, err error) {
	p, ok := e.(*catalogue.Provider)
	if !ok {
		return text, nil, nil, nil
	}
	had := map[string]json.RawMessage{}
	if before != nil {
		// A field may have become secret since it was written.
		maps.Copy(had, before.entity.(*catalogue.Provider).Provisioner)
		kept, err := s.open(before.ClusterEntity)
		if err != nil {
			return nil, nil, nil, err
		}
		maps.Copy(had, kept)
	}
	secrets = map[string]json.RawMessage{}
	markers := map[string]json.RawMessage{}
	kind := all.ProviderTypes[p.ProviderType]
	var moved string
	if before != nil {
		moved = elsewhere(append(now.typesOf(p), kind), before.entity.(*catalogue.Provider), p)
	}
	for _, field := range catalogue.SecretFields(kind, p) {
		given := p.Provisioner[field]
		if catalogue.IsHidden(given) {
			given = had[field]
			if len(given) > 0 && moved != "" {
				wrong = append(wrong, catalogue.Problem{
					Field: "provisioner." + field,
					Text: "give it again, because " + moved + " changes: whoever changes where a secret is sent " +
						"has to know it",
				})
				continue
			}
			if len(given) == 0 || catalogue.IsHidden(given) {
				wrong = append(wrong, catalogue.Problem{
					Field: "provisioner." + field, Text: "its value is not known here; " + catalogue.Hidden + " " +
						"only keeps one",
				})
				continue
			}
		}
		secrets[field], markers[field] = given, hidden
	}
	content, err = catalogue.WithValues(text, markers)
	return content, secrets, wrong, err
}

// elsewhere returns what may make the secrets of a provider go to another place than before, or nothing: its type, or
// the value of a field that is neither secret nor left to users. So nobody can have a secret sent to an address of
// theirs without knowing it. types are all that describe the provider: a field counts unless all of them agree.
func elsewhere(types []*catalogue.PluginType, before, after *catalogue.Provider) string {
	if before.ProviderType != after.ProviderType {
		return "the type of the provider"
	}
	count := map[string]catalogue.Field{}
	for _, t := range types {
		if t == nil {
			continue
		}
		for name, f := range t.Parameters.Admin.Fields {
			if !f.Secret() && !f.Override {
				count[name] = f
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(count)) {
		f := count[name]
		was, is := before.Provisioner[name], after.Provisioner[name]
		if catalogue.IsHidden(is) {
			continue // it stays what it was
		}
		if blank(was) {
			was = f.Default
		}
		if blank(is) {
			is = f.Default
		}
		if !bytes.Equal(was, is) && !(blank(was) && blank(is)) {
			return "the field " + name
		}
	}
	return ""
}

func blank(raw json.RawMessage) bool {
	text := strings.TrimSpace(string(raw))
	return text == "" || text == "null" || text == `""`
}

// seal seals secrets of a provider; nil if there are none.
func (s *Service) seal(project intent.ProjectID, name string, secrets map[string]json.RawMessage) ([]byte, error) {
	if len(secrets) == 0 {
		return nil, nil
	}
	plain, err := json.Marshal(secrets)
	if err != nil {
		return nil, fault.Wrap("admin.seal", fault.Internal, err)
	}
	return s.c.Key.Seal(plain, sealedFor(project, name))
}

// masked returns the text of an entity with markers for what the present type of a provider says is secret, even if
// it was none when it was written.
func (n *snapshot) masked(kind catalogue.Kind, text []byte) ([]byte, error) {
	if kind != catalogue.Providers {
		return text, nil
	}
	e, err := catalogue.Decode(kind, text)
	if err != nil {
		return nil, err
	}
	p := e.(*catalogue.Provider)
	markers := map[string]json.RawMessage{}
	for _, t := range n.typesOf(p) {
		for _, field := range catalogue.SecretFields(t, p) {
			markers[field] = hidden
		}
	}
	return catalogue.WithValues(text, markers)
}

// typesOf returns the types that a provider may be of: the project's, and the shared one that it hides. A provider
// whose type is gone has one that is nil.
func (n *snapshot) typesOf(p *catalogue.Provider) []*catalogue.PluginType {
	out := []*catalogue.PluginType{n.all.ProviderTypes[p.ProviderType]}
	if k, ok := n.shared[catalogue.Ref{Kind: catalogue.ProviderTypes, Name: p.ProviderType}]; ok {
		out = append(out, k.entity.(*catalogue.PluginType))
	}
	for _, t := range catalogue.BuiltIn() {
		if !t.Automator && t.Name == p.ProviderType {
			out = append(out, t)
		}
	}
	return out
}

// sameOwner refuses the secrets of a provider for a version of its namesake that belonged to somebody else: the
// fields of that version say where the secrets would be sent.
func (s *Service) sameOwner(ctx context.Context, project intent.ProjectID, k kept, version int) error {
	const op = "admin.ProviderSecrets"
	rows, err := s.c.Store.PinnedClusterEntities(ctx, project, []store.ClusterEntityPin{
		{Kind: string(catalogue.Providers), Name: k.Name, Version: version},
	})
	if err != nil {
		return err
	}
	if len(rows) != 1 || rows[0].Project != k.Project {
		return fault.New(op, fault.Invalid, fmt.Sprintf("version %d of the provider %s is not of the one that the "+
			"project "+
			"uses now", version, k.Name)).Hint("update the cluster to what the catalogue has now")
	}
	return nil
}

// ProviderSecrets returns the values of the secret fields of the provider that a project uses under a name, for a task
// whose cluster is made from a version of it; 0: the newest.
// Nobody else is to see them.
func (s *Service) ProviderSecrets(
	ctx context.Context, project intent.ProjectID, name string, version int,
) (map[string]json.RawMessage, error) {
	const op = "admin.ProviderSecrets"
	now, err := s.snapshot(ctx, op, project)
	if err != nil {
		return nil, err
	}
	ref := catalogue.Ref{Kind: catalogue.Providers, Name: name}
	k, ok := now.own[ref]
	if !ok {
		k, ok = now.shared[ref]
	}
	if !ok {
		return nil, missing(op, catalogue.Providers, name)
	}
	if version != 0 && version != k.Version {
		if err := s.sameOwner(ctx, project, k, version); err != nil {
			return nil, err
		}
	}
	out, err := s.open(k.ClusterEntity)
	if err != nil {
		return nil, fmt.Errorf("the provider %s: %w", name, err)
	}
	p := k.entity.(*catalogue.Provider)
	for _, t := range now.typesOf(p) {
		for _, field := range catalogue.SecretFields(t, p) {
			if _, ok := out[field]; !ok && !catalogue.IsHidden(p.Provisioner[field]) {
				out[field] = p.Provisioner[field]
			}
		}
	}
	return out, nil
}
