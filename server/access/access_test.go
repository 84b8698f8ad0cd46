package access

import (
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"
)

var (
	shop, bank         = uuid.New(), uuid.New()
	shopProd, shopTest = uuid.New(), uuid.New()
	prod               = Target{Project: shop, Environment: shopProd, Tags: []string{"prod"}}
	test               = Target{Project: shop, Environment: shopTest}
	other              = Target{Project: bank, Environment: uuid.New(), Tags: []string{"prod"}}
)

// A maintainer of one project, who operates what is tagged prod everywhere, is a stranger to the rest.
func TestRolesHoldInTheirScope(t *testing.T) {
	noor := Principal{Kind: Person, Name: "noor", Bindings: []Binding{
		{Role: Maintainer, Scope: Scope{Project: shop}},
		{Role: Operator, Scope: Scope{Tag: "prod"}, Through: "group netops"},
	}}
	for _, c := range []struct {
		verb             Verb
		target           Target
		allowed, visible bool
	}{
		{SetSetting, prod, true, true},
		{SetSetting, test, true, true},
		{DeleteEnvironment, prod, false, true},
		{Halt, other, true, true},
		{SetSetting, other, false, true},
		{SeeEnvironment, Target{Project: bank, Environment: uuid.New()}, false, false},
		{SeeProject, Target{Project: bank}, false, false},
		{CreateProject, Target{}, false, true},
		{ListEnvironments, Target{}, true, true},
	} {
		d := noor.Decide(c.verb, c.target)
		if d.Allowed != c.allowed || d.Visible != c.visible {
			t.Errorf("%s on %+v: %+v", c.verb, c.target, d)
		}
		if d.Reason == "" {
			t.Errorf("%s on %+v: no reason", c.verb, c.target)
		}
	}
}

// A token never allows what its owner may not do, nor what it was not made for.
func TestATokenOnlyNarrows(t *testing.T) {
	scopes := rapid.SampledFrom([]Scope{{}, {Project: shop}, {Project: bank}, {Environment: shopProd}, {Tag: "prod"}})
	bindings := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Binding {
		return Binding{Role: rapid.SampledFrom(BuiltIn).Draw(t, "role"), Scope: scopes.Draw(t, "scope")}
	}), 0, 3)
	rapid.Check(t, func(t *rapid.T) {
		owner := Principal{Kind: Person, Name: "owner", Bindings: bindings.Draw(t, "bindings")}
		token := owner
		token.Kind, token.Within = Token, bindings.Draw(t, "within")
		alone := Principal{Kind: Person, Name: "alone", Bindings: token.Within}
		verb := rapid.SampledFrom(Verbs).Draw(t, "verb").Verb
		target := rapid.SampledFrom([]Target{{}, {Project: shop}, prod, test, other}).Draw(t, "target")
		got := token.Decide(verb, target)
		if got.Allowed && !owner.Decide(verb, target).Allowed {
			t.Fatal("the token allows more than its owner may do")
		}
		if len(token.Within) > 0 && got.Allowed && !alone.Decide(verb, target).Allowed {
			t.Fatal("the token allows more than it was made for")
		}
		if got.Allowed && !got.Visible {
			t.Fatal("something invisible is allowed")
		}
	})
}

// A stranger may do what is public, and nothing else.
func TestAStranger(t *testing.T) {
	for _, d := range Verbs {
		for _, target := range []Target{{}, {Project: shop}, prod} {
			if got := (Principal{}).Decide(d.Verb, target); got.Allowed != (d.Label == Public) {
				t.Errorf("%s: %+v", d.Verb, got)
			}
		}
	}
}

// Every verb has one definition, and every label and reach is a known one.
func TestTheTableIsWhole(t *testing.T) {
	if len(byName) != len(Verbs) {
		t.Error("a verb is defined twice")
	}
	for _, d := range Verbs {
		if d.Summary == "" || d.Label == "" || d.Reach == "" {
			t.Errorf("%+v is not complete", d)
		}
	}
}
