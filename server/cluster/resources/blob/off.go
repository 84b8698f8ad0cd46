package blob

import (
	"context"
	"io"
	"time"

	"ordain.dev/ordain/internal/fault"
)

// Off is the store of a server whose processes have no common place for contents. It refuses them.
type Off struct{}

var _ Store = Off{}

func (Off) refuse(op string) error {
	return fault.New(op, fault.Unavailable, "the server has no place for plug-in resources that all of its processes "+
		"reach").Hint("set [cluster] resource-store = s3, or resource-folder to a folder that all processes share")
}

// Put refuses.
func (o Off) Put(context.Context, io.Reader) (string, int64, error) {
	return "", 0, o.refuse("blob.Put")
}

// Open refuses.
func (o Off) Open(context.Context, string) (Content, error) { return Content{}, o.refuse("blob.Open") }

// Stat refuses.
func (o Off) Stat(context.Context, string) (Info, error) { return Info{}, o.refuse("blob.Stat") }

// Delete refuses.
func (o Off) Delete(context.Context, string) error { return o.refuse("blob.Delete") }

// List lists nothing.
func (Off) List(context.Context, func(Info) error) error { return nil }

// Sweep does nothing.
func (Off) Sweep(context.Context, time.Time) error { return nil }
