package signers_test

import (
	"bytes"
	"crypto"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"

	"ordain.dev/ordain/gitsync/signers"
	"ordain.dev/ordain/internal/testing/tool"
)

// person is somebody with an SSH key, and a repository to commit to.
type person struct {
	t    *testing.T
	dir  string
	key  string // file with the private key
	line string // of allowed signers
}

func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "HOME="+dir)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, stderr.String())
	}
	return string(out)
}

func newPerson(t *testing.T, name, kind string) *person {
	t.Helper()
	for _, program := range []string{"git", "ssh-keygen"} {
		if _, err := exec.LookPath(program); err != nil {
			tool.Missing(t, "there is no %s", program)
		}
	}
	p := &person{t: t, dir: t.TempDir()}
	p.key = filepath.Join(p.dir, "key")
	run(t, p.dir, "ssh-keygen", "-q", "-t", kind, "-N", "", "-C", name, "-f", p.key)
	public, err := os.ReadFile(p.key + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	p.line = name + " " + strings.TrimSpace(string(public))
	repo := filepath.Join(p.dir, "repo")
	run(t, p.dir, "git", "init", "-q", "-b", "main", repo)
	for _, c := range [][]string{
		{"user.name", name}, {"user.email", name}, {"gpg.format", "ssh"}, {"user.signingkey", p.key},
	} {
		run(t, repo, "git", "config", c[0], c[1])
	}
	p.dir = repo
	return p
}

// commit gives a commit object as Git stores it, signed.
func (p *person) commit(message string) []byte {
	run(p.t, p.dir, "git", "commit", "-q", "--allow-empty", "-S", "-m", message)
	return []byte(run(p.t, p.dir, "git", "cat-file", "commit", "HEAD"))
}

func (p *person) tag(name string) []byte {
	run(p.t, p.dir, "git", "tag", "-s", "-m", "release "+name, name)
	return []byte(run(p.t, p.dir, "git", "cat-file", "tag", name))
}

func parse(t *testing.T, text string) *signers.Set {
	t.Helper()
	s, err := signers.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func verify(t *testing.T, s *signers.Set, raw []byte, at time.Time) (signers.Signer, error) {
	t.Helper()
	payload, signature, err := signers.Split(raw)
	if err != nil {
		return signers.Signer{}, err
	}
	return s.Verify(payload, signature, at)
}

func refused(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("the error is %v, want %v", err, want)
	}
}

func TestCommitsSignedWithSSH(t *testing.T) {
	for _, kind := range []string{"ed25519", "ecdsa", "rsa"} {
		t.Run(kind, func(t *testing.T) {
			ada, eve := newPerson(t, "ada@example.com", kind), newPerson(t, "eve@example.com", kind)
			raw := ada.commit("Open the doors\n\n-----BEGIN SSH SIGNATURE-----\nno, this is the message\n")
			set := parse(t, "# who may sign\n"+ada.line+"\n")
			who, err := verify(t, set, raw, time.Now())
			if err != nil || who.Name != "ada@example.com" || !strings.HasPrefix(who.Key, "SHA256:") {
				t.Errorf("signed by %+v, %v", who, err)
			}
			_, err = verify(t, set, bytes.Replace(raw, []byte("Open"), []byte("Shut"), 1), time.Now())
			refused(t, err, signers.ErrBroken)
			_, err = verify(t, set, eve.commit("Open the doors"), time.Now())
			refused(t, err, signers.ErrUnknown)
			run(t, ada.dir, "git", "commit", "-q", "--allow-empty", "--no-gpg-sign", "-m", "unsigned")
			_, err = verify(t, set, []byte(run(t, ada.dir, "git", "cat-file", "commit", "HEAD")), time.Now())
			refused(t, err, signers.ErrUnsigned)

			payload, signature := signers.SplitTag(ada.tag("v1"))
			if who, err := set.Verify(payload, signature, time.Now()); err != nil || who.Name != "ada@example.com" {
				t.Errorf("the tag is signed by %+v, %v", who, err)
			}
			_, err = set.Verify(bytes.Replace(payload, []byte("tag v1"), []byte("tag v2"), 1), signature, time.Now())
			refused(t, err, signers.ErrBroken)
		})
	}
}

func TestWhenAndForWhatAKeyMaySign(t *testing.T) {
	ada := newPerson(t, "ada@example.com", "ed25519")
	raw := ada.commit("x")
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	with := func(options string) string { return strings.Replace(ada.line, " ", " "+options+" ", 1) }
	for options, want := range map[string]error{
		`valid-after="20260501Z"`:                          nil,
		`valid-after="20260502Z"`:                          signers.ErrNotValid,
		`valid-before="20260501Z"`:                         signers.ErrNotValid,
		`valid-before=202605011201Z`:                       nil,
		`namespaces="file"`:                                signers.ErrNotValid,
		`namespaces="file,git"`:                            nil,
		`namespaces="git",valid-after="20260502Z"`:         signers.ErrNotValid,
		`cert-authority`:                                   signers.ErrUnknown,
		`valid-after="20260401Z",valid-before="20260601Z"`: nil,
	} {
		_, err := verify(t, parse(t, with(options)), raw, at)
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", options, err, want)
		}
	}
}

