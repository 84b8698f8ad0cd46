package edge

import (
	"bytes"
	"net/http"
	"strconv"
	"sync"
)

// Body is a whole body that several requests get. It is compressed once for each encoding, for the first client that
// accepts it. It is safe for concurrent use.
type Body struct {
	plain []byte

	mu      sync.Mutex
	encoded map[string][]byte
}

// NewBody returns a body of these bytes, which nobody may change any more.
func NewBody(plain []byte) *Body { return &Body{plain: plain, encoded: map[string][]byte{}} }

// Serve writes the body as Compress would have it written.
func (b *Body) Serve(w http.ResponseWriter, r *http.Request) {
	body := b.plain
	accepts := accepted(r.Header.Values("Accept-Encoding"))
	for _, encoding := range []string{"zstd", "gzip"} {
		if accepts[encoding] && len(body) > minCompressed && r.Method != http.MethodHead {
			w.Header().Set("Content-Encoding", encoding)
			body = b.in(encoding)
			break
		}
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // it fails when the client has gone away
}

func (b *Body) in(encoding string) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.encoded[encoding] == nil {
		var to bytes.Buffer
		enc := encoders[encoding].Get().(encoder)
		enc.Reset(&to)
		_, _ = enc.Write(b.plain) // a buffer takes everything
		_ = enc.Close()
		encoders[encoding].Put(enc)
		b.encoded[encoding] = to.Bytes()
	}
	return b.encoded[encoding]
}
