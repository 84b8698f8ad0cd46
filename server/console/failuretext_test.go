package console

import "testing"

// The reason of a failed deployment is a sentence, and its traceback has lines.
func TestAFailureIsReadable(t *testing.T) {
	t.Parallel()
	first, trace := readable(
		`failed: RemoteException('builtins.FileNotFoundError: [Errno 2] No such file: \'/tmp/x\'\n` +
			`  File "<stdin>", line 4009\n    ^^^^^')`)
	if first != "failed: builtins.FileNotFoundError: [Errno 2] No such file: '/tmp/x'" ||
		trace != "  File \"<stdin>\", line 4009\n    ^^^^^" {
		t.Errorf("%q, %q", first, trace)
	}
	if first, trace := readable("plain\nmore"); first != "plain" || trace != "more" {
		t.Errorf("%q, %q", first, trace)
	}
}
