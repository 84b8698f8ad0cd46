package cloud

import (
	"encoding/json"
	"fmt"

	"ordain.dev/ordain/server/cluster/provisioner/plugin"
	"ordain.dev/ordain/server/cluster/task"
)

// AccountFact is the fact that names the account in which the machine of a node was made: the number of an account of
// AWS, or the id of a project of OpenStack. The fields of a provider only say how to log in; with the credentials of
// another account a machine would not be found, and would count as gone.
const AccountFact = "provider_account"

// SameAccount refuses a call about a machine that was made in another account than the one that the credentials of the
// provider belong to now. An empty account is not known, as is that of a machine that was made before it was recorded.
func SameAccount(c plugin.Call, now string) error {
	made := KnownAccount(c)
	if made == "" || now == "" || made == now {
		return nil
	}
	return plugin.Refuse(fmt.Sprintf("the machine of node %d was made in the account %s, and the credentials of "+
		"provider %s are those of the account %s now, where nobody would find it; give the provider credentials of "+
		"%s again, and use a provider with another name for the other account", c.Node.Number, made, c.Provider.Name,
		now, made))
}

// KnownAccount returns the account that an earlier task recorded, or "".
func KnownAccount(c plugin.Call) (account string) {
	_ = json.Unmarshal(c.Node.Facts[AccountFact], &account)
	return account
}

// InAccount adds the account to what is known of a machine.
func InAccount(r plugin.Result, account string) plugin.Result {
	if account == "" {
		return r
	}
	if r.Facts == nil {
		r.Facts = task.Fields{}
	}
	r.Facts[AccountFact] = text(account)
	return r
}
