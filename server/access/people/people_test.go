package people_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/access/people"
	"ordain.dev/ordain/server/servertest"
)

func open(t testing.TB, options ...func(*people.Config)) *servertest.Server {
	t.Helper()
	s := servertest.New(t, servertest.Present)
	s.RequireLogin(options...)
	return s
}

// A password is the same whatever keyboard it was typed on, and names are the same whatever their case.
func TestPasswordsAndNamesAreNormalized(t *testing.T) {
	s := open(t)
	composed, decomposed := "caf\u00e9 au lait", "cafe\u0301 au lait"
	if _, err := s.People.AddUser(t.Context(), "Ren\u00e9", decomposed); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Ren\u00e9", "ren\u00e9", "Rene\u0301"} {
		for _, password := range []string{composed, decomposed} {
			if _, err := s.People.Login(t.Context(), access.APIClient, name, password, ""); err != nil {
				t.Errorf("%q %q: %v", name, password, err)
			}
		}
	}
	if _, err := s.People.AddUser(t.Context(), "rene\u0301", composed); !fault.Is(err, fault.Conflict) {
		t.Errorf("a second %v", err)
	}
	for _, password := range []string{"short", strings.Repeat("é", 129), "frederic.the.1st", "nul\x00 in the text"} {
		if _, err := s.People.AddUser(t.Context(), "Frederic.the.1st", password); !fault.Is(err, fault.Invalid) {
			t.Errorf("%q: %v", password, err)
		}
	}
	if _, err := s.People.AddUser(t.Context(), "f", strings.Repeat("é", 128)); err != nil {
		t.Errorf("128 characters: %v", err)
	}
}

