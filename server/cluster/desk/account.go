package desk

import (
	"encoding/json"

	"ordain.dev/ordain/internal/intent"
	"ordain.dev/ordain/server/cluster/task"
)

// accountFact is the fact that plug-ins for clouds record of a machine: the account in which it was made. They compare
// it with the account that the provider's credentials belong to, and refuse a task if it is another one.
const accountFact = "provider_account"

// noteAccount notes the account of a machine.
func (p *peers) noteAccount(n intent.ClusterNode, account json.RawMessage) {
	if n.State == intent.NodeMade && len(account) > 0 {
		p.accounts[n.Provider] = account
	}
}

// sameAccount tells a plug-in that is to make a machine in which account the others of the cluster are, so that no
// cluster is made half in one account and half in another.
func (c *composer) sameAccount(p *peers) {
	facts, account := c.t.Node.Facts, p.accounts[c.node.Provider]
	if c.t.Action == task.Create && facts[accountFact] == nil && account != nil {
		facts[accountFact] = account
	}
}
