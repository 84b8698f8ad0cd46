package api

import (
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"reflect"

	"github.com/gin-gonic/gin"

	"ordain.dev/ordain/server/edge"
)

// jsonBody is embedded in the arguments of calls whose body is one JSON object with names of its own, as an entity of
// the catalogue: it is not a set of arguments. Those stand in the path and the query.
type jsonBody struct {
	Text json.RawMessage // nil: there was none
}

// fileBody is embedded in the arguments of calls whose body is a file. The call reads it, and bounds it.
type fileBody struct {
	Content io.Reader
}

// takeBody gives the body to a field that takes it as it is; whole is false if the arguments have no such field.
func takeBody(r *http.Request, limit int64, share *edge.Share, args any) (whole bool, err error) {
	v := reflect.ValueOf(args).Elem()
	if b, has := find[jsonBody](v); has {
		text, err := readObject(r, limit, maxValues, share)
		if err == nil && text == nil {
			err = invalid("the body has to be a JSON object")
		}
		b.FieldByName("Text").SetBytes(text)
		return true, err
	}
	if b, has := find[fileBody](v); has {
		b.FieldByName("Content").Set(reflect.ValueOf(r.Body))
		return true, checkFile(r)
	}
	return false, nil
}

// find returns the struct of a type among those that are embedded or inlined in another one.
func find[T any](v reflect.Value) (found reflect.Value, has bool) {
	if v.Type() == reflect.TypeFor[T]() {
		return v, true
	}
	for i := range v.NumField() {
		if f := v.Type().Field(i); inlined(f) && f.Type.Kind() == reflect.Struct {
			if found, has = find[T](v.Field(i)); has {
				return found, true
			}
		}
	}
	return reflect.Value{}, false
}

// checkFile refuses a body that a form of another site can send, and one that is packed for its way.
func checkFile(r *http.Request) error {
	if r.Header.Get("Content-Encoding") != "" {
		return invalid("the content must be sent as it is, without a Content-Encoding")
	}
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err == nil && media == "application/octet-stream" {
		return nil
	}
	if r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != "" || r.Header.Get("Referer") != "" {
		return invalid("the content must have the content type application/octet-stream")
	}
	return nil
}

// fileAnswer is an answer that is a file.
type fileAnswer struct {
	content io.ReadCloser
	size    int64
	name    string
}

// stream sends the file. When it breaks off, the connection does, so that nobody takes a part for the whole.
func (f fileAnswer) stream(g *gin.Context) {
	defer func() { _ = f.content.Close() }()
	h := g.Writer.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": f.name}))
	g.Status(http.StatusOK)
	if n, err := io.Copy(g.Writer, f.content); err != nil || n != f.size {
		panic(http.ErrAbortHandler)
	}
}
