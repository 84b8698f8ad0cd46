package control

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/access/audit"
)

// SavedViews lists the saved views of the sender in an environment.
func (c *Control) SavedViews(ctx context.Context, env intent.EnvironmentID) ([]intent.SavedView, error) {
	return c.cfg.Store.SavedViews(ctx, env, access.Of(ctx).User)
}

// SaveView saves a filter of a list under a name, for the sender only; without people, for everyone who
// uses the environment.
func (c *Control) SaveView(ctx context.Context, env intent.EnvironmentID, v intent.SavedView) error {
	const op = "control.SaveView"
	v.Name = strings.Join(strings.Fields(v.Name), " ")
	audit.Subject(ctx, "view "+v.Name)
	_, err := url.ParseQuery(v.Filter)
	switch {
	case v.Name == "" || utf8.RuneCountInString(v.Name) > intent.MaxSavedViewName || !utf8.ValidString(v.Name) ||
		strings.Contains(v.Name, "\x00"):
		return fault.New(op, fault.Invalid,
			fmt.Sprintf("name the view, in at most %d characters", intent.MaxSavedViewName))
	case v.Filter == "":
		return fault.New(op, fault.Invalid, "there is no filter to save").Hint("choose something in the list first")
	case err != nil || len(v.Filter) > intent.MaxSavedFilter || strings.Contains(v.Filter, "\x00"):
		return fault.New(op, fault.Invalid,
			fmt.Sprintf("the filter cannot be saved: it is no address, or longer than %d bytes", intent.MaxSavedFilter))
	}
	views, err := c.SavedViews(ctx, env)
	if err != nil {
		return err
	}
	for _, other := range views {
		if other.Name == v.Name && other.List != v.List {
			return fault.New(op, fault.Conflict, "there is a view of this name, of another list").
				Hint("choose another name, or delete that view")
		}
	}
	return c.cfg.Store.PutSavedView(ctx, env, access.Of(ctx).User, v, c.cfg.Now())
}

// DeleteView deletes a saved view of the sender.
func (c *Control) DeleteView(ctx context.Context, env intent.EnvironmentID, name string) error {
	audit.Subject(ctx, fmt.Sprintf("view %.60s", name))
	return c.cfg.Store.DeleteSavedView(ctx, env, access.Of(ctx).User, name)
}