// A certificate authority allows those to sign to whom it gave a certificate, for the
// principals that both the line and the certificate name.
func TestCertificates(t *testing.T) {
	ca, ada := newPerson(t, "ca", "ed25519"), newPerson(t, "ada@example.com", "ed25519")
	run(t, ada.dir, "ssh-keygen", "-q", "-s", ca.key, "-I", "ada", "-n", "ada@example.com", "-V", "+1d", ada.key+".pub")
	run(t, ada.dir, "git", "config", "user.signingkey", ada.key+"-cert.pub")
	raw := ada.commit("by certificate")
	_, key, _ := strings.Cut(ca.line, " ")
	who, err := verify(t, parse(t, "*@example.com cert-authority "+key), raw, time.Now())
	if err != nil || who.Name != "ada@example.com" {
		t.Errorf("signed by %+v, %v", who, err)
	}
	_, err = verify(t, parse(t, "*@example.org cert-authority "+key), raw, time.Now())
	refused(t, err, signers.ErrUnknown)
	_, err = verify(t, parse(t, "!ada@*,*@example.com cert-authority "+key), raw, time.Now())
	refused(t, err, signers.ErrUnknown)
	_, err = verify(t, parse(t, "*@example.com cert-authority "+key), raw, time.Now().Add(48*time.Hour))
	refused(t, err, signers.ErrUnknown)
	_, err = verify(t, parse(t, "*@example.com "+key), raw, time.Now())
	refused(t, err, signers.ErrUnknown)
}

func TestCommitsSignedWithOpenPGP(t *testing.T) {
	made := time.Now().Add(-48 * time.Hour)
	config := &packet.Config{Time: func() time.Time { return made }, DefaultHash: crypto.SHA256}
	newKey := func(lifetime time.Duration) (*openpgp.Entity, string) {
		c := *config
		c.KeyLifetimeSecs = uint32(lifetime.Seconds())
		key, err := openpgp.NewEntity("Ada", "", "ada@example.com", &c)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		w, _ := armor.Encode(&out, "PGP PUBLIC KEY BLOCK", nil)
		if err := key.Serialize(w); err != nil {
			t.Fatal(err)
		}
		w.Close()
		return key, out.String()
	}
	signed := func(key *openpgp.Entity, payload string, at time.Time) string {
		var out bytes.Buffer
		if err := openpgp.ArmoredDetachSign(
			&out, key, strings.NewReader(payload), &packet.Config{Time: func() time.Time { return at }},
		); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	key, public := newKey(24 * time.Hour)
	other, _ := newKey(0)
	set := parse(t, "# a key\n"+public+"\n")
	const payload = "tree 0\n\nhello\n"
	good := signed(key, payload, made.Add(time.Hour))
	who, err := set.Verify([]byte(payload), good, time.Now())
	if err != nil || who.Name != "Ada <ada@example.com>" {
		t.Errorf("signed by %+v, %v: a key that expired since counts for what it signed before", who, err)
	}
	_, err = set.Verify([]byte(payload+"more"), good, time.Now())
	refused(t, err, signers.ErrBroken)
	_, err = set.Verify([]byte(payload), signed(other, payload, time.Now()), time.Now())
	refused(t, err, signers.ErrUnknown)
	_, err = set.Verify([]byte(payload), "-----BEGIN PGP SIGNATURE-----\n\nnonsense\n-----END PGP SIGNATURE-----",
		time.Now())
	refused(t, err, signers.ErrBroken)

	var private bytes.Buffer
	w, _ := armor.Encode(&private, "PGP PUBLIC KEY BLOCK", nil)
	if err := key.SerializePrivate(w, nil); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if _, err := signers.Parse(private.String()); err == nil || !strings.Contains(err.Error(), "private") {
		t.Errorf("a private key is taken: %v", err)
	}
}

// Signatures of the real gpg are valid, and a key that has expired since still counts.
func TestGnuPGSigns(t *testing.T) {
	if _, err := exec.LookPath("gpg"); err != nil {
		tool.Missing(t, "there is no gpg")
	}
	ada := newPerson(t, "ada@example.com", "ed25519")
	home, err := os.MkdirTemp("", "gpg") // the path of its socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = exec.Command("gpgconf", "--homedir", home, "--kill", "all").Run()
		os.RemoveAll(home)
	})
	run(t, ada.dir, "gpg", "--homedir", home, "--batch", "--quiet", "--passphrase", "", "--quick-generate-key",
		"Ada <ada@example.com>", "ed25519", "sign", "1y")
	public := run(t, ada.dir, "gpg", "--homedir", home, "--armor", "--export")
	program := filepath.Join(ada.dir, "gpg.sh")
	if err := os.WriteFile(
		program, []byte("#!/bin/sh\nexec gpg --homedir "+home+" --batch \"$@\"\n"), 0o755,
	); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][]string{
		{"gpg.format", "openpgp"}, {"gpg.program", program}, {"user.signingkey", "ada@example.com"},
	} {
		run(t, ada.dir, "git", "config", c[0], c[1])
	}
	set := parse(t, public)
	if who, err := verify(t, set, ada.commit("by gpg"), time.Now()); err != nil || who.Name != "Ada <ada@example.com>" {
		t.Errorf("signed by %+v, %v", who, err)
	}
	payload, signature := signers.SplitTag(ada.tag("v1"))
	if _, err := set.Verify(payload, signature, time.Now()); err != nil {
		t.Error(err)
	}
}

