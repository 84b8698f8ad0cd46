package console

import (
	"fmt"
	"net/http"
	"strings"

	"ordain.dev/ordain/internal/intent"
)

// settingsPage shows and changes what an environment is set to.
type settingsPage struct {
	frame
	Source    sourceForm
	Secrets   []secretForm
	Settings  []settingForm
	Protected bool
	HookURLs  []attribute
}

type sourceForm struct {
	Name, Repository, Branch, Subdir, Description string
}

type secretForm struct {
	Name, Title, Help string
	Password          bool
}

type settingForm struct {
	Name    string
	Doc     string
	Bool    bool
	Number  bool
	Value   string
	On      bool
	Default string
	Changed bool
	By      string // what decides it, when no person does
}

var secretForms = []secretForm{
	{"webhook", "Webhook secret", "What the forge signs its deliveries with.", true},
	{"git-username", "Git user name", "For a private repository over HTTPS.", false},
	{"git-password", "Git password or token", "It is stored sealed and never shown.", true},
}

func (c *console) settings(r *http.Request) (view, error) {
	e, err := c.environment(r)
	if err != nil {
		return view{}, err
	}
	f, err := c.frame(r, "Settings", "settings", crumb{Text: "Settings"})
	if err != nil {
		return view{}, err
	}
	f.Live = false // a form must not change under a person's hands
	p := settingsPage{frame: f, Protected: e.Bool("protected_environment"), Secrets: secretForms}
	p.Source = sourceForm{Name: e.Name, Repository: e.Source.URL, Branch: e.Source.Branch, Subdir: e.Source.Subdir, Description: e.Description}
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	for _, hook := range [][2]string{{"GitHub", "/hooks/github"}, {"GitLab", "/hooks/gitlab"}, {"Anything else", "/api/v1/notify/" + e.ID.String()}} {
		p.HookURLs = append(p.HookURLs, attribute{Name: hook[0], Value: scheme + r.Host + hook[1]})
	}
	for _, def := range intent.Settings() {
		_, changed := e.Settings[def.Name]
		value := def.Value(e.Settings)
		s := settingForm{
			Name: def.Name, Doc: def.Doc, Bool: def.Type == intent.SettingBool, Number: def.Type == intent.SettingInt,
			Value: fmt.Sprint(value), Default: fmt.Sprint(def.Default), Changed: changed, By: e.Protected[def.Name],
		}
		s.On, _ = value.(bool)
		if s.Default == "" {
			s.Default = "empty"
		}
		p.Settings = append(p.Settings, s)
	}
	return view{template: "settings", data: p}, nil
}

func (c *console) doSetting(r *http.Request, e intent.Environment) (string, error) {
	name := r.PostFormValue("name")
	back := envURL(e.ID) + "/settings"
	if r.PostForm.Has("reset") {
		return back + "?done=saved#setting-" + name, c.control.DeleteSetting(r.Context(), e.ID, name)
	}
	return back + "?done=saved#setting-" + name, c.control.SetSetting(r.Context(), e.ID, name, r.PostFormValue("value"))
}

func (c *console) doSource(r *http.Request, e intent.Environment) (string, error) {
	get := func(name string) string { return strings.TrimSpace(r.PostFormValue(name)) }
	e.Name, e.Description = get("name"), get("description")
	e.Source = intent.Source{URL: get("repository"), Branch: get("branch"), Subdir: get("subdir")}
	_, err := c.control.UpdateEnvironment(r.Context(), e)
	return envURL(e.ID) + "/settings?done=saved", err
}

func (c *console) doSecret(r *http.Request, e intent.Environment) (string, error) {
	value := r.PostFormValue("value")
	if r.PostForm.Has("remove") {
		value = ""
	}
	return envURL(e.ID) + "/settings?done=saved", c.control.SetSecret(r.Context(), e.ID, r.PostFormValue("name"), value)
}

func (c *console) doClear(r *http.Request, e intent.Environment) (string, error) {
	if err := confirmed(r, e); err != nil {
		return "", err
	}
	return envURL(e.ID) + "?done=cleared", c.control.ClearEnvironment(r.Context(), e.ID)
}

func (c *console) doDelete(r *http.Request, e intent.Environment) (string, error) {
	if err := confirmed(r, e); err != nil {
		return "", err
	}
	return "/?done=deleted", c.control.DeleteEnvironment(r.Context(), e.ID)
}
