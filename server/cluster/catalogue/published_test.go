package catalogue_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"ordain.dev/ordain/server/cluster/catalogue"
)

// published returns the published templates of Coopr, by kind and name. Their plug-ins are in one folder.
func published(t testing.TB) map[catalogue.Kind]map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("testdata/coopr-templates/*/*.json")
	if err != nil || len(files) < 80 {
		t.Fatal("the published files are not there: ", len(files), err)
	}
	out := map[catalogue.Kind]map[string][]byte{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		kind := catalogue.Kind(filepath.Base(filepath.Dir(file)))
		if kind == "plugins" {
			kind = catalogue.ProviderTypes
			if name == "shell" || name == "chef-solo" {
				kind = catalogue.AutomatorTypes
			}
		}
		if out[kind] == nil {
			out[kind] = map[string][]byte{}
		}
		out[kind][name] = text
	}
	return out
}

// Somebody who moves from Coopr brings the files along. All of them load, and nothing of them is lost in what is kept.
func TestPublishedTemplatesLoadUnchanged(t *testing.T) {
	for kind, files := range published(t) {
		for name, text := range files {
			e, err := catalogue.Decode(kind, text)
			if err != nil {
				t.Errorf("%s/%s: %s", kind, name, err)
				continue
			}
			if e.Kind() != kind || catalogue.HeadOf(e).Name != name {
				t.Errorf("%s/%s is read as %s/%s", kind, name, e.Kind(), catalogue.HeadOf(e).Name)
			}
			kept, err := catalogue.Canonical(text)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(generic(t, text), generic(t, kept)) {
				t.Errorf("%s/%s is kept as %s", kind, name, kept)
			}
			if again, err := catalogue.Canonical(kept); err != nil || !bytes.Equal(again, kept) {
				t.Errorf("%s/%s is not canonical: %s, %v", kind, name, again, err)
			}
			if same, err := catalogue.Decode(kind, kept); err != nil || !reflect.DeepEqual(same, e) {
				t.Errorf("%s/%s: what is kept is read as\n%+v\nand not as\n%+v (%v)", kind, name, same, e, err)
			}
		}
	}
}

func generic(t testing.TB, text []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// The published files do not describe the clouds of which they have providers, and leave credentials blank. With both,
// there is nothing wrong with them.
func TestPublishedTemplatesHoldTogether(t *testing.T) {
	var all []catalogue.Entity
	add := func(kind catalogue.Kind, text []byte) {
		e, err := catalogue.Decode(kind, text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	for kind, names := range catalogue.Optional() {
		for _, text := range names {
			add(kind, text)
		}
	}
	for kind, files := range published(t) {
		if kind == catalogue.ProviderTypes || kind == catalogue.AutomatorTypes {
			continue // those that are built in
		}
		for _, text := range files {
			if kind == catalogue.Providers {
				e, err := catalogue.Decode(kind, text)
				if err != nil {
					t.Fatal(err)
				}
				p := e.(*catalogue.Provider)
				text = []byte(`{"name": "` + p.Name + `", "providertype": "pool", "provisioner": {
					"machines": [{"address": "192.0.2.1"}], "ssh_key_resource": "team"}}`)
			}
			add(kind, text)
		}
	}
	wrong := catalogue.CheckAll(catalogue.New(all...))
	// Two files that these name are not among those that we have.
	for name, problem := range map[string]string{
		"docker-base": `compatibility.imagetypes[2]: there is no image type "ubuntu16"; did you mean ubuntu12 ` +
			`or ubuntu14?`,
		"cdap-singlenode": `compatibility.services[2]: there is no service "hadoop-hdfs-secondarynamenode"`,
	} {
		ref := catalogue.Ref{Kind: catalogue.Templates, Name: name}
		if found := wrong[ref]; len(found) != 1 || found[0].String() != problem {
			t.Errorf("%s: %s", ref, found)
		}
		delete(wrong, ref)
	}
	for ref, found := range wrong {
		t.Errorf("%s: %s", ref, found)
	}
}
