package ca

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Certificates of provisioners have a scheme and an organisation that those of agents do not have. Their host is that
// of agents, because it is the only one that authorities may sign.
const (
	provisionerScheme       = "ordain-provisioner"
	provisionerOrganization = "Ordain provisioners"
)

// Provisioner is who a provisioner is.
type Provisioner struct {
	Project uuid.UUID
	Name    string
}

// URI returns the form in which the identity is in certificates.
func (p Provisioner) URI() *url.URL {
	path := "/" + p.Project.String() + "/"
	return &url.URL{Scheme: provisionerScheme, Host: host, Path: path + p.Name, RawPath: path + url.PathEscape(p.Name)}
}

func (p Provisioner) String() string {
	return "provisioner " + p.Name + " of project " + p.Project.String()
}

// isProvisioner reports whether anything in a certificate says that it is one of a provisioner.
func isProvisioner(c *x509.Certificate) bool {
	return slices.Contains(c.Subject.Organization, provisionerOrganization) ||
		slices.ContainsFunc(c.URIs, func(u *url.URL) bool { return u.Scheme == provisionerScheme })
}

// SignProvisioner makes the certificate that a request in PEM asks for. Only the key is taken from the request. after
// is the serial number of the certificate that it takes the place of; empty: none.
func (a *Authority) SignProvisioner(
	request string, who Provisioner, after string, now time.Time, lifetime time.Duration,
) (Issued, error) {
	subject := pkix.Name{
		CommonName: "Ordain provisioner", Organization: []string{provisionerOrganization}, SerialNumber: after,
	}
	return a.signClient(request, subject, who.URI(), now, lifetime)
}

// IdentifyProvisioner returns whom a certificate is of, its serial number, and that of the certificate that it takes
// the place of, if it is valid at a time.
func (a *Authority) IdentifyProvisioner(
	c *x509.Certificate, now time.Time,
) (who Provisioner, serial, after string, err error) {
	wrong := errors.New("the certificate has no identity of a provisioner; that of an agent does not do")
	if err := a.verify(c, now); err != nil && !errors.Is(err, ErrExpired) {
		return who, "", "", fmt.Errorf("the certificate is not one of this server's provisioners: %w", err)
	} else if err != nil && isProvisioner(c) {
		return who, "", "", err
	}
	if len(c.URIs) != 1 || !slices.Equal(c.Subject.Organization, []string{provisionerOrganization}) {
		return who, "", "", wrong
	}
	u := c.URIs[0]
	project, name, ok := strings.Cut(strings.TrimPrefix(u.EscapedPath(), "/"), "/")
	if u.Scheme != provisionerScheme || u.Host != host || !ok || strings.Contains(name, "/") {
		return who, "", "", wrong
	}
	if who.Project, err = uuid.Parse(project); err != nil {
		return Provisioner{}, "", "", wrong
	}
	if who.Name, err = url.PathUnescape(name); err != nil || who.Name == "" {
		return Provisioner{}, "", "", wrong
	}
	return who, hex.EncodeToString(c.SerialNumber.Bytes()), c.Subject.SerialNumber, nil
}
