package cloudtest

import (
	"encoding/xml"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// Network makes a network with a subnet, and returns the ids of the subnet and of a security group. The addresses may
// be those of the loopback network: then machines can be at them.
func (e *EC2) Network(t testing.TB, vpc, subnet string, sign func(*http.Request, []byte)) (subnetID, group string) {
	t.Helper()
	var made struct {
		VPC    string `xml:"vpc>vpcId"`
		Subnet string `xml:"subnet>subnetId"`
		Group  string `xml:"groupId"`
	}
	for _, pairs := range [][]string{
		{"Action", "CreateVpc", "CidrBlock", vpc},
		{"Action", "CreateSubnet", "CidrBlock", subnet, "VpcId", ""},
		{"Action", "CreateSecurityGroup", "GroupName", "ssh", "GroupDescription", "lets port 22 in", "VpcId", ""},
	} {
		if last := len(pairs) - 1; pairs[last] == "" {
			pairs[last] = made.VPC
		}
		if body := e.signed(t, sign, pairs...); xml.Unmarshal(body, &made) != nil {
			t.Fatalf("%v: %s", pairs, body)
		}
	}
	return made.Subnet, made.Group
}

// signed sends a request to moto, past the proxy.
func (e *EC2) signed(t testing.TB, sign func(*http.Request, []byte), pairs ...string) []byte {
	t.Helper()
	form := url.Values{"Version": {"2016-11-15"}}
	for i := 0; i < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	body := form.Encode()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, e.moto, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	sign(r, []byte(body))
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%v: %s %v %s", pairs, answer.Status, err, text)
	}
	return text
}
