package module

import (
	"path/filepath"
	"strings"
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
	f, err := openFields(yml)
	if err != nil {
		return nil, err
	}
	a := &About{Generation: 1, Fields: [][2]any{
		{"requires", append([]string{}, f.texts(f.root, "requires")...)},
		{"name", f.required("name")},
		{"description", orNull(f.optional(f.root, "description", coerced))},
		{"freeze_recursive", isTrue(f.truth(f.root, "freeze_recursive", false))},
		{"freeze_operator", f.choice("freeze_operator", "~=", coerced, "==", "~=", ">=")},
		{"version", f.required("version")},
		{"license", f.required("license")},
		{"deprecated", f.truth(f.root, "deprecated", true)},
		{"compiler_version", orNull(f.optional(f.root, "compiler_version", coerced))},
	}}
	if f.err != nil {
		return nil, f.err
	}
	return a, nil
}

func aboutV2(path string) (*About, error) {
	cfg, err := readSetupCfg(path)
	if err != nil {
		return nil, err
	}
	text, err := readFile(path)
	if err != nil {
		return nil, err
	}
	values, err := parseINI(path, string(text))
	if err != nil {
		return nil, err
	}
	meta := values["metadata"]
	var deprecated *bool
	if said, is := truthOf(meta["deprecated"]); is {
		deprecated = &said
	}
	recursive, _ := truthOf(meta["freeze_recursive"])
	operator := meta["freeze_operator"]
	if operator == "" {
		operator = "~="
	}
	four, _ := truthOf(meta["four_digit_version"])
	return &About{Generation: 2, Fields: [][2]any{
		{"name", cfg.Name},
		{"description", orNull(meta["description"])},
		{"freeze_recursive", recursive},
		{"freeze_operator", operator},
		{"version", strings.TrimSpace(meta["version"])},
		{"license", meta["license"]},
		{"deprecated", deprecated},
		{"install_requires", append([]string{}, cfg.InstallRequires...)},
		{"version_tag", values["egg_info"]["tag_build"]},
		{"four_digit_version", four},
	}}, nil
}

func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

func isTrue(said *bool) bool { return said != nil && *said }
