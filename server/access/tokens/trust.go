package tokens

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/access"
	"ordain.dev/ordain/server/access/audit"
)

// Bounds of a trust.
const (
	maxTrusts        = 100 // of a project
	maxClaims        = 20
	shortestLifetime = time.Minute
	defaultLifetime  = 15 * time.Minute
	longestLifetime  = 24 * time.Hour
)

// exactClaims say whose job it is by a name or number of its own, so that a pattern in them binds nothing.
var exactClaims = []string{
	"repository_id", "repository_owner", "repository_owner_id", "project_id", "namespace_id", "namespace_path",
}

// pathClaims say whose job it is by a path that begins with its owner. job_workflow_ref is none of them: it names the
// owner of the workflow, which jobs of anybody may call.
var pathClaims = []string{"sub", "repository", "project_path", "ci_config_ref_uri"}

// checkTrust checks what somebody enters.
func (s *Service) checkTrust(ctx context.Context, t *access.Trust) error {
	bad := func(format string, args ...any) error {
		return fault.New("tokens.AddTrust", fault.Invalid, fmt.Sprintf(format, args...))
	}
	if err := checkName("a trust", t.Name); err != nil {
		return err
	}
	if err := checkIssuer(t.Issuer); err != nil {
		return err
	}
	if !slices.Contains(s.Issuers, t.Issuer) {
		server := access.Of(ctx).Decide(access.ManageRoles, access.Target{})
		if !server.Allowed {
			return fault.New("tokens.AddTrust", fault.Forbidden, "administrators of a project may trust the issuers "+
				strings.Join(s.Issuers, ", ")).
				Hint("ask an administrator of the server, who may trust any issuer, or add it to the option " +
					"server.ci-issuers")
		}
	}
	if t.Audience == "" {
		t.Audience = s.PublicURL
	}
	if t.Lifetime == 0 {
		t.Lifetime = defaultLifetime
	}
	switch {
	case len(t.Audience) > 500:
		return bad("an audience should be at most 500 bytes long")
	case t.Lifetime < shortestLifetime || t.Lifetime > longestLifetime:
		return bad("the tokens of jobs may last from %s to %s", shortestLifetime, longestLifetime)
	case len(t.Claims) > maxClaims:
		return bad("a trust looks at no more than %d claims", maxClaims)
	}
	binds := false
	for claim, pattern := range t.Claims {
		if claim == "" || len(claim) > 100 || pattern == "" || len(pattern) > 500 {
			return bad("a claim has a name and a pattern of at most 500 bytes")
		}
		binds = binds || bindsOwner(claim, pattern)
	}
	if !binds {
		return bad("one claim must say whose jobs are trusted: %s, exactly, or %s, with a pattern that begins with "+
			"the owner, such as acme/*", strings.Join(exactClaims, ", "), strings.Join(pathClaims, ", "))
	}
	return nil
}

// bindsOwner reports whether a condition only holds for jobs of one owner: people who run jobs elsewhere at the issuer
// cannot meet it.
func bindsOwner(claim, pattern string) bool {
	literal, _, glob := strings.Cut(pattern, "*")
	if !glob {
		return slices.Contains(exactClaims, claim) || slices.Contains(pathClaims, claim)
	}
	owner := strings.IndexByte(literal, '/')
	return slices.Contains(pathClaims, claim) && owner > 0 && literal[owner-1] != ':'
}

// AddTrust lets jobs act in a project. target is where their role holds; the sender must be allowed to do there all
// that the role allows.
func (s *Service) AddTrust(ctx context.Context, t access.Trust, target access.Target) (access.Trust, error) {
	if err := s.needEnabled(); err != nil {
		return t, err
	}
	audit.Subject(ctx, "the trust "+t.Name)
	sender := access.Of(ctx)
	t.ID, t.Created, t.By = uuid.New(), s.Now().Truncate(time.Microsecond), sender.Name
	if err := s.checkTrust(ctx, &t); err != nil {
		return t, err
	}
	roles, err := s.People.Roles(ctx)
	if err != nil {
		return t, err
	}
	i := slices.IndexFunc(roles, func(r access.Role) bool { return r.Name == t.Role })
	if i < 0 {
		return t, fault.New("tokens.AddTrust", fault.Invalid, fmt.Sprintf("there is no role %q", t.Role))
	}
	if verb, lacks := sender.Lacks(roles[i], target); lacks {
		return t, fault.New("tokens.AddTrust", fault.Forbidden, fmt.Sprintf(
			"the role %s allows %s there, which you may not do yourself", t.Role, verb))
	}
	present, err := s.Store.Trusts(ctx, t.Project)
	if err != nil {
		return t, err
	}
	if len(present) >= maxTrusts {
		return t, fault.New("tokens.AddTrust", fault.Conflict,
			fmt.Sprintf("a project has at most %d trusts", maxTrusts))
	}
	if err := s.Store.AddTrust(ctx, t); err != nil {
		return t, err
	}
	audit.Change(ctx, nil, map[string]any{
		"id": t.ID, "issuer": t.Issuer, "audience": t.Audience, "claims": t.Claims, "role": t.Role,
		"environment": t.Environment, "lifetime": t.Lifetime.String(),
	})
	return t, nil
}

