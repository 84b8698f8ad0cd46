// Package client is a provisioner's end of the protocol: it sends the requests of package task to the desk of a
// server, and turns refusals into faults.
//
//	worker ── Hello, Take, Renew, Output, Finish, Resource ──▶ Client ── HTTP ──▶ desk
//	                                                            │ bounds every body
//	                                                            ▼ repeats what may be repeated
//
// How the desk is reached is up to the caller, who passes an *http.Client: with a client certificate over TLS, or
// over one end of a socket pair. The requests name tasks by id and fence, so the desk recognizes one that it has
// answered already, and Client repeats them after failures of the network and of the server. There are two
// exceptions. Output is repeated only if the desk cannot have seen it, because the text would appear twice. Take is
// not repeated at all, because its caller asks again anyway.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/cluster/task"
)

// Config is what a Client needs.
type Config struct {
	Base string       // URL of the desk, without the paths of package task: https://ordain.example:8443
	HTTP *http.Client // reaches the desk; its redirects are not followed
	// Patience is how long one request is repeated at most. 0: 30 s.
	Patience time.Duration
	// Backoff is how long to wait between the tries of a request.
	Backoff Backoff
}

// Client talks to the desk. It is safe for concurrent use.
type Client struct {
	base     *url.URL
	http     *http.Client
	patience time.Duration
	backoff  Backoff
}

// answerTime is how long one try may take, beside what a Take asks the desk to wait.
const answerTime = 30 * time.Second

// New checks the configuration and makes a client. It sends nothing.
func New(c Config) (*Client, error) {
	base, err := url.Parse(c.Base)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, fault.New("client.New", fault.Invalid, "the address of the server's desk is not a URL").
			Hint("write it as https://HOST:PORT")
	}
	if c.HTTP == nil {
		return nil, fault.New("client.New", fault.Internal, "there is no HTTP client for the server's desk")
	}
	own := *c.HTTP
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if c.Patience == 0 {
		c.Patience = answerTime
	}
	return &Client{base: base, http: &own, patience: c.Patience, backoff: c.Backoff}, nil
}

// Hello introduces the provisioner.
func (c *Client) Hello(ctx context.Context, hello task.Hello) (task.Welcome, error) {
	var welcome task.Welcome
	err := c.post(ctx, call{op: "client.Hello", path: task.HelloPath, repeat: always}, hello, &welcome)
	return welcome, err
}

// Take asks for tasks, and waits for them as long as the request says. It is tried once: whoever calls it in a loop
// decides when to ask again.
func (c *Client) Take(ctx context.Context, take task.Take) (task.Taken, error) {
	var taken task.Taken
	wait := time.Duration(take.WaitMS) * time.Millisecond
	err := c.post(ctx, call{op: "client.Take", path: task.TakePath, wait: wait}, take, &taken)
	for i := range taken.Tasks {
		if t := &taken.Tasks[i]; t.Nodes == nil {
			t.Nodes = copied(taken.Nodes[t.Cluster.ID]) // tasks share nothing: plug-ins may change what they get
		}
	}
	if err == nil && len(taken.Tasks) > take.Room {
		err = fault.New("client.Take", fault.Invalid,
			fmt.Sprintf("the server gave %d tasks to a provisioner with room for %d", len(taken.Tasks), take.Room))
	}
	return taken, err
}

// copied returns nodes that share nothing with those it gets.
func copied(nodes map[int]task.Peer) map[int]task.Peer {
	out := maps.Clone(nodes)
	for number, peer := range out {
		peer.Addresses, peer.Services = maps.Clone(peer.Addresses), slices.Clone(peer.Services)
		out[number] = peer
	}
	return out
}

// Renew renews leases.
func (c *Client) Renew(ctx context.Context, renew task.Renew) (task.Renewed, error) {
	var renewed task.Renewed
	err := c.post(ctx, call{op: "client.Renew", path: task.RenewPath, repeat: always}, renew, &renewed)
	return renewed, err
}

// Output reports what a task printed.
func (c *Client) Output(ctx context.Context, output task.Output) error {
	return c.post(ctx, call{op: "client.Output", path: task.OutputPath, repeat: unseen}, output, nil)
}

// Finish reports results, in as many requests as their number and size need, and returns those that were dropped.
// After an error, the results of the requests before it were taken; all of them may be sent again.
func (c *Client) Finish(ctx context.Context, results []task.Result) ([]uuid.UUID, error) {
	var dropped []uuid.UUID
	for len(results) > 0 {
		n, err := fitting(results)
		if err != nil {
			return dropped, err
		}
		var finished task.Finished
		order := call{op: "client.Finish", path: task.FinishPath, repeat: always}
		if err := c.post(ctx, order, task.Finish{Results: results[:n]}, &finished); err != nil {
			return dropped, err
		}
		dropped = append(dropped, finished.Dropped...)
		results = results[n:]
	}
	return dropped, nil
}

// fitting returns how many of the results fit into one request, at least one.
func fitting(results []task.Result) (int, error) {
	size := len(`{"results":[]}`)
	for i, r := range results {
		text, err := json.Marshal(r)
		if err != nil {
			return 0, fault.Wrap("client.Finish", fault.Internal, err).Say("a result cannot be written as JSON")
		}
		size += len(text) + 1
		if i > 0 && (size > task.MaxBody || i == task.MaxFinish) {
			return i, nil
		}
	}
	return len(results), nil
}

