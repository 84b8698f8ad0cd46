package edge

import (
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// minCompressed is the size from which a body is compressed: a smaller one fits into a packet anyway.
const minCompressed = 1 << 10

// Compress sends bodies of more than 1 kB in zstd or gzip to clients that accept it, and event streams in gzip without
// a state between two writes, so that an open stream keeps no memory for it. Pictures and parts of files stay as they
// are. Doors put it around their handlers.
func Compress(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Vary", "Accept-Encoding")
		accepts := accepted(r.Header.Values("Accept-Encoding"))
		if !accepts["zstd"] && !accepts["gzip"] || r.Method == http.MethodHead {
			next.ServeHTTP(w, r)
			return
		}
		cw := &compressor{ResponseWriter: w, accepts: accepts}
		defer cw.close()
		next.ServeHTTP(cw, r)
	})
}

// accepted returns the names of the encodings that a client accepts, in lower case.
func accepted(values []string) map[string]bool {
	found := map[string]bool{}
	for _, value := range values {
		for one := range strings.SplitSeq(value, ",") {
			name, q, _ := strings.Cut(strings.TrimSpace(one), ";")
			q = strings.ReplaceAll(q, " ", "")
			refused := q == "q=0" || q == "q=0.0" || q == "q=0.00" || q == "q=0.000"
			found[strings.ToLower(strings.TrimSpace(name))] = !refused
		}
	}
	return found
}

// encoder is a gzip or zstd writer.
type encoder interface {
	io.WriteCloser
	Flush() error
	Reset(io.Writer)
}

// streamed names the encoder of event streams.
const streamed = "gzip for streams"

var encoders = map[string]*sync.Pool{
	streamed: {New: func() any {
		z, err := gzip.NewWriterLevel(io.Discard, gzip.StatelessCompression)
		if err != nil {
			panic("edge: the level of gzip: " + err.Error())
		}
		return z
	}},
	"gzip": {New: func() any { return gzip.NewWriter(io.Discard) }},
	"zstd": {New: func() any {
		// A window of 1 MiB is what browsers accept, and one goroutine is enough for an answer.
		e, err := zstd.NewWriter(io.Discard, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20),
			zstd.WithEncoderLevel(zstd.SpeedFastest))
		if err != nil {
			panic("edge: the options of zstd: " + err.Error())
		}
		return e
	}},
}

// compressor holds the beginning of a body back until it knows whether to compress it: when more than minCompressed
// bytes have come, at a Flush, or at the end.
type compressor struct {
	http.ResponseWriter
	accepts map[string]bool
	status  int
	held    []byte
	decided bool
	pool    *sync.Pool // of enc
	enc     encoder
}

// Unwrap lets an http.ResponseController reach the deadlines of the connection.
func (w *compressor) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *compressor) WriteHeader(status int) {
	if status >= 100 && status < 200 { // more headers follow
		w.ResponseWriter.WriteHeader(status)
		return
	}
	if w.status == 0 {
		w.status = status
	}
}

func (w *compressor) Write(p []byte) (int, error) {
	if w.decided {
		return w.pass(p)
	}
	w.held = append(w.held, p...)
	if len(w.held) <= minCompressed && w.compressible() {
		return len(p), nil
	}
	return len(p), w.decide(w.compressible())
}

// decide sends the header and what was held back, compressed or not.
func (w *compressor) decide(compress bool) error {
	w.decided = true
	h := w.Header()
	if compress {
		if h.Get("Content-Type") == "" {
			h.Set("Content-Type", http.DetectContentType(w.held)) // net/http would look at the compressed bytes
		}
		encoding := w.encoding()
		h.Set("Content-Encoding", encoding)
		h.Del("Content-Length")
		if tag := h.Get("ETag"); tag != "" && !strings.HasPrefix(tag, "W/") {
			h.Set("ETag", "W/"+tag) // the bytes are others
		}
		if w.pool = encoders[encoding]; w.streams() {
			w.pool = encoders[streamed]
		}
		w.enc = w.pool.Get().(encoder)
		w.enc.Reset(w.ResponseWriter)
	}
	if w.status != 0 {
		w.ResponseWriter.WriteHeader(w.status)
	}
	held := w.held
	w.held = nil
	if len(held) == 0 {
		return nil
	}
	_, err := w.pass(held)
	return err
}

func (w *compressor) pass(p []byte) (int, error) {
	if w.enc != nil {
		return w.enc.Write(p)
	}
	return w.ResponseWriter.Write(p)
}

// streams reports whether the body is a stream of events.
func (w *compressor) streams() bool {
	kind, _, _ := strings.Cut(w.Header().Get("Content-Type"), ";")
	return kind == "text/event-stream"
}

// encoding returns the best encoding that the client accepts for the body.
func (w *compressor) encoding() string {
	if w.accepts["zstd"] && !w.streams() {
		return "zstd"
	}
	return "gzip"
}

// compressible reports whether a body of this kind becomes smaller, and may be changed.
func (w *compressor) compressible() bool {
	h := w.Header()
	if !w.accepts[w.encoding()] {
		return false
	}
	if h.Get("Content-Encoding") != "" || h.Get("Content-Range") != "" || w.status == http.StatusPartialContent {
		return false
	}
	kind, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	switch {
	case kind == "", strings.HasPrefix(kind, "text/"), strings.HasSuffix(kind, "json"), strings.HasSuffix(kind, "xml"),
		strings.HasSuffix(kind, "javascript"):
		return true
	}
	return false
}

// Flush sends what there is. Of a handler that flushes early, only a long body is worth compressing, or events.
func (w *compressor) Flush() {
	if !w.decided {
		_ = w.decide((len(w.held) > minCompressed || w.streams()) && w.compressible())
	}
	if w.enc != nil {
		_ = w.enc.Flush()
	}
	_ = http.NewResponseController(w.ResponseWriter).Flush() // it fails when the client has gone away
}

func (w *compressor) close() {
	if !w.decided {
		_ = w.decide(false) // the whole body is small
	}
	if w.enc == nil {
		return
	}
	_ = w.enc.Close() // it fails when the client has gone away
	w.enc.Reset(io.Discard)
	w.pool.Put(w.enc)
}
