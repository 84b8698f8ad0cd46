package ec2

import (
	"context"
	"net/url"
	"strings"
)

// sts is the service that knows whose an access key is. Its one action here needs no right.
const (
	sts        = "sts"
	stsVersion = "2011-06-15"
)

// Account returns the number of the account that the access key belongs to. A cloud that only speaks the protocol of
// EC2 is asked at its own address, and may not know the action.
func (c *Client) Account(ctx context.Context) (string, error) {
	var out struct {
		Account string `xml:"GetCallerIdentityResult>Account"`
	}
	err := c.do(ctx, call{service: sts, version: stsVersion, action: "GetCallerIdentity", at: c.identity},
		url.Values{}, &out)
	return strings.TrimSpace(out.Account), err
}
