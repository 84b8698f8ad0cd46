package cloudtest

import (
	"bytes"
	"crypto/sha256"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Image and Flavor are known to every region of EC2.
const (
	Image  = "ami-12c6146b"
	Flavor = "t3.small"
)

const ec2Space = "http://ec2.amazonaws.com/doc/2016-11-15/"

// EC2 is moto for one test, behind a proxy. The proxy remembers client tokens as EC2 does, which moto does not.
type EC2 struct {
	URL, Region  string
	Key, Secret  string // may do everything in EC2
	PoorKey      string // may only look
	PoorSecret   string
	OtherKey     string // may do everything in another account
	OtherSecret  string
	moto         string
	mu           sync.Mutex
	requests     []url.Values
	tokens       map[string]remembered
	terminated   map[string]bool
	faults       map[string][]fault
	afterAnswers map[string]func()
	hidden       int
}

type remembered struct {
	parameters [32]byte
	answer     []byte
	header     http.Header
}

type fault struct {
	status        int
	code, message string
}

// StartEC2 returns a region of EC2 without machines.
func StartEC2(t testing.TB) *EC2 {
	t.Helper()
	e := &EC2{
		tokens: map[string]remembered{}, terminated: map[string]bool{}, faults: map[string][]fault{},
		afterAnswers: map[string]func(){},
	}
	e.moto, e.Region = startMoto(t)
	e.Key, e.Secret, e.PoorKey, e.PoorSecret = moto.good.key, moto.good.secret, moto.poor.key, moto.poor.secret
	e.OtherKey, e.OtherSecret = moto.other.key, moto.other.secret
	s := httptest.NewServer(e)
	t.Cleanup(s.Close)
	e.URL = s.URL
	return e
}

// Fail answers the next requests of an action with an error.
func (e *EC2) Fail(action string, times, status int, code, message string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for range times {
		e.faults[action] = append(e.faults[action], fault{status, code, message})
	}
}

// Forgive forgets the errors that were not asked for.
func (e *EC2) Forgive() {
	e.mu.Lock()
	defer e.mu.Unlock()
	clear(e.faults)
}

// CutAfter lets the next request of an action take effect, calls f, and ends the connection without an answer.
func (e *EC2) CutAfter(action string, f func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.afterAnswers[action] = f
}

// Hide lists no instances for the next looks: EC2 takes a while until it lists what it made.
func (e *EC2) Hide(looks int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.hidden = looks
}

// Requests returns the requests of an action.
func (e *EC2) Requests(action string) (out []url.Values) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, r := range e.requests {
		if r.Get("Action") == action {
			out = append(out, r)
		}
	}
	return out
}

