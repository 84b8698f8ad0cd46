package webhooks

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"ordain.dev/ordain/internal/jsontext"
)

// dialect is how one forge sends webhooks.
type dialect struct {
	name string
	// proof reads from the headers what proves who sends. Its error says what is
	// wrong with them.
	proof func(http.Header) (proof, error)
	// parse reads the payload, and returns the forge's id of the delivery with the
	// event. The id is empty when the forge gives none.
	parse func(http.Header, []byte) (Event, string, error)
}

// dialectsByName returns all dialects by their names.
func dialectsByName(now func() time.Time) map[string]dialect {
	out := map[string]dialect{}
	for _, d := range []dialect{
		github, gitlab(now), gitea, forgejo, gogs, bitbucket, bitbucketServer, azure, generic, standard(now),
	} {
		out[d.name] = d
	}
	return out
}

// maxValues is how many values a payload may hold. A push of 2,000 commits, the most that a forge lists, has some
// 50,000 and the paths that they changed.
const maxValues = 250_000

// decode reads JSON into a struct that has the few fields we need. Its error says
// where the JSON is wrong, without quoting it.
func decode(body []byte, into any) error {
	var nothing struct{}
	err := json.Unmarshal(body, &nothing) // builds nothing
	if err == nil {
		if jsontext.Measure(body).Values > maxValues {
			return fmt.Errorf("it holds more than %d values", maxValues)
		}
		err = json.Unmarshal(body, into)
	}
	var (
		syntax *json.SyntaxError
		typed  *json.UnmarshalTypeError
	)
	switch {
	case err == nil:
		return nil
	case len(body) == 0:
		return errors.New("it is empty")
	case errors.As(err, &syntax):
		return fmt.Errorf("it is not JSON, at byte %d", syntax.Offset)
	case errors.As(err, &typed):
		return fmt.Errorf("%s cannot be a JSON %s", printable(typed.Field, 60), typed.Value)
	}
	return errors.New("it is not JSON")
}

// firstOf returns the first text that is not empty.
func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
