package secret

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"ordain.dev/ordain/internal/fault"
)

const (
	keySize    = 32 // bytes: AES-256
	keyHeader  = "ordain-key-1 "
	sealFormat = 1
	domain     = "ordain secret 1\x00" // separates these seals from other uses of the key
)

// Key seals and opens secrets. It is safe for concurrent use.
type Key struct {
	aead cipher.AEAD
	text string // as in the file
}

// OpenKey reads the key file, or makes one with a new random key if there is none.
// If several processes make it at once, one wins and all use its key. OpenKey
// refuses a file that anybody but its owner may read or write.
func OpenKey(path string) (*Key, error) {
	raw, err := readKey(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := createKey(path); err != nil {
			return nil, err
		}
		raw, err = readKey(path)
	}
	if err != nil {
		var f *fault.Error
		if errors.As(err, &f) {
			return nil, err
		}
		return nil, fault.Wrap("secret.OpenKey", fault.Unavailable, err).
			Say("the key file cannot be read").
			Hint("the user that runs the server must own " + path)
	}
	block, err := aes.NewCipher(raw)
	if err != nil {
		return nil, fault.Wrap("secret.OpenKey", fault.Internal, err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fault.Wrap("secret.OpenKey", fault.Internal, err)
	}
	return &Key{aead: aead, text: base64.StdEncoding.EncodeToString(raw)}, nil
}

// Fingerprint identifies the key, and reveals nothing of it.
func (k *Key) Fingerprint() string {
	sum := sha256.Sum256([]byte("ordain fingerprint 1\x00" + k.text))
	return hex.EncodeToString(sum[:16])
}

func readKey(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fault.New("secret.OpenKey", fault.Invalid, path+" is not a regular file").
			Hint("the key file must be a plain file that only the server reads")
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, fault.New("secret.OpenKey", fault.Forbidden,
			fmt.Sprintf("the key file %s may be read or written by others (mode %04o)", path, mode)).
			Hint("chmod 600 " + path + "; if strangers had access to it, replace the credentials that it protects")
	}
	// The buffer is larger than a key file, so that a longer file is noticed.
	text := make([]byte, 256)
	n, err := f.Read(text)
	if err != nil && n > 0 {
		return nil, err
	}
	rest, ok := bytes.CutPrefix(bytes.TrimSpace(text[:n]), []byte(keyHeader))
	raw, err := base64.StdEncoding.DecodeString(string(rest))
	if !ok || err != nil || len(raw) != keySize {
		return nil, fault.New("secret.OpenKey", fault.Invalid, path+" does not hold a key").
			Hint("restore it from your backup; " +
				"without it the stored credentials cannot be opened and must be set again")
	}
	return raw, nil
}

// createKey writes the file under a temporary name and then links it to its final
// one, so that no reader sees half a key. Linking fails if another process was faster.
func createKey(path string) error {
	fail := func(err error) error {
		return fault.Wrap("secret.OpenKey", fault.Unavailable, err).
			Say("the key file cannot be made").
			Hint("the server must be able to write to " + filepath.Dir(path))
	}
	raw := make([]byte, keySize)
	if _, err := rand.Read(raw); err != nil {
		return fail(err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".key-*") // mode 0600
	if err != nil {
		return fail(err)
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(keyHeader + base64.StdEncoding.EncodeToString(raw) + "\n")
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Link(f.Name(), path)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fail(err)
	}
	// The key must survive a power failure, because the secrets that it seals do.
	if dir, err := os.Open(filepath.Dir(path)); err == nil {
		_ = dir.Sync()
		dir.Close()
	}
	return nil
}

// Redactor returns a redactor that masks the key, as it is written in its file, and
// these secrets.
func (k *Key) Redactor(secrets ...string) *Redactor { return NewRedactor(append(secrets, k.text)...) }

// Seal encrypts a secret and binds it to its context, such as the environment
// and the name of the secret.
func (k *Key) Seal(plain []byte, context string) ([]byte, error) {
	sealed := make([]byte, 1+k.aead.NonceSize(), 1+k.aead.NonceSize()+len(plain)+k.aead.Overhead())
	sealed[0] = sealFormat
	nonce := sealed[1:]
	if _, err := rand.Read(nonce); err != nil {
		return nil, fault.Wrap("secret.Seal", fault.Internal, err)
	}
	return k.aead.Seal(sealed, nonce, plain, []byte(domain+context)), nil
}

// Open returns the secret that Seal encrypted, if key and context are the same and
// the sealed text is undamaged.
func (k *Key) Open(sealed []byte, context string) ([]byte, error) {
	size := 1 + k.aead.NonceSize()
	if len(sealed) < size+k.aead.Overhead() || sealed[0] != sealFormat {
		return nil, fault.New("secret.Open", fault.Internal, "a stored secret is damaged").
			Hint("set it again")
	}
	plain, err := k.aead.Open(nil, sealed[1:size], sealed[size:], []byte(domain+context))
	if err != nil {
		return nil, fault.New("secret.Open", fault.Internal, "a stored secret cannot be opened with this server's key").
			Hint("was the key file replaced? Restore it from your backup, or set the secret again")
	}
	return plain, nil
}