func (e *EC2) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	form, parseErr := url.ParseQuery(string(body))
	if err != nil || parseErr != nil {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	action := form.Get("Action")
	e.mu.Lock()
	defer e.mu.Unlock()
	e.requests = append(e.requests, form)
	if list := e.faults[action]; len(list) > 0 {
		e.faults[action] = list[1:]
		refuse(w, list[0])
		return
	}
	if action == "DescribeInstances" && e.hidden > 0 {
		e.hidden--
		fmt.Fprint(w, `<DescribeInstancesResponse xmlns="`+ec2Space+`">`+
			`<requestId>r</requestId><reservationSet/></DescribeInstancesResponse>`)
		return
	}
	if action == "RunInstances" && e.answersRepeat(w, form) {
		return
	}
	if action == "DescribeInstances" && form.Get("Filter.1.Name") == "client-token" { // moto lacks this filter
		made := instancesSet.Find(e.tokens[form.Get("Filter.1.Value.1")].answer)
		fmt.Fprintf(w, `<DescribeInstancesResponse xmlns="`+ec2Space+`">`+
			`<requestId>r</requestId><reservationSet><item>%s</item></reservationSet>`+
			`</DescribeInstancesResponse>`, made)
		return
	}
	status, header, answer, err := e.forward(r, body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	switch {
	case status != http.StatusOK:
	case action == "RunInstances":
		e.tokens[form.Get("ClientToken")] = remembered{parameters(form), answer, header}
	case action == "TerminateInstances":
		for name, values := range form {
			if strings.HasPrefix(name, "InstanceId.") {
				e.terminated[values[0]] = true
			}
		}
	}
	if f := e.afterAnswers[action]; f != nil {
		delete(e.afterAnswers, action)
		f()
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", header.Get("Content-Type"))
	w.WriteHeader(status)
	_, _ = w.Write(answer)
}

var (
	instanceID   = regexp.MustCompile(`<instanceId>(i-[0-9a-f]+)</instanceId>`)
	instancesSet = regexp.MustCompile(`(?s)<instancesSet>.*</instancesSet>`)
	stateName    = regexp.MustCompile(`<code>\d+</code>\s*<name>(pending|running)</name>`)
)

// answersRepeat answers a request with a client token that was used before.
func (e *EC2) answersRepeat(w http.ResponseWriter, form url.Values) bool {
	before, used := e.tokens[form.Get("ClientToken")]
	if !used {
		return false
	}
	if before.parameters != parameters(form) {
		refuse(w, fault{
			http.StatusBadRequest, "IdempotentParameterMismatch", "The request uses the same client token as a " +
				"previous, but non-identical request.",
		})
		return true
	}
	answer := before.answer
	if id := instanceID.FindSubmatch(answer); id != nil && e.terminated[string(id[1])] {
		answer = stateName.ReplaceAll(answer, []byte("<code>48</code><name>terminated</name>"))
	}
	w.Header().Set("Content-Type", before.header.Get("Content-Type"))
	_, _ = w.Write(answer)
	return true
}

// parameters is what has to be the same in two requests with one client token.
func parameters(form url.Values) [32]byte { return sha256.Sum256([]byte(form.Encode())) }

func refuse(w http.ResponseWriter, f fault) {
	w.Header().Set("Content-Type", "text/xml")
	w.WriteHeader(f.status)
	fmt.Fprintf(w, "<Response><Errors><Error><Code>%s</Code><Message>%s</Message></Error></Errors>"+
		"<RequestID>r</RequestID></Response>", f.code, f.message)
}

func (e *EC2) forward(r *http.Request, body []byte) (int, http.Header, []byte, error) {
	on, err := http.NewRequest(http.MethodPost, e.moto+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		return 0, nil, nil, err
	}
	on.Header, on.Host = r.Header.Clone(), r.Host // the signature covers the host
	answer, err := http.DefaultClient.Do(on)
	if err != nil {
		return 0, nil, nil, err
	}
	defer answer.Body.Close()
	got, err := io.ReadAll(answer.Body)
	return answer.StatusCode, answer.Header, got, err
}

// Machine is an instance as EC2 knows it.
type Machine struct {
	ID          string `xml:"instanceId"`
	State       string `xml:"instanceState>name"`
	Tags        []Tag  `xml:"tagSet>item"`
	ClientToken string `xml:"clientToken"`
	Subnet      string `xml:"subnetId"`
	Private     string `xml:"privateIpAddress"`
}

// Tag is a label of an instance.
type Tag struct {
	Key   string `xml:"key"`
	Value string `xml:"value"`
}

// Alive returns the instances of the region that are not terminated, from the list that moto keeps for its own page.
func (e *EC2) Alive(t testing.TB, sign func(*http.Request, []byte)) (out []Machine) {
	t.Helper()
	body := e.signed(t, sign, "Action", "DescribeInstances")
	var list struct {
		Machines []Machine `xml:"reservationSet>item>instancesSet>item"`
	}
	if err := xml.Unmarshal(body, &list); err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(list.Machines, func(m Machine) bool { return m.State == "terminated" })
}
