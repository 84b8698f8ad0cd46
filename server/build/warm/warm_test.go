package warm

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"

	"ordain.dev/ordain/compiler/plugin"
)

// If the files of a template change while it is made, such as by the making of another
// virtual environment, it is tried again a few times. Other errors are final.
func TestTouchedTemplatesAreTriedAgain(t *testing.T) {
	other := errors.New("something else")
	for name, tt := range map[string]struct {
		touched, tries int
		why            error
	}{
		"twice":    {2, 3, other},
		"always":   {100, attempts, plugin.ErrTouched},
		"no touch": {0, 1, other},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				told := make(chan string, 10)
				k, err := New(
					Config{
						Logger:   slog.New(slog.DiscardHandler),
						OnChange: func(_ string, _ bool, why string) { told <- why },
					},
				)
				if err != nil {
					t.Fatal(err)
				}
				defer k.Close()
				tries := 0
				k.begin("an owner", &entry{}, func(context.Context) (*plugin.Template, error) {
					if tries++; tries <= tt.touched {
						return nil, plugin.ErrTouched
					}
					return nil, other
				})
				if why := <-told; why != tt.why.Error() || tries != tt.tries {
					t.Errorf("given up after %d tries: %s", tries, why)
				}
			})
		})
	}
}
