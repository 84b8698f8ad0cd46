package api

import (
	"net/http/httptest"
	"testing"
	"time"

	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/access/tokens"
	"ordain.dev/ordain/server/servertest"
)

// What a call costs with each way to prove who sends it, against none.
func BenchmarkCallsWithTokens(b *testing.B) {
	r := servertest.NewRich(b)
	call := func(name, token string, config func(*Config)) {
		cfg := Config{
			Control: r.Control, Store: r.Store, Version: servertest.Version, Logger: r.Log, Auth: access.Off{},
			People: r.People, Tokens: r.Tokens, Agents: r.Agents, Now: r.Now,
		}
		config(&cfg)
		handler, err := New(cfg)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				q := httptest.NewRequest("GET", "/api/v2/environment/"+r.Production.ID.String(), nil)
				if token != "" {
					q.Header.Set("Authorization", "Bearer "+token)
				}
				w := httptest.NewRecorder()
				handler.ServeHTTP(w, q)
				if w.Code != 200 {
					b.Fatal(w.Code, w.Body)
				}
			}
		})
	}
	call("off", "", func(*Config) {})
	r.RequireLogin()
	user := r.AddPerson(b, "ada", access.Binding{Role: access.Administrator})
	ctx := access.With(b.Context(), access.Principal{Kind: access.Person, Name: "ada", User: user.ID})
	_, personal, err := r.Tokens.CreatePersonal(ctx, access.PersonalToken{
		Name: "b", Roles: []string{"viewer"},
	}, time.Hour)
	if err != nil {
		b.Fatal(err)
	}
	_, environment, err := r.Tokens.CreateEnvironment(ctx, tokens.NewEnvironmentToken{
		Environment: r.Production.ID, ClientTypes: []string{access.APIClients},
	})
	if err != nil {
		b.Fatal(err)
	}
	on := func(c *Config) { c.People, c.Tokens, c.Auth = r.People, r.Tokens, r.API() }
	call("personal", personal, on)
	call("environment", environment, on)
	for name, token := range map[string]string{"personal": personal, "environment": environment} {
		b.Run("only the token/"+name, func(b *testing.B) {
			q := httptest.NewRequest("GET", "/", nil)
			q.Header.Set("Authorization", "Bearer "+token)
			for b.Loop() {
				if _, err := r.API().Authenticate(q); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
