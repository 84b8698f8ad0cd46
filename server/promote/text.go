package promote

import (
	"fmt"
	"strings"

	"ordain.dev/ordain/internal/intent"
)

// Waits describes what a promotion waits for: "waits: soak until 14:05 UTC; 3 resources are not compliant: …".
func Waits(p intent.Promotion) string {
	var texts []string
	for _, g := range p.Held() {
		texts = append(texts, g.Text)
	}
	if len(texts) == 0 {
		return "waits to be looked at"
	}
	return "waits: " + strings.Join(texts, "; ")
}

// Waited describes what a promotion waited for, or that it was ready.
func Waited(p intent.Promotion) string {
	if len(p.Held()) == 0 {
		return "was ready"
	}
	return "waited: " + strings.TrimPrefix(Waits(p), "waits: ")
}

// Text describes the state of a promotion.
func Text(p intent.Promotion) string {
	switch p.State {
	case intent.PromotionSuperseded:
		return "superseded: " + p.Reason
	case intent.PromotionPromoted:
		text := "promoted"
		if o := p.Overridden; o != nil {
			text += fmt.Sprintf(" by %s in spite of its gates: %s", o.By, o.Reason)
		}
		switch {
		case p.Made > 0:
			return fmt.Sprintf("%s; it is version %d", text, p.Made)
		case p.Success != nil && !*p.Success:
			return text + "; its compile failed"
		}
		return text
	}
	return Waits(p)
}
