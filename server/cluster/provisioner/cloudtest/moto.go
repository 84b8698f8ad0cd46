package cloudtest

import (
	"bufio"
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"ordain.dev/ordain/internal/testing/tool"
)

// The packages of moto's server that EC2 needs. All of moto[server] is twice as large.
var motoPackages = []string{"moto==5.2.5", "Flask==3.1.3", "flask-cors==6.0.5"}

// motoProgram ends when its input does: with the tests, however they end.
const motoProgram = `
import os, sys, threading
from moto.server import main
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
main(["-H", "127.0.0.1", "-p", "0"])
`

// moto is the server that the tests of a package share. Each test has a region of its own.
var moto struct {
	sync.Mutex
	command *exec.Cmd
	url     string
	regions []string
	good    account
	poor    account
}

type account struct{ key, secret string }

// Main runs the tests of a package, and ends moto after them.
func Main(m *testing.M) {
	code := m.Run()
	if moto.command != nil {
		_ = moto.command.Process.Kill()
		_ = moto.command.Wait()
	}
	os.Exit(code)
}

// startMoto returns the address of moto, and a region that no other test has.
func startMoto(t testing.TB) (address, region string) {
	t.Helper()
	moto.Lock()
	defer moto.Unlock()
	if moto.command == nil {
		launch(t)
	}
	if len(moto.regions) == 0 {
		t.Fatal("more tests than regions")
	}
	region, moto.regions = moto.regions[0], moto.regions[1:]
	return moto.url, region
}

func launch(t testing.TB) {
	t.Helper()
	c := exec.Command(motoPython(t), "-c", motoProgram)
	c.Env = append(os.Environ(), "MOTO_ENABLE_KEYPAIR_VALIDATION=1", "MOTO_ENABLE_AMI_VALIDATION=1",
		"MOTO_EC2_ENABLE_INSTANCE_TYPE_VALIDATION=1", "NO_COLOR=1")
	out, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	found := make(chan string, 1)
	go func() {
		at, lines := regexp.MustCompile(`http://127\.0\.0\.1:\d+`), bufio.NewScanner(out)
		var all strings.Builder
		for lines.Scan() {
			if a := at.FindString(lines.Text()); a != "" {
				found <- a
				break
			}
			all.WriteString(lines.Text() + "\n")
		}
		_, _ = io.Copy(io.Discard, out)
		select {
		case found <- all.String():
		default:
		}
	}()
	select {
	case moto.url = <-found:
	case <-time.After(2 * time.Minute):
	}
	if !strings.HasPrefix(moto.url, "http://") {
		_ = c.Process.Kill()
		_ = c.Wait()
		t.Fatalf("moto did not start: %s", moto.url)
	}
	moto.command = c
	moto.regions = []string{
		"us-east-1", "us-east-2", "us-west-1", "us-west-2", "eu-west-1", "eu-west-2", "eu-west-3", "eu-central-1",
		"eu-north-1", "sa-east-1", "ap-south-1", "ap-southeast-1", "ap-southeast-2", "ap-northeast-1", "ap-northeast-2",
		"ca-central-1", "ap-northeast-3", "ap-east-1", "me-south-1", "af-south-1",
	}
	for _, region := range moto.regions {
		ask(t, "ec2", region, "Action", "CreateKeyPair", "KeyName", "team")
	}
	moto.good = motoAccount(t, "good", `{"Effect":"Allow","Action":"ec2:*","Resource":"*"}`)
	moto.poor = motoAccount(t, "poor", `{"Effect":"Allow","Action":"ec2:Describe*","Resource":"*"}`)
	// From here on every request must be signed by one of the two.
	r, err := http.Post(moto.url+"/moto-api/reset-auth", "text/plain", strings.NewReader("0"))
	if err != nil || r.StatusCode != http.StatusOK {
		t.Fatal(r, err)
	}
	_ = r.Body.Close()
}

func motoAccount(t testing.TB, name, statement string) account {
	t.Helper()
	ask(t, "iam", "us-east-1", "Action", "CreateUser", "UserName", name)
	ask(t, "iam", "us-east-1", "Action", "PutUserPolicy", "UserName", name, "PolicyName", "p",
		"PolicyDocument", `{"Version":"2012-10-17","Statement":[`+statement+`]}`)
	var made struct {
		Key    string `xml:"CreateAccessKeyResult>AccessKey>AccessKeyId"`
		Secret string `xml:"CreateAccessKeyResult>AccessKey>SecretAccessKey"`
	}
	body := ask(t, "iam", "us-east-1", "Action", "CreateAccessKey", "UserName", name)
	if err := xml.Unmarshal(body, &made); err != nil || made.Key == "" || made.Secret == "" {
		t.Fatalf("moto made no access key: %v %s", err, body)
	}
	return account{made.Key, made.Secret}
}

// ask sends a request to moto that is not signed; the header only says which service it is for.
func ask(t testing.TB, service, region string, pairs ...string) []byte {
	t.Helper()
	form := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, moto.url, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Authorization", fmt.Sprintf("AWS4-HMAC-SHA256 Credential=test/20260101/%s/%s/aws4_request, "+
		"SignedHeaders=host, Signature=0", region, service))
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%v: %s %v %s", pairs, answer.Status, err, body)
	}
	return body
}

// motoPython returns a Python that has moto. It is made once per machine.
func motoPython(t testing.TB) string {
	t.Helper()
	python := tool.Need(t, "python3")
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = t.TempDir()
	}
	dir := filepath.Join(cache, "ordain-test", "moto")
	made, mark := filepath.Join(dir, "bin", "python"), filepath.Join(dir, "packages")
	want := []byte(strings.Join(motoPackages, "\n"))
	if have, err := os.ReadFile(mark); err == nil && bytes.Equal(have, want) {
		return made
	}
	for _, command := range [][]string{
		{python, "-m", "venv", "--clear", dir},
		append([]string{made, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"}, motoPackages...),
	} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			tool.Missing(t, "%s: %v: %s", strings.Join(command, " "), err, out)
		}
	}
	if err := os.WriteFile(mark, want, 0o644); err != nil {
		t.Fatal(err)
	}
	return made
}
