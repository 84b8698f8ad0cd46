package pep440

import (
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Line is a line of a requirements file. Its options are an allow-list: the author of a
// project must not be able to read files of this machine through them.
type Line struct {
	// Include is the file that -r or -c names; Constraint is true for -c.
	Include    string
	Constraint bool
	// Text is the requirement, if the line includes nothing.
	Text string
	// Hashes are the --hash options of the requirement, as written.
	Hashes []string
}

// schemes are those of addresses from which packages may come.
var schemes = []string{"http", "https", "git+http", "git+https", "git+ssh"}

var (
	includes = regexp.MustCompile(`^(?:(-r|-c)[ \t]*|(--requirement|--constraint)(?:[ \t]+|=))(.+)$`)
	option   = regexp.MustCompile(`^--?[A-Za-z][A-Za-z0-9-]{0,40}`)
	hash     = regexp.MustCompile(`[ \t]+--hash(?:[ \t]+|=)(\S+)$`)
	variable = regexp.MustCompile(`\$\{[^}]*\}`)
	bare     = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:`)
)

// ParseLine reads a line of a requirements file, without comments and with continued
// lines joined. local also allows addresses of files on this machine. Errors name the
// option that is not allowed, and no value.
func ParseLine(text string, local bool) (Line, error) {
	text = strings.TrimSpace(text)
	if variable.MatchString(text) {
		return Line{}, fmt.Errorf("it uses an environment variable, which is not allowed here")
	}
	if m := includes.FindStringSubmatch(text); m != nil {
		return Line{Include: strings.TrimSpace(m[3]), Constraint: m[1] == "-c" || m[2] == "--constraint"}, nil
	}
	if strings.HasPrefix(text, "-") {
		name := option.FindString(text)
		if name == "" {
			name = "-"
		}
		return Line{}, fmt.Errorf("the option %s is not allowed here", name)
	}
	var line Line
	for m := hash.FindStringSubmatchIndex(text); m != nil; m = hash.FindStringSubmatchIndex(text) {
		line.Hashes = append(line.Hashes, "--hash="+text[m[2]:m[3]])
		text = strings.TrimSpace(text[:m[0]])
	}
	slices.Reverse(line.Hashes)
	if at := strings.Index(text, " --"); at >= 0 {
		return Line{}, fmt.Errorf("the option %s is not allowed here", option.FindString(text[at+1:]))
	}
	line.Text = text
	return line, checkRequirement(text, local)
}

// String returns the line as an installer reads it.
func (l Line) String() string {
	return strings.Join(append([]string{l.Text}, l.Hashes...), " ")
}

// checkRequirement checks that a text is a requirement that leads to a package index or
// to an address on the network.
func checkRequirement(text string, local bool) error {
	if bare.MatchString(text) {
		address, _, _ := strings.Cut(text, " ")
		return CheckAddress(address, local)
	}
	if strings.ContainsAny(text[:min(1, len(text))], "./~\\") {
		return fmt.Errorf("it is a path, and packages do not come from paths")
	}
	r, err := ParseRequirement(text)
	if err != nil {
		return fmt.Errorf("it is not a requirement: %w", err)
	}
	switch path.Ext(r.Name) {
	case ".whl", ".zip", ".gz", ".tgz", ".bz2", ".xz", ".tar":
		return fmt.Errorf("it is a path, and packages do not come from paths")
	}
	if r.URL != "" {
		return CheckAddress(r.URL, local)
	}
	return nil
}

// CheckAddress checks that the address of a package or an index leads to the network, or
// if local is true, to a file.
func CheckAddress(address string, local bool) error {
	u, err := url.Parse(address)
	if err != nil || strings.ContainsFunc(address, func(r rune) bool { return r <= ' ' }) {
		return fmt.Errorf("its address cannot be read")
	}
	switch {
	case slices.Contains(schemes, strings.ToLower(u.Scheme)) && u.Host != "":
		return nil
	case u.Scheme == "file" && local:
		return nil
	case u.Scheme == "file" || u.Scheme == "git+file" || u.Scheme == "":
		return fmt.Errorf("it leads to a file or folder of this machine, which is not allowed here")
	}
	return fmt.Errorf("addresses must begin with one of %s", strings.Join(schemes, ":// ")+"://")
}
