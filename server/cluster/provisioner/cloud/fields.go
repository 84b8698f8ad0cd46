package cloud

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"ordain.dev/ordain/server/cluster/provisioner/plugin"
)

// Fields reads the fields of the provider of a call. The first thing that is wrong stays in Err; it is a refusal that
// names the field and the provider, and never has a value. An empty field counts as absent. Old provider files have
// numbers and switches as text: both forms count.
type Fields struct {
	call plugin.Call
	err  error
}

// Read begins to read the fields of a call.
func Read(c plugin.Call) *Fields { return &Fields{call: c} }

// Err returns the first thing that was wrong.
func (f *Fields) Err() error { return f.err }

// Refuse notes what is wrong with a field.
func (f *Fields) Refuse(field, wrong string) {
	if f.err == nil {
		f.err = plugin.Refuse(fmt.Sprintf("field %s of provider %s %s", field, f.call.Provider.Name, wrong))
	}
}

// Text returns a field that may be absent.
func (f *Fields) Text(name string) string {
	raw := f.call.Provider.Fields[name]
	if len(raw) == 0 {
		return ""
	}
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		f.Refuse(name, "is no JSON value")
		return ""
	}
	switch value := value.(type) {
	case nil:
		return ""
	case string:
		return strings.TrimSpace(value)
	case bool, float64:
		return strings.TrimSpace(string(raw))
	}
	f.Refuse(name, "must be a text")
	return ""
}

// Need returns a field that must be set.
func (f *Fields) Need(name string) string {
	value := f.Text(name)
	if value == "" {
		f.Refuse(name, "is not set; set it in the provider")
	}
	return value
}

// Switch returns a field that is on or off, or nil if it is absent.
func (f *Fields) Switch(name string) *bool {
	on, off := true, false
	switch strings.ToLower(f.Text(name)) {
	case "":
		return nil
	case "true", "on", "yes", "1":
		return &on
	case "false", "off", "no", "0":
		return &off
	}
	f.Refuse(name, "must be true or false")
	return nil
}

// Size returns a number from 1 to limit, or 0 if the field is absent.
func (f *Fields) Size(name string, limit int32) int32 {
	value := f.Text(name)
	if value == "" {
		return 0
	}
	n, err := strconv.ParseInt(value, 10, 32)
	if err != nil || n < 1 || n > int64(limit) {
		f.Refuse(name, fmt.Sprintf("must be a number from 1 to %d", limit))
		return 0
	}
	return int32(n)
}

// List returns texts that are separated by commas, or a JSON list of texts.
func (f *Fields) List(name string) (out []string) {
	var items []string
	if raw := f.call.Provider.Fields[name]; len(raw) == 0 || json.Unmarshal(raw, &items) != nil {
		items = strings.Split(f.Text(name), ",")
	}
	for _, item := range items {
		if item = strings.TrimSpace(item); item != "" {
			out = append(out, item)
		}
	}
	return out
}

// URL returns an address of HTTP without credentials in it, or nil if the field is absent.
func (f *Fields) URL(name string) *url.URL {
	value := f.Text(name)
	if value == "" {
		return nil
	}
	u, err := url.Parse(value)
	switch {
	case err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http"):
		f.Refuse(name, "must be an address such as https://cloud.example.org:5000")
	case u.User != nil:
		f.Refuse(name, "must not have a user or password in it")
	case u.RawQuery != "" || u.Fragment != "":
		f.Refuse(name, "must not have a query or a fragment")
	default:
		return u
	}
	return nil
}

// SSHKey checks that the resource with the private key is there, before a machine is made that nobody can log in to.
func (f *Fields) SSHKey() {
	name := f.Need("ssh_key_resource")
	if f.err != nil || f.call.Files == nil {
		return
	}
	if _, err := f.call.Files.Path("ssh_keys", name); err != nil {
		f.Refuse("ssh_key_resource", "names no key that can be used: "+err.Error())
	}
}

// Image returns the image and the flavor of the node, which must both be known.
func (f *Fields) Image() (image, flavor string) {
	node, provider := f.call.Node, f.call.Provider.Name
	switch {
	case f.err != nil:
	case node.Image == "":
		f.err = plugin.Refuse(fmt.Sprintf("image type %s has no image for provider %s; add one",
			node.ImageType, provider))
	case node.Flavor == "":
		f.err = plugin.Refuse(
			fmt.Sprintf("hardware type %s has no flavor for provider %s; add one", node.HardwareType, provider))
	}
	return node.Image, node.Flavor
}
