package openstack

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/gophercloud/gophercloud/v2"

	"ordain.dev/ordain/server/cluster/provisioner/cloud"
	"ordain.dev/ordain/server/cluster/provisioner/plugin"
)

// mask removes the secrets and the token from an error.
func (a *account) mask(err error) error {
	secrets := []string{a.secret}
	if a.client != nil {
		if token := a.client.Token(); token != "" {
			secrets = append(secrets, token)
		}
	}
	return cloud.Mask(err, a.call, secrets...)
}

// wrongField says which field an answer of Nova is about, by words of it in lower case.
var wrongField = []struct{ words, field, wrong string }{
	{"key_name", "ssh_keypair", "names no key pair of this user"},
	{"security group", "security_groups", "has no such security group"},
	{"availability zone", "availability_zone", "names no zone of this cloud"},
	{"multiple possible networks", "openstack_network", "is needed, since the project has several networks"},
	{"network", "openstack_network", "names no network of this project"},
}

// explain says in words what the cloud answered. Trying again cannot mend what people have to correct: that is a
// refusal. All else, such as quotas and a lack of hosts, is an error that is tried again.
func (a *account) explain(what string, err error) error {
	var e gophercloud.ErrUnexpectedResponseCode
	if plugin.IsRefused(err) {
		return a.mask(err)
	}
	provider := a.call.Provider.Name
	var none *gophercloud.ErrEndpointNotFound
	if errors.As(err, &none) {
		return a.mask(plugin.Refuse(fmt.Sprintf("cannot %s: the catalogue of the cloud has no such service; check the "+
			"fields openstack_region and openstack_tenant of provider %s", what, provider)))
	}
	if !errors.As(err, &e) {
		return a.mask(fmt.Errorf("cannot %s with provider %s: %w", what, provider, err))
	}
	said := saidIn(e.Body)
	low := strings.ToLower(said)
	refuse := func(format string, args ...any) error {
		return a.mask(plugin.Refuse(fmt.Sprintf("cannot %s: ", what) + fmt.Sprintf(format, args...)))
	}
	switch {
	case e.Actual == http.StatusUnauthorized:
		return refuse("the cloud does not accept the account of provider %s; correct its fields api_user, "+
			"api_password and openstack_tenant", provider)
	case e.Actual == http.StatusForbidden && !strings.Contains(low, "quota"):
		return refuse("the account of provider %s lacks a right; give it those in docs/cloud-providers.md (%s)",
			provider, said)
	case e.Actual == http.StatusBadRequest && strings.Contains(low, "image") && strings.Contains(low, "find"):
		return a.mask(a.imageGone())
	case e.Actual == http.StatusBadRequest, e.Actual == http.StatusConflict && strings.Contains(low, "networks"):
		for _, w := range wrongField {
			if strings.Contains(low, w.words) {
				return refuse("field %s of provider %s %s (%s)", w.field, provider, w.wrong, said)
			}
		}
		return refuse("Nova refuses the machine of hardware type %s (%s) and image type %s (%s) with provider %s: %s",
			a.call.Node.HardwareType, a.call.Node.Flavor, a.call.Node.ImageType, a.call.Node.Image, provider, said)
	}
	return a.mask(fmt.Errorf("cannot %s with provider %s: the cloud answered %d to %s %s: %s", what, provider, e.Actual,
		e.Method, pathOf(e.URL), said))
}

// saidIn returns the message in an answer, which has a name that depends on the kind of error.
func saidIn(body []byte) string {
	var answer map[string]struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(body, &answer) == nil {
		for _, e := range answer {
			if e.Message != "" {
				return brief(e.Message)
			}
		}
	}
	return brief(strings.TrimSpace(string(body)))
}

// pathOf leaves the query out, which may be long.
func pathOf(address string) string {
	address, _, _ = strings.Cut(address, "?")
	return address
}

func brief(said string) string {
	if r := []rune(said); len(r) > 500 {
		return string(r[:500]) + " …"
	}
	return said
}
