package plugins

import (
	"context"
	"encoding/json"
	"time"

	"ordain.dev/ordain/internal/fault"
	"ordain.dev/ordain/server/cluster/provisioner/plugin"
	"ordain.dev/ordain/server/cluster/provisioner/target"
)

// reachWait is how long one look at a new machine may take. The providers of clouds look again after it, and ask the
// cloud in between whether the machine still runs.
const reachWait = 30 * time.Second

// reach logs in to a machine of a cloud for the first time, with the provider's key, and returns its host keys. It is
// the cloud.Reach of the built-in providers.
//
// A machine may have been replaced under the same node, so what was pinned before does not count: the cloud has just
// said that the machine with the tag of the node has this address.
func reach(ctx context.Context, c plugin.Call, address string) ([]string, error) {
	config, err := target.Endpoint(c)
	if err != nil {
		return nil, err
	}
	config.Host, config.HostKeys = address, nil
	// The user of the image gets the key while the machine starts; until then it is turned away.
	result, err := target.Confirm(ctx, c, target.First{Config: config, Wait: reachWait, KeyLater: true})
	if err != nil {
		return nil, err
	}
	var keys []string
	if err := json.Unmarshal(result.Facts[target.HostKeysFact], &keys); err != nil {
		return nil, fault.Wrap("plugins.reach", fault.Internal, err).Say("the host keys of the machine cannot be read")
	}
	return keys, nil
}