// Resource returns the content of a resource. The caller verifies its hash, bounds its size and closes it.
func (c *Client) Resource(ctx context.Context, hash string) (io.ReadCloser, error) {
	var body io.ReadCloser
	order := call{
		op: "client.Resource", method: http.MethodGet, path: task.ResourcePath + "/" + url.PathEscape(hash),
		repeat: always, stream: true,
	}
	err := c.try(ctx, order, nil, func(r *http.Response) error {
		body = r.Body
		return nil
	})
	return body, err
}

// repeat says after which failures a request is sent again.
type repeat int

const (
	never  repeat = iota
	unseen        // the desk cannot have acted on it
	always        // it makes no difference whether the desk acted on it
)

// call describes a request.
type call struct {
	op     string
	method string // empty: POST
	path   string
	repeat repeat
	wait   time.Duration // that the desk was asked to wait
	stream bool          // the body of the answer is left to the caller
}

func (c *Client) post(ctx context.Context, order call, request, answer any) error {
	text, err := json.Marshal(request)
	if err != nil {
		return fault.Wrap(order.op, fault.Internal, err)
	}
	if len(text) > task.MaxBody {
		return fault.New(order.op, fault.Invalid,
			fmt.Sprintf("a request of %d MiB is too large for the server's desk", len(text)>>20))
	}
	return c.try(ctx, order, text, func(r *http.Response) error {
		defer r.Body.Close()
		if answer == nil {
			return nil
		}
		body, err := io.ReadAll(io.LimitReader(r.Body, task.MaxBody+1))
		if err != nil {
			return fault.Wrap(order.op, fault.Unavailable, err).Say("the server's answer broke off")
		}
		if len(body) > task.MaxBody {
			return fault.New(order.op, fault.Invalid, "the server's answer is too large")
		}
		if err := json.Unmarshal(body, answer); err != nil {
			return fault.Wrap(order.op, fault.Invalid, err).Say("the server's answer is not the JSON of this protocol").
				Hint("check that the address is that of an Ordain server of a version that fits this provisioner")
		}
		return nil
	})
}

// try sends a request until it succeeds, or may not be repeated, or patience or context end.
func (c *Client) try(ctx context.Context, order call, text []byte, read func(*http.Response) error) error {
	began := time.Now()
	for n := 0; ; n++ {
		again, after, err := c.once(ctx, order, text, read)
		if err == nil || !again || ctx.Err() != nil {
			return err
		}
		pause := max(c.backoff.Pause(n), after)
		if time.Since(began)+pause > c.patience {
			return err
		}
		if Sleep(ctx, pause) != nil {
			return err
		}
	}
}

// once sends a request once. It reports whether the request may be repeated, and when at the earliest.
func (c *Client) once(
	ctx context.Context, order call, text []byte, read func(*http.Response) error,
) (again bool, after time.Duration, err error) {
	limited, cancel := context.WithTimeout(ctx, answerTime+order.wait)
	if order.stream { // a large content may take its time; the caller's context ends it
		cancel()
		limited, cancel = context.WithCancel(ctx)
	}
	done := cancel
	defer func() { done() }()
	var sent atomic.Bool
	limited = httptrace.WithClientTrace(limited, &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }})
	method := order.method
	if method == "" {
		method = http.MethodPost
	}
	request, err := http.NewRequestWithContext(
		limited,
		method,
		c.base.JoinPath(order.path).String(),
		bytes.NewReader(text),
	)
	if err != nil {
		return false, 0, fault.Wrap(order.op, fault.Internal, err)
	}
	if text != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.http.Do(request)
	if err != nil {
		if ctx.Err() != nil {
			return false, 0, ctx.Err()
		}
		var whole *url.Error // its text has the address twice
		if errors.As(err, &whole) {
			err = whole.Err
		}
		again := order.repeat == always || order.repeat == unseen && !sent.Load()
		return again, 0, fault.Wrap(order.op, fault.Unavailable, err).
			Say("the server's desk at " + c.base.Host + " cannot be reached")
	}
	if response.StatusCode/100 != 2 {
		defer response.Body.Close()
		refusal := refused(order.op, response)
		kind := fault.KindOf(refusal)
		transient := kind == fault.Unavailable || kind == fault.TooMany
		return transient && order.repeat != never, retryAfter(response), refusal
	}
	if order.stream {
		response.Body = &body{response.Body, cancel}
		done = func() {}
	}
	err = read(response)
	return order.repeat == always && fault.Is(err, fault.Unavailable), 0, err
}

// body ends the context of its request when it is closed.
type body struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (b *body) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}

// refusalMax bounds what is read of an answer that is an error.
const refusalMax = 64 << 10

// kinds are the faults behind the status codes of the desk.
var kinds = map[int]fault.Kind{
	http.StatusUnauthorized: fault.Unauthorized, http.StatusForbidden: fault.Forbidden,
	http.StatusNotFound: fault.NotFound, http.StatusConflict: fault.Conflict, http.StatusTooManyRequests: fault.TooMany,
}

// refused turns an answer that is not 2xx into a fault.
func refused(op string, r *http.Response) error {
	kind, ok := kinds[r.StatusCode]
	switch {
	case ok:
	case r.StatusCode >= 500:
		kind = fault.Unavailable
	default:
		kind = fault.Invalid
	}
	var said task.Refusal
	text, _ := io.ReadAll(io.LimitReader(r.Body, refusalMax))
	message := fmt.Sprintf("the server's desk answered %d %s", r.StatusCode, http.StatusText(r.StatusCode))
	if json.Unmarshal(text, &said) == nil && said.Message != "" {
		message = fmt.Sprintf(
			"the server's desk refused with %d: %s",
			r.StatusCode,
			strings.ToValidUTF8(said.Message, "?"),
		)
	}
	return fault.New(op, kind, message)
}
