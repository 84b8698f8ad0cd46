package gitsync

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"ordain.dev/ordain/gitsync/signers"
	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/internal/intent"
)

const opVerify = "gitsync.Verify"

// What GitPolicy.Verify wants to be signed. With any other value, nothing has to be.
const (
	VerifyTip  = "tip"  // the commit
	VerifyAll  = "all"  // the commit, and every commit on the way to it from the one that is deployed
	VerifyTags = "tags" // the annotated tag that names the commit
)

// Verify checks a commit that was fetched against a policy. It returns who
// signed the commit, or no signer when the policy asks for no signature. A
// commit that may not be deployed gives an *intent.Refusal. A policy whose
// Signers cannot be read is an Invalid fault; see signers.Parse.
func (s *Syncer) Verify(
	ctx context.Context,
	src Source,
	rev intent.Revision,
	policy intent.GitPolicy,
) (intent.Signer, error) {
	p, err := src.locate()
	if err != nil {
		return intent.Signer{}, err
	}
	allowed, err := signers.Parse(policy.Signers)
	if err != nil {
		return intent.Signer{}, fault.Wrap(opVerify, fault.Invalid, err).Say("the setting git_allowed_signers")
	}
	if base := plumbing.NewHash(policy.Base); policy.Base != "" && p.depth > 0 && !s.has(p, base) {
		// The mirror does not reach back to what is deployed: it was made by another process than the one that
		// fetched that, or anew. Only the whole history can tell.
		src.Depth = 0
		if _, _, err := s.Fetch(ctx, src); err != nil {
			return intent.Signer{}, err
		}
		if p, err = src.locate(); err != nil {
			return intent.Signer{}, err
		}
	}
	who, err := withMirror(s.mirrorDir(p), func(m *mirror) (intent.Signer, error) {
		v := verification{
			ctx: ctx, m: m, p: p, rev: rev, policy: policy, signers: allowed, commit: plumbing.NewHash(rev.Commit),
		}
		return v.check()
	})
	if refusal := (*intent.Refusal)(nil); err != nil && !errors.As(err, &refusal) {
		return who, fault.Wrap(opVerify, fault.Unavailable, err).Say("the history of " + p.shown + " cannot be read")
	}
	return who, err
}

// verification is one run of Verify.
type verification struct {
	ctx     context.Context
	m       *mirror
	p       place
	rev     intent.Revision
	policy  intent.GitPolicy
	signers *signers.Set
	commit  plumbing.Hash
}

func (v *verification) refuse(kind intent.GitKind, message, advice string) error {
	return &intent.Refusal{Kind: kind, Commit: v.rev.Commit, Message: message, Advice: advice}
}

// check checks the commit, and returns who signed it if the policy asks for a signature.
func (v *verification) check() (who intent.Signer, err error) {
	if !v.m.has(v.commit) {
		return who, fmt.Errorf("the mirror does not have the commit %s", v.rev.Short())
	}
	if err := v.ref(); err != nil {
		return who, err
	}
	fresh, err := v.history()
	if err != nil {
		return who, err
	}
	switch v.policy.Verify {
	case VerifyTip, VerifyAll:
		for i := len(fresh) - 1; i >= 0; i-- {
			if _, err := v.signed(fresh[i].Hash); err != nil {
				return who, err
			}
		}
		return v.signed(v.commit)
	case VerifyTags:
		return v.signedTag()
	}
	return who, nil
}

// names returns the branches and tags that name the commit, the most likely first.
func (v *verification) names() []string {
	var names []string
	for _, full := range []string{"refs/heads/" + v.rev.Branch, "refs/tags/" + v.rev.Branch, v.rev.Branch} {
		if h, ok := v.m.refs.refs[full]; ok {
			if c, err := v.m.peel(h); err == nil && c.Hash == v.commit {
				names = append(names, full)
			}
		}
	}
	return names
}

// ref checks the branch or tag against the policy. A commit that was chosen by its
// hash must be in the history of a branch or tag that may be deployed.
func (v *verification) ref() error {
	if len(v.policy.Refs) == 0 {
		return nil
	}
	for _, full := range v.names() {
		if intent.MatchRef(v.policy.Refs, full) {
			return nil
		}
	}
	for _, full := range v.m.refs.names() {
		if !intent.MatchRef(v.policy.Refs, full) {
			continue
		}
		tip, err := v.m.peel(v.m.refs.refs[full])
		if err != nil {
			continue
		}
		if _, inside, err := v.m.since(v.ctx, tip.Hash, v.commit); err == nil && inside {
			return nil
		}
	}
	return v.refuse(
		intent.GitProtected,
		fmt.Sprintf("%s %q is in no branch or tag that may be deployed: %s", v.rev.Short(), printable(v.rev.Branch),
			strings.Join(v.policy.Refs, ", ")),
		"merge it there, or change the setting git_protected_refs",
	)
}