// Trusts lists the trusts of a project by name.
func (s *Service) Trusts(ctx context.Context, project uuid.UUID) ([]access.Trust, error) {
	return s.Store.Trusts(ctx, project)
}

// DeleteTrust ends a trust, and the tokens that jobs got by it.
func (s *Service) DeleteTrust(ctx context.Context, project, id uuid.UUID) error {
	audit.Subject(ctx, "the trust "+id.String())
	err := s.Store.DeleteTrust(ctx, project, id)
	s.known.forget()
	if fault.Is(err, fault.NotFound) {
		return fault.New("tokens.DeleteTrust", fault.NotFound, "the project has no such trust")
	}
	return err
}

// Exchanged is what a job gets for its identity token.
type Exchanged struct {
	Text    string
	Expires time.Time
	Trust   access.Trust
}

// Exchange returns a token of this server for the identity token of a CI job. name says which trust is meant, for an
// identity token that several would accept; it may be empty.
//
// Anybody may call this. A token of an issuer that no project trusts is turned away before anything is fetched.
func (s *Service) Exchange(ctx context.Context, identity, name string) (Exchanged, error) {
	if err := s.needEnabled(); err != nil {
		return Exchanged{}, err
	}
	unfit := func(why string) error {
		return fault.New("tokens.Exchange", fault.Forbidden, why).
			Hint("compare the claims of the token with `ordain trust list PROJECT`; the audience must be right, too")
	}
	if len(identity) > maxToken {
		return Exchanged{}, unfit("this is no identity token")
	}
	issuer, audiences, ok := addressee(identity)
	if !ok {
		return Exchanged{}, unfit("this is no identity token")
	}
	trusts, err := s.Store.TrustsOf(ctx, issuer)
	if err != nil {
		return Exchanged{}, err
	}
	trusts = slices.DeleteFunc(trusts, func(t access.Trust) bool {
		return !slices.Contains(audiences, t.Audience) || name != "" && t.Name != name && t.ID.String() != name
	})
	// One answer for all that does not fit: a stranger must not learn whom projects trust.
	nobody := unfit("no project of this server trusts this token")
	if len(trusts) == 0 {
		return Exchanged{}, nobody
	}
	verified := map[string]map[string]any{} // claims by audience; nil: the token is wrong
	var fit []access.Trust
	for _, t := range trusts {
		claims, done := verified[t.Audience]
		if !done {
			if claims, err = s.identityClaims(ctx, identity, t); err != nil {
				if fault.Is(err, fault.Unavailable) {
					s.Logger.Warn("the keys of an issuer cannot be read", "issuer", t.Issuer, "error", err)
				}
				claims = nil
			}
			verified[t.Audience] = claims
		}
		if claims != nil && meets(claims, t.Claims) {
			fit = append(fit, t)
		}
	}
	switch {
	case len(fit) == 0:
		return Exchanged{}, nobody
	case len(fit) > 1:
		return Exchanged{}, fault.New("tokens.Exchange", fault.Conflict,
			fmt.Sprintf("%d trusts accept this token", len(fit))).Hint("say which one is meant: its name or its id")
	}
	return s.issue(ctx, fit[0], verified[fit[0].Audience])
}

