package module

import "path/filepath"

// About is the metadata of a module, for plug-ins that look at it.
type About struct {
	Generation int
	Fields     [][2]any // names and values, in the order in which inmanta-core shows them
}

// AboutModule reads the metadata of the module in a folder.
func AboutModule(root string) (*About, error) {
	if yml := filepath.Join(root, "module.yml"); isFile(yml) {
		return aboutV1(yml)
	}
	return aboutV2(filepath.Join(root, "setup.cfg"))
}

func aboutV1(yml string) (*About, error) {
	m, err := readModuleMetadata(yml)
	if err != nil {
		return nil, err
	}
	return &About{Generation: 1, Fields: [][2]any{
		{"requires", append([]string{}, m.requires...)},
		{"name", m.name},
		{"description", m.Description},
		{"freeze_recursive", m.freezeRecursive},
		{"freeze_operator", m.freezeOperator},
		{"version", m.Version},
		{"license", m.License},
		{"deprecated", m.Deprecated},
		{"compiler_version", m.CompilerVersion},
	}}, nil
}

func aboutV2(path string) (*About, error) {
	c, err := readSetupCfg(path)
	if err != nil {
		return nil, err
	}
	return &About{Generation: 2, Fields: [][2]any{
		{"name", c.Name},
		{"description", c.Description},
		{"freeze_recursive", c.FreezeRecursive},
		{"freeze_operator", c.FreezeOperator},
		{"version", c.BaseVersion},
		{"license", c.License},
		{"deprecated", c.Deprecated},
		{"install_requires", append([]string{}, c.InstallRequires...)},
		{"version_tag", c.VersionTag},
		{"four_digit_version", c.FourDigitVersion},
	}}, nil
}
