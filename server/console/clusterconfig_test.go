package console

import "testing"

// A form's configuration has numbers that no float64 has, and they stay as they were typed.
func TestLargeNumbersOfAForm(t *testing.T) {
	t.Parallel()
	wrong := wrongs{}
	got := readConfig(`{"id": 9007199254740993}`, wrong)
	if got["id"] != 9007199254740993 || len(wrong) != 0 {
		t.Errorf("the configuration is %v, and wrong is %v", got, wrong)
	}
	if sameValue(got, readConfig(`{"id": 9007199254740992}`, wrong)) {
		t.Error("another number counts as no change")
	}
	if readConfig(`{"id": 1} {}`, wrong); len(wrong["config"]) != 1 {
		t.Errorf("wrong is %v", wrong)
	}
}