func (s *Service) issue(ctx context.Context, t access.Trust, claims map[string]any) (Exchanged, error) {
	now := s.Now()
	text := newText(jobPrefix)
	job := access.JobToken{ID: uuid.New(), Trust: t.ID, Name: jobName(claims), Expires: now.Add(t.Lifetime)}
	if err := s.Store.AddJobToken(ctx, job, hashOf(text)); err != nil {
		return Exchanged{}, err
	}
	if dueAt(t.LastUsed, now, func() error { return nil }) != nil {
		if err := s.Store.UsedTrust(ctx, t.ID, now); err != nil {
			s.Logger.Warn("cannot note that a trust was used", "trust", t.ID, "error", err)
		}
	}
	audit.As(ctx, access.Principal{Kind: access.Job, Name: job.Name, Credential: job.ID.String()})
	audit.OnProject(ctx, intent.Project{ID: t.Project})
	audit.Subject(ctx, "the trust "+t.Name)
	audit.Change(ctx, nil, map[string]any{"id": job.ID, "trust": t.ID, "expires": job.Expires})
	s.Logger.Info("a job got a token", "trust", t.Name, "project", t.Project, "job", job.Name, "token", job.ID)
	return Exchanged{Text: text, Expires: job.Expires, Trust: t}, nil
}

// identityClaims returns the claims of an identity token whose signature, issuer, audience and times are right.
func (s *Service) identityClaims(ctx context.Context, identity string, t access.Trust) (map[string]any, error) {
	verifier, err := s.issuers.verifier(t.Issuer, t.Audience, s.Now)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, issuerTimeout)
	defer cancel()
	token, err := verifier.Verify(ctx, identity)
	if err != nil {
		return nil, err
	}
	claims := map[string]any{}
	return claims, token.Claims(&claims)
}

// meets reports whether claims meet all conditions. Values that are no texts are compared as they are printed.
func meets(claims map[string]any, conditions map[string]string) bool {
	for name, pattern := range conditions {
		var value string
		switch v := claims[name].(type) {
		case string:
			value = v
		case bool, float64:
			value = fmt.Sprint(v)
		default:
			return false
		}
		if !matches(pattern, value) {
			return false
		}
	}
	return len(conditions) > 0
}

// matches reports whether a value has a pattern, in which * stands for any text without a slash, and ** for any text.
func matches(pattern, value string) bool {
	if !strings.Contains(pattern, "*") {
		return pattern == value
	}
	expression := regexp.QuoteMeta(pattern)
	expression = strings.ReplaceAll(expression, `\*\*`, `(?s:.*)`)
	expression = strings.ReplaceAll(expression, `\*`, `[^/]*`)
	ok, err := regexp.MatchString(`^(?:`+expression+`)\z`, value)
	return err == nil && ok
}

// jobName returns what identity tokens say of a job, for the audit trail.
func jobName(claims map[string]any) string {
	text, _ := claims["sub"].(string)
	if len(text) > 300 {
		text = text[:300]
	}
	return "the job " + strings.ToValidUTF8(text, "?")
}

// byJob returns what a job may do that got a token.
func (s *Service) byJob(ctx context.Context, text string, now time.Time) (proof, error) {
	if !wellFormed(text, jobPrefix) {
		return proof{}, refused()
	}
	job, err := s.Store.JobToken(ctx, hashOf(text), now)
	if fault.Is(err, fault.NotFound) {
		return proof{}, refused()
	}
	if err != nil {
		return proof{}, err
	}
	t, err := s.Store.Trust(ctx, job.Trust)
	if fault.Is(err, fault.NotFound) {
		return proof{}, refused()
	}
	if err != nil {
		return proof{}, err
	}
	p := access.Principal{Kind: access.Job, Name: job.Name, Credential: job.ID.String()}
	// Besides its own role, a trust has those that somebody gave to its id.
	if p.Bindings, err = s.People.Bindings(ctx, uuid.Nil, t.ID); err != nil {
		return proof{}, err
	}
	roles, err := s.People.Roles(ctx)
	if err != nil {
		return proof{}, err
	}
	scope := access.Scope{Project: t.Project}
	if t.Environment != uuid.Nil {
		scope = access.Scope{Environment: t.Environment}
	}
	for _, r := range roles {
		if r.Name == t.Role {
			p.Bindings = append(p.Bindings, access.Binding{Role: r, Scope: scope, Through: "the trust " + t.Name})
		}
	}
	return proof{principal: p, expires: job.Expires}, nil
}
