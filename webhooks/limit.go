package webhooks

import (
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"ordain.dev/ordain/server/edge"
)

// limiter bounds how many webhooks each sender may send.
type limiter struct {
	limit rate.Limit
	burst int
	now   func() time.Time

	mu      sync.Mutex
	senders map[string]*rate.Limiter
	swept   time.Time
}

// maxSenders bounds how many senders a limiter remembers.
const maxSenders = 10_000

func newLimiter(perSecond float64, burst int, now func() time.Time) *limiter {
	return &limiter{
		limit: rate.Limit(perSecond), burst: burst, now: now, senders: map[string]*rate.Limiter{}, swept: now(),
	}
}

// take returns zero when the sender may send one webhook now, and otherwise how
// long the sender has to wait.
func (l *limiter) take(sender string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	of := l.senders[sender]
	if of == nil {
		l.sweep(now)
		of = rate.NewLimiter(l.limit, l.burst)
		l.senders[sender] = of
	}
	reservation := of.ReserveN(now, 1)
	wait := reservation.DelayFrom(now)
	if wait > 0 {
		reservation.CancelAt(now)
	}
	return wait
}

// sweep forgets the senders that may send a whole burst again. If too many
// senders are left, it forgets them all: slowing one of them down would not help
// against that many.
func (l *limiter) sweep(now time.Time) {
	if len(l.senders) < maxSenders && now.Sub(l.swept) < time.Minute {
		return
	}
	l.swept = now
	for sender, of := range l.senders {
		if of.TokensAt(now) >= float64(l.burst) {
			delete(l.senders, sender)
		}
	}
	if len(l.senders) >= maxSenders {
		clear(l.senders)
	}
}

// senderOf names the sender of a request by its address. A /64 network of IPv6 is
// one sender.
func senderOf(r *http.Request) string {
	host := edge.ClientAddress(r)
	if ip := net.ParseIP(host); ip != nil && ip.To4() == nil {
		return ip.Mask(net.CIDRMask(64, 128)).String()
	}
	return host
}
