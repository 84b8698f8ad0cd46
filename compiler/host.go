package compiler

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	"ordain.dev/ordain/compiler/module"
	"ordain.dev/ordain/compiler/plugin"
	"ordain.dev/ordain/internal/python/runtime"
)

// prepare makes the host for plug-ins. If its worker will probably be needed, it starts now, while the
// files are parsed.
func (c *compilation) prepare(ctx context.Context, project *module.Project) error {
	runtimeDir, err := runtime.Unpack(c.options.CacheDir)
	if err != nil {
		return err
	}
	settings, err := project.Settings()
	if err != nil {
		return err
	}
	if settings["config"] == nil {
		settings["config"] = map[string]any{}
	}
	if c.options.Environment != "" {
		settings["config"]["environment"] = c.options.Environment
	}
	env := c.options.Env
	if len(env) == 0 {
		env = os.Environ()
	}
	c.host = plugin.New(ctx, plugin.Config{
		Python: c.options.Python, RuntimeDir: runtimeDir, Path: project.SitePackages, ProjectDir: project.Dir,
		ProjectName: project.Metadata.Name, ModulePath: project.ModulePath, Metadata: shownMetadata(project),
		Settings: settings, Env: env, OnOutput: c.options.OnOutput,
		OnPrint: c.options.OnPrint, CallTimeout: c.options.PluginTimeout,
		AutoStd: !c.options.NoStd, About: module.AboutModule,
		CacheDir: c.options.CacheDir, MemoryMax: workerMemory(c.options.MemoryMax),
		Known: c.options.Known, Clusters: c.options.Clusters, Warm: c.options.Warm,
	})
	c.release = context.AfterFunc(ctx, c.host.Interrupt)
	if !c.options.NoStd && !c.options.Check {
		c.host.Anticipate()
	}
	return nil
}

// bundled returns the folder of a module that comes with the compiler; empty: there is none of that name.
func (c *compilation) bundled(name string) string {
	if !runtime.HasModule(name) {
		return ""
	}
	runtimeDir, err := runtime.Unpack(c.options.CacheDir)
	if err != nil {
		return "" // then the module cannot be found, and before that the worker cannot be started
	}
	return runtime.Module(runtimeDir, name)
}

// shownMetadata is project.yml as plug-ins see it. Keys that it lacks are None there, or an empty list.
func shownMetadata(p *module.Project) map[string]any {
	m := p.Metadata
	shown := map[string]any{
		"requires": slices.Concat([]string{},
			m.Requires), "freeze_recursive": m.FreezeRecursive, "freeze_operator": m.FreezeOperator,
		"install_mode": m.InstallMode, "relation_precedence_policy": shownRules(m.RelationPrecedencePolicy),
		"repo": shownRepos(m.Repo),
		"pip": map[string]any{
			"index_url":         nil,
			"extra_index_url":   slices.Concat([]string{}, m.Pip.ExtraIndexURL),
			"pre":               m.Pip.Pre,
			"use_system_config": m.Pip.UseSystemConfig,
		},
	}
	if m.DownloadPath != "" {
		shown["downloadpath"] = p.DownloadPath()
	}
	if m.Pip.IndexURL != "" {
		shown["pip"].(map[string]any)["index_url"] = m.Pip.IndexURL
	}
	if m.EnvironmentSettings != nil {
		shown["environment_settings"] = m.EnvironmentSettings
	}
	for name, value := range map[string]string{
		"description": m.Description, "author": m.Author, "author_email": m.AuthorEmail, "license": m.License,
		"copyright": m.Copyright,
	} {
		if value != "" {
			shown[name] = value
		}
	}
	return shown
}

func shownRules(rules []module.PrecedenceRule) []string {
	shown := []string{}
	for _, rule := range rules {
		shown = append(shown, rule.String())
	}
	return shown
}

func shownRepos(repos []module.Repo) [][2]string {
	shown := [][2]string{}
	for _, repo := range repos {
		shown = append(shown, [2]string{repo.URL, repo.Type})
	}
	return shown
}

// workerMemory is the limit of the worker's address space. Threads and libraries reserve far more of that
// than they use, so a small limit would stop models that fit.
func workerMemory(limit uint64) uint64 {
	if limit == 0 {
		return 0
	}
	return max(limit, 4<<30)
}

// PackagesOf returns the folders of packages of the virtual environment of an interpreter; none when it
// is not in one.
func PackagesOf(python string) []string {
	venv := filepath.Dir(filepath.Dir(python))
	if _, err := os.Stat(filepath.Join(venv, "pyvenv.cfg")); err != nil {
		return nil
	}
	found, err := filepath.Glob(filepath.Join(venv, "lib", "python3.*", "site-packages"))
	if err != nil {
		return nil
	}
	return found
}
