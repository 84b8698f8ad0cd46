package task

// Paths of what comes before the desk, at a server that provisioners elsewhere reach.
const (
	JoinPath        = "/provisioner/v1/join"        // POST Join: 201 Joined; needs no certificate
	CertificatePath = "/provisioner/v1/certificate" // POST CertificateRequest: CertificateAnswer
)

// Limits of both.
const (
	MaxJoinBody = 64 << 10
	MaxRequest  = 16 << 10 // a certificate request in PEM
)

// Join asks for the identity that a token is for.
type Join struct {
	Token   string `json:"token"`
	Request string `json:"request"` // certificate request in PEM, with an ECDSA key on the curve P-256
}

// Joined is what a provisioner keeps of its joining, beside its key.
type Joined struct {
	Certificate string `json:"certificate"`  // in PEM
	CA          string `json:"ca,omitempty"` // in PEM; empty: the authorities of the machine
	Project     string `json:"project"`
	Name        string `json:"name"`
	URL         string `json:"url"`
}

// CertificateRequest asks for a certificate for another key. It takes the place of the present one when it is used for
// the first time; until then the present one counts.
type CertificateRequest struct {
	Request string `json:"request"`
}

// CertificateAnswer has it.
type CertificateAnswer struct {
	Certificate string `json:"certificate"`
}

// Reasons of refusals: why a token or a certificate does not count.
const (
	IsUnknown     = "unknown"     // the server does not know it
	IsUsed        = "used"        // the token has been used
	IsExpired     = "expired"     // the token or the certificate
	IsRevoked     = "revoked"     // the token or the provisioner
	IsReplaced    = "replaced"    // the provisioner has another certificate since
	NoCertificate = "certificate" // there is none, or not one of a provisioner
	IsBadRequest  = "request"     // the request is wrong
	IsBusy        = "busy"        // try again later
	IsUnavailable = "unavailable" // the server cannot tell now
)