// The database holds nothing with which its reader could log in: neither a password, nor a token, nor a link.
func TestTheDatabaseHoldsNoSecrets(t *testing.T) {
	s := open(t)
	link, err := s.People.FirstLink(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	secret := link[strings.LastIndexByte(link, '/')+1:]
	u, err := s.People.MakeFirst(t.Context(), secret, "ada", servertest.Password)
	if err != nil {
		t.Fatal(err)
	}
	token := s.Login(t, access.APIClient, "ada")
	sessions, err := s.Store.Sessions(t.Context(), u.ID, time.Now())
	if err != nil || len(sessions) != 1 || sessions[0].Hash == token.Text ||
		strings.Contains(sessions[0].Hash, token.Text) {
		t.Errorf("%+v, %v", sessions, err)
	}
	hash, err := s.Store.PasswordHash(t.Context(), u.ID)
	if err != nil || !strings.HasPrefix(hash, "$argon2id$v=19$m=19456,t=2,p=1$") {
		t.Errorf("%q, %v", hash, err)
	}
}

// The link for the first administrator works once, even if two people use it at the same time, and not after an hour.
// A new one voids the one before.
func TestTheFirstLinkWorksOnce(t *testing.T) {
	s := open(t)
	secret := func() string {
		t.Helper()
		link, err := s.People.FirstLink(t.Context())
		if err != nil || link == "" {
			t.Fatalf("%q, %v", link, err)
		}
		return link[strings.LastIndexByte(link, '/')+1:]
	}
	make := func(secret, name string) error {
		_, err := s.People.MakeFirst(t.Context(), secret, name, servertest.Password)
		return err
	}
	old := secret()
	s.LetPeopleWait(61 * time.Minute)
	if err := make(old, "late"); !fault.Is(err, fault.NotFound) {
		t.Errorf("after an hour: %v", err)
	}
	old, new := secret(), secret()
	if err := make(old, "old"); !fault.Is(err, fault.NotFound) {
		t.Errorf("a link that was replaced: %v", err)
	}
	if err := make(new, "no/name"); !fault.Is(err, fault.Invalid) {
		t.Errorf("a wrong name: %v", err)
	}
	var wg sync.WaitGroup
	results := [2]error{}
	for i, name := range []string{"ada", "bob"} {
		wg.Go(func() { results[i] = make(new, name) })
	}
	wg.Wait()
	if (results[0] == nil) == (results[1] == nil) {
		t.Errorf("of two at the same time: %v", results)
	}
	users, err := s.People.Users(t.Context())
	if err != nil || len(users) != 1 || !users[0].Administrator {
		t.Errorf("%+v, %v", users, err)
	}
}

// Guesses at the same time do not outrun the count of failures.
func TestGuessesAtTheSameTimeAreCounted(t *testing.T) {
	s := open(t)
	s.StopPeoplesClock()
	s.AddPerson(t, "noor")
	var wg sync.WaitGroup
	var mu sync.Mutex
	kinds := map[fault.Kind]int{}
	for range 40 {
		wg.Go(func() {
			_, err := s.People.Login(t.Context(), access.APIClient, "noor", "wrong", "")
			mu.Lock()
			kinds[fault.KindOf(err)]++
			mu.Unlock()
		})
	}
	wg.Wait()
	if kinds[fault.Unauthorized] != 5 || kinds[fault.TooMany] != 35 {
		t.Errorf("%v", kinds)
	}
}

// Somebody may log in many times at once: none of it is taken for guessing.
func TestManyLoginsAtTheSameTime(t *testing.T) {
	s := open(t)
	s.AddPerson(t, "noor")
	var wg sync.WaitGroup
	for range 12 {
		wg.Go(func() { s.Login(t, access.APIClient, "noor") })
	}
	wg.Wait()
}

// Somebody who tries one password on many names is blocked by their address; people elsewhere are not.
func TestManyNamesFromOneAddress(t *testing.T) {
	s := open(t)
	s.StopPeoplesClock()
	s.AddPerson(t, "noor")
	from := func(address string) context.Context {
		r := httptest.NewRequest("POST", "/", nil)
		r.RemoteAddr = address
		return people.WithOrigin(r)
	}
	for i := range 50 {
		address := "[2001:db8::" + string(rune('1'+i%9)) + "]:1000" // all of one site
		_, err := s.People.Login(from(address), access.APIClient, uuid.NewString(), "wrong", "")
		if !fault.Is(err, fault.Unauthorized) {
			t.Fatalf("%d: %v", i, err)
		}
	}
	if _, err := s.People.Login(from("[2001:db8::9]:2"), access.APIClient, "noor", servertest.Password, ""); !fault.Is(
		err, fault.TooMany) {
		t.Errorf("from the address: %v", err)
	}
	if _, err := s.People.Login(from("192.0.2.7:2"), access.APIClient, "noor", servertest.Password, ""); err != nil {
		t.Errorf("from elsewhere: %v", err)
	}
}

// An unknown name, a disabled user and a wrong password take the same time and get the same answer.
func TestNobodyLearnsWhichUsersThereAre(t *testing.T) {
	s := open(t)
	s.AddPerson(t, "noor")
	s.AddPerson(t, "gone")
	if err := s.People.DisableUser(t.Context(), "gone", true); err != nil {
		t.Fatal(err)
	}
	fastest := map[string]time.Duration{}
	for range 4 {
		for _, name := range []string{"noor", "gone", "nobody"} {
			password := "wrong"
			if name == "gone" {
				password = servertest.Password
			}
			began := time.Now()
			_, err := s.People.Login(t.Context(), access.APIClient, name, password, "")
			took := time.Since(began)
			if err == nil || err.Error() != "Invalid username or password" {
				t.Errorf("%s: %v", name, err)
			}
			if best, ok := fastest[name]; !ok || took < best {
				fastest[name] = took
			}
		}
	}
	// Without a hash, a login takes a twentieth of the time.
	if fastest["nobody"] < fastest["noor"]/3 || fastest["gone"] < fastest["noor"]/3 {
		t.Errorf("%v", fastest)
	}
}

// A role that is given, changed or taken away counts at the next request, and so does the end of a login, although
// principals are kept for a moment.
func TestChangesCountAtOnce(t *testing.T) {
	s := open(t)
	noor := s.AddPerson(t, "noor")
	token := s.Login(t, access.APIClient, "noor")
	api := s.People.API()
	who := func() access.Principal {
		t.Helper()
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Authorization", "Bearer "+token.Text)
		p, err := api.Authenticate(r)
		if err != nil && !fault.Is(err, fault.Unauthorized) {
			t.Fatal(err)
		}
		return p
	}
	admin, _ := access.Off{}.Authenticate(nil)
	ctx := access.With(t.Context(), admin)
	may := func(v access.Verb) bool { return who().Decide(v, access.Target{}).Allowed }
	if may(access.SeeUsers) {
		t.Error("without a role")
	}
	role := access.Role{Name: "reader of users", Verbs: []access.Verb{access.SeeUsers}}
	if err := s.People.CreateRole(ctx, role); err != nil {
		t.Fatal(err)
	}
	g, err := s.People.Give(ctx, access.Grant{Kind: access.OfUser, Subject: "noor", Role: role.Name}, access.Target{})
	if err != nil || !may(access.SeeUsers) || may(access.ManageUsers) {
		t.Errorf("given: %v, %+v", err, who())
	}
	role.Verbs = append(role.Verbs, access.ManageUsers)
	if err := s.People.UpdateRole(ctx, role); err != nil || !may(access.ManageUsers) {
		t.Errorf("changed: %v, %+v", err, who())
	}
	if err := s.People.Take(ctx, g.ID); err != nil || may(access.SeeUsers) {
		t.Errorf("taken: %v, %+v", err, who())
	}
	session := uuid.MustParse(who().Credential)
	if err := s.People.EndSession(ctx, noor.ID, session); err != nil || who().Known() {
		t.Errorf("ended: %v, %+v", err, who())
	}
}

// Somebody who may manage roles, or users, cannot become an administrator through that.
func TestManagersDoNotRaiseThemselves(t *testing.T) {
	s := open(t)
	s.AddPerson(t, "root", access.Binding{Role: access.Administrator})
	admin, _ := access.Off{}.Authenticate(nil)
	ctx := access.With(t.Context(), admin)
	manager := access.Role{Name: "manager", Verbs: []access.Verb{
		access.ManageRoles, access.SeeUsers, access.ManageUsers,
	}}
	if err := s.People.CreateRole(ctx, manager); err != nil {
		t.Fatal(err)
	}
	s.AddPerson(t, "mara")
	s.AddPerson(t, "noor")
	give := access.Grant{Kind: access.OfUser, Subject: "mara", Role: manager.Name}
	if _, err := s.People.Give(ctx, give, access.Target{}); err != nil {
		t.Fatal(err)
	}
	mara, err := s.People.Principal(t.Context(), "mara")
	if err != nil {
		t.Fatal(err)
	}
	as := access.With(t.Context(), mara)
	const password = "another long password"
	more := access.Role{Name: manager.Name, Labels: access.Labels}
	less := access.Role{Name: manager.Name, Verbs: []access.Verb{access.ManageRoles, access.ManageUsers}}
	for what, err := range map[string]error{
		"a wider role":                        s.People.UpdateRole(as, more),
		"an administrator's password":         s.People.SetPassword(as, "root", password),
		"an administrator who is disabled":    s.People.DisableUser(as, "root", true),
		"an administrator who is deleted":     s.People.DeleteUser(as, "root"),
		"an administrator who is one no more": s.People.SetAdministrator(as, "root", false),
	} {
		if !fault.Is(err, fault.Forbidden) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, err := range map[string]error{
		"a narrower role":             s.People.UpdateRole(as, less),
		"the password of an ordinary": s.People.SetPassword(as, "noor", password),
		"the own password":            s.People.SetPassword(as, "mara", password),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// The token of a page is a cookie and works nowhere else; that of the API works only in its header.
func TestTokensWorkWhereTheyBelong(t *testing.T) {
	s := open(t)
	s.AddPerson(t, "noor")
	page, api := s.Login(t, access.ConsoleClient, "noor").Text, s.Login(t, access.APIClient, "noor").Text
	request := func(cookie, bearer string) *http.Request {
		r := httptest.NewRequest("GET", "/", nil)
		if cookie != "" {
			r.AddCookie(&http.Cookie{Name: "ordain_session", Value: cookie})
		}
		if bearer != "" {
			r.Header.Set("Authorization", "Bearer "+bearer)
		}
		return r
	}
	for name, c := range map[string]struct {
		by     access.Authenticator
		r      *http.Request
		known  bool
		denied bool
	}{
		"a page":                        {s.People.Console(), request(page, ""), true, false},
		"a call":                        {s.People.API(), request("", api), true, false},
		"a call with a cookie":          {s.People.API(), request(page, ""), false, false},
		"a call with a token of a page": {s.People.API(), request("", page), false, true},
		"a page with a token of calls":  {s.People.Console(), request(api, ""), false, false},
		"a page with a header":          {s.People.Console(), request("", api), false, false},
		"a call with an unknown token":  {s.People.API(), request("", "eyJhbGciOi.J9.x"), false, true},
	} {
		p, err := c.by.Authenticate(c.r)
		if p.Known() != c.known || fault.Is(err, fault.Unauthorized) != c.denied {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
}

// An open page that only follows events is no sign that somebody is there: its login expires.
func TestALivePageDoesNotKeepALoginAlive(t *testing.T) {
	s := open(t, func(c *people.Config) { c.Idle = time.Hour })
	s.AddPerson(t, "noor")
	token := s.Login(t, access.ConsoleClient, "noor").Text
	known := func(accept string) bool {
		t.Helper()
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Accept", accept)
		r.AddCookie(&http.Cookie{Name: "ordain_session", Value: token})
		p, err := s.People.Console().Authenticate(r)
		if err != nil {
			t.Fatal(err)
		}
		return p.Known()
	}
	for range 3 {
		s.LetPeopleWait(40 * time.Minute)
		if !known("text/event-stream") || !known("text/html") {
			t.Fatal("a login that is used expires")
		}
	}
	s.LetPeopleWait(40 * time.Minute)
	if !known("text/event-stream") {
		t.Fatal("it expires early")
	}
	s.LetPeopleWait(40 * time.Minute)
	if known("text/event-stream") {
		t.Error("a live page keeps the login alive")
	}
}

// BenchmarkLogin is a login with a right password; it reports the 99th percentile, alone and when eight people log in
// at a time.
func BenchmarkLogin(b *testing.B) {
	for name, workers := range map[string]int{"alone": 1, "eight": 8} {
		b.Run(name, func(b *testing.B) {
			s := open(b, func(c *people.Config) { c.Logger = slog.New(slog.DiscardHandler) })
			names := make([]string, workers)
			for i := range names {
				names[i] = "person" + strconv.Itoa(i)
				s.AddPerson(b, names[i])
			}
			var wg sync.WaitGroup
			var mu sync.Mutex
			var took []time.Duration
			b.ResetTimer()
			for _, name := range names {
				wg.Go(func() {
					for range max(1, b.N/workers) {
						began := time.Now()
						_, err := s.People.Login(b.Context(), access.APIClient, name, servertest.Password, "")
						if err != nil {
							b.Error(err)
						}
						mu.Lock()
						took = append(took, time.Since(began))
						mu.Unlock()
					}
				})
			}
			wg.Wait()
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Milliseconds()), "p50-ms")
			b.ReportMetric(float64(took[(len(took)-1)*99/100].Milliseconds()), "p99-ms")
		})
	}
}
