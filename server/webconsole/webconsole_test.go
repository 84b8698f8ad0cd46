package webconsole_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"ordain.dev/ordain/api"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/server/servertest"
	"ordain.dev/ordain/server/webconsole"
)

func open(t *testing.T, cfg webconsole.Config) *webconsole.Console {
	t.Helper()
	if cfg.Folder == "" {
		cfg.Folder = "testdata/app"
	}
	c, err := webconsole.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func get(h http.Handler, path string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", path, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// A path is a file, a page of the application, or a redirect; nothing outside of the folder is served.
func TestPaths(t *testing.T) {
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS("testdata/app")); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(t.TempDir(), "secret.txt")
	for name, text := range map[string]string{
		secret: "secret", filepath.Join(folder, ".env.js"): "hidden", filepath.Join(folder, "chunk.js"): "a chunk",
	} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(secret, filepath.Join(folder, "link.txt")); err != nil {
		t.Fatal(err)
	}
	c := open(t, webconsole.Config{Folder: folder})
	for path, want := range map[string]string{
		"/console/":                            "text/html A small console",
		"/console/dashboard":                   "text/html A small console",
		"/console/resources/fs::File[a,b=c]":   "text/html A small console",
		"/console/app.js":                      "text/javascript graphql",
		"/console/lsm/catalog/app.js":          "text/javascript graphql",
		"/console/lsm/chunk.js":                "text/javascript a chunk",
		"/console/style.css":                   "text/css color",
		"/console/config.js":                   "text/javascript export const features = [];",
		"/console/lsm/config.js":               "text/javascript export const features = [];",
		"/console/nothing.js":                  "404",
		"/console/.env.js":                     "404",
		"/console/link.txt":                    "404",
		"/console/..%2f..%2fsecret.txt":        "404",
		"/console/../../../../../etc/host.com": "404",
	} {
		w := get(c, path)
		kind, text, _ := strings.Cut(want, " ")
		if kind == "404" && w.Code == 404 {
			continue
		}
		if w.Code != 200 || !strings.HasPrefix(w.Header().Get("Content-Type"), kind) ||
			!strings.Contains(w.Body.String(), text) || w.Header().Get("Cache-Control") != "no-cache" {
			t.Errorf("%s: %d %s %.80s", path, w.Code, w.Header(), w.Body)
		}
	}
	if w := get(c, "/console"); w.Code != 301 || w.Header().Get("Location") != "/console/" {
		t.Errorf("/console: %d %s", w.Code, w.Header())
	}
	tag := get(c, "/console/app.js").Header().Get("ETag")
	if w := get(c, "/console/x/app.js", "If-None-Match", tag); w.Code != 304 || tag == "" {
		t.Errorf("the same file again: %d", w.Code)
	}
	if err := os.WriteFile(filepath.Join(folder, "app.js"), []byte("new"), 0o644); err != nil {
		t.Fatal(err)
	}
	if w := get(c, "/console/app.js", "If-None-Match", tag); w.Code != 200 || w.Body.String() != "new" {
		t.Errorf("the file after an update: %d %s", w.Code, w.Body)
	}
	r := httptest.NewRequest("POST", "/console/", nil)
	w := httptest.NewRecorder()
	if c.ServeHTTP(w, r); w.Code != 405 {
		t.Errorf("POST: %d", w.Code)
	}
}

// The application learns how people log in, and which features are on.
func TestConfig(t *testing.T) {
	c := open(t, webconsole.Config{Login: true, Features: []string{"orderView", `"</script>`}})
	got := get(c, "/console/config.js").Body.String()
	want := "window.auth = {\"method\": \"database\"};\n" +
		`export const features = ["orderView","\"\u003c/script\u003e"];` + "\n"
	if got != want {
		t.Errorf("got %s", got)
	}
	if _, err := webconsole.New(webconsole.Config{Folder: t.TempDir()}); !fault.Is(err, fault.NotFound) {
		t.Errorf("a folder without index.html: %v", err)
	}
}

// In a browser, on a page below /console/, an application of the reference's kind starts under the content security
// policy and gets all that the reference's console asks for.
func TestAConsoleRuns(t *testing.T) {
	browser := tool.Need(t, os.Getenv("ORDAIN_TEST_BROWSER"),
		"chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
	rich := servertest.NewRich(t)
	rest, err := api.New(api.Config{
		Control: rich.Control, Store: rich.Store, Version: servertest.Version, Logger: rich.Log, Auth: rich.API(),
		People: rich.People, Tokens: rich.Tokens, Agents: rich.Agents, Now: rich.Now,
		Clusters: rich.Clusters, Catalogue: rich.Catalogue, Resources: rich.Resources,
	})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/api/", rest)
	mux.Handle("/console/", open(t, webconsole.Config{Features: []string{"x"}}))
	server := httptest.NewServer(mux)
	defer server.Close()
	defer server.CloseClientConnections()

	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(browser),
		chromedp.UserDataDir(t.TempDir()), chromedp.Flag("disable-component-update", true))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	defer stop()
	ctx, closeTab := chromedp.NewContext(allocator)
	defer closeTab()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	if err := chromedp.Do(ctx, chromedp.Navigate(server.URL+"/console/lsm/some/page?env=1")); err != nil {
		t.Fatal(err)
	}
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](`new Promise((done) => {
		const look = () => {
			const text = document.getElementById("root").textContent;
			if (text === "loading") { requestAnimationFrame(look); } else { done(text); }
		};
		look();
	})`, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Environments, Notifications, Pages, Resources, Total int
		QueryType, Product, At                               string
		Features                                             []string
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatalf("the application shows %q", text)
	}
	if got.Environments != 3 || got.Notifications == 0 || got.Pages != 5 || got.Resources != 204 || got.Total != 204 ||
		got.QueryType != "Query" || got.At != "/console/lsm/some/page" || len(got.Features) != 1 {
		t.Errorf("the application got %+v", got)
	}
	colour, err := chromedp.Run(ctx, chromedp.Evaluate[string](`getComputedStyle(document.querySelector("h1")).color`))
	if err != nil || colour != "rgb(1, 2, 3)" {
		t.Errorf("the style sheet was not applied: %s %v", colour, err)
	}
}
