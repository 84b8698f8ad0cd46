package resources

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/cluster/archive"
	"ordain.dev/ordain/server/cluster/catalogue"
	"ordain.dev/ordain/server/store"
)

// Upload keeps what r returns as a new version, which is inactive. The version in ref does not matter. Nothing is kept
// if r fails, has too much, or is not the archive that the plug-in wants.
func (s *Service) Upload(
	ctx context.Context, ref intent.ClusterResourceRef, r io.Reader,
) (intent.ClusterResource, error) {
	const op = "resources.Upload"
	none := intent.ClusterResource{}
	kind, err := s.resourceType(ctx, op, ref)
	if err != nil {
		return none, err
	}
	use, err := s.c.Store.ClusterResourceUse(ctx, ref.Project)
	if err != nil {
		return none, err
	}
	if err := s.allowed(op, use, 1); err != nil {
		return none, err // before all of it is sent
	}
	limited := &bounded{r: r, left: s.c.MaxSize, most: s.c.MaxSize}
	var source io.Reader = limited
	if kind.Format == "archive" {
		checked := check(limited, ref.Name, s.c.MaxSize)
		defer checked.stop()
		source = checked
	}
	hash, size, err := s.c.Blobs.Put(ctx, source)
	if err != nil {
		return none, err
	}
	added, err := s.c.Store.AddClusterResource(ctx,
		intent.ClusterResource{ClusterResourceRef: ref, Size: size, Hash: hash, MadeBy: access.Of(ctx).Name},
		func(use store.ClusterResourceUse) error { return s.allowed(op, use, size) },
		func(ctx context.Context) error {
			_, err := s.c.Blobs.Stat(ctx, hash)
			if fault.Is(err, fault.NotFound) {
				return fault.New(op, fault.Unavailable, "another resource with this content was deleted meanwhile, "+
					"and the content with it").Hint("upload it again")
			}
			return err
		})
	if err != nil {
		return none, err // Tidy deletes the content
	}
	s.publish()
	return added, nil
}

// resourceType returns the type of a resource that may be uploaded.
func (s *Service) resourceType(
	ctx context.Context, op string, ref intent.ClusterResourceRef,
) (catalogue.ResourceType, error) {
	none := catalogue.ResourceType{}
	for _, name := range []string{ref.Plugin, ref.Type, ref.Name} {
		if text := catalogue.CheckName(name); text != "" {
			return none, fault.New(op, fault.Invalid, fmt.Sprintf("%.80q names no resource: %s", name, text))
		}
	}
	if ref.Project != (intent.ProjectID{}) {
		if _, err := s.c.Store.Project(ctx, ref.Project); err != nil {
			return none, err
		}
	}
	all, err := s.c.Catalogues.Catalogue(ctx, ref.Project)
	if err != nil {
		return none, err
	}
	var plugins map[string]*catalogue.PluginType
	switch catalogue.Kind(ref.Kind) {
	case catalogue.ProviderTypes:
		plugins = all.ProviderTypes
	case catalogue.AutomatorTypes:
		plugins = all.AutomatorTypes
	default:
		return none, fault.New(op, fault.NotFound, fmt.Sprintf("%.80q have no resources", ref.Kind)).
			Hint("providertypes and automatortypes have some")
	}
	noun := catalogue.Kind(ref.Kind).Noun()
	plugin := plugins[ref.Plugin]
	if plugin == nil {
		return none, fault.New(op, fault.NotFound, fmt.Sprintf("there is no %s %s", noun, ref.Plugin)).
			Hint("there are " + listed(plugins))
	}
	found, ok := plugin.ResourceTypes[ref.Type]
	switch {
	case !ok && len(plugin.ResourceTypes) == 0:
		return none, fault.New(op, fault.NotFound, fmt.Sprintf("the %s %s uses no resources", noun, ref.Plugin))
	case !ok:
		return none, fault.New(op, fault.NotFound, fmt.Sprintf("the %s %s has no resources of the type %s", noun,
			ref.Plugin, ref.Type)).Hint("it has " + listed(plugin.ResourceTypes))
	}
	return found, nil
}

func listed[V any](of map[string]V) string {
	all := slices.Sorted(maps.Keys(of))
	if len(all) > 20 {
		return strings.Join(all[:20], ", ") + " and others"
	}
	return strings.Join(all, ", ")
}

// allowed refuses a version of this size that would be too much, or one too many.
func (s *Service) allowed(op string, use store.ClusterResourceUse, size int64) error {
	const advice = "delete versions that are no longer used"
	if use.Versions >= s.c.MaxVersions {
		return fault.New(op, fault.Conflict, fmt.Sprintf("there are %d versions of resources, and no more are kept",
			use.Versions)).Hint(advice)
	}
	if s.c.MaxTotal > 0 && use.Bytes+size > s.c.MaxTotal {
		return fault.New(op, fault.Conflict, fmt.Sprintf("the resources have %d bytes, and may have %d together",
			use.Bytes, s.c.MaxTotal)).
			Hint(advice + "; an administrator of the server can raise [cluster] max-resource-total")
	}
	return nil
}

// bounded refuses to return more than it may, and nothing at all.
type bounded struct {
	r          io.Reader
	left, most int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	// One byte more than allowed is asked for, to learn whether there is one.
	n, err := b.r.Read(p[:min(int64(len(p)), b.left+1)])
	if int64(n) > b.left {
		return 0, fault.New("resources.Upload", fault.Invalid, fmt.Sprintf("the file is larger than %d bytes", b.most)).
			Hint("put large files where the machines can download them, or ask an administrator of the server to " +
				"raise [cluster] max-resource-size")
	}
	b.left -= int64(n)
	if err == io.EOF && b.left == b.most {
		return n, fault.New("resources.Upload", fault.Invalid, "the file is empty").Hint("send its content as the body")
	}
	return n, err
}

// checked passes on an archive, and ends with io.EOF only if it is right. The check runs beside the reader, and sees
// each byte once.
type checked struct {
	r       io.Reader
	in      *io.PipeWriter
	verdict chan error // closed after the only one
	err     error
}

// check begins to check what r returns. The caller calls stop.
func check(r io.Reader, name string, most int64) *checked {
	out, in := io.Pipe()
	c := &checked{r: r, in: in, verdict: make(chan error, 1)}
	go func() {
		defer close(c.verdict)
		err := archive.Limits{Packed: most}.Check(out, name)
		if err == nil {
			_, err = io.Copy(io.Discard, out) // so that the writer never waits for a reader
		}
		out.CloseWithError(err)
		c.verdict <- err
	}()
	return c
}

func (c *checked) Read(p []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	n, err := c.r.Read(p)
	if n > 0 {
		if _, wrong := c.in.Write(p[:n]); wrong != nil && wrong != io.ErrClosedPipe {
			n, err = 0, wrong
		}
	}
	if err == io.EOF {
		_ = c.in.Close()
		if wrong := <-c.verdict; wrong != nil {
			n, err = 0, wrong
		}
	}
	if f := fault.KindOf(err); err != nil && err != io.EOF && f == fault.Exhausted {
		// It is the archive that is too large for a limit, and to send it again does not help.
		err = fault.Wrap("resources.Upload", fault.Invalid, err).Say("the archive cannot be used")
	}
	c.err = err
	return n, err
}

// stop ends the check, and waits for its end.
func (c *checked) stop() {
	_ = c.in.CloseWithError(fault.New("resources.Upload", fault.Unavailable, "the upload ended early"))
	for range c.verdict {
	}
}
