package intent

import "github.com/google/uuid"

// BusServer says where the server of the event bus is, if one of the replicas runs it.
type BusServer struct {
	Installation uuid.UUID // separates installations that share a cluster of NATS
	Address      string    // host and port; empty: none ran yet
	Host         string    // the replica that runs it, for people
	Certificate  []byte    // of the server, in DER
	Credentials  []byte    // sealed
}
