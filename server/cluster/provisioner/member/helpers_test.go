package member_test

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"
)

// keyPEM encodes a private key.
func keyPEM(key crypto.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), err
}

func parse(pair []byte) (tls.Certificate, error) { return tls.X509KeyPair(pair, pair) }

// copyOf copies the folder of a provisioner.
func copyOf(t *testing.T, folder string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	must(t, os.CopyFS(to, os.DirFS(folder)))
	return to
}
