package intent

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// QuotaKind is something that a project may use only so much of.
type QuotaKind string

// The kinds of quotas.
const (
	QuotaEnvironments QuotaKind = "environments"
	QuotaResources    QuotaKind = "resources" // of the newest versions of all environments
	QuotaExecutors    QuotaKind = "executors" // processes that run handlers at a time
	QuotaCompiles     QuotaKind = "compiles"  // compiles and previews that run at a time
	QuotaDisk         QuotaKind = "disk"      // bytes of the folders of all environments
)

// QuotaKinds lists all kinds in the order in which people see them.
var QuotaKinds = []QuotaKind{QuotaEnvironments, QuotaResources, QuotaExecutors, QuotaCompiles, QuotaDisk}

// Quota is how much a project may use. A kind that is missing has no limit.
type Quota map[QuotaKind]int64

// Usage is how much a project uses.
type Usage map[QuotaKind]int64

// Text writes an amount of the kind for people.
func (k QuotaKind) Text(n int64) string {
	if k == QuotaDisk {
		return byteText(n)
	}
	return strconv.FormatInt(n, 10)
}

// Meaning says in words what a quota limits.
func (k QuotaKind) Meaning() string {
	switch k {
	case QuotaResources:
		return "resources in all environments"
	case QuotaExecutors:
		return "processes that run handlers at a time"
	case QuotaCompiles:
		return "compiles and previews that run at a time"
	case QuotaDisk:
		return "bytes of the folders of all environments, with K, M, G or T for units of 1024"
	}
	return string(k)
}

const units = "KMGT" // of 1024 each

// ParseAmount reads a number, which may have a unit of 1024, such as 20 or 5G. Nothing, and none, is no limit: nil.
func ParseAmount(text string) (*int64, error) {
	if text == "" || text == "none" {
		return nil, nil
	}
	number, shift := text, 0
	if i := strings.IndexAny(text, units); i > 0 && i == len(text)-1 {
		number, shift = text[:i], 10*(1+strings.IndexByte(units, text[i]))
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64>>shift {
		return nil, fmt.Errorf("%.40q is neither a number, such as 20 or 5G, nor none", text)
	}
	n <<= shift
	return &n, nil
}

// FormatAmount writes a number as ParseAmount reads it.
func FormatAmount(n int64) string {
	unit := ""
	for i := 0; i < len(units) && n > 0 && n%1024 == 0; i++ {
		n, unit = n/1024, units[i:i+1]
	}
	return strconv.FormatInt(n, 10) + unit
}

// byteText writes a number of bytes with three digits or so.
func byteText(n int64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d bytes", n)
	}
	value, unit := float64(n)/(1<<10), 0
	for value >= 1000 && unit < len(units)-1 {
		value, unit = value/(1<<10), unit+1
	}
	if value < 10 {
		return fmt.Sprintf("%.1f %ciB", value, units[unit])
	}
	return fmt.Sprintf("%.0f %ciB", value, units[unit])
}

// QuotaError says that a project may not use more of something.
type QuotaError struct {
	Project string
	Kind    QuotaKind
	Use     int64 // now
	Wanted  int64 // in the end; 0: anything more
	Limit   int64
}

// Error names the quota, the use and the limit.
func (e *QuotaError) Error() string {
	text := fmt.Sprintf("the project %s has a quota of %s for %s and uses %s", e.Project, e.Kind.Text(e.Limit), e.Kind,
		e.Kind.Text(e.Use))
	if e.Wanted > 0 {
		text += fmt.Sprintf("; this would make it %s", e.Kind.Text(e.Wanted))
	}
	return text
}

// Advice says what can be done about it, and by whom.
func (e *QuotaError) Advice() string {
	free := "remove some"
	if e.Kind == QuotaDisk {
		free = "clear or delete environments"
	}
	return fmt.Sprintf("%s, or ask an administrator of the server to raise the quota: "+
		"ordain project quota %s --%s N", free, e.Project, e.Kind)
}
