package api

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"
)

// etagOf returns the weak ETag of an answer: a hash of its bytes before compression.
func etagOf(text []byte) string {
	sum := sha256.Sum256(text)
	return `W/"` + hex.EncodeToString(sum[:16]) + `"`
}

// tag gives the answer to a read its ETag. It reports whether the client has these bytes already, so that 304 and no
// body is the answer.
func tag(g *gin.Context, etag string) (known bool) {
	h := g.Writer.Header()
	h.Set("ETag", etag)
	// Only the client itself may keep the answer, and has to ask whether it still holds. It depends on the sender and
	// the environment, besides the address.
	h.Set("Cache-Control", "private, no-cache")
	h.Add("Vary", "Authorization, Cookie, "+tidHeader)
	for _, value := range g.Request.Header.Values("If-None-Match") {
		for one := range strings.SplitSeq(value, ",") {
			one = strings.TrimSpace(one)
			if one == "*" || strings.TrimPrefix(one, "W/") == strings.TrimPrefix(etag, "W/") {
				return true
			}
		}
	}
	return false
}

// tagged reports whether the answers to a call get an ETag: those that only read.
func (d *declaration) tagged() bool { return d.method == http.MethodGet && !d.acts }
