package control

import (
	"context"
	"testing"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
)

// A maintainer could get the rights that somebody has on all environments with a tag, by creating one with that tag.
func TestTagsOfANewEnvironmentNeedTheRightToTag(t *testing.T) {
	e := intent.Environment{ProjectID: uuid.New(), Tags: []string{"sandbox"}}
	as := func(bindings ...access.Binding) context.Context {
		return access.With(context.Background(),
			access.Principal{Kind: access.Person, Name: "mallory", Bindings: bindings})
	}
	here := access.Scope{Project: e.ProjectID}
	for what, ctx := range map[string]context.Context{
		"a maintainer": as(access.Binding{Role: access.Maintainer, Scope: here}),
		"an administrator of the tag": as(access.Binding{Role: access.Maintainer, Scope: here},
			access.Binding{Role: access.Administrator, Scope: access.Scope{Tag: "sandbox"}}),
	} {
		if err := mayTag(ctx, e); !fault.Is(err, fault.Forbidden) {
			t.Errorf("%s: %v", what, err)
		}
		if err := mayTag(ctx, intent.Environment{ProjectID: e.ProjectID}); err != nil {
			t.Errorf("%s, without tags: %v", what, err)
		}
	}
	if err := mayTag(as(access.Binding{Role: access.Administrator, Scope: here}), e); err != nil {
		t.Error(err)
	}
}
