package folders

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/testing/tool"
)

// published is a project of published modules.
var published = map[string]string{
	"project.yml":      "name: shelf\npip:\n  use_system_config: true\n",
	"requirements.txt": "inmanta-module-std\ninmanta-module-mitogen\ninmanta-module-fs\n",
	"main.cf": `import std
import mitogen
import fs

host = std::Host(name="desk", os=std::linux, via=mitogen::Local())
fs::Directory(host=host, path="SITE/a", mode=755)
fs::File(host=host, path="SITE/a/one", content="one", mode=644)
fs::File(host=host, path="SITE/a/two", content="two", mode=644)
`,
}

// A folder is deployed with the published handlers. The next run has nothing to do, a dry run sees damage and touches
// nothing, an ordinary run deploys what the model changed and no more, and a full one repairs. All the time, Git sees
// nothing of the state, and the versions say that they come from a folder with changes that are not committed.
func TestFilesOfAFolder(t *testing.T) {
	tool.Heavy(t, "starts the program many times")
	t.Parallel()
	f := newFolder(t, published)
	git := func(args ...string) string {
		t.Helper()
		options := []string{"-C", f.dir, "-c", "user.name=a", "-c", "user.email=a@b"}
		cmd := exec.Command("git", append(options, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "-q")
	git("add", ".")
	git("commit", "-qm", "a shelf")

	f.deploy(0, "--dry-run").contains("create    fs::Directory[desk,path="+f.site+"/a]", "dry run: 3")
	f.has("a/one", "")
	f.deploy(0).contains("created   fs::File[desk,path="+f.site+"/a/one]",
		"3 of 3 resources as intended; 3 deployed now, 3 of them changed")
	f.has("a/one", "one")
	if changes := git("status", "--porcelain"); changes != "" {
		t.Errorf("Git sees %s", changes)
	}
	f.deploy(0).contains("3 of 3 resources as intended; 0 deployed now")

	if err := os.WriteFile(filepath.Join(f.site, "a/one"), []byte("damage"), 0o644); err != nil {
		t.Fatal(err)
	}
	f.write(map[string]string{"main.cf": strings.Replace(published["main.cf"], `"two"`, `"TWO"`, 1)})
	var dry struct {
		Outcome string
		From    struct {
			Path, User, Commit string
			Dirty              *bool
		}
		DryRun struct {
			Changes []struct{ Resource, Kind string }
		} `json:"dry_run"`
	}
	f.deploy(0, "--dry-run", "-o", "json").json(&dry)
	if dry.Outcome != "would change" || len(dry.DryRun.Changes) != 2 || dry.DryRun.Changes[0].Kind != "modified" {
		t.Errorf("the dry run found %+v", dry)
	}
	if dry.From.Path != f.dir || dry.From.User == "" || dry.From.Commit != git("rev-parse", "HEAD") ||
		dry.From.Dirty == nil || !*dry.From.Dirty {
		t.Errorf("the version comes from %+v", dry.From)
	}
	f.has("a/one", "damage")
	f.has("a/two", "two")
	f.deploy(0).contains("1 deployed now, 1 of them changed")
	f.has("a/one", "damage")
	f.has("a/two", "TWO")
	f.deploy(0, "--full").contains("3 deployed now, 1 of them changed")
	f.has("a/one", "one")
}

// What fails is named with what its handler said, the rest is deployed, and the exit status tells scripts. The next
// run tries again what failed, and nothing else. What the model no longer has is left as it is, and named.
func TestWhatFails(t *testing.T) {
	t.Parallel()
	f := notes(t, [3]string{"good", "a", "calm"}, [3]string{"bad", "b", "raise"}, [3]string{"odd", "c", "skip"})
	r := f.deploy(1)
	r.contains("the pencil broke", "not today", "1 of 3 resources as intended", "lab::Note[desk,path="+f.site+"/bad]")
	f.has("good", "a")
	f.deploy(1).contains("2 deployed now, 0 of them changed", "the pencil broke")
	f.notes([3]string{"bad", "b", "calm"})
	f.deploy(0).contains("no longer managed, and left as it is: lab::Note[desk,path="+f.site+"/good]",
		"1 of 1 resource as intended")
	f.has("good", "a")
	f.has("bad", "b")
}

// A model from which everything is gone is likely a mistake: it is not deployed until the person says that it is meant.
func TestMuchThatGoes(t *testing.T) {
	t.Parallel()
	tool.Long(t, "four deployments of a folder")
	f := notes(t, [3]string{"good", "a", "calm"}, [3]string{"better", "b", "calm"})
	f.deploy(0)
	f.notes()
	f.deploy(4).contains("nothing was deployed", "--confirm")
	f.deploy(0, "--confirm").contains("/better]", "0 of 0 resources as intended")
	f.has("good", "a")
}

// A model with an error is not deployed, and in a first run nothing is made for it. A folder without a project says so.
func TestModelThatDoesNotCompile(t *testing.T) {
	t.Parallel()
	f := newFolder(t, map[string]string{"project.yml": "name: x\n", "main.cf": "x = nothing\n"})
	f.deploy(2, "--no-std").contains("main.cf:1", "nothing was deployed")
	if _, err := os.Stat(filepath.Join(f.dir, "data")); err == nil {
		t.Error("there is a state although nothing was deployed")
	}
	empty := newFolder(t, map[string]string{"main.cf": ""})
	empty.deploy(2).contains("project.yml")
	var result struct {
		Outcome     string
		Diagnostics []struct{ Code string }
	}
	f.deploy(2, "--no-std", "-o", "json").json(&result)
	if result.Outcome != "does not compile" || len(result.Diagnostics) != 1 {
		t.Errorf("as JSON: %+v", result)
	}
}

// Options that make no sense are explained, and nothing is started for them.
func TestOptionsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	f := newFolder(t, map[string]string{"project.yml": "name: x\n", "main.cf": ""})
	for want, args := range map[string][]string{
		"it has to be NAME=local":      {"--map", "web"},
		"the only place is local":      {"--map", "web=ssh://elsewhere"},
		"leave --full out":             {"--full", "--dry-run"},
		"it has to be above 0":         {"--handler-timeout", "0s"},
		"there are text and json":      {"-o", "yaml"},
		"unknown flag: --no-such-flag": {"--no-such-flag"},
	} {
		f.deploy(2, args...).contains(want)
	}
	f.deploy(4, "--no-std", "--agent", "nobody").contains(`no resource of an agent "nobody"`)
}
