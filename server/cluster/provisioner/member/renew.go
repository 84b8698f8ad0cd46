package member

import (
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/agent/ca"
	"ordain.dev/ordain/server/agent/trust"
	"ordain.dev/ordain/server/cluster/task"
)

// Start begins to renew the certificate when it is time.
func (m *Member) Start(ctx context.Context) error {
	return m.running.Start(ctx, func(context.Context) (func(context.Context), error) { return m.run, nil })
}

// Stop ends that, and closes connections that are not used.
func (m *Member) Stop() {
	m.running.Stop()
	m.link.CloseIdleConnections()
}

// lookAgain is how long to wait at most without looking at the clock, which may have been set.
const lookAgain = time.Hour

func (m *Member) run(ctx context.Context) {
	var earliest time.Time
	for ctx.Err() == nil {
		wait := max(m.due().Sub(m.link.serverTime()), time.Until(earliest))
		if wait <= 0 {
			err := m.Renew(ctx)
			leaf := m.link.now().pair.Leaf
			if err != nil && ctx.Err() == nil {
				m.log.Error("the provisioner's certificate cannot be renewed", "expires", leaf.NotAfter, "error", err)
			}
			// The more time there is, the less hurry. Whatever the clocks say, it does not go round and round.
			left := leaf.NotAfter.Sub(m.link.serverTime())
			wait = min(max(left/20, time.Second), lookAgain)
			earliest = time.Now().Add(wait)
		}
		timer := time.NewTimer(min(wait, lookAgain))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

// due returns when the certificate is to be renewed, by the server's clock: after two thirds of its lifetime.
func (m *Member) due() time.Time {
	leaf := m.link.now().pair.Leaf
	made := leaf.NotBefore.Add(ca.Skew)
	return made.Add(leaf.NotAfter.Sub(made) * 2 / 3)
}

const renewTimeout = time.Minute

// Renew gets another certificate now. The present one counts until the new one is used for the first time, so that
// nothing is lost when this breaks off, wherever it does.
func (m *Member) Renew(ctx context.Context) error {
	const op = "provisioner.renew"
	m.renewing.Lock()
	defer m.renewing.Unlock()
	request, key, err := ca.Request()
	if err != nil {
		return fault.Wrap(op, fault.Internal, err)
	}
	ctx, cancel := context.WithTimeout(ctx, renewTimeout)
	defer cancel()
	answer, said, err := post(ctx, m.HTTP(), m.URL, task.CertificatePath, task.CertificateRequest{Request: request})
	if err != nil {
		return fault.Wrap(op, fault.Unavailable, err).Say("the server at " + m.URL + " cannot be reached")
	}
	if answer.StatusCode != http.StatusOK {
		return refused(op, "the server at "+m.URL+" does not renew the certificate", answer, said)
	}
	var made task.CertificateAnswer
	if err := json.Unmarshal(said, &made); err != nil {
		return fault.Wrap(op, fault.Unavailable, err).Say("the server's answer cannot be read")
	}
	text := []byte(key + made.Certificate)
	pair, err := parsePair(text)
	if err != nil {
		return fault.Wrap(op, fault.Unavailable, err).Say("the certificate that the server sent is not for this key")
	}
	if err := trust.WriteFile(filepath.Join(m.folder, identityFile), text); err != nil {
		return err
	}
	m.link.use(pair)
	m.log.Info("the provisioner's certificate was renewed", "expires", pair.Leaf.NotAfter)
	return nil
}
