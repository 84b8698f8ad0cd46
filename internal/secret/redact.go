package secret

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"slices"
	"strings"
)

// Mask replaces secrets.
const Mask = "*****"

// minEncoded is the length of the shortest secret of which encoded forms are
// masked too. Shorter encodings would match innocent text.
const minEncoded = 6

// Redactor masks the secrets that it knows, also in the forms in which they often
// appear: base64 (even within a longer encoded text, as in a header of basic
// authentication), URL and JSON encoding, and the single lines of a secret of
// several. A nil Redactor masks nothing. It is safe for concurrent use.
type Redactor struct {
	forms [][]byte // longest first
	first [256]bool
}

// NewRedactor makes a redactor of these secrets. It ignores empty ones.
func NewRedactor(secrets ...string) *Redactor {
	seen := map[string]bool{}
	for _, s := range secrets {
		for _, form := range formsOf(s) {
			seen[form] = true
		}
	}
	r := &Redactor{}
	for form := range seen {
		r.forms = append(r.forms, []byte(form))
		r.first[form[0]] = true
	}
	slices.SortFunc(r.forms, func(a, b []byte) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), bytes.Compare(a, b))
	})
	return r
}

func formsOf(s string) []string {
	if s == "" {
		return nil
	}
	forms := []string{s}
	if len(s) < minEncoded {
		return forms
	}
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		forms = append(forms, enc.EncodeToString([]byte(s)))
		// A secret within a longer text has one of three encodings, depending on
		// its position. The characters that depend on its neighbours are left out.
		for shift := range 3 {
			code := enc.WithPadding(base64.NoPadding).EncodeToString(append(make([]byte, shift), s...))
			start := (shift*8 + 5) / 6
			end := (shift + len(s)) * 8 / 6
			if end-start >= minEncoded {
				forms = append(forms, code[start:end])
			}
		}
	}
	query, path := url.QueryEscape(s), url.PathEscape(s)
	forms = append(forms, query, path, lowerEscapes(query), lowerEscapes(path))
	if text, err := json.Marshal(s); err == nil {
		forms = append(forms, string(text[1:len(text)-1]))
	}
	if strings.Contains(s, "\n") {
		for line := range strings.Lines(s) {
			if line = strings.TrimSpace(line); len(line) >= minEncoded {
				forms = append(forms, line)
			}
		}
	}
	return forms
}

// lowerEscapes writes %2F as %2f, because both are in use.
func lowerEscapes(s string) string {
	b := []byte(s)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:i+3], bytes.ToLower(b[i+1:i+3]))
		}
	}
	return string(b)
}

// Text masks the secrets in a text.
func (r *Redactor) Text(s string) string {
	if r == nil || len(r.forms) == 0 {
		return s
	}
	out, _ := r.mask(nil, []byte(s), true)
	return string(out)
}

// Error returns an error with a masked text for which errors.Is and errors.As work as for err.
func (r *Redactor) Error(err error) error {
	if err == nil || r == nil {
		return err
	}
	text := err.Error()
	masked := r.Text(text)
	if masked == text {
		return err
	}
	return &maskedError{text: masked, cause: err}
}

type maskedError struct {
	text  string
	cause error
}

func (e *maskedError) Error() string { return e.text }

// Is and As search the cause. There is no Unwrap, because the text of the cause is not masked.
func (e *maskedError) Is(target error) bool { return errors.Is(e.cause, target) }
func (e *maskedError) As(target any) bool   { return errors.As(e.cause, target) }

// mask appends the masked text to out and returns how much of text it used. Unless
// final is true, it leaves an end that may be the beginning of a secret.
func (r *Redactor) mask(out, text []byte, final bool) ([]byte, int) {
	plain := 0 // there is nothing to mask from here to i
	i := 0
scan:
	for i < len(text) {
		if !r.first[text[i]] {
			i++
			continue
		}
		rest := text[i:]
		for _, form := range r.forms { // longest first
			if bytes.HasPrefix(rest, form) {
				out = append(append(out, text[plain:i]...), Mask...)
				i += len(form)
				plain = i
				continue scan
			}
			if !final && len(rest) < len(form) && bytes.HasPrefix(form, rest) {
				break scan
			}
		}
		i++
	}
	return append(out, text[plain:i]...), i
}

// Writer returns a writer that masks secrets on the way to w, even those that are
// split over several writes. It holds back what may be the beginning of a secret
// until the next write or Close, which does not close w. The writer is not safe
// for concurrent use.
func (r *Redactor) Writer(w io.Writer) io.WriteCloser {
	return &writer{redactor: r, to: w}
}

type writer struct {
	redactor *Redactor
	to       io.Writer
	pending  []byte
}

func (w *writer) Write(p []byte) (int, error) {
	if w.redactor == nil || len(w.redactor.forms) == 0 {
		return w.to.Write(p)
	}
	w.pending = append(w.pending, p...)
	if err := w.flush(false); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (w *writer) flush(final bool) error {
	out, used := w.redactor.mask(nil, w.pending, final)
	w.pending = append(w.pending[:0], w.pending[used:]...)
	if len(out) == 0 {
		return nil
	}
	_, err := w.to.Write(out)
	return err
}

func (w *writer) Close() error {
	if len(w.pending) == 0 {
		return nil
	}
	return w.flush(true)
}