func TestBadLists(t *testing.T) {
	const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIMWfSrSpcFdDPCJvJwhyA1gnKLc6MjYRfDZ7o8bVPYj"
	for text, want := range map[string]string{
		"ada":                                  "line 1",
		"# x\n\nada ssh-ed25519":               "line 3",
		"ada ssh-ed25519 !!!":                  "not base64",
		"ada ssh-rsa " + key[12:]:              "says that it is ssh-rsa",
		"ada colour=red " + key:                `option "colour"`,
		"ada valid-after=soon " + key:          "not a time",
		"-----BEGIN PGP PUBLIC KEY BLOCK-----": "no end",
		"-----BEGIN OPENSSH PRIVATE KEY-----":  "only public keys",
		"-----BEGIN PGP PUBLIC KEY BLOCK-----\nx\n-----END PGP PUBLIC KEY BLOCK-----": "cannot be read",
	} {
		if _, err := signers.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if s := parse(t, "# nobody\n"); !s.Empty() {
		t.Error("a list of nobody is not empty")
	}
}

func TestTwoSignatures(t *testing.T) {
	raw := "tree 0\ngpgsig -----BEGIN SSH SIGNATURE-----\n one\ngpgsig -----BEGIN SSH SIGNATURE-----\n two\n\nhello\n"
	_, _, err := signers.Split([]byte(raw))
	refused(t, err, signers.ErrBroken)
}

func FuzzVerify(f *testing.F) {
	const key = "ada ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIMWfSrSpcFdDPCJvJwhyA1gnKLc6MjYRfDZ7o8bVPYj"
	set, err := signers.Parse(key)
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte("tree 0\ngpgsig -----BEGIN SSH SIGNATURE-----\n U1NIU0lH\n -----END SSH SIGNATURE-----\n\nhello\n"))
	f.Add([]byte("tree 0\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n iQ==\n -----END PGP SIGNATURE-----\n\nhello\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if payload, signature, err := signers.Split(raw); err == nil {
			if who, err := set.Verify(payload, signature, time.Unix(0, 0)); err == nil {
				t.Errorf("%q is signed by %+v", raw, who)
			}
		}
		payload, signature := signers.SplitTag(raw)
		if _, err := set.Verify(payload, signature, time.Unix(0, 0)); err == nil {
			t.Error("a tag that nobody signed is taken")
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add("ada valid-after=\"20260101\",namespaces=\"git\" ssh-ed25519 AAAA x")
	f.Add("-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nxx\n-----END PGP PUBLIC KEY BLOCK-----")
	f.Fuzz(func(_ *testing.T, text string) {
		_, _ = signers.Parse(text)
	})
}
