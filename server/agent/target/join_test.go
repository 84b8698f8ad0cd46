package target

import (
	"strings"
	"testing"
)

// What is not a join token is refused with one sentence that says what one looks like.
func TestWhatIsNoJoinTokenIsToldOnce(t *testing.T) {
	for _, text := range []string{"", "garbage", "ordain-join.abc"} {
		err := Join(t.Context(), Config{StateDir: t.TempDir()}, text)
		if err == nil {
			t.Fatalf("an agent joins with %q", text)
		}
		if got := err.Error(); strings.Count(got, "this is not a join token: it begins with ordain-join.") != 1 {
			t.Errorf("%q: the error reads %q", text, got)
		}
	}
}
