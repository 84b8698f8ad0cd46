package cloudtest

import (
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	motoserver "ordain.dev/ordain/internal/testing/moto"
)

// moto is the server that the tests of a package share. Each test has a region of its own.
var moto struct {
	sync.Mutex
	server  *motoserver.Server
	url     string
	regions []string
	good    account
	poor    account
	other   account
}

type account struct{ key, secret string }

// Main runs the tests of a package, and ends moto after them.
func Main(m *testing.M) {
	code := m.Run()
	if moto.server != nil {
		moto.server.Stop()
	}
	os.Exit(code)
}

// startMoto returns the address of moto, and a region that no other test has.
func startMoto(t testing.TB) (address, region string) {
	t.Helper()
	moto.Lock()
	defer moto.Unlock()
	if moto.server == nil {
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
	moto.server = motoserver.Launch(t, "MOTO_ENABLE_KEYPAIR_VALIDATION=1", "MOTO_ENABLE_AMI_VALIDATION=1",
		"MOTO_EC2_ENABLE_INSTANCE_TYPE_VALIDATION=1")
	moto.url = moto.server.URL
	moto.regions = []string{
		"us-east-1", "us-east-2", "us-west-1", "us-west-2", "eu-west-1", "eu-west-2", "eu-west-3", "eu-central-1",
		"eu-north-1", "sa-east-1", "ap-south-1", "ap-southeast-1", "ap-southeast-2", "ap-northeast-1", "ap-northeast-2",
		"ca-central-1", "ap-northeast-3", "ap-east-1", "me-south-1", "af-south-1",
	}
	for _, region := range moto.regions {
		ask(t, nobody, "ec2", region, "Action", "CreateKeyPair", "KeyName", "team")
	}
	moto.good = motoUser(t, nobody, "good", `{"Effect":"Allow","Action":"ec2:*","Resource":"*"}`)
	moto.poor = motoUser(t, nobody, "poor", `{"Effect":"Allow","Action":"ec2:Describe*","Resource":"*"}`)
	moto.other = motoUser(t, motoRole(t, "222222222222"), "good", `{"Effect":"Allow","Action":"ec2:*","Resource":"*"}`)
	// From here on every request must be signed by one of the two.
	r, err := http.Post(moto.url+"/moto-api/reset-auth", "text/plain", strings.NewReader("0"))
	if err != nil || r.StatusCode != http.StatusOK {
		t.Fatal(r, err)
	}
	_ = r.Body.Close()
}

// nobody is an access key that moto knows nothing of, so that it means its first account.
const nobody = "test"

// motoRole returns an access key of another account.
func motoRole(t testing.TB, number string) (key string) {
	t.Helper()
	var made struct {
		Key string `xml:"AssumeRoleResult>Credentials>AccessKeyId"`
	}
	body := ask(t, nobody, "sts", "us-east-1", "Action", "AssumeRole", "RoleSessionName", "other",
		"RoleArn", "arn:aws:iam::"+number+":role/other")
	if err := xml.Unmarshal(body, &made); err != nil || made.Key == "" {
		t.Fatalf("moto made no access key of another account: %v %s", err, body)
	}
	return made.Key
}

// motoUser makes a user in the account of an access key.
func motoUser(t testing.TB, as, name, statement string) account {
	t.Helper()
	ask(t, as, "iam", "us-east-1", "Action", "CreateUser", "UserName", name)
	ask(t, as, "iam", "us-east-1", "Action", "PutUserPolicy", "UserName", name, "PolicyName", "p",
		"PolicyDocument", `{"Version":"2012-10-17","Statement":[`+statement+`]}`)
	var made struct {
		Key    string `xml:"CreateAccessKeyResult>AccessKey>AccessKeyId"`
		Secret string `xml:"CreateAccessKeyResult>AccessKey>SecretAccessKey"`
	}
	body := ask(t, as, "iam", "us-east-1", "Action", "CreateAccessKey", "UserName", name)
	if err := xml.Unmarshal(body, &made); err != nil || made.Key == "" || made.Secret == "" {
		t.Fatalf("moto made no access key: %v %s", err, body)
	}
	return account{made.Key, made.Secret}
}

// ask sends a request to moto that is not signed; the header only says which service it is for.
func ask(t testing.TB, key, service, region string, pairs ...string) []byte {
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
	r.Header.Set("Authorization", fmt.Sprintf("AWS4-HMAC-SHA256 Credential=%s/20260101/%s/%s/aws4_request, "+
		"SignedHeaders=host, Signature=0", key, region, service))
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
