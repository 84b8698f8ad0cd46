package api

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"sync"
)

var gzips = sync.Pool{New: func() any { return gzip.NewWriter(io.Discard) }}

// compress sends answers that have a body in gzip to clients that ask for it.
func compress(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Vary", "Accept-Encoding")
		if !acceptsGzip(r.Header.Values("Accept-Encoding")) || r.Method == http.MethodHead {
			next.ServeHTTP(w, r)
			return
		}
		cw := &gzipWriter{ResponseWriter: w}
		defer cw.close()
		next.ServeHTTP(cw, r)
	})
}

func acceptsGzip(values []string) bool {
	for _, value := range values {
		for one := range strings.SplitSeq(value, ",") {
			name, q, _ := strings.Cut(strings.TrimSpace(one), ";")
			if strings.EqualFold(strings.TrimSpace(name), "gzip") {
				q = strings.ReplaceAll(q, " ", "")
				return q != "q=0" && q != "q=0.0" && q != "q=0.00" && q != "q=0.000"
			}
		}
	}
	return false
}

// gzipWriter begins to compress with the first byte of a body, so that answers without a body stay as they are.
type gzipWriter struct {
	http.ResponseWriter
	status int
	gz     *gzip.Writer
}

func (w *gzipWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}

func (w *gzipWriter) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if w.gz == nil {
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Del("Content-Length")
		w.sendHeader()
		w.gz = gzips.Get().(*gzip.Writer)
		w.gz.Reset(w.ResponseWriter)
	}
	return w.gz.Write(p)
}

func (w *gzipWriter) sendHeader() {
	if w.status != 0 {
		w.ResponseWriter.WriteHeader(w.status)
	}
}

func (w *gzipWriter) close() {
	if w.gz == nil {
		w.sendHeader()
		return
	}
	_ = w.gz.Close() // it fails when the client has gone away
	w.gz.Reset(io.Discard)
	gzips.Put(w.gz)
}
