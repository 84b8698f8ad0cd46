package module

import (
	"cmp"
	"path/filepath"

	"ordain.dev/ordain/compiler/module/pydantic"
)

// About is what the files of a module say of it, for code that looks at it.
type About struct {
	Generation int
	Fields     [][2]any // names and values, in the order in which the reference shows them
}

// AboutModule reads the metadata of the module in a folder.
func AboutModule(root string) (*About, error) {
	if yml := filepath.Join(root, "module.yml"); isFile(yml) {
		return aboutV1(yml)
	}
	return aboutV2(filepath.Join(root, "setup.cfg"))
}

func aboutV1(yml string) (*About, error) {
	f, err := openFields(yml, "inmanta.module.ModuleV1Metadata")
	if err != nil {
		return nil, err
	}
	if err := f.check(moduleSchema()); err != nil {
		return nil, err
	}
	return &About{Generation: 1, Fields: [][2]any{
		{"requires", append([]string{}, f.texts(f.root, "requires")...)},
		{"name", f.text(f.root, "name")},
		{"description", f.textOrNull("description")},
		{"freeze_recursive", isTrue(f.truth(f.root, "freeze_recursive"))},
		{"freeze_operator", f.textOr("freeze_operator", standardOperator)},
		{"version", f.text(f.root, "version")},
		{"license", f.text(f.root, "license")},
		{"deprecated", f.truth(f.root, "deprecated")},
		{"compiler_version", f.textOrNull("compiler_version")},
	}}, nil
}

// textOrNull reads a text; nil when it is missing or null.
func (f *fields) textOrNull(key string) any {
	if v := f.root.get(key); v == nil || v.is == nil {
		return nil
	}
	return f.text(f.root, key)
}

func aboutV2(path string) (*About, error) {
	raw, err := openSetupCfg(path)
	if err != nil {
		return nil, err
	}
	cfg, err := raw.check(path)
	if err != nil {
		return nil, err
	}
	var description any
	if text, is := raw.values["description"]; is {
		description = text
	}
	var deprecated *bool
	if said, is := pydantic.TruthOf(raw.values["deprecated"]); is {
		deprecated = &said
	}
	recursive, _ := pydantic.TruthOf(raw.values["freeze_recursive"])
	four, _ := pydantic.TruthOf(raw.values["four_digit_version"])
	return &About{Generation: 2, Fields: [][2]any{
		{"name", cfg.Name},
		{"description", description},
		{"freeze_recursive", recursive},
		{"freeze_operator", cmp.Or(raw.values["freeze_operator"], standardOperator)},
		{"version", raw.values["version"]},
		{"license", raw.values["license"]},
		{"deprecated", deprecated},
		{"install_requires", append([]string{}, cfg.InstallRequires...)},
		{"version_tag", raw.tag},
		{"four_digit_version", four},
	}}, nil
}

func isTrue(said *bool) bool { return said != nil && *said }
