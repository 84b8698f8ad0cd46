package ec2

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/protocol/ec2query"
	awsxml "github.com/aws/aws-sdk-go-v2/aws/protocol/xml"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/smithy-go"
)

const (
	apiVersion = "2016-11-15"
	// maxAnswer is far more than a page of a thousand instances.
	maxAnswer   = 32 << 20
	maxAttempts = 3
	maxBackoff  = 5 * time.Second
)

// Config says which EC2 to speak to. Region, Key, Secret and Transport are required.
type Config struct {
	Region      string
	Key, Secret string
	Transport   http.RoundTripper
	// Endpoint is the address of another cloud that speaks the protocol; "": that of the region.
	Endpoint string
}

// Client sends requests. It is safe for concurrent use.
type Client struct {
	http     *http.Client
	endpoint string
	identity string // address of STS
	region   string
	secrets  aws.Credentials
	signer   *v4.Signer
	retryer  *retry.Standard
}

// New returns a client. Nothing but cfg counts: neither environment variables nor files.
func New(cfg Config) *Client {
	endpoint, identity := cfg.Endpoint, cfg.Endpoint
	if endpoint == "" {
		domain := "amazonaws.com"
		if strings.HasPrefix(cfg.Region, "cn-") {
			domain += ".cn"
		}
		endpoint = "https://ec2." + cfg.Region + "." + domain + "/"
		identity = "https://sts." + cfg.Region + "." + domain + "/"
	}
	return &Client{
		http:     &http.Client{Transport: cfg.Transport, Timeout: time.Minute, CheckRedirect: noRedirect},
		endpoint: endpoint, identity: identity, region: cfg.Region, signer: v4.NewSigner(),
		secrets: aws.Credentials{AccessKeyID: cfg.Key, SecretAccessKey: cfg.Secret},
		retryer: retry.NewStandard(func(o *retry.StandardOptions) {
			o.MaxAttempts, o.MaxBackoff = maxAttempts, maxBackoff
		}),
	}
}

// noRedirect keeps signed requests at the host that they were made for.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Error is an answer of EC2 that says no. It implements smithy.APIError.
type Error struct {
	Status        int // of HTTP
	Code, Message string
}

var _ smithy.APIError = (*Error)(nil)

func (e *Error) Error() string                 { return e.Code + ": " + e.Message }
func (e *Error) ErrorCode() string             { return e.Code }
func (e *Error) ErrorMessage() string          { return e.Message }
func (e *Error) HTTPStatusCode() int           { return e.Status }
func (e *Error) ErrorFault() smithy.ErrorFault { return smithy.FaultUnknown }

// call is an action of a service.
type call struct{ service, version, action, at string }

// act carries out an action of EC2.
func (c *Client) act(ctx context.Context, action string, in url.Values, out any) error {
	return c.do(ctx, call{service: "ec2", version: apiVersion, action: action, at: c.endpoint}, in, out)
}

// do carries out an action and reads the answer into out. It tries again as the SDK does: after throttling, faults of
// the server and lost connections, with a growing pause.
func (c *Client) do(ctx context.Context, what call, in url.Values, out any) error {
	in.Set("Action", what.action)
	in.Set("Version", what.version)
	body := []byte(in.Encode())
	for attempt := 1; ; attempt++ {
		err := c.once(ctx, what, body, out)
		if err == nil || ctx.Err() != nil || attempt >= c.retryer.MaxAttempts() || !c.retryer.IsErrorRetryable(err) {
			return err
		}
		pause, delayErr := c.retryer.RetryDelay(attempt, err)
		if delayErr != nil {
			return errors.Join(err, delayErr)
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

// once sends a request.
func (c *Client) once(ctx context.Context, what call, body []byte, out any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, what.at, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	sum := sha256.Sum256(body)
	err = c.signer.SignHTTP(ctx, c.secrets, r, hex.EncodeToString(sum[:]), what.service, c.region, time.Now())
	if err != nil {
		return err
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return &lostConnection{err}
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	switch {
	case err != nil:
		return &lostConnection{err}
	case len(text) > maxAnswer:
		return fmt.Errorf("the answer of EC2 is larger than %d MiB", maxAnswer>>20)
	case answer.StatusCode/100 != 2:
		return failure(answer.StatusCode, text)
	}
	if err := xml.Unmarshal(text, out); err != nil {
		return fmt.Errorf("the answer of EC2 cannot be read: %w", err)
	}
	return nil
}

// lostConnection marks an error of the connection as one that may be tried again: a request with a client token, and
// one that describes or terminates, may be sent twice.
type lostConnection struct{ error }

func (e *lostConnection) Unwrap() error         { return e.error }
func (e *lostConnection) ConnectionError() bool { return true }

// failure reads an answer that says no.
func failure(status int, text []byte) error {
	said, err := ec2query.GetErrorResponseComponents(bytes.NewReader(text))
	if err == nil && said.Code != "" {
		return &Error{Status: status, Code: said.Code, Message: said.Message}
	}
	// STS wraps its errors in another way.
	other, err := awsxml.GetErrorResponseComponents(bytes.NewReader(text), false)
	if err != nil || other.Code == "" {
		return &Error{Status: status, Code: fmt.Sprintf("HTTP%d", status), Message: http.StatusText(status)}
	}
	return &Error{Status: status, Code: other.Code, Message: other.Message}
}
