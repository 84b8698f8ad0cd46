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

// Mask stands where a secret was.
const Mask = "*****"

// Secrets shorter than this are masked as they are, not in encoded forms:
// their encodings are so short that they would hit innocent text.
const minEncoded = 6

// Redactor masks secrets that it was given, and the forms in which they often
// appear: base64 (also inside a longer text, as in a basic authentication
// header), URL and JSON encoding, and the lines of a secret with several. A nil
// Redactor masks nothing. It is safe for concurrent use.
type Redactor struct {
	forms [][]byte // longest first
	first [256]bool
}

// NewRedactor makes a redactor; empty secrets are ignored.
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
		// The same bytes at the three places they can have in a longer text.
		// Characters that depend on the neighbours are left out.
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

// lowerEscapes writes %2F as %2f: both are in use.
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

// Error gives an error that reads masked and still unwraps to err.
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

// Is and As look into the cause without handing it out: its text is not masked.
func (e *maskedError) Is(target error) bool { return errors.Is(e.cause, target) }
func (e *maskedError) As(target any) bool   { return errors.As(e.cause, target) }

// mask appends the masked text to out. Unless final, it keeps back an end that
// may be the beginning of a secret, and says how much of text it used.
func (r *Redactor) mask(out, text []byte, final bool) ([]byte, int) {
	plain := 0 // from here to i nothing is to be masked
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

// Writer gives a writer that masks secrets on the way to w, also when one is
// spread over several writes. What may be the beginning of a secret is kept
// back until more is written, or until Close, which does not close w. It is
// not safe for concurrent use.
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