// history refuses a commit that does not descend from the deployed one. It returns the
// commits that must be signed in addition to the last.
func (v *verification) history() ([]*object.Commit, error) {
	if v.policy.Base == "" || v.policy.Base == v.rev.Commit {
		return nil, nil
	}
	all := v.policy.Verify == VerifyAll
	if v.policy.Rewrites && !all {
		return nil, nil
	}
	fresh, descends, err := v.m.since(v.ctx, v.commit, plumbing.NewHash(v.policy.Base))
	if err != nil {
		return nil, err
	}
	if !descends && !v.policy.Rewrites {
		return nil, v.refuse(
			intent.GitRewritten,
			fmt.Sprintf("%s %q does not descend from %s, which is deployed: "+
				"the history was rewritten (force-pushed), or another branch is followed now",
				v.rev.Short(), v.rev.Subject, short(v.policy.Base)),
			"accept it, if that was meant: ordain git accept ENVIRONMENT "+v.rev.Short()+" --reason …",
		)
	}
	if !all {
		return nil, nil
	}
	return fresh, nil
}

// signed returns who signed a commit, or a refusal.
func (v *verification) signed(h plumbing.Hash) (intent.Signer, error) {
	raw, err := v.m.raw(plumbing.CommitObject, h)
	if err != nil {
		return intent.Signer{}, err
	}
	c, err := object.GetCommit(v.m.store, h)
	if err != nil {
		return intent.Signer{}, err
	}
	payload, signature, err := signers.Split(raw)
	if err != nil {
		return intent.Signer{}, v.unsigned("commit "+short(h.String()), err)
	}
	who, err := v.signers.Verify(payload, signature, c.Committer.When)
	if err != nil {
		return intent.Signer{}, v.unsigned(fmt.Sprintf("commit %s by %s", short(h.String()), printable(c.Author.Name)),
			err)
	}
	return intent.Signer(who), nil
}

// signedTag returns who signed the tag that names the commit, or a refusal. The name
// inside the tag must match, so that a signed tag cannot be passed off as another one.
func (v *verification) signedTag() (intent.Signer, error) {
	var last error
	for _, full := range v.names() {
		name, isTag := strings.CutPrefix(full, "refs/tags/")
		if !isTag {
			continue
		}
		raw, err := v.m.raw(plumbing.TagObject, v.m.refs.refs[full])
		if errors.Is(err, plumbing.ErrObjectNotFound) {
			last = v.unsigned("the tag "+printable(name), errors.New("it is not annotated, so it cannot be signed"))
			continue
		}
		if err != nil {
			return intent.Signer{}, err
		}
		t, err := object.GetTag(v.m.store, v.m.refs.refs[full])
		if err != nil {
			return intent.Signer{}, err
		}
		switch {
		case t.Name != name:
			last = v.unsigned("the tag "+printable(name),
				fmt.Errorf("it was made as %q, and is passed off as another", printable(t.Name)))
			continue
		case t.TargetType != plumbing.CommitObject || t.Target != v.commit:
			last = v.unsigned("the tag "+printable(name), errors.New("it does not name the commit itself"))
			continue
		}
		payload, signature := signers.SplitTag(raw)
		who, err := v.signers.Verify(payload, signature, t.Tagger.When)
		if err == nil {
			return intent.Signer(who), nil
		}
		last = v.unsigned("the tag "+printable(name), err)
	}
	if last == nil {
		last = v.refuse(
			intent.GitUnsigned,
			fmt.Sprintf("%s is named by no tag, and git_verify asks for a signed tag", v.rev.Short()),
			"let the environment follow a tag, such as semver:1.x, or change the setting git_verify",
		)
	}
	return intent.Signer{}, last
}

// unsigned returns the refusal of a commit or tag without a valid signature.
func (v *verification) unsigned(what string, why error) error {
	return v.refuse(intent.GitUnsigned, fmt.Sprintf("%s may not be deployed: %v", what, why),
		"sign it with a key that git_allowed_signers names, or add the key there")
}

// raw returns the content of an object.
func (m *mirror) raw(kind plumbing.ObjectType, h plumbing.Hash) ([]byte, error) {
	o, err := m.store.EncodedObject(kind, h)
	if err != nil {
		return nil, err
	}
	r, err := o.Reader()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	const most = 8 << 20
	if o.Size() > most {
		return nil, fmt.Errorf("object %s is larger than %d MiB", short(h.String()), most>>20)
	}
	return io.ReadAll(r)
}
